"""Every difference: found where it is, refused or not, in both policies and both directions."""

import pytest

from ottla.registry.schemas.base import DEFAULT_STEPS, Budget, Policy
from ottla.registry.schemas.json_schema.differences import TABLE, is_allowed
from tests.rules.registry.json_schema.cases import CASES, Case
from tests.rules.registry.json_schema.parsing import codes, parsed

COMPATIBLE_SINCE_LENIENT = {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}


def shown(case: Case) -> str:
    return f"{case.code}{case.path}"


@pytest.mark.parametrize("policy", ["STRICT", "LENIENT"])
@pytest.mark.parametrize("case", CASES, ids=shown)
def test_a_difference_is_found_and_judged(case: Case, policy: Policy) -> None:
    reader, writer = parsed(case.reader), parsed(case.writer)
    all_found = [(each.code, each.path) for each in reader.changes(writer, policy, Budget(DEFAULT_STEPS))]
    assert (case.code, case.path) in all_found
    refused = [code for code in (*case.refused_with_it, case.code) if not is_allowed(code, policy)]
    assert codes(case.writer, case.reader, policy) == [f"{code} {case.path}" for code in refused]


def test_every_difference_has_a_case() -> None:
    assert {case.code for case in CASES} == set(TABLE)


def test_lenient_allows_what_the_reference_says() -> None:
    allowed = {code for code in TABLE if is_allowed(code, "LENIENT") and not is_allowed(code, "STRICT")}
    assert allowed == COMPATIBLE_SINCE_LENIENT
    assert all(is_allowed(code, "LENIENT") for code in TABLE if is_allowed(code, "STRICT"))


REFUSED_BOTH_WAYS = {
    # type, pattern and values that have nothing to do with each other
    "TYPE_CHANGED",
    "PATTERN_CHANGED",
    "MULTIPLE_OF_CHANGED",
    "DEPENDENCY_ARRAY_CHANGED",
    "ENUM_ARRAY_CHANGED",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    # closed models: forward, a member that the older reader does not know; backward, one it must have
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}
ALLOWED_BOTH_WAYS = {
    "ID_CHANGED",
    "TITLE_CHANGED",
    "DESCRIPTION_CHANGED",
    "DEFAULT_CHANGED",
    "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
    "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
    "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_the_other_direction_has_the_other_verdict(case: Case) -> None:
    """BACKWARD and FORWARD of one change: what one allows the other mostly refuses."""
    backward, forward = not codes(case.writer, case.reader), not codes(case.reader, case.writer)
    if case.code in REFUSED_BOTH_WAYS:
        assert (backward, forward) == (False, False)
    elif case.code in ALLOWED_BOTH_WAYS:
        assert (backward, forward) == (True, True)
    else:
        assert backward != forward


def test_a_refusal_has_confluents_words_first_and_then_ours() -> None:
    writer = {"type": "object", "properties": {"a": {"type": "string"}}}
    reader = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    (found,) = parsed(reader).reading(parsed(writer), "STRICT", Budget(DEFAULT_STEPS))
    assert found.text == (
        '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The %s schema has an open content '
        "model and has a property or item at path '#/properties/b' which is missing in the %s schema\"}"
    )
    assert "LENIENT" in found.hint
    assert '"additionalProperties": false' in found.hint


@pytest.mark.parametrize("code", [code for code in TABLE if not is_allowed(code, "STRICT")])
def test_every_refusal_says_what_would_be_accepted_and_names_both_schemas(code: str) -> None:
    assert TABLE[code].hint
    assert code == "SCHEMA_ADDED" or TABLE[code].sentence.count("%s") == 2
