"""What is a schema and what is none, and that nothing sent by anybody takes the parser down."""

import json
from typing import Any

import pytest

from ottla.registry.schemas.avro import Avro
from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, TooComplex
from tests.rules.registry.avro.schemas import avro, field, record, referring

ENUM = {"type": "enum", "name": "E", "symbols": ["P", "Q"]}

INVALID: list[tuple[Any, str]] = [
    ("{", "the schema is no JSON"),
    ('{"type":"int"} 5', "the schema is no JSON"),
    ('{"type":"int","p":NaN}', "NaN is no number in JSON"),
    (5, "Schema not yet supported: 5"),
    (None, "Schema not yet supported: null"),
    ("nothing", "Undefined schema: nothing"),
    (record("n.R", field("f", "Q")), "Undefined schema: n.Q"),
    ({"type": {"type": "string"}}, 'No type: {"type":{"type":"string"}}'),
    ({"type": "array"}, "Array has no items type"),
    ({"type": "map", "items": "int"}, "Map has no values type"),
    ({"type": "record", "fields": []}, "No name in schema"),
    ({"type": "record", "name": "R"}, "Record has no fields"),
    (record("R", {"type": "int"}), "No field name"),
    (record("R", {"name": "f"}), "No field type"),
    (record("R", field("f", "int"), field("f", "int")), "Duplicate field f in record R"),
    (record("R", field("f", "int", order="up")), 'the order of a field is "up"'),
    (record("R", field("f", "int", aliases="x")), "aliases not an array"),
    (record("R", aliases=[1]), "alias not a string: 1"),
    (record("int"), "Schemas may not be named after primitives: int"),
    ({"type": "enum", "name": "E"}, "Enum has no symbols"),
    (ENUM | {"symbols": ["P", "P"]}, "Duplicate enum symbol: P"),
    (ENUM | {"symbols": ["P", 1]}, "a symbol of enum E is no string"),
    (ENUM | {"default": "Z"}, "The Enum Default: Z is not in the enum symbol set: [P, Q]"),
    ({"type": "fixed", "name": "F"}, "Invalid or no size"),
    ({"type": "fixed", "name": "F", "size": 1.0}, "Invalid or no size"),
    ({"type": "fixed", "name": "F", "size": -1}, "the size of fixed F is -1"),
    (["int", "int"], "Duplicate in union:int"),
    (["int", {"type": "int", "logicalType": "date"}], "Duplicate in union:int"),
    (["int", ["null"]], "Nested union"),
    ([record("R", field("f", "R")), "R"], "Duplicate in union:R"),
    (record("R", field("f", ENUM), field("g", ENUM | {"symbols": ["X"]})), "Can't redefine: E"),
    (record("R", field("f", record("R"))), "Can't redefine: R"),
    ({"type": "int", "p": [1 << 64]}, "the property p has an integer of more than 64 bits"),
    ('{"type":"int","p":"\\ud800"}', "half of a surrogate pair"),
]


@pytest.mark.parametrize(("schema", "reason"), INVALID)
@pytest.mark.parametrize("new", [True, False])
def test_what_is_no_schema_is_refused_with_its_reason(schema: Any, reason: str, new: bool) -> None:
    text = schema if isinstance(schema, str) and schema.startswith("{") else json.dumps(schema)
    with pytest.raises(InvalidSchema) as refused:
        Avro().parse(text, (), Budget(DEFAULT_STEPS), new=new)
    assert reason in str(refused.value)


NOT_ANY_MORE: list[tuple[Any, str]] = [
    (record("1a"), "Illegal initial character: 1a"),
    (record("a-b"), "Illegal character in: a-b"),
    (record(""), "Empty name"),
    (record("R", namespace="a-b"), 'Namespace part "a-b" is invalid: Illegal character in: a-b'),
    (record("n..R"), 'Namespace part "" is invalid: Empty name'),
    (record("R", aliases=["a b"]), "Illegal character in: a b"),
    (record("R", field("a.b", "int")), "Illegal character in: a.b"),
    (record("R", field("\U0001d44e", "int")), "Illegal initial character"),
    (ENUM | {"symbols": ["a-b"]}, "Illegal character in: a-b"),
    (record("R", field("f", "int", default="x")), 'Invalid default for field f: "x" not a "int"'),
    (record("R", field("f", "int", default=1 << 31)), 'Invalid default for field f: 2147483648 not a "int"'),
    (record("R", field("f", "long", default=1.0)), 'Invalid default for field f: 1.0 not a "long"'),
    (record("R", field("f", "string", default=None)), 'Invalid default for field f: null not a "string"'),
    (record("R", field("f", ["null", "int"], default="x")), 'not a ["null","int"]'),
    (record("R", field("f", {"type": "map", "values": "int"}, default={"a": True})), "Invalid default for field f"),
    (record("R", field("f", record("Q", field("x", "int")), default={})), "Invalid default for field f: {} not a"),
    (record("R", field("f", "R", default={})), "Invalid default for field f: {} not a"),
]


@pytest.mark.parametrize(("schema", "reason"), NOT_ANY_MORE)
def test_names_and_defaults_are_held_against_a_new_schema_only(schema: Any, reason: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        avro(schema)
    assert reason in str(refused.value)
    avro(schema, new=False)


VALID: list[Any] = [
    [],
    ENUM | {"symbols": []},
    {"type": "fixed", "name": "F", "size": 0},
    record("R", field("é_1", "int")),
    record("R", field("f", ENUM), field("g", ENUM | {"doc": "the same"})),
    record("R", field("f", ["null", "R"], default={"f": None})),
    record(
        "R", field("f", record("Q", field("x", "int", default=1), field("y", ["int", "string"])), default={"y": "s"})
    ),
    record("R", field("f", "double", default="NaN")),
    record("R", field("f", ["int", "null"], default=None)),
    record("R", doc=5, namespace=7),
]


@pytest.mark.parametrize("schema", VALID)
def test_what_java_takes_is_taken(schema: Any) -> None:
    avro(schema)


def test_a_reference_that_is_no_schema_is_named() -> None:
    broken = referring("Money", record("Money"))
    with pytest.raises(InvalidSchema, match="the reference Money: Undefined schema: Gone"):
        avro("Money", type(broken)(broken.reference, '"Gone"'))


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"array","items":' * 100_000,
        '{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"type":"int","p":' + '{"a":' * 300 + "1" + "}" * 301,
        '{"type":"record","name":"R","fields":[{"name":"f","type":' * 80,
    ],
)
def test_any_depth_is_refused_without_recursion(text: str) -> None:
    with pytest.raises(InvalidSchema, match="nested more than 200 levels deep"):
        avro(text)


def test_brackets_in_strings_are_no_depth() -> None:
    assert avro({"type": "int", "p": "[" * 1000}).text == f'{{"type":"int","p":"{"[" * 1000}"}}'


def test_a_flat_text_whose_types_stand_deep_in_each_other_is_refused() -> None:
    chain = [record(f"R{n}", field("next", f"R{n + 1}")) for n in range(1000)]
    with pytest.raises(InvalidSchema, match="levels deep once its types are in place"):
        avro(json.dumps([*chain, record("R1000")]))


@pytest.mark.parametrize(
    "schema",
    [
        [f"x{n}" for n in range(200_000)],
        {"type": "enum", "name": "E", "symbols": [f"x{n}" for n in range(300_000)]},
        record("R", *[field(f"f{n}", "int") for n in range(101_000)]),
    ],
    ids=["union", "enum", "record"],
)
def test_a_huge_schema_is_given_up(schema: Any) -> None:
    with pytest.raises(TooComplex):
        avro(json.dumps(schema))
