"""Every aggregate by its rules: what it gives, what it does with nulls, how it takes back, how two become one."""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from ottla.serdes.types import parse_schema
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized, Produced
from ottla.streams.expressions import (
    Aggregate,
    BatchAggregate,
    Expression,
    ExpressionError,
    Inputs,
    aggregates,
    attr,
    avg,
    collect_list,
    collect_set,
    correlation,
    count,
    count_distinct,
    earliest_by_offset,
    histogram,
    latest_by_offset,
    max_,
    min_,
    offset,
    own,
    stddev_samp,
    sum_,
    sum_list,
    top_k,
    top_k_distinct,
    value,
    var_samp,
)
from ottla.streams.expressions.fold_states import StateSerde
from ottla.streams.expressions.folds import FoldFunctions
from ottla.streams.serdes import Serdes
from ottla.streams.topology.errors import TopologyError
from ottla.streams.windows import SessionWindows, TimeWindows
from tests.rules.streams.driving import driver_of, feed, results

ROW = parse_schema(
    "i int, l long, d double, p decimal(6, 2), s string, day date, hour time, at timestamp, z binary, "
    "r struct<a: int, b: date>, a array<int>"
)
TYPES = {"value": ROW}


class Spread(BatchAggregate):
    """The distance between the smallest and the largest."""

    takes = ("double",)
    keeps = "struct<low: double, high: double>"
    returns = "double"
    sizes: list[int] = []  # noqa: RUF012  for the test: of all calls

    def initial(self) -> dict[str, float | None]:
        return {"low": None, "high": None}

    def add(self, state: dict[str, Any], *columns: Any) -> dict[str, Any]:
        values = [each for each in columns[0].to_pylist() if each is not None]
        self.sizes.append(len(columns[0]))
        known = [each for each in state.values() if each is not None]
        return {"low": min(values + known, default=None), "high": max(values + known, default=None)}

    def merge(self, state: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        known = [each for each in (*state.values(), *other.values()) if each is not None]
        return {"low": min(known, default=None), "high": max(known, default=None)}

    def result(self, state: dict[str, Any]) -> float | None:
        return None if state["low"] is None else state["high"] - state["low"]


def folded(aggregate: Aggregate, rows: Sequence[dict[str, Any]], *, undo: bool = False) -> Any:
    fold = aggregate.bind(TYPES).fold(undo=undo)
    return fold.result(state_of(fold, rows))


def state_of(fold: FoldFunctions, rows: Sequence[dict[str, Any]]) -> Any:
    state = fold.initial()
    for row in rows:
        state = fold.add(state, Inputs(value=row))
    return state


def of(name: str, *values: Any) -> list[dict[str, Any]]:
    return [{name: each} for each in values]


i, d, p, s = value["i"], value["d"], value["p"], value["s"]
D = Decimal
RESULTS: list[tuple[Aggregate, list[dict[str, Any]], Any]] = [
    (count(), of("i", 1, None), 2),
    (count(i), of("i", 1, None), 1),
    (sum_(i), of("i", 1, None, 5), 6),
    (sum_(i), of("i", None), None),
    (sum_(p), of("p", D("9999.99"), D("0.01")), D("10000.00")),
    (sum_list(value["a"]), of("a", [1, 2], None, [None, 4], []), 7),
    (avg(i), of("i", 1, None, 2), 1.5),
    (avg(p), of("p", D("1.50"), D("2.50")), 2.0),
    (min_(value["day"]), of("day", date(2026, 1, 2), None, date(2026, 1, 1)), date(2026, 1, 1)),
    (max_(p), of("p", D("1.50"), D("-2.00")), D("1.50")),
    (max_(value["hour"]), of("hour", time(1), time(2)), time(2)),
    (collect_list(i), of("i", 2, None, 2, 1), [2, None, 2, 1]),
    (collect_list(i, limit=2), of("i", 1, 2, 3), [1, 2]),
    (collect_set(i), of("i", 2, None, 2, 1, None), [2, None, 1]),
    (collect_set(d), of("d", math.nan, math.nan, 1.0), [math.nan, 1.0]),
    (latest_by_offset(i), of("i", 1, 2, None), 2),
    (latest_by_offset(i, ignore_nulls=False), of("i", 1, 2, None), None),
    (latest_by_offset(i, 2), of("i", 1, 2, None, 3), [2, 3]),
    (latest_by_offset(i, 2, ignore_nulls=False), of("i", 1, 2, None), [2, None]),
    (earliest_by_offset(i), of("i", None, 1, 2), 1),
    (earliest_by_offset(i, ignore_nulls=False), of("i", None, 1), None),
    (earliest_by_offset(i, 2), of("i", 1, None, 2, 3), [1, 2]),
    (top_k(i, k=2), of("i", 1, 3, None, 3, 2), [3, 3]),
    (top_k(d, k=2), of("d", 1.0, math.nan, 2.0), [math.nan, 2.0]),
    (top_k_distinct(i, 2), of("i", 1, 3, 3, 2), [3, 2]),
    (
        top_k(i, s, k=2),
        [{"i": 1, "s": "a"}, {"i": 3, "s": "b"}, {"i": 3, "s": None}],
        [{"sort_col": 3, "col0": "b"}, {"sort_col": 3, "col0": None}],
    ),
    (histogram(s), of("s", "a", "b", None, "a"), {"a": 2, "b": 1}),
    (count_distinct(i), of("i", 1, 2, 1, None), 2),
    (count_distinct(value["r"]), of("r", {"a": 1, "b": None}, {"a": 1, "b": date(2026, 1, 1)}), 2),
    (attr(i), of("i", 1, 1, None), 1),
    (attr(i), of("i", 1, 2), None),
    (var_samp(i), of("i", 1, 3), 2.0),
    (stddev_samp(i), of("i", 5), 0.0),
    (stddev_samp(i), of("i", 2, 4, 4, 4, 5, 5, 7, 9), statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9])),
    (correlation(i, d), [{"i": n, "d": 2.0 * n} for n in range(5)], 1.0),
    (correlation(i, d), [{"i": 1, "d": 1.0}], math.nan),
    (correlation(i, d), [{"i": 1, "d": n} for n in (1.0, 2.0)], math.nan),
    (own(Spread(), i), of("i", 3, None, 10), 7.0),
]


