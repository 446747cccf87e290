"""Avro in streams: typed expressions over it, evolution, dead letters, and a registry that is away."""

from typing import Any

import pytest

from ottla.registry.in_memory import MemoryRegistry
from ottla.registry.lookup import RegistryUnavailable
from ottla.serdes.avro import AvroSerde
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Grouped, Materialized, Produced
from ottla.streams.expressions import struct, sum_, value
from ottla.streams.plan.columns import uses_headers
from ottla.streams.plan.plan import Mode, QueryPlan
from ottla.streams.plan.planner import plan
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver

OLD = "ticker STRING, size INT"
TRADE = "ticker STRING, size LONG, venue STRING"
VOLUME = "ticker STRING, volume LONG"
GOES_ON = {
    "deserialization.exception.handler": "continue",
    "errors.dead.letter.queue.topic.name": "dead",
}


def trades(registry: MemoryRegistry, **options: Any) -> AvroSerde:
    return Serdes.avro(registry, TRADE, record="Trade", **options)


def volumes(registry: MemoryRegistry, **options: Any) -> AvroSerde:
    return Serdes.avro(registry, VOLUME, record="Volume", **options)


def doubled(registry: MemoryRegistry, **options: Any) -> StreamsBuilder:
    builder = StreamsBuilder()
    stream = builder.stream("trades", Consumed(Serdes.string, trades(registry, **options)))
    large = stream.filter(value["size"] > 10)
    large.map_values(struct(ticker=value["ticker"].upper(), volume=value["size"] * 2)).to(
        "volumes", Produced(Serdes.string, volumes(registry, **options))
    )
    return builder


@pytest.mark.parametrize("ids", ["payload", "header"])
def test_expressions_see_the_fields_of_the_schema_and_what_they_give_is_written_by_another(ids: Any) -> None:
    registry = MemoryRegistry()
    with TopologyTestDriver(doubled(registry, ids=ids).build()) as driver:
        given = driver.create_input_topic("trades", Serdes.string, trades(registry, ids=ids))
        given.pipe_input("k", {"ticker": "acme", "size": 11, "venue": None})
        given.pipe_input("k", {"ticker": "acme", "size": 10, "venue": None})
        found = driver.create_output_topic("volumes", Serdes.string, volumes(registry))
        assert found.read_key_values() == [("k", {"ticker": "ACME", "volume": 22})]
    assert list(registry.subjects) == ["trades-value", "volumes-value"]


def test_records_of_an_older_schema_are_read_into_the_one_of_the_stream() -> None:
    registry = MemoryRegistry()
    with TopologyTestDriver(doubled(registry).build()) as driver:
        given = driver.create_input_topic("trades", Serdes.string, Serdes.avro(registry, OLD, record="Trade"))
        given.pipe_input("k", {"ticker": "acme", "size": 11})
        found = driver.create_output_topic("volumes", Serdes.string, volumes(registry))
        assert found.read_key_values() == [("k", {"ticker": "ACME", "volume": 22})]


def test_a_record_that_does_not_decode_is_a_dead_letter_with_its_reason() -> None:
    registry = MemoryRegistry()
    with TopologyTestDriver(doubled(registry).build(), config=GOES_ON) as driver:
        raw = driver.create_input_topic("trades", Serdes.string, Serdes.bytes)
        raw.pipe_input("k", b"no avro", 5)
        raw.pipe_input("k", b"\0\0\0\0\x63x", 6)
        letters = list(driver.output("dead"))
    assert [letter.value for letter in letters] == [b"no avro", b"\0\0\0\0\x63x"]
    reasons = [dict(letter.headers)["__streams.errors.message"] for letter in letters]
    assert b"no schema id in front of it" in (reasons[0] or b"")
    assert b"schema id 99 is not known" in (reasons[1] or b"")


def test_a_registry_that_is_away_ends_the_application_and_costs_no_record() -> None:
    registry = MemoryRegistry()
    other = Serdes.avro(registry, OLD, record="Trade").encode_for({"ticker": "a", "size": 1}, "trades", [])
    with TopologyTestDriver(doubled(registry).build(), config=GOES_ON) as driver:
        registry.is_away = True
        with pytest.raises(RegistryUnavailable):
            driver.create_input_topic("trades", Serdes.string, Serdes.bytes).pipe_input("k", other)
        assert list(driver.output("dead")) == []


def test_stores_keep_avro_with_ids_in_front_since_changelogs_have_no_headers() -> None:
    registry = MemoryRegistry()
    builder = StreamsBuilder()
    stream = builder.stream("trades", Consumed(Serdes.string, trades(registry, ids="header")))
    stream.to_table(Materialized("kept", Serdes.string, trades(registry, ids="header")))
    with TopologyTestDriver(builder.build(), "app") as driver:
        given = driver.create_input_topic("trades", Serdes.string, trades(registry, ids="header"))
        record = {"ticker": "a", "size": 1, "venue": "x"}
        given.pipe_input("k", record)
        (logged,) = driver.output("app-kept-changelog")
        assert logged.value is not None and logged.value[:5] == b"\0\0\0\0\1"
        assert driver.get_key_value_store("kept").get("k") == record


def test_a_global_table_reads_ids_in_headers_and_keeps_them_in_front() -> None:
    registry = MemoryRegistry()
    builder = StreamsBuilder()
    table = builder.global_table(
        "trades", Consumed(Serdes.string, trades(registry, ids="header")), Materialized("kept")
    )
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.string))
    stream.join(table, lambda _, trade: trade["venue"], key_mapper=lambda key, _: key).to(
        "out", Produced(Serdes.string, Serdes.string)
    )
    with TopologyTestDriver(builder.build(), "app") as driver:
        driver.create_input_topic("trades").pipe_input("k", {"ticker": "a", "size": 1, "venue": "x"})
        driver.create_input_topic("in").pipe_input("k", "?")
        assert driver.create_output_topic("out").read_key_values() == [("k", "x")]
    assert set(registry.subjects) == {"trades-value"}


# ---- the plan


def planned(builder: StreamsBuilder) -> QueryPlan:
    (query,) = plan(builder.build().with_default_serdes().sub_topologies(), None).queries
    return query


def test_avro_becomes_columns_with_headers_beside_them() -> None:
    query = planned(doubled(MemoryRegistry()))
    assert query.first.mode is Mode.NATIVE
    assert {node.mode.value for node in query.nodes} == {"N"}
    assert uses_headers(query.first.sub.nodes)


def test_ids_that_go_into_headers_are_written_record_by_record() -> None:
    assert planned(doubled(MemoryRegistry(), ids="header")).first.mode is Mode.PYTHON


def test_a_value_without_a_type_is_no_column() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, Serdes.avro(MemoryRegistry())))
    stream.to("out", Produced(Serdes.string, Serdes.json))
    assert planned(builder).first.mode is Mode.PYTHON


def test_spark_sums_fields_of_avro_by_itself() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed(Serdes.string, trades(MemoryRegistry())))
    grouped = stream.group_by_key(Grouped(Serdes.string, trades(MemoryRegistry())))
    sums = grouped.aggregate(sum_(value["size"]), materialized=Materialized("sums", Serdes.string, Serdes.long))
    sums.to_stream().to("out", Produced(Serdes.string, Serdes.long))
    query = planned(builder)
    assert query.aggregate is not None
    assert query.first.mode is Mode.NATIVE
