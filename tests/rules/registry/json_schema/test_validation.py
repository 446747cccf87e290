"""Instances: what a schema says about bytes of JSON."""

import pytest

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema import validator
from ottla.registry.schemas.json_schema.validation import NOT_TOLD, TOO_MANY
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


def alternatives(levels: int) -> dict[str, object]:
    """2 to the power of `levels` ways to the same string."""
    steps = [{"$ref": f"#/definitions/d{number + 1}"} for number in range(levels)]
    between = {f"d{number}": {"oneOf": [step, step]} for number, step in enumerate(steps)}
    return {"$ref": "#/definitions/d0", "definitions": {**between, f"d{levels}": STRING}}


def test_alternatives_of_alternatives_are_not_looked_at_without_end() -> None:
    """Twenty levels of two took minutes to be explained, for one payload of one byte."""
    assert validator(parsed(alternatives(12)))(b"1") == NOT_TOLD
    assert validator(parsed(alternatives(20)))(b"1") == TOO_MANY
    assert "is not valid under any" in (validator(parsed(alternatives(4)))(b"1") or "")


MEMBER = {"properties": {"n": {"$ref": "#"}}}
ANCHORED = {"properties": {"n": {"$dynamicRef": "#here"}}}
CONTAINS_ITSELF = {
    "anyOf": {"type": "object", "anyOf": [MEMBER, MEMBER]},
    "oneOf": {"oneOf": [MEMBER, {**MEMBER, "title": "the same"}]},
    "allOf": {"type": "object", "allOf": [MEMBER, MEMBER]},
    "$ref beside": {**LATEST, "type": "object", "$ref": "#/$defs/a", **MEMBER, "$defs": {"a": MEMBER}},
    "not": {"type": "object", "not": {"not": MEMBER}, **MEMBER},
    "if": {"type": "object", "if": MEMBER, "then": MEMBER, "else": MEMBER},
    "patterns": {"type": "object", "patternProperties": {"n": {"$ref": "#"}, "^n$": {"$ref": "#"}}},
    "dependencies": {"type": "object", "dependencies": {"n": MEMBER}, **MEMBER},
    "anchor": {**LATEST, "$dynamicAnchor": "here", "type": "object", "anyOf": [ANCHORED, ANCHORED]},
    "unevaluated": {**LATEST, "type": "object", "allOf": [MEMBER], "unevaluatedProperties": False},
    "two of them": {
        "$ref": "#/definitions/a",
        "definitions": {
            one: {
                "anyOf": [{"type": "object", "properties": {"n": {"$ref": f"#/definitions/{each}"}}} for each in "ab"]
            }
            for one in "ab"
        },
    },
}


@pytest.mark.parametrize("name", CONTAINS_ITSELF)
def test_a_schema_that_contains_itself_twice_is_not_followed_down_every_way(name: str) -> None:
    """The payload says how many levels there are: fourteen took seconds, thirty would take days."""
    check = validator(parsed(CONTAINS_ITSELF[name]))
    for levels in (18, 40, 200):
        assert check(b'{"n":' * levels + b"1" + b"}" * levels) in (TOO_MANY, NOT_TOLD)
    assert check(b'{"n":{"n":1}}') not in (None, TOO_MANY, NOT_TOLD)


def nested(levels: int, *, around: object = None) -> dict[str, object]:
    """2 to the power of `levels` ways to what is that deep in a payload, of a schema that need not contain itself."""
    to = [{"$ref": f"#/definitions/d{number + 1}"} for number in range(levels)]
    between = {f"d{number}": {"anyOf": [{"properties": {"n": each}}] * 2} for number, each in enumerate(to)}
    return {"$ref": "#/definitions/d0", "definitions": {**between, f"d{levels}": around or STRING}}


def test_alternatives_that_meet_in_members_are_not_looked_at_without_end() -> None:
    check = validator(parsed(nested(24)))
    assert check(b'{"n":' * 24 + b"1" + b"}" * 24) == TOO_MANY
    assert check(b'{"n":' * 12 + b"1" + b"}" * 12) is None
    back = validator(parsed(nested(24, around={"properties": {"n": {"$ref": "#"}}})))
    assert back(b'{"n":' * 60 + b"1" + b"}" * 60) == TOO_MANY


def test_what_is_little_for_one_value_is_much_for_many() -> None:
    check = validator(parsed({"items": {"$ref": "word.json"}}, {"word.json": alternatives(12)}))
    assert check(b"[1]") == NOT_TOLD
    assert check(b"[" + b"1," * 10_000 + b"1]") == TOO_MANY


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"anyOf": [STRING, {"type": "null"}, {"type": "integer"}]}},
        {"items": {"$ref": "#/definitions/tree"}, "definitions": {"tree": {"properties": {"l": MEMBER, "r": MEMBER}}}},
        {"anyOf": [{"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}, {"type": "integer"}]},
    ],
)
def test_many_values_are_no_reason_to_refuse(schema: object) -> None:
    assert validator(parsed(schema))(b"[" + b"1," * 300_000 + b"1]") is None


def test_alternatives_that_type_or_required_members_tell_apart_are_not_counted() -> None:
    """Then the library looks no further, and neither is anybody kept waiting: trees of 200 levels are checked."""
    kinds = [
        {"type": "object", "required": [name], "properties": {name: {}, "n": {"$ref": "#"}}}
        for name in ("plus", "minus")
    ]
    check = validator(parsed({"anyOf": [*kinds, {"type": "integer"}]}))
    assert check(b'{"plus":0,"n":' * 200 + b"1" + b"}" * 200) is None
    assert check(b'{"plus":0,"n":' * 3 + b"true" + b"}" * 3) not in (None, TOO_MANY, NOT_TOLD)


def test_a_schema_that_says_what_a_value_is_by_way_of_itself_is_none_to_check_by() -> None:
    for schema in ({"$ref": "#"}, {"anyOf": [{"$ref": "#"}, STRING]}, {"not": {"$ref": "#"}}):
        with pytest.raises(InvalidSchema, match="by way of itself"):
            validator(parsed(schema, new=False))


def test_a_long_chain_of_references_is_one_way() -> None:
    chain = {f"d{number}": {"allOf": [{"$ref": f"#/definitions/d{number + 1}"}]} for number in range(400)}
    check = validator(parsed({"$ref": "#/definitions/d0", "definitions": {**chain, "d400": STRING}}))
    assert (check(b'"a"'), check(b"1")) == (None, '1 is not of type "string" at #')
