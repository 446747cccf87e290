"""JSON Schema and Protobuf in streams, as Avro: typed expressions, evolution, dead letters."""

from typing import Any, NamedTuple

import pytest

from ottla.registry.in_memory import MemoryRegistry
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Consumed, Produced
from ottla.streams.expressions import struct, value
from ottla.streams.serdes import Serdes
from ottla.streams.test_driver import TopologyTestDriver

GOES_ON = {
    "deserialization.exception.handler": "continue",
    "errors.dead.letter.queue.topic.name": "dead",
}


class Format(NamedTuple):
    serde: Any
    trade: str
    older: str
    volume: str


JSON = Format(
    Serdes.json_schema,
    '{"type":"object","properties":{"ticker":{"type":"string"},"size":{"type":"integer"},"venue":{"type":"string"}}}',
    '{"type":"object","properties":{"ticker":{"type":"string"},"size":{"type":"integer"}}}',
    '{"type":"object","properties":{"ticker":{"type":"string"},"volume":{"type":"integer"}}}',
)
PROTOBUF = Format(
    Serdes.protobuf,
    'syntax = "proto3"; message Trade { string ticker = 1; int64 size = 2; string venue = 3; }',
    'syntax = "proto3"; message Trade { string ticker = 1; int64 size = 2; }',
    'syntax = "proto3"; message Volume { string ticker = 1; int64 volume = 2; }',
)
FORMATS = pytest.mark.parametrize("format", [JSON, PROTOBUF], ids=["json", "protobuf"])


def doubled(format: Format, registry: MemoryRegistry) -> StreamsBuilder:
    builder = StreamsBuilder()
    stream = builder.stream("trades", Consumed(Serdes.string, format.serde(registry, format.trade)))
    large = stream.filter(value["size"] > 10)
    large.map_values(struct(ticker=value["ticker"].upper(), volume=value["size"] * 2)).to(
        "volumes", Produced(Serdes.string, format.serde(registry, format.volume))
    )
    return builder


@FORMATS
def test_expressions_see_the_fields_also_of_what_an_older_schema_wrote(format: Format) -> None:
    registry = MemoryRegistry()
    with TopologyTestDriver(doubled(format, registry).build()) as driver:
        given = driver.create_input_topic("trades", Serdes.string, format.serde(registry, format.older))
        given.pipe_input("k", {"ticker": "acme", "size": 11})
        given.pipe_input("k", {"ticker": "acme", "size": 10})
        found = driver.create_output_topic("volumes", Serdes.string, format.serde(registry, format.volume))
        assert found.read_key_values() == [("k", {"ticker": "ACME", "volume": 22})]


@FORMATS
def test_a_record_that_does_not_decode_is_a_dead_letter_with_its_reason(format: Format) -> None:
    registry = MemoryRegistry()
    with TopologyTestDriver(doubled(format, registry).build(), config=GOES_ON) as driver:
        raw = driver.create_input_topic("trades", Serdes.string, Serdes.bytes)
        raw.pipe_input("k", b"nothing", 5)
        raw.pipe_input("k", b"\0\0\0\0\x63x", 6)
        letters = list(driver.output("dead"))
    assert [letter.value for letter in letters] == [b"nothing", b"\0\0\0\0\x63x"]
    reasons = [dict(letter.headers)["__streams.errors.message"] for letter in letters]
    assert b"no schema id in front of it" in (reasons[0] or b"")
    assert b"schema id 99 is not known" in (reasons[1] or b"")
