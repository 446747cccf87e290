"""What meta-schemas forbid and registries hold by the thousand, because Confluent's server takes it: lists that are
empty or name something twice, annotations of a wrong type. It means something all the
same, which is said here otherwise."""

from typing import Final

from ottla.registry.schemas.json_schema.drafts import subschemas
from ottla.registry.schemas.json_schema.json_text import Json

_ANNOTATIONS: Final = frozenset(("$comment", "contentEncoding", "contentMediaType", "deprecated", "examples"))
_ASKS_NOTHING: Final = frozenset(("allOf", "required", "prefixItems"))
"""If empty."""
_ALLOWS_NOTHING: Final = frozenset(("anyOf", "enum", "oneOf", "type"))
"""If empty."""
_IS_A_SET: Final = frozenset(("enum", "required", "type"))


def say_otherwise(tree: Json) -> None:
    """Changes a tree (a copy) into one that its meta-schema does not mind for these reasons."""
    todo = [tree]
    for schema in todo:
        if isinstance(schema, dict):
            _reword(schema)
            todo.extend(inner for _, inner in subschemas(schema))


def _reword(schema: dict[str, Json]) -> None:
    nothing = False
    for keyword in list(schema):
        value = schema[keyword]
        if keyword in _ANNOTATIONS or (value == [] and keyword in _ASKS_NOTHING):
            del schema[keyword]
        elif value == [] and keyword in _ALLOWS_NOTHING:
            del schema[keyword]
            nothing = True
        elif isinstance(value, list) and keyword in _IS_A_SET:
            schema[keyword] = _once(value)
        elif isinstance(value, dict) and keyword in ("dependencies", "dependentRequired"):
            _reword_dependencies(value)
    if nothing:
        branches = schema.get("allOf")
        impossible: Json = {"not": {}}
        schema["allOf"] = [*branches, impossible] if isinstance(branches, list) else [impossible]


def _reword_dependencies(dependencies: dict[str, Json]) -> None:
    for name in list(dependencies):
        value = dependencies[name]
        if value == []:
            del dependencies[name]
        elif isinstance(value, list):
            dependencies[name] = _once(value)


def _once(values: list[Json]) -> list[Json]:
    """Only strings are looked at: whatever else is there twice stands in an enum, which hardly any draft minds."""
    seen: dict[str, None] = {}
    kept: list[Json] = []
    for value in values:
        if isinstance(value, str) and value in seen:
            continue
        if isinstance(value, str):
            seen[value] = None
        kept.append(value)
    return kept
