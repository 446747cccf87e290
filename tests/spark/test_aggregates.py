"""Types and aggregates in applications: on Spark the last result of each key is that of the test driver, whatever the
batches and after a restart; natively where Spark has the aggregate, in tasks where it has not."""

import json
import random
from datetime import date
from decimal import Decimal
from typing import Any

from ottla.streams import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced
from ottla.streams.expressions import (
    BatchAggregate,
    Expression,
    aggregates,
    avg,
    collect_list,
    collect_set,
    correlation,
    count,
    count_distinct,
    earliest_by_offset,
    histogram,
    key,
    latest_by_offset,
    left,
    max_,
    min_,
    own,
    right,
    stddev_samp,
    struct,
    sum_,
    top_k,
    top_k_distinct,
    value,
)
from ottla.streams.serdes import Serdes
from ottla.streams.windows import SessionWindows, TimeWindows
from tests.spark.applications import START, Input, World, driven, lasts

ORDER = Serdes.json(
    "city STRING, price DECIMAL(8,2), at TIMESTAMP, day DATE, hour TIME, n LONG, tags MAP<STRING, DECIMAL(4,1)>"
)
BY_DAY = Serdes.json("city STRING, day DATE")


class Spread(BatchAggregate):
    """The distance between the smallest and the largest."""

    takes = ("decimal(8, 2)",)
    keeps = "array<decimal(8, 2)>"
    returns = "decimal(9, 2)"

    def initial(self) -> list[Any]:
        return []

    def add(self, state: list[Any], *columns: Any) -> list[Any]:
        return self.merge(state, [each for each in columns[0].to_pylist() if each is not None])

    def merge(self, state: list[Any], other: list[Any]) -> list[Any]:
        return [min(state + other), max(state + other)] if state + other else []

    def result(self, state: list[Any]) -> Any:
        return state[1] - state[0] if state else Decimal(0)


def orders(topic: str, seed: int, number: int) -> list[Input]:
    dice = random.Random(seed)
    found, now = [], START
    for _ in range(number):
        now += dice.randrange(60)
        order = {
            "city": dice.choice(["Oslo", "Rome", "Ulm"]),
            "price": dice.choice([None, dice.randrange(-500, 500) / 100, str(dice.randrange(9)), 999999.99]),
            "at": dice.choice([now, "2026-10-25T02:30:00+02:00", "2026-10-25 02:30:00+01:00"]),
            "day": dice.choice([20_000, "2026-12-31", "2024-02-29"]),
            "hour": dice.choice([None, 1, "23:59:59.999"]),
            "n": dice.choice([None, dice.randrange(5)]),
            "tags": dice.choice([None, {}, {"b": 1.5, "a": None}]),
        }
        at = now - dice.choice([0, 0, 0, dice.randrange(1500)])
        found.append(Input(topic, dice.choice("abc").encode(), json.dumps(order).encode(), at))
    return found


NATIVE = aggregates(
    n=count(value["price"]), total=sum_(value["price"]), mean=avg(value["n"]), low=min_(value["day"]),
    high=max_(value["at"]), last=max_(value["hour"]), most=max_(value["price"] * 3),
)  # fmt: skip
IN_TASKS = aggregates(
    all=collect_list(value["day"]), few=collect_list(value["tags"], limit=2), cities=collect_set(value["city"]),
    latest=latest_by_offset(value["price"]), first=earliest_by_offset(value["hour"], 2, ignore_nulls=False),
    top=top_k(value["price"], value["at"], k=3), best=top_k_distinct(value["at"], 2), often=histogram(value["city"]),
    different=count_distinct(value["tags"]), off=stddev_samp(value["n"]), near=correlation(value["n"], value["n"]),
    spread=own(Spread(), value["price"]), total=sum_(value["price"]),
)  # fmt: skip
UNDONE = aggregates(
    total=sum_(value["price"]), low=min_(value["day"]), mean=avg(value["n"]), all=collect_list(value["city"]),
    often=histogram(value["city"]),
)  # fmt: skip


def regrouped(_: str, order: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"city": order["city"], "day": order["day"]}, order


