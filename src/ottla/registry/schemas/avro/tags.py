"""Tags inside of a schema (`confluent:tags`): of a record at its full name, of a field at that and its own name."""

from collections.abc import Iterator
from typing import Final

from ottla.registry.schemas.avro.tree import Field, Json, Node, Record, inner
from ottla.registry.schemas.base import InvalidSchema

TAGS: Final = "confluent:tags"


def tags_of(root: Node) -> dict[str, frozenset[str]]:
    return {path: frozenset(tags) for path, holder in carriers(root).items() if (tags := _tags(holder))}


def carriers(root: Node) -> dict[str, Record | Field]:
    """By path."""
    found: dict[str, Record | Field] = {}
    for record in records(root):
        found[record.name.full] = record
        found |= {f"{record.name.full}.{field.name}": field for field in record.fields}
    return found


def retag(root: Node, add: dict[str, frozenset[str]], remove: dict[str, frozenset[str]]) -> None:
    """Changes the properties of the tree, which nobody else may hold. Raises InvalidSchema for a path to nowhere."""
    for path in dict.fromkeys((*add, *remove)):
        holder = _at(root, path)
        kept = list(dict.fromkeys((*_tags(holder), *sorted(add.get(path, ())))))
        left: list[Json] = [tag for tag in kept if tag not in remove.get(path, ())]
        if left:
            holder.props[TAGS] = left
        else:
            holder.props.pop(TAGS, None)


def records(root: Node) -> Iterator[Record]:
    """Every record of the schema once, in the order in which they are met."""
    seen = set()
    left = [root]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Record):
            yield node
        left += reversed(inner(node))


def _tags(holder: Record | Field) -> list[str]:
    found = holder.props.get(TAGS)
    return [tag if isinstance(tag, str) else str(tag) for tag in found] if isinstance(found, list) else []


def _at(root: Node, path: str) -> Record | Field:
    """A name without namespace finds a record in any, as at Confluent."""
    owner, _, name = path.rpartition(".")
    for record in records(root):
        if path in (record.name.full, record.name.simple):
            return record
        if owner in (record.name.full, record.name.simple) and name in record.by_name:
            return record.by_name[name]
    raise InvalidSchema(f"No matching path '{path}' found in the schema")
