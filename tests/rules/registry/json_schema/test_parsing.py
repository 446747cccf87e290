"""What is a JSON Schema, what is its text, and what it refers to."""

import json
import socket
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, InvalidSchema, TooComplex
from ottla.registry.schemas.json_schema import JSON_SCHEMA, validator
from ottla.registry.schemas.json_schema.drafts import draft_of
from ottla.registry.schemas.json_schema.json_text import MAX_DEPTH
from tests.rules.registry.json_schema.cases import LATEST, NUMBER, STRING
from tests.rules.registry.json_schema.parsing import codes, parsed
from tests.support.examples import examples


def refusal(schema: object, **references: object) -> str:
    with pytest.raises(InvalidSchema) as refused:
        parsed(schema, {name.replace("_", "."): text for name, text in references.items()})
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{ "b" : 1 ,\n"a":[ 1 , {} ] }', '{"b":1,"a":[1,{}]}'),
        ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
        ('{"x":[1.0,1.50,1e3,1E-7,-0.0,-0,0.0000001,12345678901234567890.5]}', None),
        ('{"x":"\\u00e9\\u0001\\u001f\\b\\/\\"\\\\\\u2028\\u007f"}', '{"x":"é\\u0001\\u001F\\b/\\"\\\\\u2028\x7f"}'),
        (f'{{"maximum":{10**40}}}', f'{{"maximum":{10**40}}}'),
    ],
)
def test_the_canonical_text_keeps_everything_but_white_space(text: str, canonical: str | None) -> None:
    expected = canonical or '{"x":[1.0,1.50,1E+3,1E-7,0.0,0,1E-7,12345678901234567890.5]}'
    assert parsed(text, new=False).text == expected
    assert parsed(expected, new=False).text == expected


def test_normalising_sorts_members_as_java_does_and_leaves_arrays() -> None:
    text = '{"\U0001f600":1,"\ufb01":2,"b":[3,1,{"d":1,"c":2}],"a":0}'
    assert parsed(text).normalized().text == '{"a":0,"b":[3,1,{"c":2,"d":1}],"\U0001f600":1,"\ufb01":2}'


@settings(deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    )
)
def test_canonical_text_means_what_the_text_meant(value: object) -> None:
    text = json.dumps({"const": value})
    canonical = parsed(text, new=False).text
    assert json.loads(canonical) == json.loads(text)
    assert parsed(canonical, new=False).text == canonical


@pytest.mark.parametrize(
    ("schema", "draft"),
    [
        ({}, "draft 7"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "draft 4"),
        ({"$schema": "https://json-schema.org/draft-06/schema"}, "draft 6"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "draft 7"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema"}, "draft 2019-09"),
        ({"$schema": "http://json-schema.org/draft/2020-12/schema#"}, "draft 2020-12"),
        ({"$schema": "https://example.com/own"}, "draft 7"),
        ({"$schema": 4}, "draft 7"),
    ],
)
def test_schema_says_which_draft_it_is(schema: dict[str, object], draft: str) -> None:
    tree = json.loads(json.dumps(schema))
    assert draft_of(tree).name == draft


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON: Expecting value at line 1, column 1"),
        ('{"a":', "no JSON: Expecting value at line 1, column 6"),
        ('{"type":"object"} x', "no JSON: Extra data at line 1, column 19"),
        ("NaN", "no JSON: NaN is no number of it"),
        ("[]", "a JSON Schema is an object, true or false"),
        ('"string"', "a JSON Schema is an object, true or false"),
        ('{"const":"\\ud800"}', "half of a surrogate pair (U+D800)"),
        (f'{{"x":{"9" * 1001}}}', "a number of more than 1000 digits"),
        ('{"x":1e9999999999}', "the exponent of 1e9999999999 is out of range"),
        ("[" * 100_000 + "]" * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
        ('{"not":' * 100_000 + "{}" + "}" * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
        ('{"not":' * MAX_DEPTH + "{}" + "}" * MAX_DEPTH, f"nested more than {MAX_DEPTH} levels deep"),
    ],
    ids=lambda text: text[:20],
)
def test_text_that_is_no_schema_is_refused_with_the_place(text: str, said: str) -> None:
    assert refusal(text) == said


def test_the_deepest_schema_that_is_taken_can_be_used_for_everything() -> None:
    text = '{"not":' * (MAX_DEPTH - 1) + "{}" + "}" * (MAX_DEPTH - 1)
    schema = parsed(text)
    assert schema.normalized().text == text
    assert validator(schema)(b"1") is not None
    assert codes(text, schema.text) == []


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "text"}, "#/type"),
        ({"properties": {"a/b": {"minLength": "3"}}}, "#/properties/a~1b/minLength"),
        ({"$defs": {"x": {"maximum": "3"}}} | LATEST, "#/$defs/x/maximum"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMaximum": 3, "maximum": 4},
            "#/exclusiveMaximum",
        ),
        ({"exclusiveMaximum": True}, "#/exclusiveMaximum"),
        ({"required": "a"}, "#/required"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "items": 5}, "#/items"),
    ],
)
def test_a_new_schema_has_to_obey_its_meta_schema(schema: object, where: str) -> None:
    said = refusal(schema)
    assert said.startswith("no schema of draft ")
    assert said.endswith(f" at {where}")
    parsed(schema, new=False)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": []},
        {"$schema": "http://json-schema.org/draft-04/schema#", "required": [], "dependencies": {"a": []}},
        {"required": ["a", "a"], "type": ["string", "string"], "enum": []},
        {"examples": "one", "$comment": 5},
        {"unknown": {"$ref": 5}, "x": [{"type": "text"}]},
    ],
)
def test_what_confluents_server_takes_although_the_meta_schema_does_not(schema: object) -> None:
    parsed(schema)


