"""Embedded tags: `confluent:tags` of an object or of a property, by Confluent's paths.

A path names what stands on the way: `object` (the object itself), `object.name` (a property), `object.$defs.Name.…`,
`array.…` (items), `oneof.0.…` (a branch), `not.…`, `conditional.then.…`.
"""

from collections.abc import Iterator
from typing import Final

from ottla.registry.schemas.base import InvalidSchema
from ottla.registry.schemas.json_schema.json_text import Json

KEYWORD: Final = "confluent:tags"
_BRANCHES: Final = {"allof": "allOf", "anyof": "anyOf", "oneof": "oneOf"}
_OF_OBJECTS: Final = ("definitions", "$defs", "properties")


def tags_of(tree: Json) -> dict[str, frozenset[str]]:
    return {path: tags for path, schema, _ in _carriers(tree) if (tags := frozenset(_own(schema)))}


def records(tree: Json) -> frozenset[str]:
    """The paths of objects themselves, as against those of their properties."""
    return frozenset(path for path, _, is_record in _carriers(tree) if is_record)


def carriers(tree: Json) -> frozenset[str]:
    return frozenset(path for path, _, _ in _carriers(tree))


def change(tree: Json, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> None:
    """Changes the tree. Raises InvalidSchema for a path that leads nowhere."""
    carriers = {path: schema for path, schema, _ in _carriers(tree)}
    for path in {**add, **remove}:
        schema = carriers.get(path)
        if schema is None:
            raise InvalidSchema(f"No matching path '{path}' found in the schema")
        gone = remove.get(path, frozenset())
        tags = [tag for tag in (*_own(schema), *sorted(add.get(path, ()))) if tag not in gone]
        if tags:
            schema[KEYWORD] = list(dict.fromkeys(tags))
        else:
            schema.pop(KEYWORD, None)


def _own(schema: dict[str, Json]) -> list[str]:
    tags = schema.get(KEYWORD)
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _carriers(tree: Json) -> Iterator[tuple[str, dict[str, Json], bool]]:
    """Everything that can carry tags, with its path, and whether it is no property."""
    todo: list[tuple[str, Json, bool]] = [("", tree, False)]
    while todo:
        scope, schema, is_property = todo.pop()
        if not isinstance(schema, dict):
            continue
        for word, keyword in _BRANCHES.items():
            branches = schema.get(keyword)
            if isinstance(branches, list):
                todo.extend((f"{scope}{word}.{index}.", inner, False) for index, inner in enumerate(branches))
        todo.append((f"{scope}array.", schema.get("items"), False))
        todo.append((f"{scope}not.", schema.get("not"), False))
        todo.extend((f"{scope}conditional.{word}.", schema.get(word), False) for word in ("if", "then", "else"))
        if not is_property:  # a property's tags are its own, whatever its type
            yield f"{scope}object", schema, True
        for keyword in _OF_OBJECTS:
            named = schema.get(keyword)
            for name, inner in named.items() if isinstance(named, dict) else ():
                if keyword == "properties":
                    path = f"{scope}object.{name}"
                    if isinstance(inner, dict):
                        yield path, inner, False
                    todo.append((f"{path}.", inner, True))
                else:
                    todo.append((f"{scope}object.{keyword}.{name}.", inner, False))
