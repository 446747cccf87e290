"""How schemas are compared: unions, references, recursion, sequences of versions, and how much work it may be."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Policy, TooComplex
from ottla.registry.schemas.json_schema.comparison import MAX_TOLD
from ottla.registry.schemas.json_schema.matching import largest_matching
from tests.rules.registry.json_schema.cases import CLOSED, INTEGER, LATEST, NUMBER, OPEN, STRING, with_property
from tests.rules.registry.json_schema.parsing import codes, parsed
from tests.support.examples import examples
from tests.support.patience import least_cpu_s


def test_anything_may_become_the_empty_schema_and_nothing_may_become_anything() -> None:
    assert codes(OPEN, {}) == codes(OPEN, True) == codes(False, OPEN) == []
    assert codes({}, OPEN) == codes(OPEN, False) == ["TYPE_CHANGED #/"]


def test_a_plain_schema_may_become_a_branch() -> None:
    for criterion in ("oneOf", "anyOf"):
        assert codes(INTEGER, {criterion: [STRING, NUMBER]}) == []
        assert codes(INTEGER, {criterion: [STRING, {"type": "boolean"}]}) == ["TYPE_CHANGED #/"]
    assert codes(INTEGER, {"type": ["string", "number"]}) == []
    assert codes(STRING, {"allOf": [STRING, {"maxLength": 3}]}) == ["TYPE_CHANGED #/"]
    assert codes({"oneOf": [STRING, NUMBER]}, STRING) == ["TYPE_CHANGED #/"]


@pytest.mark.parametrize("criterion", ["allOf", "anyOf", "oneOf"])
def test_a_union_of_one_is_its_element(criterion: str) -> None:
    assert codes(INTEGER, {criterion: [NUMBER]}) == codes({criterion: [INTEGER]}, NUMBER) == []
    assert codes(NUMBER, {criterion: [INTEGER]}) == codes({criterion: [NUMBER]}, INTEGER) == ["TYPE_CHANGED #/"]


def test_one_part_may_be_left_of_what_all_of_allof_asked_for() -> None:
    assert codes({"type": "string", "enum": ["a"]}, STRING) == []
    assert codes({"allOf": [{"enum": ["a"]}, STRING]}, NUMBER) == ["TYPE_CHANGED #/"]


@pytest.mark.parametrize(
    ("writer", "reader", "refused"),
    [
        ({"allOf": [STRING]}, {"oneOf": [STRING]}, []),
        ({"anyOf": [STRING]}, {"oneOf": [STRING, NUMBER]}, []),
        ({"oneOf": [STRING]}, {"allOf": [STRING]}, []),
        ({"oneOf": [STRING]}, {"allOf": [STRING, {}]}, ["COMBINED_TYPE_CHANGED #/"]),
        ({"anyOf": [STRING, NUMBER]}, {"oneOf": [STRING, NUMBER]}, ["COMBINED_TYPE_CHANGED #/"]),
        ({"allOf": [STRING, {}]}, {"anyOf": [STRING, {}]}, []),
    ],
)
def test_which_criterion_may_become_which(writer: object, reader: object, refused: list[str]) -> None:
    assert codes(writer, reader) == refused


def test_branches_are_matched_as_many_as_can_be() -> None:
    """Greedily, NUMBER would be taken by the first branch, and the second be left alone."""
    writer = {"oneOf": [INTEGER, NUMBER]}
    reader = {"oneOf": [{"type": "number", "title": "x"}, {"type": "integer", "title": "y"}]}
    assert codes(writer, reader) == []
    assert codes({"oneOf": [NUMBER, {"type": "number", "title": "x"}]}, {"oneOf": [INTEGER, NUMBER]}) == [
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"
    ]


def test_branches_that_stand_twice_count_once() -> None:
    assert codes({"allOf": [STRING]}, {"allOf": [STRING, STRING]}) == []


@given(st.lists(st.lists(st.integers(0, 5), unique=True), max_size=6))
def test_no_matching_is_larger(edges: list[list[int]]) -> None:
    found = largest_matching(edges, Budget(DEFAULT_STEPS))
    assert all(right in edges[left] for left, right in found.items())
    assert len(set(found.values())) == len(found)
    assert len(found) == _largest(edges, frozenset())


def _largest(edges: list[list[int]], taken: frozenset[int]) -> int:
    if not edges:
        return 0
    first, rest = edges[0], edges[1:]
    return max([_largest(rest, taken), *(1 + _largest(rest, taken | {right}) for right in first if right not in taken)])


def test_references_are_followed() -> None:
    def array_of(schema: object) -> object:
        return {"type": "array", "items": {"$ref": "#/definitions/x"}, "definitions": {"x": schema}}

    assert codes(array_of(STRING), array_of(NUMBER)) == ["TYPE_CHANGED #/items"]
    assert codes(array_of(INTEGER), {"type": "array", "items": NUMBER}) == []
    assert codes({"$ref": "#/definitions/x", "definitions": {"x": INTEGER}}, NUMBER) == []


def test_beside_a_reference_only_newer_drafts_look() -> None:
    beside = {"$ref": "#/definitions/x", "definitions": {"x": STRING}, "maxLength": 3}
    assert codes(STRING, beside) == []
    assert codes({**LATEST, **STRING}, {**LATEST, **beside}) == ["TYPE_CHANGED #/"]


def tree(leaf: object) -> dict[str, object]:
    node = {
        "type": "object",
        "properties": {"value": leaf, "next": {"$ref": "#/definitions/node"}},
        "additionalProperties": False,
    }
    return {"$ref": "#/definitions/node", "definitions": {"node": node}}


def test_a_recursive_schema_is_readable_unless_a_difference_is_found() -> None:
    assert codes(tree(INTEGER), tree(NUMBER)) == []
    assert codes(tree(NUMBER), tree(INTEGER)) == ["TYPE_NARROWED #/properties/value"]


def test_a_pair_taken_as_readable_too_early_is_looked_at_again() -> None:
    """Whether branch 0 reads branch 0 depends on the pair that is being compared; what is behind it does not."""

    def ring(last: object) -> object:
        link = {"oneOf": [{"$ref": "#/definitions/a"}, {"type": "null"}]}
        a = {"type": "object", "properties": {"next": link, "end": last}, "additionalProperties": False}
        return {"oneOf": [{"$ref": "#/definitions/a"}, {"type": "null"}], "definitions": {"a": a}}

    assert codes(ring(INTEGER), ring(NUMBER)) == []
    assert codes(ring(NUMBER), ring(INTEGER)) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]


def test_one_definition_used_twice_is_told_at_both_places() -> None:
    def pair(schema: object) -> object:
        at = {"$ref": "#/definitions/x"}
        return {"properties": {"a": at, "b": at}, "definitions": {"x": {"properties": {"c": schema}}}}

    assert codes(pair(NUMBER), pair(INTEGER)) == [
        "TYPE_NARROWED #/properties/a/properties/c",
        "TYPE_NARROWED #/properties/b/properties/c",
    ]


def test_a_reference_that_only_goes_round_says_nothing() -> None:
    assert codes(OPEN, {"$ref": "#"}) == []
    loop = {
        "$ref": "#/definitions/a",
        "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
    }
    assert codes(OPEN, loop) == []


def test_meta_schemas_are_known_by_name_alone() -> None:
    draft_7 = {"$ref": "http://json-schema.org/draft-07/schema#"}
    assert codes(draft_7, draft_7) == []
    assert codes(draft_7, {"$ref": "http://json-schema.org/draft-04/schema#"}) == ["TYPE_CHANGED #/"]


def test_draft_4_says_by_a_flag_that_a_limit_is_exclusive() -> None:
    draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "maximum": 5}
    assert codes(draft_4, {**draft_4, "exclusiveMaximum": True}) == ["EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"]
    assert codes({**draft_4, "exclusiveMaximum": True}, draft_4) == []


def test_schemas_of_two_drafts_can_be_compared() -> None:
    old = {"type": "array", "items": [STRING], "additionalItems": False}
    new = {**LATEST, "type": "array", "prefixItems": [STRING, NUMBER], "items": False}
    assert codes(old, new) == []
    assert codes(new, old) == ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"]


# -- sequences of versions ---------------------------------------------------------------------------------------------

DEFAULTED = with_property(CLOSED, {"type": "string", "default": ""}, required=True)
NEEDED = with_property(CLOSED, STRING, required=True)
OPTIONAL = with_property(CLOSED, STRING)


def accepted_by(versions: list[object], policy: Policy = "STRICT") -> set[str]:
    """The levels at which the last version may follow the others."""
    *older, last = versions
    backward = [not codes(each, last, policy) for each in reversed(older)]
    forward = [not codes(last, each, policy) for each in reversed(older)]
    full = [both for both in map(all, zip(backward, forward, strict=True))]
    verdicts = {"BACKWARD": backward, "FORWARD": forward, "FULL": full}
    levels = {level for level, each in verdicts.items() if each[0]}
    return levels | {f"{level}_TRANSITIVE" for level, each in verdicts.items() if all(each)}


@pytest.mark.parametrize(
    ("versions", "levels"),
    [
        ([CLOSED, DEFAULTED, NEEDED], {"BACKWARD", "FORWARD", "FULL"}),
        ([CLOSED, OPTIONAL, OPTIONAL | {"title": "x"}], {"BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE"}),
        ([NEEDED, OPTIONAL, CLOSED], {"FORWARD"}),
        ([NUMBER, INTEGER, NUMBER], {"BACKWARD", "BACKWARD_TRANSITIVE"}),
        ([INTEGER, NUMBER, INTEGER], {"FORWARD", "FORWARD_TRANSITIVE"}),
        ([STRING, NUMBER, STRING], set()),
        ([{"enum": ["a"]}, {"enum": ["a", "b"]}, {"enum": ["b", "a"]}], None),
        ([OPEN, with_property(OPEN, STRING), OPEN], {"BACKWARD", "BACKWARD_TRANSITIVE"}),
    ],
)
def test_transitive_levels_look_at_all_versions(versions: list[object], levels: set[str] | None) -> None:
    if levels is None:
        levels = {"BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE"}
    assert accepted_by(versions) == levels


def test_lenient_lets_open_models_grow_in_every_direction() -> None:
    versions: list[object] = [OPEN, with_property(OPEN, STRING)]
    assert accepted_by(versions) == {"FORWARD", "FORWARD_TRANSITIVE"}
    assert len(accepted_by(versions, "LENIENT")) == 6


# -- how much work it may be -------------------------------------------------------------------------------------------


def bomb(levels: int, end: object) -> dict[str, object]:
    """2^levels ways to the end."""

    def both(level: int) -> object:
        step = {"$ref": f"#/definitions/d{level + 1}"}
        branch = {"type": "object", "additionalProperties": False}
        return {"oneOf": [{**branch, "properties": {"a": step}}, {**branch, "properties": {"b": step}}]}

    definitions = {f"d{level}": both(level) for level in range(levels)} | {f"d{levels}": end}
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def test_2_to_the_20_paths_cost_what_their_pairs_cost() -> None:
    before = time.process_time()
    assert codes(bomb(20, INTEGER), bomb(20, NUMBER)) == []
    assert codes(bomb(20, NUMBER), bomb(20, INTEGER)) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]
    assert time.process_time() - before < 1


def test_2_to_the_20_paths_through_properties_are_not_all_told() -> None:
    def twice(end: object) -> object:
        steps = [{"$ref": f"#/definitions/d{level}"} for level in range(21)]
        inner = {f"d{n}": {"properties": {"a": steps[n + 1], "b": steps[n + 1]}} for n in range(20)}
        return {"$ref": "#/definitions/d0", "definitions": inner | {"d20": end}}

    found = codes(twice(NUMBER), twice(INTEGER))
    assert 1 <= len(found) <= MAX_TOLD
    assert found[0] == "TYPE_NARROWED #" + "/properties/a" * 20


def test_a_chain_of_references_is_no_deeper_than_a_short_one() -> None:
    def chain(end: object) -> object:
        links = {f"d{n}": {"properties": {"a": {"$ref": f"#/definitions/d{n + 1}"}}} for n in range(3000)}
        return {"$ref": "#/definitions/d0", "definitions": links | {"d3000": end}}

    assert codes(chain(INTEGER), chain(NUMBER)) == []
    assert len(codes(chain(NUMBER), chain(INTEGER))) == 1


def test_a_check_of_a_thousand_fields_takes_200_ms_at_most() -> None:
    def wide(length: int) -> object:
        fields = {f"field{n}": {"type": "string", "maxLength": length} for n in range(1000)}
        return {"type": "object", "properties": fields, "additionalProperties": False}

    writer, reader = parsed(wide(10)), parsed(wide(20))
    assert reader.reading(writer, "STRICT", Budget(DEFAULT_STEPS)) == ()
    assert least_cpu_s(lambda: reader.reading(writer, "STRICT", Budget(DEFAULT_STEPS))) < 0.2


def test_a_check_that_would_take_too_long_is_given_up() -> None:
    def many(title: str) -> object:
        return {"oneOf": [{"type": "object", "properties": {f"{title}{n}": STRING}} for n in range(400)]}

    before = time.process_time()
    with pytest.raises(TooComplex):
        parsed(many("b")).reading(parsed(many("a")), "STRICT", Budget(DEFAULT_STEPS))
    assert time.process_time() - before < 3


def test_patterns_that_explode_do_not() -> None:
    writer = {"type": "object", "properties": {"a" * 100: STRING}}
    reader = {"type": "object", "patternProperties": {"^(a|a)*(?=b)$": STRING}, "additionalProperties": False}
    before = time.process_time()
    assert codes(writer, reader) == [
        f"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/{'a' * 100}",
        "ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties",
    ]
    assert time.process_time() - before < 1


def events(count: int, **changed: object) -> dict[str, object]:
    """A union of many types, as of a topic with all events in it."""

    def event(name: str) -> object:
        body = {f"{name}_{n}": STRING for n in range(5)} | {"kind": {"const": name}}
        return {"type": "object", "title": name, "properties": body, "additionalProperties": False}

    names = [f"event{n}" for n in range(count)]
    definitions = {name: changed.get(name, event(name)) for name in names}
    return {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names], "definitions": definitions}


def test_large_unions_are_matched_by_name_first() -> None:
    assert codes(events(200), events(201)) == []
    assert codes(events(201), events(200)) == ["SUM_TYPE_NARROWED #/"]


def test_a_union_without_names_and_without_end_is_given_up() -> None:
    def union(word: str) -> object:
        return {"oneOf": [{"type": "string", "pattern": f"^{word}{n}$"} for n in range(5000)]}

    before = time.process_time()
    with pytest.raises(TooComplex):
        parsed(union("b"), new=False).reading(parsed(union("a"), new=False), "STRICT", Budget(DEFAULT_STEPS))
    assert time.process_time() - before < 5


def test_a_branch_that_moved_to_another_name_is_found_all_the_same() -> None:
    old, new = events(40), events(40)
    branches = new["oneOf"]
    assert isinstance(branches, list)
    branches.append(branches.pop(0))
    assert codes(old, new) == []
    swapped = events(40, event0=events(40)["definitions"]["event1"], event1=events(40)["definitions"]["event0"])  # type: ignore[index]
    assert codes(old, swapped) == []
    assert codes(old, events(40, event7=STRING)) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]


# -- any schema at all -------------------------------------------------------------------------------------------------


def some_schemas() -> st.SearchStrategy[object]:
    leaves = st.sampled_from(
        [True, False, {}, STRING, NUMBER, INTEGER, {"type": "null"}, {"$ref": "#"}, {"enum": [1, "a"]}]
    )
    names = st.sampled_from(["a", "b", "c"])

    def larger(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        several = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            st.fixed_dictionaries(
                {"properties": st.dictionaries(names, inner, max_size=3)},
                optional={
                    "required": st.lists(names, unique=True, max_size=2),
                    "additionalProperties": inner,
                    "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c"]), inner, max_size=2),
                    "dependencies": st.dictionaries(names, inner, max_size=1),
                },
            ),
            st.fixed_dictionaries({"items": inner | several}, optional={"additionalItems": inner}),
            st.builds(lambda kind, branches: {kind: branches}, st.sampled_from(["allOf", "anyOf", "oneOf"]), several),
            st.builds(lambda schema: {"not": schema}, inner),
            st.builds(lambda schema: {"if": schema, "type": ["string", "object"], "maxLength": 3}, inner),
        )

    return st.recursive(leaves, larger, max_leaves=12)


@settings(max_examples=examples(100), deadline=None)
@given(some_schemas())
def test_a_schema_reads_itself(schema: object) -> None:
    one, other = parsed(schema), parsed(schema)
    other.documents.shapes.clear()
    pair_of_equals = other.changes(one, "STRICT", Budget(DEFAULT_STEPS))
    assert [each for each in pair_of_equals if not each.is_allowed] == []
    assert other.reading(one, "STRICT", Budget(DEFAULT_STEPS)) == ()


@settings(max_examples=examples(100), deadline=None)
@given(some_schemas(), some_schemas())
def test_lenient_refuses_nothing_that_strict_allows(writer: object, reader: object) -> None:
    strict, lenient = codes(writer, reader), codes(writer, reader, "LENIENT")
    assert not (lenient and not strict)