@pytest.mark.parametrize(
    "pattern", ["^[a-z]+$", "a++", "(?i)abc", r"\Qa.b\E", r"\p{L}+", r"^(?<x>a)$", r"(?=a)b", r"\/"]
)
def test_patterns_may_be_javas_or_ecmas(pattern: str) -> None:
    parsed({"pattern": pattern, "patternProperties": {pattern: {}}})


@pytest.mark.parametrize("pattern", ["[", "(", "a{2,1}", "*", "(" * 4000 + ")" * 4000, "a" * 10_001])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    assert " at #/properties/a/pattern is no regular expression: " in refusal(
        {"properties": {"a": {"pattern": pattern}}}
    )
    assert " at #/patternProperties is no regular expression: " in refusal({"patternProperties": {pattern: {}}})


# -- references --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        ({"$ref": "#/definitions/x", "definitions": {"x": STRING}}, {}),
        ({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": STRING}}, {}),
        ({"$ref": "#x", "definitions": {"y": {"$id": "#x", **STRING}}}, {}),
        ({"$ref": "other.json"}, {"other.json": STRING}),
        ({"$ref": "./other.json"}, {"other.json": STRING}),
        ({"$ref": "other.json#/definitions/x"}, {"other.json": {"definitions": {"x": STRING}}}),
        ({"$ref": "http://a.example/x.json"}, {"http://a.example/x.json": STRING}),
        ({"$id": "http://a.example/s/root.json", "$ref": "x"}, {"x": STRING}),
        (
            {"$id": "http://a.example/s/root.json", "allOf": [{"$ref": "../x.json"}]},
            {"http://a.example/x.json": STRING},
        ),
        ({"$id": "http://a.example/s/root.json", "allOf": [{"$ref": "http://a.example/s/x"}]}, {"x": STRING}),
        ({"$id": "urn:a:b", "allOf": [{"$ref": "#/definitions/x"}], "definitions": {"x": STRING}}, {}),
        ({"allOf": [{"$ref": "b.json"}]}, {"a.json": STRING, "b.json": {"$ref": "a.json"}}),
        ({"allOf": [{"$ref": "item.json"}], "definitions": {"i": {"$id": "item.json", **STRING}}}, {}),
        (LATEST | {"$ref": "#here", "$defs": {"x": {"$anchor": "here", **STRING}}}, {}),
        (LATEST | {"$dynamicRef": "#here", "$defs": {"x": {"$dynamicAnchor": "here", **STRING}}}, {}),
        (LATEST | {"$ref": "x", "$defs": {"x": {"$id": "x", "$ref": "#/$defs/y", "$defs": {"y": STRING}}}}, {}),
        (
            {
                "allOf": [{"$id": "http://b.example/", "allOf": [{"$ref": "#/definitions/x"}]}],
                "definitions": {"x": STRING},
            },
            {},
        ),
    ],
)
def test_a_reference_leads_to_what_it_names(schema: object, references: dict[str, object]) -> None:
    reader = parsed({"type": "string", "maxLength": 3})
    writer = parsed(schema, references)
    plain = [each.code for each in reader.reading(parsed(STRING), "STRICT", Budget(DEFAULT_STEPS))]
    assert plain == ["MAX_LENGTH_ADDED"]
    found = [each.code for each in parsed(STRING).reading(writer, "STRICT", Budget(DEFAULT_STEPS))]
    assert found == []
    assert parsed(NUMBER).reading(writer, "STRICT", Budget(DEFAULT_STEPS)) != ()


