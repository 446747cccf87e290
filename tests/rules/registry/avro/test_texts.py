"""Canonical, normalised and resolved texts."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema
from tests.oracle.avro_schemas import schema
from tests.rules.registry.avro.schemas import avro, field, record, referring

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "registry" / "avro.json").read_text())["examples"]


@pytest.mark.parametrize("example", GOLDEN, ids=lambda example: example["input"][:60])
def test_texts_are_those_of_confluents_server(example: dict[str, str]) -> None:
    parsed = avro(example["input"])
    assert (parsed.text, parsed.normalized().text) == (example["stored"], example["normalized"])


NUMBERS = [
    ("0.0", "0.0"),
    ("-0.0", "-0.0"),
    ("1e7", "1.0E7"),
    ("9999999.0", "9999999.0"),
    ("0.001", "0.001"),
    ("0.00099", "9.9E-4"),
    ("1234.5e-10", "1.2345E-7"),
    ("1e400", '"Infinity"'),
    ("12345678.9", "1.23456789E7"),
    ("100", "100"),
    ("-9223372036854775808", "-9223372036854775808"),
]


@pytest.mark.parametrize(("written", "canonical"), NUMBERS)
def test_numbers_are_spelled_as_java_spells_them(written: str, canonical: str) -> None:
    assert avro(f'{{"type":"int","p":{written}}}').text == f'{{"type":"int","p":{canonical}}}'


def test_comments_and_white_space_are_taken_and_not_kept() -> None:
    assert avro('{ // a "comment"\n "type": /* {[ */ "int", "p": "//no comment" }').text == (
        '{"type":"int","p":"//no comment"}'
    )


def test_a_type_is_written_where_it_is_used_first_even_if_it_is_defined_later() -> None:
    text = avro(record("n.R", field("a", "Q"), field("b", record("Q")))).text
    assert text == (
        '{"type":"record","name":"R","namespace":"n","fields":'
        '[{"name":"a","type":{"type":"record","name":"Q","fields":[]}},{"name":"b","type":"Q"}]}'
    )


def test_referenced_types_stay_names_and_are_put_in_place_by_the_format_resolved() -> None:
    money = referring("shop.Money", record("shop.Money", field("cents", "long")))
    order = avro(record("shop.Order", field("price", "Money"), field("tax", "shop.Money")), money)
    assert order.text == (
        '{"type":"record","name":"Order","namespace":"shop","fields":'
        '[{"name":"price","type":"Money"},{"name":"tax","type":"Money"}]}'
    )
    assert order.formatted("RESOLVED") == (
        '{"type":"record","name":"Order","namespace":"shop","fields":'
        '[{"name":"price","type":{"type":"record","name":"Money","fields":[{"name":"cents","type":"long"}]}},'
        '{"name":"tax","type":"Money"}]}'
    )
    assert order.formatted("serialized") == order.text
    assert order.normalized().text == order.text


def test_references_may_need_references() -> None:
    money = referring("Money", record("Money", field("cents", "long")))
    line = referring("Line", record("Line", field("price", "Money")), money)
    order = avro(record("Order", field("lines", {"type": "array", "items": "Line"})), money, line)
    assert '"items":"Line"' in order.text
    assert order == avro(order.text, money, line)
    assert order != avro(order.text, money, line, referring("Other", record("Other")))


def test_a_schema_that_is_but_a_reference_is_its_name() -> None:
    assert avro("Money", referring("Money", record("Money"))).text == '"Money"'


NORMALIZED: list[tuple[Any, Any]] = [
    ({"type": "string", "b": 1, "a": {"d": 1, "c": 2}}, {"type": "string", "a": {"c": 2, "d": 1}, "b": 1}),
    (
        {"type": "long", "a": 1, "logicalType": "timestamp-nanos"},
        {"type": "long", "logicalType": "timestamp-nanos", "a": 1},
    ),
    ({"type": "long", "a": 1, "logicalType": "date"}, {"type": "long", "a": 1, "logicalType": "date"}),
    (
        {"type": "bytes", "a": 1, "scale": 0, "precision": 4, "logicalType": "decimal"},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "a": 1, "scale": 0},
    ),
    (record("R", doc="", aliases=["z", "a.b", "B"]), {**record("R"), "aliases": ["B", "a.b", "z"]}),
    (
        record("R", field("f", "float", default=1, aliases=["z", "a"], doc="")),
        record("R", field("f", "float", doc="", default=1.0, aliases=["a", "z"])),
    ),
    (
        record("R", field("f", {"type": "array", "items": "float"}, default=[0.123456789, 3])),
        record("R", field("f", {"type": "array", "items": "float"}, default=[0.12345679, 3.0])),
    ),
    (record("R", field("f", ["null", "int"], default=5)), record("R", field("f", ["null", "int"], default=5))),
]


@pytest.mark.parametrize(("written", "normal"), NORMALIZED)
def test_normalising_sorts_what_has_no_order_and_keeps_what_is_meant(written: Any, normal: Any) -> None:
    assert avro(written).normalized().text == json.dumps(normal, separators=(",", ":"))


@given(st.integers(0, 1 << 32))
def test_a_text_once_canonical_or_normal_stays_so(seed: int) -> None:
    try:
        made = avro(json.dumps(schema(Random(seed))))
    except InvalidSchema:
        assume(False)
    normal = made.normalized()
    assert avro(made.text) == made
    assert avro(normal.text).normalized() == normal
    between = [one.reading(other, "STRICT", Budget(DEFAULT_STEPS)) for one, other in ((made, normal), (normal, made))]
    assert [found.code for found in (*between[0], *between[1]) if found.code != "AMBIGUOUS_ALIAS"] == []
