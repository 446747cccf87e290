"""The Python body and the Spark column of each function give the same: random values, nulls, edges, and its examples.

A family is one DataFrame with a column per call,
which is what keeps this quick. The values are drawn by Hypothesis with
a fixed seed; nothing is shrunk, since each try would be a Spark job.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ottla.serdes import dates
from ottla.serdes.arrow import to_column as value_to_column
from ottla.serdes.types import STRING, Type, parse_schema
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression, Inputs, value
from ottla.streams.expressions.bound import FUNCTIONS
from ottla.streams.run.expression_columns import to_column
from ottla.streams.run.type_columns import spark_type
from tests.rules.streams.expressions.cases import calls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = parse_schema(
    "i int, j int, k int, l long, m long, d double, e double, s string, t string, u string, b boolean, z binary, "
    "a array<string>, c array<string>, f array<double>, n array<long>, none array<string>, "
    "o map<string, long>, p map<string, long>, q decimal(10, 2), r decimal(6, 3), w date, x time, y timestamp"
)
TYPES: dict[str, Type] = {"key": STRING, "value": SCHEMA}

INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1


def positive_zero(given: Decimal) -> Decimal:
    """There is one zero."""
    return given if given else abs(given)


_TEXT = st.text(st.characters(max_codepoint=0x2FF), max_size=8) | st.sampled_from(
    [
        "",
        " ",
        "Hello, Wörld!",
        "😀 smile",
        "a.b..c",
        "  padded\t",
        "AbC 123 é",
        "日本",
        "%41+b",
        "x=1&y=2",
        "ΑΣ",
        "\x00",
    ]
)
_SHORT = st.sampled_from(["", "a", "b", "l", ".", " ", ", ", "😀", "ab", "1", "x"])
_DOUBLE = st.floats(allow_nan=True) | st.sampled_from(
    [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        0.49999999999999994,
        1e300,
        -1e300,
        2.0**63,
        2.0**53,
        math.inf,
        math.nan,
        90.0,
    ]
)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(INT_MIN, INT_MAX) | st.sampled_from([0, 1, -1, INT_MIN, INT_MAX, 7]),
    "j": st.integers(-9, 9) | st.sampled_from([INT_MIN, INT_MAX]),
    "k": st.integers(-4, 9),
    "l": st.integers(LONG_MIN, LONG_MAX) | st.sampled_from([0, LONG_MIN, LONG_MAX, 1 << 62]),
    "m": st.integers(-9, 9) | st.sampled_from([LONG_MIN, LONG_MAX, -1]),
    "d": _DOUBLE,
    "e": st.floats(-200, 200) | st.sampled_from([0.0, -0.0, 1.0, math.nan]),
    "s": _TEXT,
    "t": _TEXT,
    "u": _SHORT,
    "b": st.booleans(),
    "z": st.binary(max_size=6) | st.sampled_from([b"\xff\xfe", "ü".encode(), bytes(range(100)), bytes(16)]),
    "a": st.lists(st.none() | _SHORT, max_size=5),
    "c": st.lists(st.none() | _SHORT, max_size=5),
    "f": st.lists(st.none() | _DOUBLE, max_size=4),
    "n": st.lists(st.none() | st.integers(-9, 9), max_size=5),
    "none": st.none(),
    "o": st.dictionaries(_SHORT, st.none() | st.integers(-9, 9), max_size=4),
    "p": st.dictionaries(_SHORT, st.none() | st.integers(-9, 9), max_size=4),
    "q": st.decimals(-99999999, 99999999, places=2).map(positive_zero),
    "r": st.decimals(-999, 999, places=3).map(positive_zero),
    "w": st.dates(),
    "x": st.integers(0, dates.DAY_MS - 1).map(dates.time_of),
    "y": st.integers(dates.FIRST_MS, dates.LAST_MS).map(dates.timestamp_of),
}
ROW = st.fixed_dictionaries({name: st.none() | each | each for name, each in _VALUES.items()})
v = value

CALLS: dict[str, list[Expression]] = {
    "conditional": [
        e.is_distinct(v["d"], v["e"]), e.is_distinct(v["s"], v["u"]), e.coalesce(v["s"], v["t"]),
        e.ifnull(v["i"], v["l"]), e.nullif(v["s"], v["u"]), e.nullif(v["d"], v["e"]),
        e.nullif(v["i"], 7), e.least(v["d"], v["e"]), e.greatest(v["i"], v["l"]), e.elt(v["k"], v["s"], v["t"], v["u"]),
        e.field_position(v["u"], "a", v["t"], "b", None),
    ],
    "strings": [
        e.lower(v["s"]), e.upper(v["s"]), e.trim(v["s"]), e.length(v["s"]), e.contains(v["s"], v["u"]),
        e.startswith(v["s"], v["u"]), e.endswith(v["s"], v["u"]), e.replace(v["s"], v["u"], v["t"]),
        e.concat(v["s"], v["t"]),
        e.concat(v["z"], v["z"]), e.concat_ws(v["u"], v["s"], v["t"]), e.concat_ws(", ", v["s"], None, v["u"]),
        e.lpad(v["s"], v["k"], v["u"]), e.rpad(v["s"], v["k"], v["u"]), e.lpad(v["z"], v["k"], v["z"]),
        e.rpad(v["z"], v["k"], b"\x01\x02"), e.split_text(v["s"], "."), e.split_text(v["s"], ""),
        e.split_text(v["s"], "😀 "),
        e.split_text(v["s"], None), e.instr(v["s"], v["u"]), e.md5(v["s"]), e.mask(v["s"]),
        e.mask(v["s"], None, "z", None, "é"),
        e.mask_left(v["s"], v["k"]), e.mask_right(v["s"], v["k"]), e.mask_keep_left(v["s"], v["k"]),
        e.mask_keep_right(v["s"], v["k"]),
    ],
    "regex": [
        e.like(v["s"], "%a%"), e.like(v["s"], "_!_%", "!"), e.like(v["s"], "___"), e.like(v["s"], "% "),
        e.regexp_extract("[a-z]+", v["s"]), e.regexp_extract("[^a-z ]", v["s"]), e.regexp_extract_all("[a-z]", v["s"]),
        e.regexp_extract_all("l+", v["s"]), e.regexp_replace(v["s"], "[a-z]", "#"), e.regexp_split(v["s"], "[.,]"),
        e.regexp_split(v["s"], ""), v["s"].rlike("^[a-z]"), v["s"].split("[.,]"),
    ],
    "numbers": [
        *[f(v[x]) for x in ("d", "e", "i") for f in (
            e.acos, e.asin, e.atan, e.cos, e.sin, e.tan, e.cosh, e.sinh, e.tanh, e.cot, e.cbrt, e.degrees, e.radians,
            e.exp,
            e.sqrt, e.ln, e.sign, e.trunc)],
        e.atan2(v["d"], v["e"]), e.power(v["d"], v["e"]), e.power(v["e"], v["k"]), e.log(v["e"], v["d"]),
        e.log(2, v["e"]),
        e.sign(v["l"]), e.trunc(v["l"]), e.pi(), e.generate_series(v["k"], v["j"]),
        e.generate_series(v["k"], 5, v["k"]),
        e.generate_series(v["l"], v["m"]), e.generate_series(v["l"], v["l"], v["k"]), e.random_(), e.random_(3),
        e.random_uuid(),
    ],
    "lists": [
        e.array_distinct(v["a"]), e.array_distinct(v["f"]), e.array_distinct(v["n"]), e.array_union(v["a"], v["c"]),
        e.array_union(v["f"], v["f"]), e.array_except(v["a"], v["c"]), e.array_except(v["f"], e.array(0.0, math.nan)),
        e.array_intersect(v["a"], v["c"]), e.array_intersect(v["f"], e.array(0.0, math.nan)),
        e.array_concat(v["a"], v["c"]),
        e.array_contains(v["a"], v["u"]), e.array_contains(v["f"], v["e"]), e.array_contains(v["n"], v["k"]),
        e.array_remove(v["a"], v["u"]), e.array_remove(v["f"], math.nan), e.array_length(v["a"]), e.array_max(v["f"]),
        e.array_min(v["f"]), e.array_max(v["a"]), e.array_min(v["n"]), e.array_sort(v["a"]), e.array_sort(v["f"]),
        e.array_sort(v["f"], "DESC"), e.array_sort(v["n"], "desc"), e.array_sort(v["n"], "up"),
        e.slice_(v["a"], v["k"], v["j"]),
        e.slice_(v["a"], None, v["k"]), e.slice_(v["a"], v["k"], None), e.array_join(v["a"]),
        e.array_join(v["n"], "; "),
    ],
    "maps": [
        e.create_map("a", v["l"], "b", v["m"]), e.create_map(), e.map_union(v["o"], v["p"]), e.map_get(v["o"], v["u"]),
        e.map_keys(v["o"]), e.map_values(v["o"]), e.entries(v["o"]), v["o"]["a"],
    ],
    "dates": [
        e.from_days(v["i"]), e.from_days(v["k"]), e.unix_date(v["w"]), e.from_unixtime(v["l"]), e.from_unixtime(v["i"]),
        e.unix_timestamp(v["y"]),
        *[f(unit, v[n], v["w"]) for f in (e.dateadd, e.datesub) for unit in ("DAYS", "hours", "MILLISECOND")
          for n in ("i", "k")],
        *[f(unit, v[n], v["x"]) for f in (e.timeadd, e.timesub) for unit in ("DAYS", "MINUTES", "MILLISECONDS")
          for n in ("i", "k")],
        *[f(unit, v[n], v["y"]) for f in (e.timestampadd, e.timestampsub) for unit in ("DAYS", "SECOND", "MILLISECONDS")
          for n in ("i", "k")],
    ],
    "lambdas": [
        e.transform(v["o"], lambda key, each: key + "!", lambda key, each: each * 2),
        e.transform(v["o"], lambda key, each: key.substr(1, 1), lambda key, each: each),
        e.filter_(v["o"], lambda key, each: each > v["k"]), e.any_(v["o"], lambda key, each: each > v["k"]),
        e.all_(v["o"], lambda key, each: (each > 0) | (key == "a")),
        e.reduce_(v["o"], "", lambda done, key, each: e.concat_ws(";", done, key, each.cast("string"))),
        e.transform(v["n"], lambda x: x * 2 + v["m"]), e.transform(v["a"], lambda x: x.upper()),
        e.transform(v["a"], lambda x: e.any_(v["c"], lambda y: y == x)), e.filter_(v["n"], lambda x: x > v["k"]),
        e.any_(v["n"], lambda x: x > v["k"]), e.all_(v["n"], lambda x: x > v["k"]), e.any_(v["f"], lambda x: x > 0),
        e.reduce_(v["n"], 0, lambda total, x: total + e.coalesce(x, 0)),
        e.reduce_(v["n"], v["k"], lambda total, x: total * x),
        e.reduce_(v["a"], v["s"], lambda done, x: e.concat_ws("", done, x)),
        e.reduce_(e.transform(v["n"], lambda x: x + 1), 0, lambda total, x: total - x),
    ],
    "bytes": [
        e.to_bytes(v["s"], "utf8"), e.from_bytes(v["z"], "utf8"), e.from_bytes(v["z"], "hex"),
        e.from_bytes(v["z"], "BASE64"),
        e.uuid_from_bytes(v["z"]),
    ],
    "urls": [e.url_encode(v["s"]), e.url_decode(v["s"]), e.url_decode(e.url_encode(v["t"]))],
    "geo": [e.geo_distance(v["e"], v["e"], v["d"], v["k"]), e.geo_distance(v["k"], v["e"], v["k"], v["k"], "Miles")],
    "ksql_casts": [
        e.ksql_equal(v["a"], v["c"]), e.ksql_equal(v["f"], v["f"]), e.ksql_equal(v["d"], v["e"]),
        e.ksql_equal(e.struct(x=v["i"], y=v["a"]), e.struct(x=v["i"], y=v["c"])), e.ksql_nullif(v["a"], v["c"]),
        e.ksql_nullif(v["k"], v["j"]),
    ],
    "ksql": [
        *[f(v[x], v[y]) for x, y in [("i", "j"), ("l", "m"), ("d", "e"), ("i", "l")]
          for f in (e.ksql_add, e.ksql_subtract, e.ksql_multiply, e.ksql_mod)],
        e.ksql_multiply(v["l"], v["l"]), e.ksql_divide(v["d"], v["e"]), e.ksql_divide(v["e"], v["k"]),
        e.ksql_divide(v["i"], v["j"]), e.ksql_divide(v["l"], v["m"]),
        *[f(v[x]) for x in ("i", "l", "d", "e") for f in (e.ksql_negate, e.ksql_abs, e.ksql_floor, e.ksql_ceil,
        e.ksql_round)],
        *[f(v["q"], v[y]) for y in ("q", "r", "i") for f in (
            e.ksql_add, e.ksql_subtract, e.ksql_multiply, e.ksql_mod)],
        e.ksql_negate(v["q"]), e.ksql_abs(v["r"]), e.ksql_trim(v["s"]), e.ksql_item(v["a"], v["j"]),
        e.ksql_item(v["n"], -1),
        *[f(v[x]) for x in ("i", "d", "e") for f in (e.ksql_to_int, e.ksql_to_long)], e.ksql_to_boolean(v["s"]),
        e.ksql_length(v["s"]),
        e.ksql_length(v["z"]), e.ksql_replace(v["s"], "a", v["t"]),
        e.ksql_concat(v["s"], v["t"], "x"), e.ksql_concat(v["z"], None, v["z"]), e.ksql_substring(v["s"], v["k"]),
        e.ksql_substring(v["s"], v["j"], v["k"]), e.ksql_substring(v["z"], v["k"], 2),
        e.ksql_substring(v["s"], v["i"], -1),
    ],
}  # fmt: skip


def test_every_function_with_a_column_is_called_here() -> None:
    called = {part.function for calls_of in CALLS.values() for call in calls_of for part in call.walk()}
    ours = {name for name, each in FUNCTIONS.items() if each.column is not None and each.family in CALLS}
    assert sorted(ours - called - {"case", "substr", "now"}) == []  # two looks at a clock differ


def drawn_rows(number: int) -> list[dict[str, Any]]:
    """The same each time. Row by row: Hypothesis gives up on an example as large as a table."""
    rows: list[dict[str, Any]] = []

    @settings(
        max_examples=number,
        deadline=None,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @seed(14)
    @given(row=ROW)
    def collect(row: dict[str, Any]) -> None:
        rows.append(row)

    collect()
    return rows


@pytest.mark.parametrize("family", CALLS)
def test_a_column_gives_what_its_body_gives(family: str, spark: "SparkSession") -> None:
    examples = [call for name, call, _ in calls() if FUNCTIONS[name].family == family and name != "now"]
    whole = [*CALLS[family], *(each for each in examples if each.bind(TYPES).why_not_column() is None)]
    assert not [reason for each in CALLS[family] if (reason := each.bind(TYPES).why_not_column()) is not None]
    assert _differences(spark, whole, drawn_rows(150)) == []


def _differences(spark: "SparkSession", whole: list[Expression], rows: list[dict[str, Any]]) -> list[str]:
    from pyspark.sql import functions as F  # noqa: PLC0415

    bound = [call.bind(TYPES) for call in whole]
    columns = [to_column(node, F.col).alias(f"c{place}") for place, node in enumerate(bound)]
    schema = f"value {spark_type(SCHEMA)}, topic string, partition int, offset bigint"
    to_spark = value_to_column(SCHEMA) or (lambda given: given)
    table = [(to_spark(row), "t", place % 3, place) for place, row in enumerate(rows)]
    answers = spark.createDataFrame(table, schema).coalesce(1).select(*columns).collect()
    wrong = []
    for place, (call, node) in enumerate(zip(whole, bound, strict=True)):
        evaluate = node.evaluator()
        convert = value_to_column(node.type) or (lambda given: given)
        equal = same if all(_is_exact(part) for part in call.walk()) else nearly
        for number, row in enumerate(rows):
            here = convert(evaluate(Inputs(value=row, topic="t", partition=number % 3, offset=number)))
            there = answers[number][place]
            if not equal(here, there):
                wrong.append(f"{call!r} on {row}: Python {here!r}, Spark {there!r}")
                break
    return wrong


def _is_exact(part: Expression) -> bool:
    declared = FUNCTIONS.get(part.function)
    return declared is None or declared.exact


def same(here: Any, there: Any) -> bool:
    return _alike(here, there, lambda left, right: left == right and math.copysign(1, left) == math.copysign(1, right))


def nearly(here: Any, there: Any) -> bool:
    return _alike(
        here, there, lambda left, right: left == right or abs(left - right) <= 4 * math.ulp(max(abs(left), abs(right)))
    )


def _alike(here: Any, there: Any, equal: Callable[[float, float], bool]) -> bool:
    if isinstance(there, bytearray):
        there = bytes(there)
    if hasattr(there, "asDict"):
        there = there.asDict()
    if type(here) is not type(there):
        return False
    if isinstance(here, float):
        return math.isnan(there) if math.isnan(here) else equal(here, there)
    if isinstance(here, dict):
        return sorted(here) == sorted(there) and all(_alike(here[name], there[name], equal) for name in here)
    if isinstance(here, list):
        return len(here) == len(there) and all(_alike(*pair, equal) for pair in zip(here, there, strict=True))
    return bool(here == there)
