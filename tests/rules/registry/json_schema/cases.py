"""A case for every difference there is: two schemas that show this one and none that is refused besides."""

from dataclasses import dataclass

OPEN: dict[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED: dict[str, object] = {**OPEN, "additionalProperties": False}
STRINGS: dict[str, object] = {**OPEN, "additionalProperties": {"type": "string"}}
LATEST = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
STRING = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


@dataclass(frozen=True)
class Case:
    code: str
    path: str
    writer: object
    reader: object
    refused_with_it: tuple[str, ...] = ()
    """Other codes at the same place that come along: what is inside of it."""


def with_property(model: dict[str, object], schema: object, *, required: bool = False) -> dict[str, object]:
    properties = model["properties"]
    assert isinstance(properties, dict)
    changed = {**model, "properties": {**properties, "b": schema}}
    return {**changed, "required": ["b"]} if required else changed


def tuple_of(*items: object, more: object = None) -> dict[str, object]:
    """Of draft 7."""
    return {"type": "array", "items": list(items)} | ({} if more is None else {"additionalItems": more})


def limit(keyword: str, code: str, kind: str, *, latest: bool = False) -> list[Case]:
    some = {"type": kind} | (LATEST if latest else {})
    three, five = some | {keyword: 3}, some | {keyword: 5}
    at = f"#/{keyword}"
    return [
        Case(f"{code}_ADDED", at, some, three),
        Case(f"{code}_REMOVED", at, three, some),
        Case(f"{code}_INCREASED", at, three, five),
        Case(f"{code}_DECREASED", at, five, three),
    ]


def others(keyword: str, code: str, kind: str, base: dict[str, object], inner: str) -> list[Case]:
    closed, some = base | {keyword: False}, base | {keyword: STRING}
    at = f"#/{inner}"
    assert kind in ("PROPERTIES", "ITEMS")
    return [
        Case(f"{code}_{kind}_ADDED", at, closed, base),
        Case(f"{code}_{kind}_REMOVED", at, base, closed),
        Case(f"{code}_{kind}_NARROWED", at, base, some),
        Case(f"{code}_{kind}_EXTENDED", at, some, base),
    ]


CASES: list[Case] = [
    Case("ID_CHANGED", "#/", {"$id": "a"}, {"$id": "b"}),
    Case("TITLE_CHANGED", "#/", {"title": "a"}, {"title": "b"}),
    Case("DESCRIPTION_CHANGED", "#/", {"description": "a"}, {"description": "b"}),
    Case("DEFAULT_CHANGED", "#/", {"type": "string", "default": "a"}, STRING),
    Case("SCHEMA_ADDED", "#/items", {"type": "array"}, {"type": "array", "items": STRING}),
    Case("SCHEMA_REMOVED", "#/items", {"type": "array", "items": STRING}, {"type": "array"}),
    Case("TYPE_EXTENDED", "#/", INTEGER, NUMBER),
    Case("TYPE_NARROWED", "#/", NUMBER, INTEGER),
    Case("TYPE_CHANGED", "#/properties/a", OPEN, {"type": "object", "properties": {"a": NUMBER}}),
    *limit("maxLength", "MAX_LENGTH", "string"),
    *limit("minLength", "MIN_LENGTH", "string"),
    *limit("maximum", "MAXIMUM", "number"),
    *limit("minimum", "MINIMUM", "integer"),
    *limit("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", "number"),
    *limit("exclusiveMinimum", "EXCLUSIVE_MINIMUM", "number"),
    *limit("maxProperties", "MAX_PROPERTIES", "object"),
    *limit("minProperties", "MIN_PROPERTIES", "object"),
    *limit("maxItems", "MAX_ITEMS", "array"),
    *limit("minItems", "MIN_ITEMS", "array"),
    *limit("maxContains", "MAX_CONTAINS", "array", latest=True),
    *limit("minContains", "MIN_CONTAINS", "array", latest=True),
    Case("PATTERN_ADDED", "#/pattern", STRING, {"type": "string", "pattern": "^a"}),
    Case("PATTERN_REMOVED", "#/pattern", {"type": "string", "pattern": "^a"}, STRING),
    Case("PATTERN_CHANGED", "#/pattern", {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}),
    Case("MULTIPLE_OF_ADDED", "#/multipleOf", NUMBER, {"type": "number", "multipleOf": 2}),
    Case("MULTIPLE_OF_REMOVED", "#/multipleOf", {"type": "number", "multipleOf": 2}, NUMBER),
    Case("MULTIPLE_OF_EXPANDED", "#/multipleOf", {"multipleOf": 0.1}, {"multipleOf": 0.3}),
    Case("MULTIPLE_OF_REDUCED", "#/multipleOf", {"multipleOf": 0.3}, {"multipleOf": 0.1}),
    Case("MULTIPLE_OF_CHANGED", "#/multipleOf", {"multipleOf": 10}, {"multipleOf": 11}),
    Case("REQUIRED_ATTRIBUTE_ADDED", "#/required/a", OPEN, {**OPEN, "required": ["a"]}),
    Case("REQUIRED_ATTRIBUTE_REMOVED", "#/required/a", {**OPEN, "required": ["a"]}, OPEN),
    Case(
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "#/required/a",
        OPEN,
        {"type": "object", "properties": {"a": {"type": "string", "default": ""}}, "required": ["a"]},
    ),
    Case("DEPENDENCY_ARRAY_ADDED", "#/dependencies/a", OPEN, {**OPEN, "dependencies": {"a": ["b"]}}),
    Case("DEPENDENCY_ARRAY_REMOVED", "#/dependencies/a", {**OPEN, "dependencies": {"a": ["b"]}}, OPEN),
    Case(
        "DEPENDENCY_ARRAY_EXTENDED",
        "#/dependencies/a",
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"a": ["b", "c"]}},
    ),
    Case(
        "DEPENDENCY_ARRAY_NARROWED",
        "#/dependencies/a",
        {**LATEST, "dependentRequired": {"a": ["b", "c"]}},
        {**LATEST, "dependentRequired": {"a": ["c"]}},
    ),
    Case(
        "DEPENDENCY_ARRAY_CHANGED", "#/dependencies/a", {"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["c"]}}
    ),
    Case("DEPENDENCY_SCHEMA_ADDED", "#/dependencies/a", OPEN, {**OPEN, "dependencies": {"a": {"minProperties": 2}}}),
    Case(
        "DEPENDENCY_SCHEMA_REMOVED",
        "#/dependencies/a",
        {**LATEST, **OPEN, "dependentSchemas": {"a": STRING}},
        {**LATEST, **OPEN},
    ),
    *others("additionalProperties", "ADDITIONAL", "PROPERTIES", OPEN, "additionalProperties"),
    *others("unevaluatedProperties", "UNEVALUATED", "PROPERTIES", {**LATEST, **OPEN}, "unevaluatedProperties"),
    Case("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/b", OPEN, with_property(OPEN, STRING)),
    Case(
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/b",
        OPEN,
        with_property(OPEN, STRING, required=True),
    ),
    Case(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/b",
        OPEN,
        with_property(OPEN, {"type": "string", "default": ""}, required=True),
    ),
    Case("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/b", OPEN, with_property(OPEN, {})),
    Case("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", "#/properties/b", with_property(OPEN, STRING), OPEN),
    Case("OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "#/properties/b", CLOSED, with_property(CLOSED, STRING)),
    Case(
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "#/properties/b",
        CLOSED,
        with_property(CLOSED, STRING, required=True),
    ),
    Case(
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "#/properties/b",
        CLOSED,
        with_property(CLOSED, {"type": "string", "default": ""}, required=True),
    ),
    Case("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/b", with_property(CLOSED, STRING), CLOSED),
    Case(
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/b", with_property(CLOSED, False), CLOSED
    ),
    Case(
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/b",
        STRINGS,
        with_property(STRINGS, STRING),
    ),
    Case(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/b",
        STRINGS,
        with_property(STRINGS, NUMBER),
        ("TYPE_CHANGED",),
    ),
    Case(
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/b",
        with_property(CLOSED, INTEGER),
        {**CLOSED, "patternProperties": {"^[bc]$": NUMBER}},
    ),
    Case(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/b",
        with_property(CLOSED, NUMBER),
        {**CLOSED, "patternProperties": {"^[bc]$": INTEGER}},
        ("TYPE_NARROWED",),
    ),
    Case("UNIQUE_ITEMS_ADDED", "#/uniqueItems", {"type": "array"}, {"type": "array", "uniqueItems": True}),
    Case("UNIQUE_ITEMS_REMOVED", "#/uniqueItems", {"type": "array", "uniqueItems": True}, {"type": "array"}),
    *others("additionalItems", "ADDITIONAL", "ITEMS", tuple_of(STRING), "additionalItems"),
    *others("unevaluatedItems", "UNEVALUATED", "ITEMS", {**LATEST, "prefixItems": [STRING]}, "unevaluatedItems"),
    Case("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "#/items/1", tuple_of(STRING), tuple_of(STRING, NUMBER)),
    Case("ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "#/items/1", tuple_of(STRING), tuple_of(STRING, {})),
    Case("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", "#/items/1", tuple_of(STRING, NUMBER), tuple_of(STRING)),
    Case(
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "#/items/1",
        {**LATEST, "prefixItems": [STRING], "items": False},
        {**LATEST, "prefixItems": [STRING, NUMBER], "items": False},
    ),
    Case(
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/items/1",
        tuple_of(STRING, NUMBER, more=False),
        tuple_of(STRING, more=False),
    ),
    Case(
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/items/1",
        tuple_of(STRING, False, more=False),
        tuple_of(STRING, more=False),
    ),
    Case(
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        {**LATEST, "prefixItems": [STRING], "items": INTEGER},
        {**LATEST, "prefixItems": [STRING, NUMBER], "items": INTEGER},
    ),
    Case(
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        tuple_of(STRING, more=STRING),
        tuple_of(STRING, NUMBER, more=STRING),
        ("TYPE_CHANGED",),
    ),
    Case(
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        tuple_of(STRING, INTEGER, more=NUMBER),
        tuple_of(STRING, more=NUMBER),
    ),
    Case(
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        tuple_of(STRING, NUMBER, more=STRING),
        tuple_of(STRING, more=STRING),
        ("TYPE_CHANGED",),
    ),
    Case("ENUM_ARRAY_EXTENDED", "#/enum", {"enum": ["a"]}, {"enum": ["b", "a"]}),
    Case("ENUM_ARRAY_NARROWED", "#/enum", {"enum": ["a", "b"]}, {"enum": ["a"]}),
    Case("ENUM_ARRAY_CHANGED", "#/enum", {"enum": ["a", 1]}, {"enum": ["a", "1"]}),
    Case("ENUM_ARRAY_CHANGED", "#/const", {"const": {"a": [1]}}, {"const": {"a": [2]}}),
    Case("COMBINED_TYPE_EXTENDED", "#/", {"oneOf": [STRING, NUMBER]}, {"anyOf": [STRING, NUMBER]}),
    Case("COMBINED_TYPE_CHANGED", "#/", {"anyOf": [STRING, NUMBER]}, {"oneOf": [STRING, NUMBER]}),
    Case("PRODUCT_TYPE_EXTENDED", "#/", {"allOf": [STRING]}, {"allOf": [STRING, {"enum": ["a"]}]}),
    Case("PRODUCT_TYPE_NARROWED", "#/", {"allOf": [STRING, {"enum": ["a"]}]}, {"allOf": [STRING]}),
    Case("SUM_TYPE_EXTENDED", "#/", {"oneOf": [STRING]}, {"oneOf": [NUMBER, STRING]}),
    Case("SUM_TYPE_NARROWED", "#/", {"type": ["string", "null"]}, {"type": ["string"]}),
    Case("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#/", {"oneOf": [STRING]}, {"oneOf": [NUMBER]}),
    Case("NOT_TYPE_NARROWED", "#/not", {"not": NUMBER}, {"not": INTEGER}),
    Case("NOT_TYPE_EXTENDED", "#/not", {"not": INTEGER}, {"not": NUMBER}),
]
