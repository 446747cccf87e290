"""Text to tree, by the rules of Java Avro 1.12's parser and in its words where users may have met them.

A name may be used before its type is written (since 1.12), and inside of it: such places are remembered and filled when
all types are known. Names and defaults are looked at only in a schema that is `new`: servers of old took any.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ottla.registry.schemas.avro import defaults, json_text
from ottla.registry.schemas.avro.names import checked_full_name, checked_name
from ottla.registry.schemas.avro.same import same
from ottla.registry.schemas.avro.tree import (
    PRIMITIVES,
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
    full_name,
    named,
)
from ottla.registry.schemas.base import Budget, InvalidSchema

_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_RESERVED_IN_ENUM: Final = _RESERVED | {"default"}
_RESERVED_IN_FIELD: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))
_ORDERS: Final = ("ascending", "descending", "ignore")
_INT: Final = range(-(1 << 31), 1 << 31)
_MOST_BYTES: Final = (1 << 31) - 9
"""Java makes no larger array, and so no larger fixed."""

_UNKNOWN: Final = Primitive("unknown", {})
"""Stands where a type will stand that is not parsed yet."""


@dataclass(slots=True)
class Types:
    """The named types that texts have defined so far, by full name."""

    known: dict[str, Named] = field(default_factory=dict)

    def add(self, text: str, budget: Budget, *, new: bool) -> Node:
        """The tree of a text, which may use all types of the texts before it. Raises InvalidSchema."""
        return _Parse(self.known, budget, new).whole(json_text.read(text))


@dataclass(slots=True)
class _Parse:
    known: dict[str, Named]
    budget: Budget
    new: bool
    pending: list[tuple[str, Callable[[Named], None]]] = field(default_factory=list)
    unions: list[Union] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def whole(self, schema: Json) -> Node:
        roots: list[Node] = []
        self.type_at(schema, "", roots.append)
        for name, put in self.pending:
            found = self.known.get(name)
            if found is None:
                raise InvalidSchema(
                    f"Undefined schema: {name}. It is no type of Avro, nor defined in this schema or its references"
                )
            put(found)
        for union in self.unions:
            _check_union(union)
        if self.new:
            for record in self.records:
                defaults.check(record, self.budget)
        return roots[-1]

    def type_at(self, schema: Json, space: str, put: Callable[[Node], None]) -> Node:
        """Parses a type and puts it into its place; now, or when its name is known."""
        self.budget.spend()
        match schema:
            case str():
                return self._by_name(schema, space, put)
            case list():
                return self._put(self._union(schema, space), put)
            case dict():
                return self._described(schema, space, put)
            case _:
                raise InvalidSchema(f"Schema not yet supported: {_short(schema)}")

    def _put(self, node: Node, put: Callable[[Node], None]) -> Node:
        put(node)
        return node

    def _by_name(self, name: str, space: str, put: Callable[[Node], None]) -> Node:
        if name in PRIMITIVES:
            return self._put(Primitive(name, {}), put)
        full = named(name, space).full
        found = self.known.get(full) or self.known.get(name)
        if found is not None:
            return self._put(found, put)
        self.pending.append((full, put))
        return self._put(Primitive(f"{len(self.pending)} unknown", {}), put)

    def _described(self, schema: dict[str, Json], space: str, put: Callable[[Node], None]) -> Node:
        kind = _required_text(schema, "type", "No type")
        if kind in PRIMITIVES:
            return self._put(Primitive(kind, self._props(schema, _RESERVED)), put)
        make = _MAKERS.get(kind)
        if make is None:
            return self._by_name(kind, space, put)  # its other members mean nothing, as in Java
        return self._put(make(self, schema, space), put)

    def _union(self, schema: list[Json], space: str) -> Union:
        self.budget.spend(len(schema))  # at once: a list of a million is refused before its first is looked at
        union = Union([_UNKNOWN] * len(schema))
        for index, branch in enumerate(schema):
            self.type_at(branch, space, _into(union.branches, index))
        self.unions.append(union)
        return union

    def array(self, schema: dict[str, Json], space: str) -> Array:
        if "items" not in schema:
            raise InvalidSchema(f"Array has no items type: {_short(schema)}")
        array = Array(_UNKNOWN, self._props(schema, _RESERVED))
        self.type_at(schema["items"], space, lambda node: setattr(array, "items", node))
        return array

    def map(self, schema: dict[str, Json], space: str) -> Map:
        if "values" not in schema:
            raise InvalidSchema(f"Map has no values type: {_short(schema)}")
        found = Map(_UNKNOWN, self._props(schema, _RESERVED))
        self.type_at(schema["values"], space, lambda node: setattr(found, "values", node))
        return found

    def record(self, schema: dict[str, Json], space: str) -> Record:
        name = self._name(schema, space)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {_short(schema)}")
        self.budget.spend(2 * len(fields))
        record = Record(name, _text(schema, "doc"), [], {}, is_error=schema["type"] == "error")
        for each in fields:
            self._field(each, record)
        record.props = self._props(schema, _RESERVED)
        record.aliases = self._type_aliases(schema, name)
        self.records.append(record)
        self._define(record)
        return record

    def _field(self, schema: Json, record: Record) -> None:
        name = _required_text(schema, "name", "No field name")
        assert isinstance(schema, dict)
        if "type" not in schema:
            raise InvalidSchema(f"No field type: {_short(schema)}")
        if self.new:
            checked_name(name)
        if name in record.by_name:
            raise InvalidSchema(f"Duplicate field {name} in record {record.name.full}")
        made = Field(
            name,
            _UNKNOWN,
            _text(schema, "doc"),
            schema.get("default"),
            "default" in schema,
            _order(schema),
            _aliases(schema),
            self._props(schema, _RESERVED_IN_FIELD),
        )
        record.fields.append(made)
        record.by_name[name] = made
        kind = self.type_at(schema["type"], record.name.space, lambda node: setattr(made, "type", node)).kind
        if kind in ("float", "double") and isinstance(made.default, str):
            made.default = _special_number(made.default, name)

    def enum(self, schema: dict[str, Json], space: str) -> Enum:
        name = self._name(schema, space)
        given = schema.get("symbols")
        if not isinstance(given, list):
            raise InvalidSchema(f"Enum has no symbols: {_short(schema)}")
        self.budget.spend(len(given))
        symbols = [each for each in given if isinstance(each, str)]
        if len(symbols) < len(given):
            raise InvalidSchema(f"a symbol of enum {name.full} is no string")
        if self.new:
            for symbol in symbols:
                checked_name(symbol)
        if len(set(symbols)) < len(symbols):
            twice = next(symbol for index, symbol in enumerate(symbols) if symbol in symbols[:index])
            raise InvalidSchema(f"Duplicate enum symbol: {twice}")
        default = _text(schema, "default")
        if default is not None and default not in symbols:
            shown = ", ".join(symbols)
            raise InvalidSchema(f"The Enum Default: {default} is not in the enum symbol set: [{shown}]")
        props = self._props(schema, _RESERVED_IN_ENUM)
        enum = Enum(name, symbols, default, _text(schema, "doc"), self._type_aliases(schema, name), props)
        self._define(enum)
        return enum

    def fixed(self, schema: dict[str, Json], space: str) -> Fixed:
        name = self._name(schema, space)
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size not in _INT:
            raise InvalidSchema(f"Invalid or no size: {_short(schema)}")
        if not 0 <= size <= _MOST_BYTES:
            raise InvalidSchema(f"the size of fixed {name.full} is {size}: it may be 0 to {_MOST_BYTES}")
        aliases = self._type_aliases(schema, name)
        fixed = Fixed(name, size, _text(schema, "doc"), aliases, self._props(schema, _RESERVED))
        self._define(fixed)
        return fixed

    def _define(self, node: Named) -> None:
        if self.new:
            checked_full_name(node.name)
        if node.name.full in PRIMITIVES:
            raise InvalidSchema(f"Schemas may not be named after primitives: {node.name.full}")
        before = self.known.setdefault(node.name.full, node)
        # A name that is not known yet equals nothing: so a recursive type cannot be written twice, nor inside itself.
        if not same(before, node, self.budget):
            raise InvalidSchema(f"Can't redefine: {node.name.full}")

    def _name(self, schema: dict[str, Json], space: str) -> Name:
        own = _text(schema, "namespace")
        name = named(_required_text(schema, "name", "No name in schema"), space if own is None else own)
        if self.new:
            checked_name(name.simple)
        return name

    def _type_aliases(self, schema: dict[str, Json], name: Name) -> list[Name]:
        aliases = [named(alias, name.space) for alias in _aliases(schema)]
        if self.new:
            for alias in aliases:
                checked_name(alias.simple)
        return list(dict.fromkeys(aliases))

    def _props(self, schema: dict[str, Json], reserved: Iterable[str]) -> dict[str, Json]:
        props = {key: value for key, value in schema.items() if key not in reserved}
        for key, value in props.items():
            if json_text.has_larger_integer(value):
                raise InvalidSchema(f"the property {key} has an integer of more than 64 bits")
        return props


_MAKERS: Final[dict[str, Callable[[_Parse, dict[str, Json], str], Node]]] = {
    "record": _Parse.record,
    "error": _Parse.record,
    "enum": _Parse.enum,
    "array": _Parse.array,
    "map": _Parse.map,
    "fixed": _Parse.fixed,
}


def _into(branches: list[Node], index: int) -> Callable[[Node], None]:
    def put(node: Node) -> None:
        branches[index] = node

    return put


def _check_union(union: Union) -> None:
    seen = set()
    for branch in union.branches:
        if branch.kind == "union":
            raise InvalidSchema("Nested union: a branch of a union may not be a union itself")
        name = full_name(branch)
        if name in seen:
            raise InvalidSchema(f"Duplicate in union:{name}")
        seen.add(name)


def _text(schema: dict[str, Json], key: str) -> str | None:
    """Java passes over a member that is no string."""
    found = schema.get(key)
    return found if isinstance(found, str) else None


def _required_text(schema: Json, key: str, missing: str) -> str:
    found = schema.get(key) if isinstance(schema, dict) else None
    if not isinstance(found, str):
        raise InvalidSchema(f"{missing}: {_short(schema)}")
    return found


def _aliases(schema: dict[str, Json]) -> list[str]:
    if "aliases" not in schema:
        return []
    found = schema["aliases"]
    if not isinstance(found, list):
        raise InvalidSchema(f"aliases not an array: {_short(schema)}")
    aliases = []
    for alias in found:
        if not isinstance(alias, str):
            raise InvalidSchema(f"alias not a string: {_short(alias)}")
        aliases.append(alias)
    return list(dict.fromkeys(aliases))


def _order(schema: dict[str, Json]) -> str:
    if "order" not in schema:
        return "ascending"
    order = schema["order"]
    if not isinstance(order, str) or order.lower() not in _ORDERS:
        raise InvalidSchema(f"the order of a field is {_short(order)}: it may be one of {', '.join(_ORDERS)}")
    return order.lower()


def _special_number(text: str, name: str) -> float:
    """Defaults of NaN and infinity are written as strings: JSON has no other way."""
    try:
        return float(text)
    except ValueError:
        raise InvalidSchema(f"Invalid default for field {name}: {json_text.quoted(text)} is no number") from None


def _short(schema: Json) -> str:
    """Part of a schema in a message, which may be megabytes."""
    text = json_text.write(schema)
    return text if len(text) <= 200 else f"{text[:200]}..."
