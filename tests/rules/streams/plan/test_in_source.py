"""Which aggregates begin in the tasks that read, and what is told of it."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.options import Consumed, Grouped, Materialized
from ottla.streams.expressions import (
    Aggregate,
    Expression,
    aggregates,
    avg,
    count,
    header,
    key,
    ksql_sum,
    max_,
    min_,
    sum_,
    value,
    var_samp,
)
from ottla.streams.plan.plan import NativeAggregate, QueryPlan
from ottla.streams.plan.planner import plan
from ottla.streams.serdes import Serdes
from ottla.streams.windows import TimeWindows

TEXT = Serdes.string
LINES: Consumed[Any, Any] = Consumed(TEXT, TEXT)
BY_TEXT: Grouped[Any, Any] = Grouped(TEXT, TEXT)
MINUTE = TimeWindows.of(60_000, grace_ms=0)
HOPPING = TimeWindows.of(60_000, advance_ms=20_000, grace_ms=0)
Stream = KStream[Any, Any]
Shape = Callable[[Stream], object]


def query(shape: Shape, consumed: Consumed[Any, Any] = LINES, **more: Any) -> QueryPlan:
    builder = StreamsBuilder()
    shape(builder.stream("in", consumed))
    (found,) = plan(builder.build().with_default_serdes().sub_topologies(), **more).queries
    return found


def aggregate(shape: Shape, consumed: Consumed[Any, Any] = LINES, **more: Any) -> NativeAggregate:
    found = query(shape, consumed, **more).aggregate
    assert found is not None
    return found


def why_behind(shape: Shape, consumed: Consumed[Any, Any] = LINES, **more: Any) -> str:
    found = query(shape, consumed, **more)
    assert found.aggregate is not None and not found.aggregate.in_source
    (node,) = [node for node in found.nodes if node.name == found.aggregate.node.name]
    return node.reason.rpartition("it begins behind the reading tasks: ")[2]


def counted(stream: Stream) -> object:
    return stream.group_by_key(BY_TEXT).count()


def counted_by_window(stream: Stream) -> object:
    return stream.group_by_key(BY_TEXT).windowed_by(MINUTE).count()


def of(expression: Expression) -> Shape:
    return lambda stream: counted(stream.filter(expression))


def aggregated(what: Aggregate) -> Shape:
    store: Materialized[Any, Any] = Materialized("store", key_serde=TEXT, value_serde=Serdes.json())
    return lambda stream: stream.group_by_key(BY_TEXT).windowed_by(MINUTE).aggregate(what, materialized=store)


@pytest.mark.parametrize(
    "shape",
    [
        counted,
        counted_by_window,
        lambda lines: lines.group_by_key(BY_TEXT).windowed_by(HOPPING).count(),
        lambda lines: lines.filter(value.length() > 3).group_by_key(BY_TEXT).windowed_by(MINUTE).count(),
        lambda lines: lines.flat_map_values(value.lower().split(r"\W+")).group_by(value, BY_TEXT).count(),
        lambda lines: lines.group_by(value, BY_TEXT).windowed_by(MINUTE).count(),
        lambda lines: counted(lines.map_values(value.trim()).filter_not(value.startswith("#"))),
        aggregated(aggregates(n=count(value), least=min_(value), most=max_(value.length()))),
        aggregated(aggregates(all=sum_(value.cast("long")), mean=avg(value.cast("double")))),
        aggregated(ksql_sum(value.cast("int"))),
    ],
    ids=["count", "windows", "hopping", "filtered", "words", "new keys by window", "mapped", "struct", "sums", "ksql"],
)
def test_what_arrow_has_too_is_aggregated_where_it_is_read(shape: Shape) -> None:
    found = aggregate(shape)
    assert found.in_source
    assert found.parts


def test_windows_are_kept_where_they_are_read_unless_their_keys_come_from_elsewhere() -> None:
    assert aggregate(counted_by_window).kept_in_source
    assert not aggregate(lambda lines: lines.group_by(value, BY_TEXT).windowed_by(MINUTE).count()).kept_in_source
    assert not aggregate(counted).kept_in_source


def test_numbers_are_read_by_arrow_unless_unreadable_ones_become_dead_letters() -> None:
    numbers: Consumed[Any, Any] = Consumed(TEXT, Serdes.long)
    shape = aggregated(sum_(value))
    assert aggregate(shape, numbers).in_source
    assert why_behind(shape, numbers, dead_letters=True) == "values that cannot be read become dead letters"
    assert aggregate(aggregated(max_(value)), dead_letters=True).in_source  # any bytes are a text


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (of(value.rlike("a$")), "KSTREAM-FILTER-0000000001: Arrow has no rlike that does the same"),
        (of(header("source").is_not_null()), "KSTREAM-FILTER-0000000001: Arrow has no header that does the same"),
        (lambda lines: counted(lines.flat_map_values(value.split(" |,"))), "no split that does the same"),
        (aggregated(var_samp(value.cast("double"))), "parts of it cannot be merged"),
        (aggregated(sum_(value.cast("decimal(9, 2)"))), "parts of it cannot be merged"),
        (aggregated(max_(value.substr(1, 2))), "Arrow has no substr that does the same"),
        (lambda lines: counted(lines.filter(lambda k, v: True)), "Python functions come before it"),
    ],
    ids=["function", "headers", "pattern", "variance", "decimals", "argument", "Python"],
)
def test_what_arrow_has_not_is_aggregated_behind_and_the_plan_says_why(shape: Shape, why: str) -> None:
    assert why_behind(shape).endswith(why)


def test_json_is_read_by_spark() -> None:
    orders: Consumed[Any, Any] = Consumed(TEXT, Serdes.json("amount LONG"))
    assert "which only Spark reads as columns" in why_behind(counted, orders)
    # Windows are told in Python all the same: what leaves it are parts.
    by_window = aggregate(aggregated(sum_(value["amount"])), orders)
    assert [part.name for part in by_window.parts] == ["sum_high_a0", "sum_low_a0"]
    assert aggregate(counted, orders).parts == ()


def test_explain_tells_where_it_is_done() -> None:
    words = query(lambda lines: lines.flat_map_values(value.split(" ")).group_by(value, BY_TEXT).count())
    assert [node.operator for node in words.nodes if node.mode.value == "N"][:2] == [
        "Arrow columns in the reading tasks"
    ] * 2
    assert "Spark merges a row per key and task" in str(words.nodes)
    assert "keep the open windows" in str(query(counted_by_window).nodes)


def test_arguments_that_are_the_same_travel_once() -> None:
    number = value.cast("double")
    both = aggregate(aggregated(aggregates(n=count(key), mean=avg(number), of=count(number))))
    assert [part.name for part in both.parts] == ["sum_present_a0", "sum_value_a1", "sum_present_a1"]
