"""The table of differences: which are compatible, and how each is said.

Names and sentences are Confluent's, since people match on them; after each refusal comes a hint of ours.
"""

from dataclasses import dataclass
from typing import Final

from ottla.registry.schemas.base import Difference, Policy


@dataclass(frozen=True, slots=True)
class Entry:
    strict: bool
    """A reader with this difference reads what the writer wrote, in STRICT and so in LENIENT."""
    lenient: bool
    sentence: str = ""
    """{path} is where. %s stands where Confluent's server says «new» or «old», first of the reader."""
    hint: str = ""


_NEW_KEYWORD: Final = "The keyword at path '{path}' in the %s schema is not present in the %s schema"
_MORE: Final = "The value at path '{path}' in the %s schema is more than its value in the %s schema"
_LESS: Final = "The value at path '{path}' in the %s schema is less than its value in the %s schema"
_OTHER_VALUE: Final = "The value at path '{path}' is different between the %s and %s schema"
_FEWER: Final = "An array or combined type at path '{path}' has fewer elements in the %s schema than the %s schema"
_MORE_ELEMENTS: Final = (
    "An array or combined type at path '{path}' has more elements in the %s schema than the %s schema"
)
_OTHER_TYPE: Final = "A type at path '{path}' is different between the %s schema and the %s schema"
_ADDED_TO_OPEN: Final = (
    "The %s schema has an open content model and has a property or item at path '{path}' which is missing in the "
    "%s schema"
)
_REQUIRED_ADDED: Final = (
    "The %s schema has an unopen content model and has a required property at path '{path}' which is missing in "
    "the %s schema"
)
_REMOVED_FROM_CLOSED: Final = (
    "The %s schema has a closed content model and is missing a property or item present at path '{path}' in the "
    "%s schema"
)
_REMOVED_NOT_COVERED: Final = (
    "A property or item is missing in the %s schema but present at path '{path}' in the %s schema and is "
    "not covered by its partially open content model"
)
_ADDED_NOT_COVERED: Final = (
    "The %s schema has a property or item at path '{path}' which is missing in the %s schema and is not "
    "covered by its partially open content model"
)

_LOOSER: Final = "a reader may allow more than the writer did, never less: leave the limit as it was, or loosen it"
_OPEN: Final = (
    "the writer's object is open, so its records may hold this property already, with a value of another type; write "
    '"additionalProperties": false from the first version on, or set compatibilityPolicy to LENIENT, which trusts '
    "that writers keep to what is declared"
)
_REQUIRED: Final = "records without it exist already: make it optional, or give it a default"
_CLOSED: Final = (
    "records that hold it would be refused: keep the property, or take "
    '"additionalProperties": false away; LENIENT allows it'
)
_NARROWER: Final = "records with other properties may exist; LENIENT allows it"
_TYPE: Final = (
    "records of the old type would be refused: keep the type, widen it (integer to number), or accept both with a list "
    "of types or oneOf"
)
_COVERED: Final = "its schema has to accept all that patternProperties or additionalProperties of the other side accept"
_BRANCHES: Final = "each branch needs one of its own on the other side that reads it"


def _allowed(*codes: str) -> dict[str, Entry]:
    return dict.fromkeys(codes, Entry(strict=True, lenient=True))


def _refused(sentence: str, hint: str, *codes: str, lenient: bool = False) -> dict[str, Entry]:
    return dict.fromkeys(codes, Entry(False, lenient, sentence, hint))


def _limits(upper: tuple[str, ...], lower: tuple[str, ...]) -> dict[str, Entry]:
    table: dict[str, Entry] = {}
    for name in (*upper, *lower):
        table |= _allowed(f"{name}_REMOVED", f"{name}_INCREASED" if name in upper else f"{name}_DECREASED")
        table |= _refused(_NEW_KEYWORD, _LOOSER, f"{name}_ADDED")
    for name in upper:
        table |= _refused(_LESS, _LOOSER, f"{name}_DECREASED")
    for name in lower:
        table |= _refused(_MORE, _LOOSER, f"{name}_INCREASED")
    return table


