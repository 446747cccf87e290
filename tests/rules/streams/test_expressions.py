"""Expressions on plain Python values: nulls as in SQL, no answer is null, types that do not fit are named."""

import json
import math
import pickle
import subprocess
import sys
from typing import Any

import pytest

from ottla.serdes.types import ANY, DOUBLE, INT, LONG, STRING, Type, parse_schema, windowed
from ottla.streams.expressions import (
    Expression,
    ExpressionError,
    Inputs,
    aggregates,
    array,
    avg,
    coalesce,
    concat,
    count,
    greatest,
    header,
    headers,
    key,
    least,
    left,
    lit,
    max_,
    min_,
    now,
    offset,
    right,
    spark,
    struct,
    sum_,
    timestamp,
    topic,
    value,
    when,
)
from ottla.streams.windows import Window, Windowed

ORDER = parse_schema(
    "name string, amount double, size int, id long, hot boolean, tags array<string>, at struct<city: string>"
)


def run(expression: Expression, of: Any, kind: Type = ORDER) -> Any:
    return expression.compile({"key": STRING, "value": kind})(Inputs("k", of, 7, (("h", b"1"), ("h", b"2")), "t", 1, 9))


ORDER_1 = {"name": "Ann", "amount": 150.0, "size": 3, "id": 5, "hot": True, "tags": ["a", "b"], "at": {"city": "Ulm"}}
NOTHING: dict[str, Any] = dict.fromkeys(ORDER_1)

RESULTS: list[tuple[Expression, Any, Any]] = [
    (value["amount"] > 100, ORDER_1, True),
    (value["amount"] > 100, NOTHING, None),
    (value["name"].lower(), ORDER_1, "ann"),
    (value["name"] + "!", ORDER_1, "Ann!"),
    (value.field("at.city"), ORDER_1, "Ulm"),
    (value.field("at.city"), NOTHING, None),
    (value["tags"][1], ORDER_1, "b"),
    (value["tags"].get(2), ORDER_1, None),
    (value["tags"].get(-1), ORDER_1, None),
    ((value["hot"]) & (value["size"] > 5), ORDER_1, False),
    (value["hot"] & (value["size"] > 5), {**NOTHING, "hot": False}, False),
    (value["hot"] | (value["size"] > 5), NOTHING, None),
    (value["hot"] | (value["size"] > 5), {**NOTHING, "hot": True}, True),
    (~value["hot"], NOTHING, None),
    (value["size"] / 2, ORDER_1, 1.5),
    (value["size"] / 0, ORDER_1, None),
    (-value["size"] % 2, ORDER_1, -1),
    (value["size"] % 0, ORDER_1, None),
    (value["size"] + 2147483647, ORDER_1, None),
    (value["id"] + 2147483647, ORDER_1, 2147483652),
    (value["size"].between(1, 3), ORDER_1, True),
    (value["name"].isin("Bob", "Ann"), ORDER_1, True),
    (value["name"].isin(["Bob", None]), ORDER_1, None),
    (value["name"].isin({"Bob"}), ORDER_1, False),
    (value["amount"].cast("long"), ORDER_1, 150),
    (value["amount"].cast("string"), ORDER_1, "150.0"),
    (value["name"].cast("int"), ORDER_1, None),
    (value["name"].is_null(), NOTHING, True),
    (value["name"].is_not_null(), NOTHING, False),
    (when(value["size"] > 2, "big").otherwise("small"), ORDER_1, "big"),
    (when(value["size"] > 2, "big").otherwise("small"), NOTHING, "small"),
    (when(value["size"] > 9, "big"), ORDER_1, None),
    (coalesce(value["name"], "nobody"), NOTHING, "nobody"),
    (concat(value["name"], "/", key), ORDER_1, "Ann/k"),
    (struct(who=value["name"], n=value["size"] * 2), ORDER_1, {"who": "Ann", "n": 6}),
    (array(value["size"], 1.5), ORDER_1, [3.0, 1.5]),
    (least(value["size"], value["id"], None), ORDER_1, 3),
    (greatest(value["amount"], math.inf), ORDER_1, math.inf),
    (round(value["amount"] / 7, 2), ORDER_1, 21.43),
    (lit(2.5).round(), ORDER_1, 3.0),
    (lit(-2.5).floor(), ORDER_1, -3),
    (timestamp + offset, ORDER_1, 16),
    (topic + "-" + key, ORDER_1, "t-k"),
    (header("h").cast("string"), ORDER_1, "2"),
    (header("other"), ORDER_1, None),
    (headers[0]["KEY"], ORDER_1, "h"),
    (lit("a,b,,").split(","), ORDER_1, ["a", "b", "", ""]),
    (lit("hello").substr(2, 3), ORDER_1, "ell"),
    (lit("hello").rlike("l+"), ORDER_1, True),
    (lit(math.nan) == lit(math.nan), ORDER_1, True),
    (lit(math.nan) > math.inf, ORDER_1, True),
]