def near(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(near, left, right))
    return bool(left == right) and type(left) is type(right)


@pytest.mark.parametrize(("aggregate", "rows", "result"), RESULTS)
def test_an_aggregate_gives_what_it_says(aggregate: Aggregate, rows: list[dict[str, Any]], result: Any) -> None:
    assert near(folded(aggregate, rows), result)


REFUSED: list[tuple[Callable[[], Aggregate], str]] = [
    (lambda: sum_(s), "a number is needed, not string"),
    (lambda: stddev_samp(value["day"]), "a number is needed, not date"),
    (lambda: min_(value["r"]), "has no order"),
    (lambda: top_k(value["a"], k=1), "has no order"),
    (lambda: histogram(i), "a string is needed, not int"),
    (lambda: sum_list(i), "an array of numbers is needed, not int"),
    (lambda: own(Spread(), value["day"]), "date cannot become double"),
]


@pytest.mark.parametrize(("aggregate", "message"), REFUSED)
def test_an_argument_of_the_wrong_type_is_refused_when_bound(aggregate: Callable[[], Aggregate], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        aggregate().bind(TYPES)


def test_what_makes_no_sense_is_refused_when_written() -> None:
    with pytest.raises(ValueError, match="k has to be a number above 0, not 0"):
        top_k(i, k=0)
    with pytest.raises(TypeError, match="Spread takes 1 arguments, not 2"):
        own(Spread(), i, d)


# ---- properties that all have

ALL: list[Aggregate] = [
    count(), count(s), sum_(i), sum_(value["l"]), sum_(p), sum_(d), avg(i), avg(p), min_(p), max_(value["at"]), min_(s),
    sum_list(value["a"]), collect_list(value["r"]), collect_list(p), collect_set(value["at"]), collect_set(value["z"]),
    latest_by_offset(value["day"]), latest_by_offset(p, 3), earliest_by_offset(value["hour"], ignore_nulls=False),
    earliest_by_offset(i, 2), top_k(p, k=3), top_k(i, value["day"], k=2), top_k_distinct(value["at"], 2), histogram(s),
    count_distinct(value["r"]), attr(value["day"]), var_samp(d), stddev_samp(i), correlation(i, d), own(Spread(), d),
    aggregates(a=sum_(p), b=collect_list(value["day"]), c=avg(i), d=aggregates(e=attr(p))),
]  # fmt: skip
UNDOING = [each for each in ALL if each.why_no_undo() is None]


def random_row(dice: random.Random) -> dict[str, Any]:
    row = {
        "i": dice.randint(-5, 5),
        "l": dice.choice([1 << 62, -(1 << 62), 7]),
        "d": dice.choice([0.5, 1.25, -2.0, 8.0]),
        "p": D(dice.randint(-500, 500)).scaleb(-2).quantize(D("0.01")),
        "s": dice.choice("abc"),
        "day": date(2026, 1, dice.randint(1, 4)),
        "hour": time(dice.randint(0, 3)),
        "at": datetime(2026, 1, 1, dice.randint(0, 3), tzinfo=UTC),
        "z": dice.choice([b"", b"\0\xff"]),
        "r": {"a": dice.randint(0, 2), "b": dice.choice([None, date(2026, 1, 1)])},
        "a": [dice.randint(0, 5), None],
    }
    return {name: None if dice.random() < 0.2 else each for name, each in row.items()}


@pytest.mark.parametrize("aggregate", ALL, ids=repr)
def test_a_state_survives_its_store(aggregate: Aggregate) -> None:
    dice = random.Random(1)
    for undo in (False, True) if aggregate in UNDOING else (False,):
        fold = aggregate.bind(TYPES).fold(undo=undo)
        state = state_of(fold, [random_row(dice) for _ in range(10)])
        serde = StateSerde()
        assert serde.deserialize(serde.serialize(state)) == state


@pytest.mark.parametrize("aggregate", ALL, ids=repr)
def test_two_parts_merged_give_what_the_whole_gives(aggregate: Aggregate) -> None:
    dice = random.Random(2)
    fold = aggregate.bind(TYPES).fold()
    for size in range(12):
        rows = [random_row(dice) for _ in range(size)]
        cut = dice.randint(0, size)
        merged = fold.merge(state_of(fold, rows[:cut]), state_of(fold, rows[cut:]))
        assert near_all(fold.result(merged), folded(aggregate, rows))


@pytest.mark.parametrize("aggregate", UNDOING, ids=repr)
def test_what_is_taken_back_was_never_there(aggregate: Aggregate) -> None:
    dice = random.Random(3)
    fold = aggregate.bind(TYPES).fold(undo=True)
    for _ in range(30):
        rows: list[dict[str, Any]] = []
        state = fold.initial()
        for _ in range(12):
            if rows and dice.random() < 0.4:
                gone = rows.pop()
                state = fold.undo(state, Inputs(value=gone))
            else:
                rows.append(random_row(dice))
                state = fold.add(state, Inputs(value=rows[-1]))
            assert near_all(fold.result(state), folded(aggregate, rows, undo=True))


@pytest.mark.parametrize("aggregate", [each for each in ALL if not each.keeps_state()], ids=repr)
def test_a_result_tells_its_state_where_none_is_kept(aggregate: Aggregate) -> None:
    dice = random.Random(4)
    bound = aggregate.bind(TYPES)
    fold, serdes = bound.fold(), (Serdes.json(bound.type), Serdes.json)
    for _ in range(20):
        before, after = [random_row(dice) for _ in range(4)], random_row(dice)
        if "l" in repr(aggregate):
            before, after = [row | {"l": 3} for row in before], after | {"l": 3}
        shown = folded(aggregate, before)
        if shown is None:
            continue
        for serde in serdes:
            resumed = fold.resume(serde.deserialize(serde.serialize(shown)))
            assert near_all(fold.result(fold.add(resumed, Inputs(value=after))), folded(aggregate, [*before, after]))


def near_all(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(near_all(left[name], right[name]) for name in left)
    return near(left, right)


def test_a_sum_that_did_not_fit_stays_null_but_a_table_finds_back() -> None:
    large = of("l", 1 << 62, 1 << 62)
    assert folded(sum_(value["l"]), [*large, {"l": -5}]) is None
    fold = sum_(value["l"]).bind(TYPES).fold(undo=True)
    state = state_of(fold, large)
    assert fold.result(state) is None
    assert fold.result(fold.undo(state, Inputs(value=large[0]))) == 1 << 62


def test_many_different_values_are_counted_within_two_per_cent() -> None:
    fold = count_distinct(i).bind(TYPES).fold()
    halves = [state_of(fold, of("i", *range(first, first + 15_000))) for first in (0, 10_000)]
    assert abs(fold.result(fold.merge(*halves)) - 25_000) < 500
    assert fold.result(state_of(fold, of("i", *range(1024), *range(1024)))) == 1024


def test_a_histogram_ignores_keys_beyond_the_thousandth() -> None:
    found = folded(histogram(s), of("s", *[str(n) for n in range(1001)], "0", "1000"))
    assert len(found) == 1000
    assert found["0"] == 2


# ---- in topologies

PAIR = Serdes.json("g STRING, n LONG, p DECIMAL(6,2)")


def table(builder: StreamsBuilder, aggregate: Aggregate, kept: Any) -> None:
    rows = builder.table("in", Consumed(Serdes.string, PAIR))
    grouped = rows.group_by(lambda key, row: (row["g"], row), Grouped(Serdes.string, PAIR))
    made = grouped.aggregate(aggregate, materialized=Materialized("kept", Serdes.string, kept))
    made.to_stream().to("out", Produced(Serdes.string, kept))


def run_table(aggregate: Aggregate, rows: Sequence[tuple[str, str | None]]) -> list[tuple[Any, Any]]:
    kept = Serdes.json(aggregate.bind({"key": Serdes.string.type, "value": PAIR.type}).type)
    with driver_of(lambda builder: table(builder, aggregate, kept)) as driver:
        feed(driver, [("in", key, row, place) for place, (key, row) in enumerate(rows)])
        return [(key, shown) for key, shown, _ in results(driver)]


def test_a_tables_aggregate_takes_back_what_a_row_was() -> None:
    rows = [
        ("x", '{"g":"a","n":3,"p":1.5}'),
        ("y", '{"g":"a","n":5,"p":2}'),
        ("x", '{"g":"b","n":4,"p":1}'),
        ("y", None),
    ]
    whole = aggregates(n=sum_(value["n"]), most=max_(value["n"]), mean=avg(value["p"]), all=collect_list(value["p"]))
    assert run_table(whole, rows) == [
        ("a", {"n": 3, "most": 3, "mean": 1.5, "all": [D("1.50")]}),
        ("a", {"n": 8, "most": 5, "mean": 1.75, "all": [D("1.50"), D("2.00")]}),
        ("a", {"n": 5, "most": 5, "mean": 2.0, "all": [D("2.00")]}),
        ("b", {"n": 4, "most": 4, "mean": 1.0, "all": [D("1.00")]}),
        ("a", {"n": None, "most": None, "mean": None, "all": []}),
    ]


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (collect_set(value["n"]), r"collect_set\(value\[\"n\"\]\) cannot take back what it was given"),
        (aggregates(a=count(), b=top_k(value["n"], k=2)), r"top_k\(value\[\"n\"\], k=2\) cannot take back"),
        (own(Spread(), value["n"]), r"Spread\(value\[\"n\"\]\) cannot take back"),
        (sum_(offset), "offset reads offset, which is not known when a row is taken back"),
    ],
)
def test_what_cannot_take_back_is_refused_behind_a_table(aggregate: Aggregate, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        table(StreamsBuilder(), aggregate, Serdes.json)


def stream(windows: Any, aggregate: Aggregate, kept: Any) -> Callable[[StreamsBuilder], None]:
    def build(builder: StreamsBuilder) -> None:
        grouped: Any = builder.stream("in", Consumed(Serdes.string, PAIR)).group_by_key(Grouped(Serdes.string, PAIR))
        if windows is not None:
            grouped = grouped.windowed_by(windows)
        made = grouped.aggregate(aggregate, materialized=Materialized("kept", Serdes.string, kept))
        made.to_stream(lambda key, _: key if isinstance(key, str) else f"{key.key}@{key.window.start}").to(
            "out", Produced(Serdes.string, kept)
        )

    return build


def run_stream(windows: Any, aggregate: Aggregate, rows: Sequence[tuple[str, int]]) -> list[tuple[Any, Any]]:
    kept = Serdes.json(aggregate.bind({"key": Serdes.string.type, "value": PAIR.type}).type)
    with driver_of(stream(windows, aggregate, kept)) as driver:
        feed(driver, [("in", "k", row, timestamp) for row, timestamp in rows])
        return [(key, shown) for key, shown, _ in results(driver)]


ROWS = [('{"n":4,"p":1}', 0), ('{"n":6,"p":2.5}', 5), ('{"n":1}', 12), ('{"n":9,"p":1}', 30)]
MIXED = aggregates(last=latest_by_offset(value["p"]), top=top_k(value["n"], k=2), spread=own(Spread(), value["n"]))


def test_a_streams_aggregate_of_all_kinds_runs_record_by_record() -> None:
    assert run_stream(None, MIXED, ROWS) == [
        ("k", {"last": D("1.00"), "top": [4], "spread": 0.0}),
        ("k", {"last": D("2.50"), "top": [6, 4], "spread": 2.0}),
        ("k", {"last": D("2.50"), "top": [6, 4], "spread": 5.0}),
        ("k", {"last": D("1.00"), "top": [9, 6], "spread": 8.0}),
    ]


def test_windows_and_sessions_have_them_too() -> None:
    assert run_stream(TimeWindows.of(10, grace_ms=0), MIXED, ROWS) == [
        ("k@0", {"last": D("1.00"), "top": [4], "spread": 0.0}),
        ("k@0", {"last": D("2.50"), "top": [6, 4], "spread": 2.0}),
        ("k@10", {"last": None, "top": [1], "spread": 0.0}),
        ("k@30", {"last": D("1.00"), "top": [9], "spread": 0.0}),
    ]
    assert run_stream(SessionWindows.of(gap_ms=7, grace_ms=100), MIXED, ROWS) == [
        ("k@0", {"last": D("1.00"), "top": [4], "spread": 0.0}),
        ("k@0", None),
        ("k@0", {"last": D("2.50"), "top": [6, 4], "spread": 2.0}),
        ("k@0", None),
        ("k@0", {"last": D("2.50"), "top": [6, 4], "spread": 5.0}),
        ("k@30", {"last": D("1.00"), "top": [9], "spread": 0.0}),
    ]


def test_why_spark_cannot_compute_it_is_told() -> None:
    assert aggregates(a=count(), b=avg(i)).why_not_native() is None
    assert aggregates(a=count(), b=histogram(s)).why_not_native() == (
        "Spark has no aggregate that does what histogram does"
    )
    assert own(Spread(), i).why_not_native() == "Spread is a class of Python"


class Wrong(Spread):
    keeps = "long"


def test_an_aggregate_that_gives_something_else_than_it_says_is_named() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.initial has to give long: an int expected, not dict"):
        folded(own(Wrong(), i), of("i", 1))


def test_structs_are_keys() -> None:
    key = Serdes.json("g STRING, day DATE")

    def build(builder: StreamsBuilder) -> None:
        from ottla.streams.expressions import struct  # noqa: PLC0415

        rows = builder.stream("in", Consumed(Serdes.string, Serdes.json("g STRING, at TIMESTAMP")))
        by_day: Expression = struct(g=value["g"], day=value["at"].cast("date"))
        rows.group_by(by_day).count(Materialized("kept")).to_stream().to("out", Produced(key, Serdes.long))

    with driver_of(build) as driver:
        rows = ['{"g":"a","at":5}', '{"g":"a","at":86400000}', '{"at":86399999,"g":"a"}']
        feed(driver, [("in", "k", row, place) for place, row in enumerate(rows)])
        found = [(key.deserialize(raw.key), Serdes.long.deserialize(raw.value)) for raw in driver.output("out")]
    first, second = {"g": "a", "day": date(1970, 1, 1)}, {"g": "a", "day": date(1970, 1, 2)}
    assert found == [(first, 1), (second, 1), (first, 2)]
