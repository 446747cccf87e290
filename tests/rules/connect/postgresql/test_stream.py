"""Which transactions a read gives, and where it ends: by the commit record's own place, in any portions."""

from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.connect import spi
from ottla.connect.connectors.postgresql.catalog import ColumnFacts, TableFacts
from ottla.connect.connectors.postgresql.columns import TypeName
from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.connectors.postgresql.pgoutput import Relation, RelationColumn
from ottla.connect.connectors.postgresql.position import Inside, Position, View, position_of
from ottla.connect.connectors.postgresql.stream import Known, Rules, Unpacking, Watch
from ottla.connect.connectors.postgresql.tables import Capture, Table
from tests.rules.connect.postgresql import messages

RELATION = Relation(7, "public", "t", "d", (RelationColumn("id", 23, -1, True),))
CAPTURE = Capture(spi.parse(PostgresConfig, {"database.dbname": "d", "topic.prefix": "p"}))
TABLE = Table(
    TableFacts("public", "t", {"id": ColumnFacts("id", TypeName("int4"), True, None)}, ("id",)), ["id"], CAPTURE
)
RULES = Rules(frozenset("t"), lambda _: Known(TABLE), list)
STEP = 100
"""Bytes of WAL of a transaction; its commit record is ten long."""


def log(sizes: list[int]) -> list[tuple[int, bytes]]:
    """Transactions of so many inserts, numbered on; the n-th commits at n * STEP."""
    found: list[tuple[int, bytes]] = []
    ids = count(1)
    for number, size in enumerate(sizes, 1):
        at = number * STEP
        found.append((at, messages.begin(at, 500 + number)))
        found.append((at, messages.relation(RELATION)))
        found += [(at - 50, messages.insert(7, [str(next(ids))])) for _ in range(size)]
        found.append((at + 10, messages.commit(at, at + 10)))
    return found


def ids_of(events: list[Any]) -> list[int]:
    return [int(event.new[0]) for event in events]


def unpacking(position: Position, sizes: list[int], upto: int = 1 << 40, watch: Watch | None = None) -> Unpacking:
    return Unpacking(RULES, position, upto, iter(log(sizes)), watch)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.lists(st.integers(1, 7), min_size=1), st.booleans())
def test_portions_of_any_size_make_up_the_whole_whoever_goes_on(
    sizes: list[int], limits: list[int], dies: bool
) -> None:
    wanted = list(range(1, sum(sizes) + 1))
    found: list[int] = []
    position, is_end = Position(0), False
    reading = unpacking(position, sizes)
    while not is_end:
        limit = limits.pop(0) if limits else 3
        events, is_end = reading.take(limit)
        found += ids_of(events)
        position = position_of(reading.position.as_offset())
        assert position == reading.position
        if dies:
            reading = unpacking(position, sizes)
            is_end = is_end or not events
    assert found == wanted


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 700), st.integers(0, 700))
def test_a_transaction_counts_if_its_commit_record_begins_from_start_to_end(
    sizes: list[int], start: int, upto: int
) -> None:
    events, _ = unpacking(Position(start), sizes, upto).take(10**6)
    first = 1
    wanted: list[int] = []
    for number, size in enumerate(sizes, 1):
        if start <= number * STEP < upto:
            wanted += range(first, first + size)
        first += size
    assert ids_of(events) == wanted


def test_the_midst_of_a_transaction_is_a_place_too() -> None:
    events, is_end = (reading := unpacking(Position(0), [2, 5])).take(4)
    assert (ids_of(events), is_end) == ([1, 2, 3, 4], False)
    assert reading.position == Position(2 * STEP, commit=STEP + 10, inside=Inside(2 * STEP, 2))


def test_what_a_view_shows_is_left_out_until_it_is_passed() -> None:
    reading = unpacking(Position(0, view=View("502:504:502", until=3 * STEP + 5)), [1, 1, 1, 1])
    events, _ = reading.take(100)
    assert ids_of(events) == [2, 4], "501 and 503 are shown, 502 was under way, 504 came later"
    assert reading.position.view is None


def test_views_know_transactions_by_32_bits() -> None:
    view = View(f"{(1 << 32) - 2}:{(1 << 32) + 3}:{(1 << 32) - 1}", 0)
    shown = {xid: view.shows(xid & 0xFFFFFFFF) for xid in range((1 << 32) - 3, (1 << 32) + 5)}
    assert list(shown.values()) == [True, True, False, True, True, True, False, False]


def test_rows_are_watched_that_a_view_does_not_show() -> None:
    watch = Watch("public.t", View("502:502:", 0))
    unpacking(Position(0), [1, 1, 1], watch=watch).take(100)
    assert watch.keys == {("2",), ("3",)}


def test_a_position_of_debeziums_is_gone_on_from() -> None:
    offset = {"lsn": 1000, "lsn_proc": 1000, "lsn_commit": 900, "txId": 5, "ts_usec": 1}
    assert position_of(offset) == Position(900, commit=900)