@pytest.mark.parametrize(("expression", "of", "expected"), RESULTS, ids=[repr(each[0]) for each in RESULTS])
def test_it_computes_on_plain_values(expression: Expression, of: Any, expected: Any) -> None:
    assert run(expression, of) == expected


def test_json_without_a_schema_takes_the_type_of_what_stands_beside_it() -> None:
    document = {"n": 101, "text": "102", "deep": [{"x": True}]}
    assert run(value["n"] > 100, document, ANY) is True
    assert run(value["text"] > 100, document, ANY) is True
    assert run(value["n"] + 1, document, ANY) == 102.0
    assert run(value["text"] + "!", document, ANY) == "102!"
    assert run(value["n"] == "101", document, ANY) is True
    assert run(value["deep"][0]["x"] & True, document, ANY) is True
    assert run(value["missing"]["more"], document, ANY) is None
    assert run(value["n"]["no object"].is_null(), document, ANY) is True
    assert run(value["deep"] > 5, document, ANY) is None


def test_the_key_of_a_window_comes_apart() -> None:
    types = {"key": windowed(STRING)}
    inputs = Inputs(Windowed("k", Window(5, 9)))
    given = [part.compile(types)(inputs) for part in (key["key"], key["start"], key["end"] - key["start"])]
    assert given == ["k", 5, 4]


def test_joins_have_a_left_and_a_right_which_may_be_missing() -> None:
    types = {"key": STRING, "left": ORDER, "right": STRING}
    joined = struct(name=left["name"], region=coalesce(right, "none")).compile(types)
    assert joined(Inputs("k", left=ORDER_1, right=None)) == {"name": "Ann", "region": "none"}


TYPES: list[tuple[Expression, Type]] = [
    (value["size"] + 1, INT),
    (value["size"] + (1 << 40), LONG),
    (value["size"] + 1.0, DOUBLE),
    (value["size"] / 1, DOUBLE),
    (value["amount"].floor(), LONG),
    (value["name"].length(), INT),
    (value["name"].split(" "), parse_schema("a array<string>").fields[0][1]),
    (struct(a=value["size"], b=None), parse_schema("a int, b string")),
    (when(value["hot"], 1).otherwise(2.5), DOUBLE),
    (header("h"), parse_schema("a binary").fields[0][1]),
    (headers, parse_schema("a array<struct<KEY: string, VALUE: binary>>").fields[0][1]),
    (spark(lambda c: c, returns="array<long>"), parse_schema("a array<long>").fields[0][1]),
]


@pytest.mark.parametrize(("expression", "expected"), TYPES, ids=[repr(each[0]) for each in TYPES])
def test_it_knows_its_type(expression: Expression, expected: Type) -> None:
    assert expression.bind({"value": ORDER}).type == expected


