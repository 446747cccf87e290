"""What a schema says, as values of few kinds that rules can compare.

The kinds are those of the libraries under Confluent's server, because its verdicts depend on them: one schema of JSON
becomes one shape for each type it speaks about (`minLength` makes a Text, with or without `type`), and if there are
several, a Combination of all of them. References are followed; what cannot be followed is an Unknown, equal only to
itself. Shapes of a place are made once, so that they can be compared by identity.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from ottla.registry.schemas.json_schema.documents import Place
from ottla.registry.schemas.json_schema.json_text import Json, written

Number: TypeAlias = int | Decimal
Criterion: TypeAlias = Literal["allOf", "anyOf", "oneOf"]


@dataclass(frozen=True, slots=True)
class Notes:
    """What a schema says to people."""

    id: Json = None
    title: Json = None
    description: Json = None
    default: str | None = None
    """Canonical text; None: there is none."""


NO_NOTES: Final = Notes()


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    notes: Notes = field(default=NO_NOTES, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Anything(Shape):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Nothing(Shape):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Null(Shape):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Boolean(Shape):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Unknown(Shape):
    """A reference that leads to a meta-schema, or nowhere."""

    uri: str


@dataclass(frozen=True, slots=True, eq=False)
class Text(Shape):
    max_length: Number | None
    min_length: Number | None
    pattern: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Numeric(Shape):
    maximum: Number | None
    minimum: Number | None
    exclusive_maximum: Number | None
    exclusive_minimum: Number | None
    multiple_of: Number | None
    is_integer: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Members(Shape):
    """Of an object."""

    properties: dict[str, Place]
    required: frozenset[str]
    patterns: dict[str, Place]
    additional: "Sub | None"
    """None: any; Nothing: none."""
    unevaluated: "Sub | None"
    needed_with: dict[str, frozenset[str]]
    schemas_with: dict[str, Place]
    max_properties: Number | None
    min_properties: Number | None


@dataclass(frozen=True, slots=True, eq=False)
class Elements(Shape):
    """Of an array."""

    every: "Sub | None"
    first: tuple["Sub", ...]
    additional: "Sub | None"
    unevaluated: "Sub | None"
    max_items: Number | None
    min_items: Number | None
    max_contains: Number | None
    min_contains: Number | None
    are_unique: bool


@dataclass(frozen=True, slots=True, eq=False)
class Choices(Shape):
    values: frozenset[str]
    """Canonical texts."""


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Shape):
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Negation(Shape):
    of: Place


@dataclass(frozen=True, slots=True, eq=False)
class Condition(Shape):
    """if, then, else: Confluent's server does not look into it."""


@dataclass(frozen=True, slots=True, eq=False)
class Combination(Shape):
    criterion: Criterion
    parts: tuple["Sub", ...]


Sub: TypeAlias = Place | Shape

ANYTHING: Final = Anything()
NOTHING: Final = Nothing()

_NOTED: Final = frozenset(("$id", "id", "title", "description", "default"))
_COMBINED: Final[tuple[Criterion, ...]] = ("allOf", "anyOf", "oneOf")
_OF_STRINGS: Final = frozenset(("minLength", "maxLength", "pattern"))
_OF_NUMBERS: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_OF_OBJECTS: Final = frozenset(
    (
        "additionalProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "maxProperties",
        "minProperties",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
        "unevaluatedProperties",
    )
)
_OF_ARRAYS: Final = frozenset(
    (
        "additionalItems",
        "contains",
        "items",
        "maxContains",
        "maxItems",
        "minContains",
        "minItems",
        "prefixItems",
        "unevaluatedItems",
        "uniqueItems",
    )
)


def shape_of(sub: Sub) -> Shape:
    passed: dict[tuple[int, str], Place] = {}
    while isinstance(sub, Place):
        if isinstance(sub.schema, bool):
            sub = ANYTHING if sub.schema else NOTHING
        elif (known := sub.documents.shapes.get(sub.key)) is not None:
            sub = known
        elif sub.key in passed:  # {"$ref": "#"} says nothing at all
            sub = ANYTHING
        else:
            passed[sub.key] = sub
            sub = _read(sub)
    for key, place in passed.items():
        place.documents.shapes[key] = sub
    return sub


