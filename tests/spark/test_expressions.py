"""Every expression gives on Spark what it gives in plain Python: the same table of inputs through both."""

import json
import math
import random
import struct as binary
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ottla.serdes import dates, decimals
from ottla.serdes.arrow import arrow_type
from ottla.serdes.types import ANY, STRING, Type, decimal_of, parse_schema
from ottla.streams.errors import NeedsSparkError
from ottla.streams.expressions import (
    Aggregate,
    Expression,
    Inputs,
    aggregates,
    array,
    avg,
    coalesce,
    concat,
    correlation,
    count,
    greatest,
    header,
    key,
    ksql_avg,
    ksql_sum,
    least,
    lit,
    max_,
    min_,
    offset,
    partition,
    stddev_samp,
    struct,
    sum_,
    timestamp,
    topic,
    value,
    var_samp,
    when,
)
from ottla.streams.expressions import (
    spark as on_spark,
)
from ottla.streams.expressions.bound import Bound
from ottla.streams.expressions.parts import parts_of, with_leaves
from ottla.streams.run.expression_columns import to_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SCHEMA = parse_schema(
    "i int, j int, l long, m long, d double, e double, s string, t string, b boolean, c boolean, "
    "a array<string>, x any, n struct<p: long, q: string>, z binary, "
    "f decimal(10, 2), g decimal(38, 10), h decimal(9, 9), day date, hour time, at timestamp, other timestamp, "
    "tags map<string, array<decimal(5, 1)>>"
)
TYPES: dict[str, Type] = {"key": STRING, "value": SCHEMA}

INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1
INTS = [None, 0, 1, -1, 7, -7, 3, INT_MIN, INT_MAX, 100]
LONGS = [None, 0, 1, -1, 10, -10, 3, LONG_MIN, LONG_MAX, 1 << 53, (1 << 53) + 1, 10**12]
DOUBLES = [
    None, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e7, 12345678.9, 1e-3, 1e-4, 0.1, 1.005, 1e300, -1e300,
    5e-324, 2.0**63,
    -(2.0**63), 2147483647.5, math.inf, -math.inf, math.nan, 3.0, 99.99, 123456789012345680.0,
]  # fmt: skip
MOMENTS = [
    "2026-12-31", "2026-02-29", "0000-01-01", "2026-12-31T10:00", "2026-12-31 10:00:00.1239999",
    "2026-01-01T00:30+02:00",
    "2026-01-01T00:30:00-17:59", "9999-12-31T23:59:59-01:00", "2026-12-31\n", "10:00", "23:59:59.1", "24:00", "10:61",
    "20000", "-5", "1767225600001", "1E-12", "0.005", "123456789.995", "-.5", "5.",
    "99999999999999999999999999999999999",
]  # fmt: skip
STRINGS = [
    None, "", "a", "A", "hello kafka streams", "Hello, Wörld!", "  padded  ", "\ttab\n", "éàü ÄÖÜ ß", "日本語",
    "😀 smile", "12",
    " 12 ", "-5", "+5", "1.5", "1e3", ".5", "5.", "1d", "inf", "-Infinity", "NaN", "true", "YES", "f", "0",
    "9223372036854775808", *MOMENTS,
    "a,b,,c,", ",", "aaa", "a.b.c", "x=1;y=2", "ΑΣ", "\x00", "İ", "_under score", "2147483648", "0x10", "1_000", "٣",
]  # fmt: skip
JSONS = [
    None, "null", "5", "-7", "1.5", "5.0", '"text"', '"12"', '" 12 "', '"true"', "true", "false", "[]",
    '["a","b"]', "[1,2,3]", "{}",
    '{"amount":101,"name":"Ann"}', '{"amount":99.5,"name":"Bob","tags":["x","y"],"deep":{"er":{"est":7}}}',
    '{"amount":"150","name":null}', '{"amount":null,"name":5}', '{"amount":true,"deep":{"er":[1]}}',
    '{"amount":9007199254740993}',
    '{"with space":1,"dotted.name":2,"quo\'te":3}', '"é😀"', "0", '"NaN"', "12345678901234567890",
]  # fmt: skip
ARRAYS = [None, [], ["a"], ["a", None, "ü"], ["x", "y", "z", ""]]
STRUCTS = [None, {"p": None, "q": None}, {"p": 5, "q": "five"}, {"p": -1, "q": ""}]
DECIMALS = {
    kind: [None, *[decimals.fit_exactly(Decimal(text), kind) for text in texts.split()]]
    for kind, texts in [
        (decimal_of(10, 2), "0 1 -1 0.01 -0.01 1.50 99999999.99 -99999999.99 2.25 1000 3"),
        (decimal_of(38, 10), "0 1 -1 1E-10 -1E-10 9999999999999999999999999999.9999999999 1E-7 2.5 1E27 -3.3333333333"),
        (decimal_of(9, 9), "0 0.000000001 -0.000000001 0.999999999 0.1 0.0000001 -0.25"),
    ]
}
DATES = [
    None,
    *map(dates.parse_date, ("1970-01-01", "2026-12-31", "0001-01-01", "9999-12-31", "2024-02-29", "1582-10-10")),
]
TIMES = [None, *map(dates.parse_time, ("00:00", "23:59:59.999", "12:30", "00:00:00.001", "09:05:03"))]
TIMESTAMPS = [
    None,
    *map(dates.parse_timestamp, ("1970-01-01", "2026-10-25T01:30:00.5Z", "0001-01-01", "9999-12-31T23:59:59.999")),
    *map(dates.timestamp_of, (-1, 1, 1_767_225_600_001, -62_000_000_000_123)),
]
MAPS = [None, {}, {"a": None}, {"b": [], "a": [Decimal("1.5"), None]}, {"ü": [Decimal("-9999.9")]}]
BINARIES = [None, b"", b"abc", "ü".encode(), b"\xff\xfe", b"\0"]

