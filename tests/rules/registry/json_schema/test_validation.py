"""Instances: what a schema says about bytes of JSON."""

import pytest

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema import validator
from tests.rules.registry.json_schema.cases import LATEST, STRING
from tests.rules.registry.json_schema.parsing import parsed

PERSON = {"type": "object", "properties": {"name": STRING, "age": {"type": "integer"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"name":"a","age":3}', None),
        (b'{"name":"a","age":3.0}', None),
        (b'{"age":3}', '"name" is a required property at #'),
        (b'{"name":5}', '5 is not of type "string" at #/name'),
        (b'{"name":"' + b"x" * 1000 + b'","age":"' + b"y" * 1000 + b'"}', None),
        (b"{", "no JSON: Input data was truncated"),
        (b"", "no JSON: Input data was truncated"),
        (b"\xff", "no JSON: JSON is malformed: invalid character (byte 0)"),
    ],
)
def test_an_instance_is_valid_or_it_is_said_why_and_where(payload: bytes, said: str | None) -> None:
    found = validator(parsed(PERSON))(payload)
    if len(payload) > 1000:
        assert found is not None
        assert len(found) < 300
        assert found.endswith(" at #/age")
    else:
        assert found == said


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        ({"$id": "http://a.example/s/r.json", "properties": {"x": {"$ref": "b.json#/definitions/s"}}}, ["b.json"]),
        ({"properties": {"x": {"$ref": "c.json"}}}, ["b.json", "c.json"]),
        ({**LATEST, "properties": {"x": {"$ref": "#s"}}, "$defs": {"a b/c": {"$anchor": "s", **STRING}}}, []),
        ({"properties": {"x": {"$id": "inner.json", "$ref": "#/definitions/q"}}, "definitions": {"q": STRING}}, []),
        ({"properties": {"x": {"allOf": [{"$ref": "#/odd/0"}]}}, "odd": [STRING]}, []),
    ],
)
def test_references_are_followed_as_for_compatibility(schema: object, references: list[str]) -> None:
    texts = {
        "b.json": {"definitions": {"s": {"$ref": "#t"}, "t": {"$id": "#t", **STRING}}},
        "c.json": {"$ref": "b.json#/definitions/t"},
    }
    check = validator(parsed(schema, {name: texts[name] for name in references}))
    assert check(b'{"x":"a"}') is None
    assert check(b'{"x":1}') == '1 is not of type "string" at #/x'


def test_recursion_in_schema_and_instance() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    check = validator(parsed(tree))
    assert check(b'{"next":{"next":{}}}') is None
    assert check(b'{"next":{"next":{"other":1}}}') is not None
    assert check(b'{"next":' * 100_000 + b"{}" + b"}" * 100_000) is not None


def test_boolean_schemas_and_empty_lists() -> None:
    assert validator(parsed(True))(b"1") is None
    assert validator(parsed(False))(b"1") == "False schema does not allow 1 at #"
    assert validator(parsed({"allOf": [], "required": []}))(b"{}") is None
    assert validator(parsed({"oneOf": []}))(b"{}") is not None
    assert validator(parsed({"$ref": "#/definitions/no", "definitions": {"no": False}}))(b"1") is not None


def test_formats_bind_nobody() -> None:
    assert validator(parsed({"format": "date-time"}))(b'"yesterday"') is None


def test_patterns_that_explode_do_not_match() -> None:
    check = validator(parsed({"pattern": "^(a|a)*(?=b)$"}))
    assert "backtracking" in str(check(b'"' + b"a" * 60 + b'"'))


def test_what_cannot_be_checked_is_said_when_the_validator_is_made() -> None:
    with pytest.raises(InvalidSchema, match="instances cannot be checked"):
        validator(parsed({"pattern": "a++"}))
    with pytest.raises(InvalidSchema, match="leads nowhere"):
        validator(parsed({"$ref": "http://127.0.0.1:1/x"}, new=False))
