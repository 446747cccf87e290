"""Tree to text as Java Avro 1.12's `Schema.toString` writes it: what is stored, compared and hashed."""

from collections.abc import Iterable

from ottla.registry.schemas.avro.json_text import MAX_NESTING, quoted, write
from ottla.registry.schemas.avro.tree import (
    Array,
    Enum,
    Field,
    Fixed,
    Json,
    Map,
    Name,
    Named,
    Node,
    Primitive,
    Record,
    Union,
)
from ottla.registry.schemas.base import InvalidSchema


def canonical_text(node: Node, referenced: Iterable[str] = ()) -> str:
    """A type is written where it is used first, and by name after that; `referenced` ones only by name."""
    return Rendering(referenced).text(node)


class Rendering:
    """One text. What of a type is shown, and in which order, may be overridden: `normal` does."""

    __slots__ = ("_written",)

    def __init__(self, referenced: Iterable[str]) -> None:
        self._written = set(referenced)

    def props(self, node: Primitive | Array | Map | Named | Field) -> dict[str, Json]:
        return node.props

    def doc(self, node: Named) -> str | None:
        return node.doc

    def kind(self, record: Record) -> str:
        return "error" if record.is_error else "record"

    def type_aliases(self, node: Named) -> list[str]:
        return [alias.within(node.name.space) for alias in node.aliases]

    def field_aliases(self, field: Field) -> list[str]:
        return field.aliases

    def default(self, field: Field) -> Json:
        return field.default

    def text(self, node: Node, space: str = "", depth: int = 0) -> str:
        if depth > MAX_NESTING:
            # A type used before it is defined is written at its use: a flat text may become a deep one.
            raise InvalidSchema(f"the schema is nested more than {MAX_NESTING} levels deep once its types are in place")
        match node:
            case Primitive():
                return f'{{"type":"{node.kind}"{self._props(node)}}}' if node.props else f'"{node.kind}"'
            case Union():
                return f"[{','.join(self.text(each, space, depth + 1) for each in node.branches)}]"
            case Array():
                return f'{{"type":"array","items":{self.text(node.items, space, depth + 1)}{self._props(node)}}}'
            case Map():
                return f'{{"type":"map","values":{self.text(node.values, space, depth + 1)}{self._props(node)}}}'
            case _:
                return self._named(node, space, depth)

    def _named(self, node: Named, space: str, depth: int) -> str:
        if node.name.full in self._written:
            return quoted(node.name.within(space))
        self._written.add(node.name.full)
        match node:
            case Record():
                kind = self.kind(node)
                fields = ",".join(self._field(each, node.name.space, depth + 3) for each in node.fields)
                body = f'"fields":[{fields}]'
            case Enum():
                kind = "enum"
                body = f'"symbols":[{",".join(map(quoted, node.symbols))}]'
                if node.default is not None:
                    body += f',"default":{quoted(node.default)}'
            case Fixed():
                kind = "fixed"
                body = f'"size":{node.size}'
        head = f'"type":"{kind}",{_name(node.name, space)}{_doc(self.doc(node))}'
        return f"{{{head},{body}{self._props(node)}{_aliases(self.type_aliases(node))}}}"

    def _field(self, field: Field, space: str, depth: int) -> str:
        text = f'{{"name":{quoted(field.name)},"type":{self.text(field.type, space, depth)}{_doc(field.doc)}'
        if field.has_default:
            text += f',"default":{write(self.default(field))}'
        if field.order != "ascending":
            text += f',"order":"{field.order}"'
        return f"{text}{_aliases(self.field_aliases(field))}{self._props(field)}}}"

    def _props(self, node: Primitive | Array | Map | Named | Field) -> str:
        return "".join(f",{quoted(key)}:{write(value)}" for key, value in self.props(node).items())


def _name(name: Name, space: str) -> str:
    text = f'"name":{quoted(name.simple)}'
    return text if name.space == space else f'{text},"namespace":{quoted(name.space)}'


def _doc(doc: str | None) -> str:
    return "" if doc is None else f',"doc":{quoted(doc)}'


def _aliases(aliases: list[str]) -> str:
    return f',"aliases":[{",".join(map(quoted, aliases))}]' if aliases else ""
