"""Datagen: the n-th record of a seed is always the same."""

import json

import pytest

from ottla.connect import spi
from ottla.connect.connectors.datagen import Datagen
from ottla.connect.connectors.made_up_examples import EXAMPLES
from ottla.testing import connect

FAST = {"kafka.topic": "t", "max.interval": 0}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_makes_records_with_its_key(example: str) -> None:
    tried = connect(Datagen, {**FAST, "quickstart": example, "iterations": 20})
    assert len(tried.records) == 20
    key = EXAMPLES[example].key
    assert [str(value[key]).encode() for value in tried.values] == [record.key for record in tried.records]


def test_a_read_from_the_middle_gives_what_the_first_one_gave_there() -> None:
    config = {**FAST, "quickstart": "orders", "random.seed": 5}
    whole = connect(Datagen, {**config, "iterations": 50}).values
    rest = connect(Datagen, {**config, "iterations": 50}, start={"iteration": 20, "at": 0}).values
    assert rest == whole[20:]
    assert connect(Datagen, {**config, "random.seed": 6, "iterations": 50}).values != whole


def test_a_schema_of_ones_own_is_followed() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "id", "type": {"type": "long", "arg.properties": {"iteration": {"start": 3, "step": 2}}}},
            {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}},
            {"name": "tags", "type": {"type": "array", "items": "string", "arg.properties": {"length": 2}}},
            {"name": "maybe", "type": ["null", "int"]},
            {"name": "code", "type": {"type": "string", "arg.properties": {"regex": "[A-C]{2}-(x|y)\\d"}}},
        ],
    }
    tried = connect(Datagen, {**FAST, "schema.string": json.dumps(schema), "schema.keyfield": "id", "iterations": 9})
    assert [value["id"] for value in tried.values] == list(range(3, 21, 2))
    assert {value["kind"] for value in tried.values} <= {"A", "B"}
    assert {len(value["tags"]) for value in tried.values} == {2}
    for value in tried.values:
        assert value["code"][:2].strip("ABC") == "" and value["code"][2:4] in ("-x", "-y")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "one of quickstart"),
        ({"quickstart": "nothing"}, "quickstart: invalid enum value"),
        ({"schema.string": "{"}, "schema.string"),
        ({"schema.string": '{"type":"record","fields":[{"name":"a","type":"uuid"}]}'}, "there is no type 'uuid'"),
        ({"quickstart": "users", "schema.keyfield": "x"}, "the schema has no field x"),
        ({"quickstart": "users", "rate": "-1"}, "rate"),
    ],
)
def test_a_config_that_is_no_good_is_refused_with_its_reason(given: dict[str, str], reason: str) -> None:
    with pytest.raises(spi.ConfigRefused, match=reason):
        connect(Datagen, {**FAST, **given})