v = value
EXPRESSIONS: list[Expression] = [
    # leaves and literals
    key, timestamp, partition, offset, topic, header("h"), header("none"), header("h").cast("string"),
    value["i"], value["x"],
    lit(5), lit(10**12), lit(1.5), lit("é"), lit(True), lit(None), lit(b"\0\xff"), lit([1, 2.5, None]),
    lit({"a": 1, "b": "x"}),
    # comparisons
    *[op for a, b in [("i", "j"), ("l", "m"), ("d", "e"), ("s", "t"), ("b", "c"), ("i", "l"), ("l", "d"), ("i", "e")]
      for op in (v[a] == v[b], v[a] != v[b], v[a] < v[b], v[a] <= v[b], v[a] > v[b], v[a] >= v[b])],
    v["i"] > 3, v["d"] >= 1, v["l"] == 1 << 53, v["s"] == "a", 3 < v["i"], v["z"] == b"abc", v["b"] == True,  # noqa: E712, SIM300
    v["i"].between(-1, 3), v["d"].between(0, 1.5), v["s"].between("a", "b"), v["i"].isin(1, 7, -7),
    v["i"].isin([1, None]),
    v["d"].isin(math.nan, 0.0), v["s"].isin("a", "12", ""), v["l"].isin(1, 2.5),
    v["s"].is_null(), v["s"].is_not_null(), v["n"].is_null(), v["n"]["p"].is_null(),
    # logic
    v["b"] & v["c"], v["b"] | v["c"], ~v["b"], (v["i"] > 0) & ~(v["s"] == "a"), v["b"] & None, v["b"] | None,
    True & v["b"],
    # arithmetic
    *[op for a, b in [("i", "j"), ("l", "m"), ("d", "e"), ("i", "l"), ("l", "e")]
      for op in (v[a] + v[b], v[a] - v[b], v[a] * v[b], v[a] / v[b], v[a] % v[b])],
    v["i"] + 1, 1 - v["i"], v["l"] * 2, v["i"] / 2, 7 % v["i"], v["i"] + 1.5, -v["i"], -v["l"], -v["d"],
    v["i"] + (1 << 40),
    abs(v["i"]), abs(v["l"]), v["d"].abs(), round(v["d"]), v["d"].round(2), v["i"].round(1), v["d"].floor(),
    v["d"].ceil(),
    v["i"].floor(), v["l"].ceil(), v["s"] + v["t"], "<" + v["s"] + ">",
    # casts
    *[v[name].cast(kind) for name in ("i", "l", "d", "s", "b", "x") for kind in ("int", "long", "double", "boolean")],
    *[v[name].cast("string") for name in ("i", "l", "d", "s", "b", "z")], v["s"].cast("binary"), v["i"].cast("int"),
    # decimals
    *[op for a, b in [("f", "g"), ("f", "f"), ("g", "h"), ("h", "f"), ("f", "i"), ("l", "f"), ("f", "d"), ("h", "h")]
      for op in (v[a] + v[b], v[a] - v[b], v[a] * v[b], v[a] / v[b], v[a] % v[b], v[a] < v[b], v[a] == v[b])],
    v["f"] * 2, v["f"] * Decimal("1.19"), 1 / v["f"], v["f"] > Decimal("1.5"), v["f"] >= 1.5, -v["f"], -v["h"],
    abs(v["g"]),
    v["g"].round(3), v["f"].round(), v["f"].round(5), v["f"].floor(), v["g"].ceil(), lit(Decimal("1.50")),
    *[v[name].cast(kind) for name in ("f", "g", "h") for kind in ("int", "long", "double", "boolean", "string",
      "decimal(4, 1)", "decimal(38, 20)", "decimal(3, 3)")],
    *[v[name].cast(kind) for name in ("i", "l", "d", "s", "x") for kind in ("decimal(10, 2)", "decimal(38, 20)")],
    v["x"]["amount"].cast("decimal(12, 3)"), coalesce(v["f"], v["i"]), greatest(v["f"], v["g"]), v["f"].isin(1,
    Decimal("2.25")),
    # dates and times
    v["at"] < v["other"], v["at"] == v["other"], v["day"] > date(1970, 1, 1), v["hour"] >= time(9, 5),
    v["at"] > datetime(2026, 1, 1),
    lit(date(2026, 1, 1)), lit(time(1, 2, 3, 4999)), lit(datetime(2026, 1, 1, 1, tzinfo=UTC)), least(v["at"],
    v["other"]),
    *[v["s"].cast(kind) for kind in ("date", "time", "timestamp")], *[v["x"].cast(kind) for kind in ("date",
    "time", "timestamp")],
    *[v[name].cast("string") for name in ("day", "hour", "at")], v["at"].cast("date"), v["at"].cast("time"),
    v["at"].cast("long"),
    v["day"].cast("timestamp"), v["day"].cast("int"), v["hour"].cast("int"), v["i"].cast("date"), v["i"].cast("time"),
    v["l"].cast("timestamp"), coalesce(v["day"], date(2000, 1, 1)), struct(day=v["day"], at=v["at"], hour=v["hour"]),
    # maps, and casts part by part
    v["tags"], v["tags"]["a"], v["tags"]["a"].get(0), v["tags"]["none"], v["tags"].cast("map<string, array<string>>"),
    v["a"].cast("array<int>"), v["n"].cast("struct<q: string, p: string, r: date>"), array(v["f"], v["i"]),
    when(v["b"], v["n"]).otherwise(struct(q="x", r=v["day"])),
    # JSON and structs
    v["x"]["amount"], v["x"]["amount"] > 100, v["x"]["amount"].cast("long"), v["x"]["amount"] + 1,
    v["x"]["amount"] == "150",
    v["x"]["name"].lower(), v["x"]["name"].is_null(), v["x"]["name"].is_not_null(), v["x"].is_null(),
    v["x"]["tags"].get(1),
    v["x"]["tags"][0] + "!", v["x"]["tags"].get(-1).is_null(), v["x"].field("deep.er.est").cast("int"),
    v["x"][0].cast("string"),
    v["x"]["with space"].cast("int"), v["x"]["dotted.name"].cast("int"), v["x"]["quo'te"].cast("int"), v["x"] & True,
    v["x"]["amount"] - v["x"]["amount"], v["x"]["deep"]["er"], coalesce(v["x"]["amount"], 0),
    v["x"]["name"].isin("Ann", "5"),
    when(v["x"]["amount"] > 100, v["x"]["name"]).otherwise("small"), greatest(v["x"]["amount"], v["i"]),
    v["n"]["p"], v["n"].field("q").upper(), v["n"], struct(a=v["i"], b=struct(c=v["s"], d=None), x=v["x"]["name"]),
    array(v["i"], v["j"], 5), array(), array(v["i"], v["d"]), v["a"], v["a"].get(0), v["a"].get(3), v["a"][-1],
    # strings
    v["s"].lower(), v["s"].upper(), v["s"].trim(), v["s"].length(), v["s"].substr(2), v["s"].substr(1, 3),
    v["s"].substr(0, 2),
    v["s"].substr(-3, 2), v["s"].substr(-30, 28), v["s"].substr(3, 0), v["s"].substr(2, -1), v["s"].contains("a"),
    v["s"].contains(v["t"]), v["s"].startswith("h"), v["s"].startswith(v["t"]), v["s"].endswith("s"),
    v["s"].endswith(""),
    v["s"].replace("a", "bb"), v["s"].replace("", "x"), v["s"].replace(v["t"], "-"),
    concat(v["s"], "-", v["t"]), concat("a"),
    v["s"].rlike("^h.*s$"), v["s"].rlike(r"\d+"), v["s"].rlike("(?i)HELLO"), v["s"].rlike(r"\w"),
    v["s"].rlike("[^a-z]"),
    v["s"].split(r"\W+"), v["s"].split(","), v["s"].split(""), v["s"].split(r"\."), v["s"].split("(a)|(b)"),
    v["s"].split("a+"),
    v["s"].split(r"\s+").get(1), v["s"].lower().split(r"\W+"),
    # choice
    when(v["i"] > 0, "plus").when(v["i"] < 0, "minus").otherwise("zero"), when(v["b"], v["i"]),
    when(v["b"], v["i"]).otherwise(v["d"]),
    coalesce(v["s"], v["t"], "none"), coalesce(v["i"], v["l"]), coalesce(None, v["d"]), least(v["i"], v["j"]),
    greatest(v["i"], v["l"]),
    least(v["d"], v["e"]), greatest(v["d"], v["e"]), greatest(v["s"], v["t"]), least(v["b"], v["c"]), least(v["i"]),
]  # fmt: skip


