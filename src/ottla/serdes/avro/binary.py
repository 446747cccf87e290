"""Avro's bytes, by fastavro: with plain schemas, whose values are what lies there and nothing made of it.

fastavro's compiled code knows no end of recursion: 5,000 nested records, which are 5,000 bytes, crash the process. So a
schema that contains itself is read and written by its Python code, which raises. An array of items that have no bytes
could claim to have 2⁶² of them: such a schema is not read at all. Records of records of nothing, twice each, are 2³⁰
values in thirty levels and no byte: what comes for nothing is counted, and read if there is not too much of it.
"""

import io
from collections.abc import Callable
from typing import Any, Final

from ottla.model.extras import named
from ottla.registry.schemas.avro.tree import Array, Enum, Fixed, Map, Node, Primitive, Record, Union, full_name, inner
from ottla.serdes.base import SerdeError

FAULTS: Final = (EOFError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError, AttributeError)
"""What fastavro raises for bytes or values that are not of the schema."""

MOST_FOR_NOTHING: Final = 1 << 18
"""Values without bytes in one payload: a fraction of a second."""
_TO_A_BYTE: Final = 8
"""So many are never too many: then it is the bytes that take the time."""

_CLASS_OF: Final = {
    "string": "text",
    "enum": "text",
    "bytes": "bytes",
    "fixed": "bytes",
    "map": "dict",
    "record": "dict",
}
"""Kinds that Python's values do not tell apart."""


class Binary:
    """Of one schema."""

    __slots__ = ("_for_nothing", "_is_endless", "_read", "_schema", "_write", "named")

    def __init__(self, root: Node) -> None:
        """`named`: a value of a union that is a record, enum or fixed comes as a pair of its name and itself. Only so
        where one could not be told from the others."""
        with named():
            from fastavro import parse_schema  # noqa: PLC0415  heavy, and few need it

        nodes = _all_nodes(root)
        empty = _Empty()
        self._is_endless = any(isinstance(node, Array) and empty.values(node.items) for node in nodes)
        most = max(map(empty.inside, nodes))
        self._for_nothing = most if most > _TO_A_BYTE else 0
        self.named = any(isinstance(node, Union) and _is_ambiguous(node) for node in nodes)
        self._read, self._write = _functions(_is_recursive(root, (), set()))
        self._schema = parse_schema(_plain(root, set()))

    def read(self, data: bytes, start: int) -> Any:
        """What comes behind is not looked at, as by Java."""
        if self._is_endless:
            raise SerdeError("an array of items that have no bytes could have any number of them: it is not read")
        if self._for_nothing and self._for_nothing * (len(data) - start + 1) > MOST_FOR_NOTHING:
            raise SerdeError("it could hold too many values that have no bytes: it is not read")
        stream = io.BytesIO(data)
        stream.seek(start)
        return self._read(stream, self._schema, None, return_named_type=self.named)

    def write(self, value: Any) -> bytes:
        stream = io.BytesIO()
        self._write(stream, self._schema, value, strict_allow_default=True)
        return stream.getvalue()


def plain_name(node: Node) -> str:
    """Of a type in a plain schema. Without a dot: fastavro would look for it in the namespace around it."""
    return full_name(node).replace(".", "·")


def plain_symbols(enum: Enum) -> list[str]:
    """fastavro takes letters of ASCII only, Avro those of any script."""
    return [each if each.isascii() and each.isidentifier() else f"_{each.encode().hex()}" for each in enum.symbols]


def _functions(recursive: bool) -> tuple[Callable[..., Any], Callable[..., None]]:
    if recursive:
        from fastavro import _read_py, _write_py  # noqa: PLC0415  as above

        return _read_py.schemaless_reader, _write_py.schemaless_writer
    from fastavro import schemaless_reader, schemaless_writer  # noqa: PLC0415  as above

    return schemaless_reader, schemaless_writer


def _all_nodes(root: Node) -> list[Node]:
    seen: dict[int, Node] = {}
    left = [root]
    while left:
        node = left.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            left += inner(node)
    return list(seen.values())


def _is_recursive(node: Node, inside: tuple[int, ...], done: set[int]) -> bool:
    if isinstance(node, Record):
        if id(node) in inside:
            return True
        if id(node) in done:
            return False
        done.add(id(node))
        inside = (*inside, id(node))
    return any(_is_recursive(each, inside, done) for each in inner(node))


class _Empty:
    """How many values those types hold that have no bytes."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def values(self, node: Node) -> int:
        """0 if there are bytes."""
        match node:
            case Primitive():
                return int(node.kind == "null")
            case Fixed():
                return int(node.size == 0)
            case Record():
                if id(node) not in self._known:
                    self._known[id(node)] = 0  # one that contains itself at once has no value at all
                    inside = [self.values(each.type) for each in node.fields]
                    self._known[id(node)] = 1 + sum(inside) if all(inside) else 0
                return self._known[id(node)]
            case _:
                return 0

    def inside(self, node: Node) -> int:
        """Those that come with a value, whether it has bytes or not: as many as there can be to a byte."""
        members = sum(self.values(each.type) for each in node.fields) if isinstance(node, Record) else 0
        return max(members, self.values(node))


def _is_ambiguous(union: Union) -> bool:
    classes = [_CLASS_OF.get(branch.kind) for branch in union.branches]
    return any(each is not None and classes.count(each) > 1 for each in classes)


def _plain(node: Node, written: set[str]) -> Any:
    """Without logical types, docs and aliases."""
    match node:
        case Primitive():
            return node.kind
        case Union():
            return [_plain(each, written) for each in node.branches]
        case Array():
            return {"type": "array", "items": _plain(node.items, written)}
        case Map():
            return {"type": "map", "values": _plain(node.values, written)}
    name = plain_name(node)
    if name in written:
        return name
    written.add(name)
    match node:
        case Enum():
            return {"type": "enum", "name": name, "symbols": plain_symbols(node)}
        case Fixed():
            return {"type": "fixed", "name": name, "size": node.size}
        case Record():
            fields = [{"name": each.name, "type": _plain(each.type, written)} for each in node.fields]
            return {"type": "record", "name": name, "fields": fields}