def has_default(place: Place) -> bool:
    return isinstance(place.schema, dict) and "default" in place.schema


def _read(place: Place) -> Sub:
    """A shape, or where a schema that only refers refers to."""
    schema = place.schema
    assert isinstance(schema, dict)
    parts: list[Sub] = list(_references(place, schema))
    if not (parts and place.draft.ref_hides_siblings):
        parts += _combinations(place, schema)
        parts += _values(place, schema)
        parts += _types(place, schema)
    notes = _notes(place, schema)
    if not parts:
        return Anything(notes=notes)
    if len(parts) > 1:
        return Combination("allOf", tuple(parts), notes=notes)
    only = parts[0]
    return replace(only, notes=notes) if isinstance(only, Shape) and notes is not NO_NOTES else only


def _notes(place: Place, schema: dict[str, Json]) -> Notes:
    if schema.keys().isdisjoint(_NOTED):
        return NO_NOTES
    default = _same(schema["default"]) if "default" in schema else None
    return Notes(schema.get(place.draft.id_keyword), schema.get("title"), schema.get("description"), default)


def _references(place: Place, schema: dict[str, Json]) -> Sequence[Sub]:
    found: list[Sub] = []
    for keyword, follow in _FOLLOWED.items():
        reference = schema.get(keyword)
        if isinstance(reference, str) and (keyword == "$ref" or not place.draft.ref_hides_siblings):
            found.append(follow(place, reference) or Unknown(reference))
    return found


_FOLLOWED: Final[dict[str, Callable[[Place, str], Place | None]]] = {
    "$ref": lambda place, reference: place.documents.follow(place, reference),
    "$dynamicRef": lambda place, reference: place.documents.dynamic(place, reference),
    "$recursiveRef": lambda place, _: place.documents.recursive(place),
}


def _combinations(place: Place, schema: dict[str, Json]) -> Sequence[Sub]:
    found: list[Sub] = []
    for criterion in _COMBINED:
        branches = schema.get(criterion)
        if isinstance(branches, list):
            found.append(Combination(criterion, tuple(_inner(place, branch) for branch in branches)))
    return found


def _values(place: Place, schema: dict[str, Json]) -> Sequence[Sub]:
    found: list[Sub] = []
    values = schema.get("enum")
    if isinstance(values, list):
        found.append(Choices(frozenset(_same(value) for value in values)))
    if isinstance(schema.get("not"), dict | bool):
        found.append(Negation(_inner(place, schema["not"])))
    if "const" in schema and place.draft.number >= 6:
        found.append(Constant(_same(schema["const"])))
    return found


def _same(value: Json) -> str:
    """One text for equal values, across documents."""
    return written(value, ordered=True)


def _types(place: Place, schema: dict[str, Json]) -> Sequence[Sub]:
    named = schema.get("type")
    names = [name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)]
    found: list[Sub] = []
    if isinstance(named, list):
        found.append(Combination("anyOf", tuple(_TYPES[name](place, schema) for name in names if name in _TYPES)))
    elif isinstance(named, str) and named in _TYPES:
        found.append(_TYPES[named](place, schema))
    for name, keywords in _KEYWORDS:
        spoken_for = name in names or (name == "number" and "integer" in names)
        if not spoken_for and not keywords.isdisjoint(schema):
            found.append(_TYPES[name](place, schema))
    if place.draft.number >= 7 and not schema.keys().isdisjoint(("if", "then", "else")):
        found.append(Condition())
    return found


def _text(place: Place, schema: dict[str, Json]) -> Shape:
    pattern = schema.get("pattern")
    return Text(
        _number(schema, "maxLength"), _number(schema, "minLength"), pattern if isinstance(pattern, str) else None
    )


