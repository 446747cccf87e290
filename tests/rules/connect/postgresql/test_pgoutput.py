"""The decoder of pgoutput: bytes in, values out, and nothing but Malformed for bytes that are none."""

import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect.connectors.postgresql import pgoutput as pg
from ottla.connect.connectors.postgresql.lsn import lsn_of, lsn_text
from tests.rules.connect.postgresql import messages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
COLUMNS = st.lists(st.one_of(st.none(), st.just(pg.UNCHANGED), TEXTS), max_size=8)
OIDS = st.integers(0, (1 << 32) - 1)
LSNS = st.integers(0, (1 << 63) - 1)


@given(OIDS, COLUMNS, COLUMNS, st.booleans())
def test_rows_come_back_as_they_were_written(oid: int, old: pg.Columns, new: pg.Columns, is_whole: bool) -> None:
    assert pg.decode(messages.insert(oid, new)) == pg.Insert(oid, new)
    assert pg.decode(messages.update(oid, new)) == pg.Update(oid, None, False, new)
    assert pg.decode(messages.update(oid, new, old, is_whole=is_whole)) == pg.Update(oid, old, is_whole, new)
    assert pg.decode(messages.delete(oid, old, is_whole=is_whole)) == pg.Delete(oid, old, is_whole)


@given(LSNS, LSNS, OIDS, st.integers(-(1 << 40), 1 << 40))
def test_transactions_begin_and_end_where_they_say(commit: int, end: int, xid: int, micros: int) -> None:
    at = micros + pg.EPOCH_MICROS
    assert pg.decode(messages.begin(commit, xid, at)) == pg.Begin(commit, at, xid)
    assert pg.decode(messages.commit(commit, end, at)) == pg.Commit(commit, end, at)


@given(OIDS, NAMES, NAMES, st.lists(st.tuples(NAMES, OIDS, st.integers(-1, 1 << 30), st.booleans()), max_size=6))
def test_relations_are_described(oid: int, schema: str, table: str, columns: list[tuple[str, int, int, bool]]) -> None:
    given_ = pg.Relation(oid, schema, table, "d", tuple(pg.RelationColumn(*each) for each in columns))
    assert pg.decode(messages.relation(given_)) == given_


def test_truncates_name_their_relations_and_options() -> None:
    assert pg.decode(messages.truncate(1, 2, flags=3)) == pg.Truncate((1, 2), True, True)


def test_messages_of_users_and_what_is_of_no_use() -> None:
    assert pg.decode(messages.message("outbox", b"\x00\xff")) == pg.Message(True, 7, "outbox", b"\x00\xff")
    assert pg.decode(b"Yanything") == pg.Other("Y")


WHOLE = [
    messages.begin(1, 2),
    messages.commit(1, 2),
    messages.relation(pg.Relation(1, "s", "t", "d", (pg.RelationColumn("a", 23, -1, True),))),
    messages.insert(1, ["a", None]),
    messages.update(1, ["a"], ["b"]),
    messages.delete(1, ["a"]),
    messages.truncate(1),
    messages.message("p", b"abc"),
]


@pytest.mark.parametrize("whole", WHOLE, ids=lambda each: each[:1].decode())
def test_a_message_that_is_cut_off_is_malformed(whole: bytes) -> None:
    for length in range(len(whole)):
        with pytest.raises(pg.Malformed):
            pg.decode(whole[:length])


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    with suppress(pg.Malformed):
        pg.decode(data)


def test_there_is_one_value_that_is_not_there() -> None:
    assert pickle.loads(pickle.dumps([pg.UNCHANGED]))[0] is pg.UNCHANGED


@given(LSNS)
def test_places_in_the_log_are_read_as_they_are_written(lsn: int) -> None:
    assert lsn_of(lsn_text(lsn)) == lsn_of(lsn) == lsn


@pytest.mark.parametrize("wrong", ["", "1", "G/0", "1/2/3", None, -1, 1.5, True, "123456789/0"])
def test_what_is_no_place_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="no place"):
        lsn_of(wrong)