REFUSED: list[tuple[Expression, Type, str]] = [
    (
        value["nmae"].lower(),
        ORDER,
        "value[\"nmae\"]: there is no field 'nmae'; do you mean 'name'? there are name, amount",
    ),
    (value["name"] > 5, ORDER, 'value["name"] > 5: string and int do not go together; cast one of them'),
    (value["size"].lower(), ORDER, "value[\"size\"].lower(): a string is needed, not int; use .cast('string')"),
    (value["name"] * 2, ORDER, 'value["name"] * 2: a number is needed, not string'),
    (value["name"] & True, ORDER, 'value["name"] & True: a boolean is needed, not string'),
    (value["name"] == None, ORDER, "use .is_null()"),  # noqa: E711
    (value["name"]["x"], ORDER, "string has no fields; read the topic with a JSON serde"),
    (value["name"][0], ORDER, "string is no array"),
    (value["tags"] == "x", ORDER, "array<string> cannot be compared"),
    (value["tags"].cast("string"), ORDER, "array<string> cannot become string"),
    (value["a"] > value["b"], ANY, "neither side has a known type"),
    (value["a"] + value["b"], ANY, "+ may mean a sum or a text"),
    (least(value["a"]), ANY, "any has no order; cast it"),
    (left["a"] > 1, ORDER, "there is no left here; there are key, value, timestamp, partition, offset, topic"),
    (coalesce(value["name"], 5), ORDER, "string and int do not go together"),
    (coalesce(value["at"], value["name"]), ORDER, "do not go together"),
]