def _table() -> list[dict[str, Any]]:
    """Every special value meets several others; the same rows each time."""
    dice = random.Random(6)
    columns: dict[str, list[Any]] = {
        "i": INTS, "j": INTS, "l": LONGS, "m": LONGS, "d": DOUBLES, "e": DOUBLES, "s": STRINGS, "t": STRINGS,
        "b": [None, True, False], "c": [None, True, False], "a": ARRAYS, "x": JSONS, "n": STRUCTS, "z": BINARIES,
        "f": DECIMALS[decimal_of(10, 2)], "g": DECIMALS[decimal_of(38, 10)], "h": DECIMALS[decimal_of(9, 9)],
        "day": DATES, "hour": TIMES, "at": TIMESTAMPS, "other": TIMESTAMPS, "tags": MAPS,
    }  # fmt: skip
    rows = []
    for _ in range(6):
        shuffled = {name: dice.sample(choices, len(choices)) for name, choices in columns.items()}
        for place in range(len(STRINGS)):
            rows.append({name: choices[place % len(choices)] for name, choices in shuffled.items()})
    for _ in range(100):
        rows.append(
            {name: dice.choice(choices) for name, choices in columns.items()}
            | {"i": dice.randint(-1000, 1000), "l": dice.getrandbits(64) - (1 << 63), "d": dice.uniform(-1e9, 1e9)}
            | {"e": dice.gauss(0, 1), "m": dice.randint(-9, 9), "j": dice.randint(-5, 5)}
        )
    return rows