def _numeric(place: Place, schema: dict[str, Json], is_integer: bool = False) -> Shape:
    maximum, minimum = _number(schema, "maximum"), _number(schema, "minimum")
    # In draft 4 the exclusive ones are flags of the others.
    return Numeric(
        maximum,
        minimum,
        maximum if schema.get("exclusiveMaximum") is True else _number(schema, "exclusiveMaximum"),
        minimum if schema.get("exclusiveMinimum") is True else _number(schema, "exclusiveMinimum"),
        _number(schema, "multipleOf"),
        is_integer,
    )


def _object(place: Place, schema: dict[str, Json]) -> Shape:
    needed, schemas = _dependencies(place, schema)
    required = schema.get("required")
    return Members(
        _named(place, schema.get("properties")),
        _names(required) if isinstance(required, list) else frozenset(),
        _named(place, schema.get("patternProperties")),
        _limit(place, schema, "additionalProperties"),
        _limit(place, schema, "unevaluatedProperties") if place.draft.number >= 2019 else None,
        needed,
        schemas,
        _number(schema, "maxProperties"),
        _number(schema, "minProperties"),
    )


def _dependencies(place: Place, schema: dict[str, Json]) -> tuple[dict[str, frozenset[str]], dict[str, Place]]:
    needed: dict[str, frozenset[str]] = {}
    schemas: dict[str, Place] = {}
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        given = schema.get(keyword)
        for name, value in given.items() if isinstance(given, dict) else ():
            if isinstance(value, list):
                needed[name] = _names(value)
            elif isinstance(value, dict | bool):
                schemas[name] = _inner(place, value)
    return needed, schemas


def _array(place: Place, schema: dict[str, Json]) -> Shape:
    items = schema.get("items")
    first: Json = items
    every = additional = None
    if place.draft.number >= 2020:
        first = schema.get("prefixItems")
        # Without items before it, `items` is about every item; after them, about the others.
        if items is False or first:
            additional = _limit(place, schema, "items")
        elif isinstance(items, dict):
            every = _inner(place, items)
    else:
        additional = _limit(place, schema, "additionalItems")
        every = _inner(place, items) if isinstance(items, dict | bool) else None
    return Elements(
        every,
        tuple(_inner(place, item) for item in first) if isinstance(first, list) else (),
        additional,
        _limit(place, schema, "unevaluatedItems") if place.draft.number >= 2019 else None,
        _number(schema, "maxItems"),
        _number(schema, "minItems"),
        _number(schema, "maxContains") if place.draft.number >= 2019 else None,
        _number(schema, "minContains") if place.draft.number >= 2019 else None,
        schema.get("uniqueItems") is True,
    )


_TYPES: Final[dict[str, Callable[[Place, dict[str, Json]], Shape]]] = {
    "array": _array,
    "object": _object,
    "number": _numeric,
    "integer": lambda place, schema: _numeric(place, schema, is_integer=True),
    "string": _text,
    "boolean": lambda place, schema: Boolean(),
    "null": lambda place, schema: Null(),
}
_KEYWORDS: Final = (
    ("array", _OF_ARRAYS),
    ("object", _OF_OBJECTS),
    ("number", _OF_NUMBERS),
    ("string", _OF_STRINGS),
)


def _inner(place: Place, schema: Json) -> Place:
    if isinstance(schema, dict):
        return place.documents.standing(schema, place)
    return Place(schema if isinstance(schema, bool) else True, place.base, place.draft, place.documents)


def _named(place: Place, given: Json) -> dict[str, Place]:
    if not isinstance(given, dict):
        return {}
    return {name: _inner(place, schema) for name, schema in given.items() if isinstance(schema, dict | bool)}


def _limit(place: Place, schema: dict[str, Json], keyword: str) -> Sub | None:
    """What is said of the others: None if nothing is."""
    said = schema.get(keyword)
    if said is False:
        return NOTHING
    return _inner(place, said) if isinstance(said, dict) else None


def _names(given: list[Json]) -> frozenset[str]:
    return frozenset(name for name in given if isinstance(name, str))


def _number(schema: dict[str, Json], keyword: str) -> Number | None:
    value = schema.get(keyword)
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