def test_the_outermost_dynamic_anchor_counts() -> None:
    tree = {"$id": "tree", "$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}} | LATEST
    strict = {"$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False} | LATEST
    writer = parsed(strict, {"tree": tree})
    reader = parsed(strict | {"unevaluatedProperties": STRING}, {"tree": tree})
    assert reader.reading(writer, "STRICT", Budget(DEFAULT_STEPS)) == ()
    assert writer.reading(reader, "STRICT", Budget(DEFAULT_STEPS)) != ()


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"$ref": "#/definitions/x"}, "#/$ref"),
        ({"properties": {"a": {"items": {"$ref": "x.json"}}}}, "#/properties/a/items/$ref"),
        ({"definitions": {"unused": {"$ref": "http://127.0.0.1:1/x"}}}, "#/definitions/unused/$ref"),
        ({"$ref": "file:///etc/hostname"}, "#/$ref"),
        (LATEST | {"$dynamicRef": "#x"}, "#/$dynamicRef"),
        ({"$ref": "http://["}, "#/$ref"),
        ({"$ref": "#/definitions/x", "definitions": {"x": 5}}, None),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_with_its_place(schema: object, where: str | None) -> None:
    said = refusal(schema)
    if where is not None:
        assert f" at {where} leads nowhere" in said
    parsed(schema, new=False)


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener that nobody may knock at: the library would, if it were let."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/x.json"
        refusal({"$ref": address})
        refusal({"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"$ref": address}]})
        parsed({"$schema": address, "$id": address, "type": "string"})
        parsed({"$ref": address}, new=False)
        with pytest.raises(TimeoutError):
            listener.accept()


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_huge_schema_is_given_up_in_time() -> None:
    text = json.dumps({"properties": {f"field{n}": {"type": "string"} for n in range(300_000)}})
    before = time.process_time()
    with pytest.raises(TooComplex):
        parsed(text)
    assert time.process_time() - before < 5


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=50) | st.text(st.sampled_from('{}[]":,0123456789eE.-truefalsn\\ $id#/ref'), max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    for new in (True, False):
        try:
            JSON_SCHEMA.parse(text, [], Budget(1000), new=new)
        except (InvalidSchema, TooComplex):
            continue


KEYWORDS = [
    "$id", "id", "$ref", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$defs", "definitions",
    "type", "enum", "const", "properties", "required", "patternProperties", "additionalProperties", "items",
    "prefixItems", "additionalItems", "contains", "allOf", "anyOf", "oneOf", "not", "if", "then", "pattern", "maximum",
    "multipleOf", "dependencies", "unevaluatedProperties", "default", "confluent:tags",
]  # fmt: skip


def nonsense() -> st.SearchStrategy[object]:
    scalars = st.sampled_from(
        [None, True, False, 0, -1, 1.5, 10**400, 1e300, "", "#", "#/", "a", "string", "http://[", "["]
    )
    drafts = st.sampled_from(["http://json-schema.org/draft-04/schema#", LATEST["$schema"]])
    return st.recursive(
        scalars | drafts,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYWORDS, "a"]), inner, max_size=4)
        ),
        max_leaves=15,
    )


@settings(max_examples=examples(200), deadline=None)
@given(nonsense(), nonsense())
def test_no_nonsense_raises_anything_else(one: object, other: object) -> None:
    """Also what was never checked, as it may lie in a topic."""
    schemas = []
    for schema in (one, other):
        for new in (True, False):
            try:
                schemas.append(parsed(schema, {"a": {"$ref": "#"}}, new=new))
            except InvalidSchema:
                continue
    for reader in schemas:
        assert reader.reading(reader, "STRICT", Budget(DEFAULT_STEPS)) == ()
        reader.normalized()
        reader.tags()
        for writer in schemas:
            reader.reading(writer, "LENIENT", Budget(DEFAULT_STEPS))


# -- tags --------------------------------------------------------------------------------------------------------------

TAGGED = {
    "type": "object",
    "confluent:tags": ["record"],
    "properties": {
        "a": {"type": "string", "confluent:tags": ["PII", "x"]},
        "b": {"type": "array", "items": {"type": "object", "properties": {"c.d": {"confluent:tags": ["deep"]}}}},
        "e": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"f": {"confluent:tags": ["one"]}}}]},
    },
    "definitions": {"N": {"type": "object", "properties": {"g": {"confluent:tags": ["named"]}}}},
}


def test_tags_are_found_by_confluents_paths() -> None:
    assert parsed(TAGGED).tags() == {
        "object": frozenset({"record"}),
        "object.a": frozenset({"PII", "x"}),
        "object.b.array.object.c.d": frozenset({"deep"}),
        "object.e.oneof.1.object.f": frozenset({"one"}),
        "object.definitions.N.object.g": frozenset({"named"}),
    }


def test_tags_are_added_and_taken_away() -> None:
    schema = parsed(TAGGED)
    changed = schema.with_tags(
        {"object.a": frozenset({"new"}), "object.b": frozenset({"list"})}, {"object": frozenset({"record"})}
    )
    tags = changed.tags()
    assert tags["object.a"] == {"PII", "x", "new"}
    assert tags["object.b"] == {"list"}
    assert "object" not in tags
    assert schema.tags()["object"] == {"record"}
    with pytest.raises(InvalidSchema, match=r"No matching path 'object\.nowhere' found"):
        schema.with_tags({"object.nowhere": frozenset({"x"})}, {})
