"""An application on Spark whose schemas are those of a registry that runs: sources, sinks and dead letters."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla.registry.client import RegistryClient
from ottla.registry.languages import LANGUAGES
from ottla.streams import StreamsBuilder
from ottla.streams.dsl.options import Branched, Consumed, Produced
from ottla.streams.expressions import struct, value
from ottla.streams.serdes import Serdes
from tests.spark.applications import START, TEXT, Input, World
from tests.support.registries import Registry

pytestmark = pytest.mark.usefixtures("spark")


def _avro(*fields: tuple[str, str, Any]) -> str:
    members = [
        {"name": name, "type": kind} | ({} if extra is ... else {"default": extra}) for name, kind, extra in fields
    ]
    return json.dumps({"type": "record", "name": "Trade", "fields": members})


def _json(**properties: str) -> str:
    members = {name: {"type": kind} for name, kind in properties.items()}
    return json.dumps({"type": "object", "additionalProperties": False, "properties": members})


def _proto(fields: str) -> str:
    return f'syntax = "proto3"; message Trade {{ {fields} }}'


SCHEMAS = {
    "avro": (
        _avro(("ticker", "string", ...), ("size", "long", ...)),
        _avro(("ticker", "string", ...), ("size", "long", ...), ("venue", "string", "none")),
        _avro(("ticker", "string", ...), ("volume", "long", ...)),
    ),
    "json_schema": (
        _json(ticker="string", size="integer"),
        _json(ticker="string", size="integer", venue="string"),
        _json(ticker="string", volume="integer"),
    ),
    "protobuf": (
        _proto("string ticker = 1; int64 size = 2;"),
        _proto("string ticker = 1; int64 size = 2; string venue = 3;"),
        _proto("string ticker = 1; int64 volume = 2;"),
    ),
}
"""What was written before, what the application reads, and what it writes."""


@pytest.fixture
def registry(bootstrap: str) -> Iterator[Registry]:
    with Registry(bootstrap, languages=LANGUAGES) as started:
        yield started


@pytest.mark.parametrize("kind", SCHEMAS)
def test_old_and_new_records_are_read_results_registered_and_the_rest_are_dead_letters(
    world: World, registry: Registry, kind: str
) -> None:
    trades, volumes, dead = world.topic("trades"), world.topic("volumes"), world.topic("dead")
    old, new, out = (_serde(kind, registry, text) for text in SCHEMAS[kind])
    builder = StreamsBuilder()
    large = builder.stream(trades, Consumed(key_serde=TEXT, value_serde=new)).filter(value["size"] > 10)
    doubled = large.map_values(struct(ticker=value["ticker"].upper(), volume=value["size"] * 2))
    doubled.to(volumes, Produced(key_serde=TEXT, value_serde=out))
    sent = [
        old.encode_for({"ticker": "a", "size": 11}, trades, []),
        b"junk",
        new.encode_for({"ticker": "b", "size": 12, "venue": "x"}, trades, []),
        b"\0\0\0\x27\x0f",
        new.encode_for({"ticker": "c", "size": 1, "venue": "x"}, trades, []),
    ]
    world.send([Input(trades, b"abcde"[at : at + 1], each, START) for at, each in enumerate(sent)])
    config = {"deserialization.exception.handler": "continue", "errors.dead.letter.queue.topic.name": dead}
    world.app(builder, **config).runner(once=True).run()

    written = {record.key: record.value for record in world.read(volumes)}
    found = {key: out.decode_from(data, volumes, ()) for key, data in written.items()}
    assert found == {b"a": {"ticker": "A", "volume": 22}, b"c": {"ticker": "B", "volume": 24}}
    letters = {letter.value: dict(letter.headers)["__streams.errors.message"] or b"" for letter in world.read(dead)}
    assert b"no schema id in front of it" in letters[b"junk"]
    assert b"schema id 9999 is not known" in letters[b"\0\0\0\x27\x0f"]
    assert registry.ask("GET", f"/subjects/{trades}-value/versions") == (200, [1, 2])
    assert registry.ask("GET", f"/subjects/{volumes}-value/versions") == (200, [1])
    if kind == "avro":
        with SchemaRegistryClient({"url": registry.url}) as theirs:
            place = SerializationContext(volumes, MessageField.VALUE)
            assert AvroDeserializer(theirs)(written[b"a"], place) == {"ticker": "A", "volume": 22}


def test_a_branch_writes_what_has_no_place_in_the_schema_of_another(world: World, registry: Registry) -> None:
    trades, named, others = world.topic("trades"), world.topic("named"), world.topic("others")
    given = _avro(("size", "long", ...)), _avro(("venue", "string", ...)), _avro(("size", "long", ...))
    source = json.loads(given[0])
    source["fields"].append({"name": "venue", "type": ["null", "string"], "default": None})
    new, with_venue, without = (_serde("avro", registry, text) for text in (json.dumps(source), *given[1:]))
    builder = StreamsBuilder()
    split = builder.stream(trades, Consumed(key_serde=TEXT, value_serde=new)).split(name="by-")
    by = split.branch(value["venue"].is_not_null(), Branched("venue")).default_branch(Branched("rest"))
    by["by-venue"].map_values(struct(venue=value["venue"])).to(named, Produced(key_serde=TEXT, value_serde=with_venue))
    by["by-rest"].map_values(struct(size=value["size"])).to(others, Produced(key_serde=TEXT, value_serde=without))
    sent = [{"size": 1, "venue": "x"}, {"size": 2, "venue": None}]
    world.send([Input(trades, b"k", new.encode_for(each, trades, []), START) for each in sent])
    world.app(builder).runner(once=True).run()
    assert [with_venue.decode_from(each.value, named, ()) for each in world.read(named)] == [{"venue": "x"}]
    assert [without.decode_from(each.value, others, ()) for each in world.read(others)] == [{"size": 2}]


def _serde(kind: str, registry: Registry, text: str) -> Any:
    makers: dict[str, Any] = {"avro": Serdes.avro, "json_schema": Serdes.json_schema, "protobuf": Serdes.protobuf}
    return makers[kind](RegistryClient(registry.url), text)