def build(builder: StreamsBuilder, inputs: str, others: str, out: str) -> None:
    """Two inputs; every result has the number of its aggregate in its key."""
    stream = builder.stream(inputs, Consumed(Serdes.string, ORDER))
    alone = builder.stream(others, Consumed(Serdes.string, ORDER)).group_by_key(Grouped(Serdes.string, ORDER))

    def told(number: int, table: Any) -> None:
        results = table.to_stream().map(lambda found, result: (f"{number} {found}", result))
        results.to(out, Produced(Serdes.string, Serdes.json))

    def told_natively(number: int, table: Any, shown: Expression) -> None:
        table.to_stream(struct(number=number, key=shown)).to(out, Produced(Serdes.json, Serdes.json))

    by_key = stream.group_by_key(Grouped(Serdes.string, ORDER))
    told_natively(1, by_key.aggregate(NATIVE), key)
    windows = alone.windowed_by(TimeWindows.of(1000, grace_ms=500)).aggregate(NATIVE)
    told_natively(2, windows, struct(of=key["key"], start=key["start"]))
    told(3, by_key.aggregate(IN_TASKS))
    by_day = struct(city=value["city"], day=value["day"])
    told_natively(4, stream.group_by(by_day, Grouped(BY_DAY, ORDER)).aggregate(NATIVE), key)
    told(5, by_key.windowed_by(TimeWindows.of(1000, grace_ms=500)).aggregate(own(Spread(), value["price"])))
    told(6, by_key.windowed_by(SessionWindows.of(gap_ms=300, grace_ms=500)).aggregate(aggregates(a=IN_TASKS)))
    table = stream.to_table(Materialized("rows", Serdes.string, ORDER))
    told(7, table.group_by(regrouped, Grouped(BY_DAY, ORDER)).aggregate(UNDONE))


def standing(last: dict[bytes | None, tuple[bytes | None, int]]) -> dict[bytes | None, bytes]:
    """Values only, and without sessions that were merged and groups that no row is in any more: what came and went
    within a batch was never told of, and did not move the time of others."""
    return {
        name: result for name, (result, _) in last.items() if result is not None and b'"all":[],"low"' not in result
    }


def test_every_type_and_aggregate_gives_on_spark_what_the_test_driver_gives(world: World) -> None:
    from ottla.streams.run.planning import plan_of  # noqa: PLC0415  imports pyspark

    inputs, others, out = world.topic("inputs"), world.topic("others"), world.topic("out")
    builder = StreamsBuilder()
    build(builder, inputs, others, out)
    native = [query.aggregate for query in plan_of(world.app(builder)).queries if query.aggregate is not None]
    assert [each.windowed for each in native] == [True, False]
    records = [each for pair in zip(orders(inputs, 5, 150), orders(others, 7, 150), strict=True) for each in pair]
    world.send(records[:180])
    world.app(builder).run(once=True)
    world.send(records[180:])
    world.app(builder).run(once=True)
    assert standing(world.last(out)) == standing(lasts(driven(builder, records, out)))


def test_structs_are_keys_of_joins(world: World) -> None:
    inputs, names, out = world.topic("inputs"), world.topic("names"), world.topic("out")
    builder = StreamsBuilder()
    table = builder.table(names, Consumed(BY_DAY, Serdes.string), Materialized("names", BY_DAY, Serdes.string))
    stream = builder.stream(inputs, Consumed(Serdes.string, ORDER))
    by_day = stream.select_key(struct(city=value["city"], day=value["day"]))
    joined = by_day.left_join(table, struct(n=left["n"], name=right), joined=Joined(BY_DAY, ORDER, Serdes.string))
    joined.to(out, Produced(BY_DAY, Serdes.json))
    days = (date(2024, 10, 4), date(2026, 12, 31))
    known = [BY_DAY.encode({"city": "Oslo", "day": day}) for day in days]
    records = [Input(names, each, f"name {place}".encode(), START - 10) for place, each in enumerate(known)]
    records += orders(inputs, 6, 40)
    world.send(records)
    world.app(builder).run(once=True)
    told = driven(builder, records, out)
    assert any(b"name" in (each.value or b"") for each in told)
    assert [(each.key, each.value) for each in world.read(out)] == [(each.key, each.value) for each in told]