def _inputs(row: dict[str, Any], place: int) -> Inputs:
    whole = row | {"x": None if row["x"] is None else json.loads(row["x"])}
    headers = (("h", b"first"), ("g", b"x"), ("h", b"last")) if place % 2 else ()
    return Inputs(f"k{place}", whole, 1000 + place, headers, "orders", place % 3, place)


def _frame(spark: "SparkSession", rows: list[dict[str, Any]]) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.type_columns import spark_type  # noqa: PLC0415

    plain = parse_schema({name: kind if kind != ANY else STRING for name, kind in SCHEMA.fields})
    data = [
        (_to_spark(row, plain), f"k{place}", 1000 + place, place % 3, place, "orders", _headers(place))
        for place, row in enumerate(rows)
    ]
    frame = spark.createDataFrame(
        data,
        f"value {spark_type(plain)}, key string, timestamp bigint, partition int, offset bigint, topic string, "
        "headers array<struct<key string, value binary>>",
    )
    return frame.withColumn("value", F.col("value").withField("x", F.parse_json("value.x"))).coalesce(1)


def _to_spark(given: Any, kind: Type) -> Any:
    """A value as createDataFrame wants it for the column of its type."""
    from ottla.serdes.arrow import to_column as value_to_column  # noqa: PLC0415

    convert = value_to_column(kind)
    return given if convert is None else convert(given)