TABLE: Final[dict[str, Entry]] = {
    **_allowed("ID_CHANGED", "DESCRIPTION_CHANGED", "TITLE_CHANGED", "DEFAULT_CHANGED"),
    **_allowed("SCHEMA_REMOVED", "TYPE_EXTENDED"),
    **_refused("", "items may hold anything so far: leave them without a schema", "SCHEMA_ADDED"),
    **_refused(_OTHER_TYPE, _TYPE, "TYPE_NARROWED", "TYPE_CHANGED"),
    **_limits(
        ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS", "MAX_CONTAINS"),
        ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS", "MIN_CONTAINS"),
    ),
    **_allowed("PATTERN_REMOVED"),
    **_refused(_NEW_KEYWORD, _LOOSER, "PATTERN_ADDED"),
    **_refused(_OTHER_VALUE, "whether one pattern allows all of another cannot be seen: remove it", "PATTERN_CHANGED"),
    **_allowed("MULTIPLE_OF_REMOVED", "MULTIPLE_OF_REDUCED"),
    **_refused(_NEW_KEYWORD, _LOOSER, "MULTIPLE_OF_ADDED"),
    **_refused(_MORE, "a divisor of the old value is allowed", "MULTIPLE_OF_EXPANDED"),
    **_refused(_OTHER_VALUE, "a divisor of the old value is allowed", "MULTIPLE_OF_CHANGED"),
    **_allowed("REQUIRED_ATTRIBUTE_REMOVED", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"),
    **_refused(_NEW_KEYWORD, _REQUIRED, "REQUIRED_ATTRIBUTE_ADDED"),
    **_allowed("DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_ARRAY_NARROWED", "DEPENDENCY_SCHEMA_REMOVED"),
    **_refused(_NEW_KEYWORD, _LOOSER, "DEPENDENCY_ARRAY_ADDED", "DEPENDENCY_SCHEMA_ADDED"),
    **_refused(_MORE_ELEMENTS, _LOOSER, "DEPENDENCY_ARRAY_EXTENDED"),
    **_refused(_OTHER_VALUE, _LOOSER, "DEPENDENCY_ARRAY_CHANGED"),
    **_allowed("ADDITIONAL_PROPERTIES_ADDED", "ADDITIONAL_PROPERTIES_EXTENDED"),
    **_allowed("UNEVALUATED_PROPERTIES_ADDED", "UNEVALUATED_PROPERTIES_EXTENDED"),
    **_refused(
        _NEW_KEYWORD, _NARROWER, "ADDITIONAL_PROPERTIES_REMOVED", "UNEVALUATED_PROPERTIES_REMOVED", lenient=True
    ),
    **_refused(_FEWER, _NARROWER, "ADDITIONAL_PROPERTIES_NARROWED", "UNEVALUATED_PROPERTIES_NARROWED", lenient=True),
    **_allowed(
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    **_refused(
        _ADDED_TO_OPEN,
        _OPEN,
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        lenient=True,
    ),
    **_refused(_ADDED_TO_OPEN, _REQUIRED, "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),
    **_refused(_REQUIRED_ADDED, _REQUIRED, "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),
    **_refused(_REMOVED_FROM_CLOSED, _CLOSED, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", lenient=True),
    **_refused(
        _REMOVED_NOT_COVERED, _COVERED, "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", lenient=True
    ),
    **_refused(
        _ADDED_NOT_COVERED, _COVERED, "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", lenient=True
    ),
    **_allowed("UNIQUE_ITEMS_REMOVED"),
    **_refused(_NEW_KEYWORD, _LOOSER, "UNIQUE_ITEMS_ADDED"),
    **_allowed("ADDITIONAL_ITEMS_ADDED", "ADDITIONAL_ITEMS_EXTENDED"),
    **_allowed("UNEVALUATED_ITEMS_ADDED", "UNEVALUATED_ITEMS_EXTENDED"),
    **_refused(_NEW_KEYWORD, _LOOSER, "ADDITIONAL_ITEMS_REMOVED", "UNEVALUATED_ITEMS_REMOVED"),
    **_refused(_FEWER, _LOOSER, "ADDITIONAL_ITEMS_NARROWED", "UNEVALUATED_ITEMS_NARROWED"),
    **_allowed(
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    **_refused(
        _ADDED_TO_OPEN,
        "arrays may hold an item of another type there already: close them (no further items) from the first version",
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    **_refused(
        _REMOVED_FROM_CLOSED, "arrays that hold it would be refused: keep it", "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    ),
    **_refused(_REMOVED_NOT_COVERED, _COVERED, "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
    **_refused(_ADDED_NOT_COVERED, _COVERED, "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
    **_allowed("ENUM_ARRAY_EXTENDED"),
    **_refused(_FEWER, "records with the values taken away exist: add values only", "ENUM_ARRAY_NARROWED"),
    **_refused(_OTHER_TYPE, "records with the old values exist: add values only", "ENUM_ARRAY_CHANGED"),
    **_allowed("COMBINED_TYPE_EXTENDED", "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED", "NOT_TYPE_NARROWED"),
    **_refused(
        _OTHER_TYPE,
        "allOf and oneOf may become anyOf; oneOf is allowed for one branch only",
        "COMBINED_TYPE_CHANGED",
    ),
    **_refused(_OTHER_TYPE, _BRANCHES, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
    **_refused(_MORE_ELEMENTS, "what all of allOf ask for may become less, never more", "PRODUCT_TYPE_EXTENDED"),
    **_refused(_FEWER, "records of the branches taken away exist: add branches only", "SUM_TYPE_NARROWED"),
    **_refused(_MORE_ELEMENTS, "what `not` forbids may become less, never more", "NOT_TYPE_EXTENDED"),
}


def is_allowed(code: str, policy: Policy) -> bool:
    entry = TABLE[code]
    return entry.lenient if policy == "LENIENT" else entry.strict


def said(code: str, path: str) -> Difference:
    entry = TABLE[code]
    sentence = entry.sentence.replace("{path}", path)
    return Difference(code, path, f'{{errorType:"{code}", description:"{sentence}"}}', entry.hint)