@pytest.mark.parametrize(("expression", "kind", "message"), REFUSED, ids=[repr(each[0]) for each in REFUSED])
def test_what_cannot_work_is_refused_by_name(expression: Expression, kind: Type, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        expression.bind({"key": STRING, "value": kind})
    assert message in str(caught.value)


SHOWN: list[tuple[object, str]] = [
    (value["amount"] > 100, 'value["amount"] > 100'),
    ((value["a"] > 1) & ~value["b"], '(value["a"] > 1) & (~value["b"])'),
    (1 + value * 2, "1 + (value * 2)"),
    (value["name"].lower().split(r"\W+"), "value[\"name\"].lower().split('\\\\W+')"),
    (value.substr(2).cast("long"), 'value.substr(2).cast("long")'),
    (value.get(0).is_null(), "value[0].is_null()"),
    (
        when(value > 1, "a").when(value < 0, "b").otherwise("c"),
        "when(value > 1, 'a').when(value < 0, 'b').otherwise('c')",
    ),
    (struct(a=value, b=key), "struct(a=value, b=key)"),
    (coalesce(header("h").cast("string"), ""), "coalesce(header('h').cast(\"string\"), '')"),
    (value.isin(1, 2), "value.isin(1, 2)"),
    (spark(abs, value["x"]), 'spark(abs, value["x"])'),
    (aggregates(low=min_(value["p"]), n=count()), 'aggregates(low=min_(value["p"]), n=count())'),
    (avg(value), "avg(value)"),
]


@pytest.mark.parametrize(("expression", "text"), SHOWN, ids=[each[1] for each in SHOWN])
def test_it_reads_as_it_was_written(expression: object, text: str) -> None:
    assert repr(expression) == text


def test_pythons_own_and_or_not_in_are_refused_with_advice() -> None:
    with pytest.raises(TypeError, match=r"write & \| ~"):
        bool((value > 1) and (value < 5))
    with pytest.raises(TypeError, match="contains"):
        "a" in value  # noqa: B015
    with pytest.raises(TypeError, match="nothing to iterate"):
        list(value)


@pytest.mark.parametrize("pattern", ["(", "(?P<x>a)", r"\p{L}", "[a&&b]", "[a[b]]", r"\Qx\E", "(?#x)a", r"a\Z"])
def test_patterns_that_python_and_java_read_differently_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        value.rlike(pattern)


@pytest.mark.parametrize("pattern", [r"\\p", r"a\[b", "[]a]", r"[\[]", r"^\d{3}-[a-z]+$", "a|b", "(?i)x", "(?:ab)+?"])
def test_patterns_of_the_common_kind_are_taken(pattern: str) -> None:
    assert value.rlike(pattern).options[0].pattern == pattern


def test_a_split_by_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot split"):
        value.split("a*")


def test_it_says_what_it_reads() -> None:
    expression = when(header("h").is_null(), value["a"]).otherwise(key)
    assert expression.leaves() == {"headers", "value", "key"}
    assert (now() > timestamp).leaves() == {"now", "timestamp"}
    assert not expression.needs_spark
    assert (spark(lambda c: c) == "x").needs_spark


def test_it_travels_to_other_processes() -> None:
    expression = pickle.loads(pickle.dumps(value["name"].lower().rlike("^a") & (value["size"] > 1)))
    assert run(expression, ORDER_1) is True


# ---- aggregates

PRICES = [3.0, None, 1.5, 7.5]


def folded(aggregate: Any, documents: list[Any], kind: Type = ORDER) -> Any:
    fold = aggregate.bind({"value": kind}).fold()
    state = fold.initial()
    for document in documents:
        state = fold.add(state, Inputs(value=document))
    return fold.result(state)


def test_aggregates_fold_one_record_at_a_time() -> None:
    orders = [{**ORDER_1, "amount": price} for price in PRICES]
    price = value["amount"]
    given = [
        folded(each, orders) for each in (count(), count(price), sum_(price), min_(price), max_(price), avg(price))
    ]
    assert given == [4, 3, 12.0, 1.5, 7.5, 4.0]


def test_without_a_value_there_is_no_sum_but_a_count_of_none() -> None:
    given = [
        folded(each, [NOTHING])
        for each in (count(value["size"]), sum_(value["size"]), min_(value["size"]), avg(value["id"]))
    ]
    assert given == [0, None, None, None]


def test_several_aggregates_make_a_struct() -> None:
    statistics = aggregates(minimum=min_(value["amount"]), count=count(), average=avg(value["amount"]))
    assert folded(statistics, [{"amount": price} for price in PRICES]) == {"minimum": 1.5, "count": 4, "average": 4.0}
    assert statistics.bind({"value": ORDER}).type == parse_schema("minimum double, count long, average double")


def test_a_sum_that_does_not_fit_is_null_and_stays_so() -> None:
    big = {"id": (1 << 63) - 1}
    assert folded(sum_(value["id"]), [big, {"id": 1}, {"id": -5}]) is None


def test_states_merge_as_sessions_do_and_go_through_json() -> None:
    whole = aggregates(
        n=count(), s=sum_(value["size"]), a=avg(value["size"]), lo=min_(value["size"]), hi=max_(value["size"])
    )
    fold = whole.bind({"value": ORDER}).fold()
    first = fold.add(fold.add(fold.initial(), Inputs(value={"size": 4})), Inputs(value={"size": 1}))
    second = fold.add(fold.initial(), Inputs(value={"size": 10}))
    stored = json.loads(json.dumps(first))
    merged = fold.merge(fold.merge(stored, second), fold.initial())
    assert fold.result(merged) == {"n": 3, "s": 15, "a": 5.0, "lo": 1, "hi": 10}


def test_a_state_resumes_from_its_result_but_an_average_does_not() -> None:
    fold = aggregates(n=count(), s=sum_(value["size"])).bind({"value": ORDER}).fold()
    assert fold.result(fold.add(fold.resume({"n": 2, "s": 9}), Inputs(value={"size": 1}))) == {"n": 3, "s": 10}
    assert not aggregates(n=count(), s=sum_(value["size"])).keeps_state()
    assert aggregates(n=count(), a=avg(value["size"])).keeps_state()


def test_aggregates_of_wrong_types_are_refused_by_name() -> None:
    with pytest.raises(ExpressionError, match=r'sum_\(value\["name"\]\): a number is needed, not string'):
        sum_(value["name"]).bind({"value": ORDER})
    with pytest.raises(ExpressionError, match=r"any has no order; cast it"):
        min_(value["price"]).bind({"value": ANY})
    with pytest.raises(TypeError, match="low has to be an aggregate"):
        aggregates(low=value["price"])  # type: ignore[arg-type]


def test_expressions_and_serdes_need_no_spark() -> None:
    heavy = "{'pyspark', 'numpy', 'pyarrow'}"
    code = f"import sys, ottla.streams.expressions, ottla.streams.serdes; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