def _headers(place: int) -> list[tuple[str, bytes]] | None:
    return [("h", b"first"), ("g", b"x"), ("h", b"last")] if place % 2 else None


def _readable(column: "Column", kind: Type) -> "Column":
    """What holds a VARIANT comes back as JSON: Python has no eyes for it."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    return F.to_json(column, {"ignoreNullFields": "false"}) if "any" in str(kind) else column


def _comparable(given: Any) -> Any:
    """Doubles by their bits (NaN is NaN), rows as dicts, everything with its type."""
    if isinstance(given, float):
        return "NaN" if math.isnan(given) else ("double", binary.pack(">d", given))
    if hasattr(given, "asDict"):
        given = given.asDict()
    if isinstance(given, dict):
        return dict(sorted((name, _comparable(part)) for name, part in given.items()))
    if isinstance(given, list):
        return [_comparable(part) for part in given]
    if isinstance(given, bytearray):
        return bytes(given)
    if isinstance(given, Decimal):
        return (
            "decimal",
            given.normalize(decimals.EXACT),
        )  # by its value: PySpark brings some with other exponents than Spark has
    return (type(given).__name__, given)


def _from_python(expression: Expression, row: Inputs) -> Any:
    bound = expression.bind(TYPES)
    result = bound.evaluator()(row)
    return json.loads(json.dumps(result)) if "any" in str(bound.type) else result


def _from_spark(kind: Type, given: Any) -> Any:
    return json.loads(given) if "any" in str(kind) and given is not None else given


def test_every_expression_gives_on_spark_what_it_gives_in_python(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    rows = _table()
    bound = [expression.bind(TYPES) for expression in EXPRESSIONS]
    columns = [
        _readable(to_column(expression.bind(TYPES), F.col), node.type).alias(f"c{place}")
        for place, (expression, node) in enumerate(zip(EXPRESSIONS, bound, strict=True))
    ]
    answers = _frame(spark, rows).select(*columns).collect()
    wrong = []
    for place, expression in enumerate(EXPRESSIONS):
        kind = bound[place].type
        evaluate = bound[place].evaluator()
        for number, row in enumerate(rows):
            inputs = _inputs(row, number)
            here = _to_spark(evaluate(inputs), kind)
            there = _from_spark(kind, answers[number][place])
            if _comparable(_plain_numbers(here, kind)) != _comparable(_plain_numbers(there, kind)):
                wrong.append(f"{expression!r} on {row}: Python {here!r}, Spark {there!r}")
                break
    assert not wrong, "\n".join(wrong)


def _plain_numbers(given: Any, kind: Type) -> Any:
    """A number without a declared type is just a number: 5 and 5.0 are one."""
    if "any" not in str(kind):
        return given
    if isinstance(given, dict):
        return {name: _plain_numbers(part, kind) for name, part in given.items()}
    if isinstance(given, list):
        return [_plain_numbers(part, kind) for part in given]
    return int(given) if isinstance(given, float) and given.is_integer() else given


AGGREGATES: list[Aggregate] = [
    count(), count(value["s"]), sum_(value["i"]), sum_(value["m"]), sum_(value["x"]["amount"]),
    min_(value["d"]), max_(value["d"]),
    min_(value["s"]), max_(value["s"]), max_(value["b"]), avg(value["i"]), avg(value["m"]), sum_(value["j"] + 0.5),
    aggregates(minimum=min_(value["i"]), count=count(), average=avg(value["j"])), min_(value["i"]), sum_(value["l"]),
    sum_(value["f"]), sum_(value["g"]), sum_(value["h"]), avg(value["f"]), min_(value["f"]), max_(value["g"]),
    min_(value["day"]), max_(value["hour"]), max_(value["at"]), min_(value["z"]),
]  # fmt: skip
MERGED: list[Aggregate] = [ksql_sum(value["i"]), ksql_sum(value["l"]), ksql_avg(value["i"]), ksql_avg(value["l"])]
NEARLY: list[Aggregate] = [
    var_samp(value["j"]), stddev_samp(value["m"] % 100), correlation(value["j"], value["i"] % 7),
    correlation(value["j"], value["j"] - value["j"]), stddev_samp(value["x"]["amount"]),
    var_samp(value["c"].cast("int")),
]  # fmt: skip
"""Here Spark and Python may differ in the last digits: the order is not the same."""


def test_every_aggregate_gives_on_spark_what_its_fold_gives_in_python(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.aggregate_columns import aggregate_column  # noqa: PLC0415

    rows = [row for row in _table() if row["l"] is None or abs(row["l"]) < 1 << 40 or row["i"] == 3]
    bound = [aggregate.bind(TYPES) for aggregate in [*AGGREGATES, *NEARLY]]
    folds = [aggregate.fold() for aggregate in bound]
    states: dict[str, list[Any]] = {}
    for place, row in enumerate(rows):
        group = states.setdefault(f"k{place}"[-1], [fold.initial() for fold in folds])
        inputs = _inputs(row, place)
        group[:] = [fold.add(state, inputs) for fold, state in zip(folds, group, strict=True)]
    expected = {
        name: [_to_spark(fold.result(state), each.type) for each, fold, state in zip(bound, folds, group, strict=True)]
        for name, group in states.items()
    }
    columns = [aggregate_column(each, F.col).alias(f"c{place}") for place, each in enumerate(bound)]
    grouped = _frame(spark, rows).groupBy(F.right("key", F.lit(1)).alias("group")).agg(*columns)
    found = {row["group"]: list(row[1:]) for row in grouped.collect()}
    assert found.keys() == expected.keys()
    last = len(AGGREGATES)
    for name, results in found.items():
        assert [_comparable(each) for each in results[:last]] == [_comparable(each) for each in expected[name][:last]]
        assert results[last:] == pytest.approx(expected[name][last:], rel=1e-9, nan_ok=True)


def test_parts_that_were_made_of_some_records_each_are_merged_to_what_the_fold_gives_of_all(
    spark: "SparkSession",
) -> None:
    from ottla.streams.run.aggregate_columns import merged_part, result_column  # noqa: PLC0415
    from ottla.streams.run.partials import Partials  # noqa: PLC0415

    rows = [row for row in _table() if row["l"] is None or abs(row["l"]) < 1 << 40 or row["i"] == 3]
    for aggregate in [*AGGREGATES, *MERGED]:
        arguments: dict[str, Bound] = {}
        bound = aggregate.bind(TYPES)
        plain = with_leaves(bound, arguments)
        parts = parts_of(plain)
        if parts is None:
            continue
        evaluators = {name: (argument.evaluator(), argument.type) for name, argument in arguments.items()}
        partials = Partials(("kb",), parts)
        made = []
        for start in range(0, len(rows), 7):
            some = [_inputs(row, place) for place, row in enumerate(rows[start : start + 7])]
            columns = {
                name: pa.array([evaluate(each) for each in some], arrow_type(kind))
                for name, (evaluate, kind) in evaluators.items()
            }
            same = {"kb": [b"all"] * len(some), "ts": range(len(some)), "origin": range(len(some))}
            made.append(partials.made(pa.table({**same, **columns})))
        frame = spark.createDataFrame(pa.concat_tables(made)).groupBy("kb").agg(*map(merged_part, parts))
        ((found,),) = frame.select(result_column(plain)).collect()
        fold = bound.fold(undo=True)  # whose sums have no limits: one that did not fit may fit again
        state = fold.initial()
        for place, row in enumerate(rows):
            state = fold.add(state, _inputs(row, place))
        assert _nearly(found, _to_spark(fold.result(state), bound.type)), (aggregate, found)


def _nearly(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return all(_nearly(found[name], part) for name, part in expected.items())
    return bool(found == (pytest.approx(expected, rel=1e-9, nan_ok=True) if isinstance(found, float) else expected))


def test_a_function_of_columns_runs_on_spark_and_says_so_in_python(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    expression = on_spark(F.repeat, value["s"], 2, returns="string").upper()
    frame = _frame(spark, [row for row in _table() if row["s"] == "aaa"][:1])
    assert frame.select(to_column(expression.bind(TYPES), F.col)).collect() == [("AAAAAA",)]
    with pytest.raises(NeedsSparkError, match="the test driver runs without Spark"):
        expression.compile(TYPES)
