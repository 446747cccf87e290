"""Connect's schemas as .proto files, as Confluent's converter lays them out.

A record is a message of its own name, structs are messages inside the one that has them. Where Confluent writes the
entries of a map as a message with `map_entry`, which no compiler takes, this says `map<K, V>`: the same bytes, and the
same schema for whoever reads. Maps that Protobuf has not (keys of floats, values that are lists) are lists of entries.
"""

import re
from collections.abc import Callable
from collections.abc import Mapping as Dict
from typing import Final
from urllib.parse import quote_plus

from ottla.connect.converters.protobuf_mapping import (
    CONNECT_TYPE,
    DEFAULT_NAME,
    ENTRY,
    GENERAL_UNION,
    KIND,
    MESSAGE_OF,
    PRECISION,
    SCALAR_OF_WRAPPER,
    TAG,
    UNION_PREFIX,
    WRAPPERS_PATH,
    Mapping,
    enum_symbols,
    is_union,
)
from ottla.connect.data.errors import DataException
from ottla.connect.data.logical import DECIMAL_NAME
from ottla.connect.data.schema import Schema
from ottla.connect.data.types import Type
from ottla.registry.schemas.protobuf.known import known
from ottla.registry.schemas.protobuf.printer import printed

_SCALARS: Final = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_WRAPPERS: Final = {kind: name for name, kind in SCALAR_OF_WRAPPER.items() if "UInt" not in name}
_UNSIGNED: Final = {"uint32": "UInt32", "fixed32": "UInt32", "uint64": "UInt64", "fixed64": "UInt64"}
_KEYS: Final = frozenset((Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING))
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")
MOST_DEPTH: Final = 30
"""Protobuf's own compiler nests no deeper than 32."""


def rendered(schema: Schema, mapping: Mapping) -> tuple[str, str]:
    """The text of a file, and the full name of the message that records are. Raises DataException."""
    if schema.type is Type.STRUCT:
        return _File(mapping).of(schema)
    wrapper = None if schema.name in MESSAGE_OF else _WRAPPERS.get(_wide(schema.type))
    if wrapper is None:
        raise DataException(f"Unsupported root schema of type {schema.type}: Protobuf's records are structs or scalars")
    imported = known(WRAPPERS_PATH)
    assert imported is not None
    return printed(imported.file), wrapper


def _wide(type: Type) -> Type:
    return Type.INT32 if type in (Type.INT8, Type.INT16) else type


class Names:
    """What fields and messages are called."""

    __slots__ = ("_count", "_scrub")

    def __init__(self, mapping: Mapping) -> None:
        self._scrub = mapping.scrub
        self._count = 0

    def plain(self, name: str) -> str:
        """Raises DataException if it is no name of Protobuf's, and may not be made one."""
        if self._scrub:
            return _scrubbed(name)
        if not _NAME.fullmatch(name):
            raise DataException(f"{name!r} is no name in Protobuf: scrub.invalid.names=true makes it one")
        return name

    def split(self, full_name: str | None) -> tuple[str, str]:
        """Package and name; a name is made up for what has none."""
        if not full_name:
            self._count += 1
            full_name = f"{DEFAULT_NAME}{self._count}"
        space, _, simple = full_name.rpartition(".")
        return ".".join(map(self.plain, space.split("."))) if space else "", self.plain(simple)


def _scrubbed(name: str) -> str:
    if _NAME.fullmatch(name) and not name.startswith("_"):
        return name
    coded = quote_plus(name, safe="*")
    return _NOT_IN_NAMES.sub("_", f"x{coded}" if coded[:1].isdigit() or coded.startswith("_") else coded)


class _Body:
    """Of a message: its fields, and the types that are declared in it."""

    __slots__ = ("declared", "field_names", "fields", "types")

    def __init__(self, field_names: frozenset[str]) -> None:
        self.field_names = field_names
        self.fields: list[str] = []
        self.types: dict[str, Schema] = {}
        self.declared: list[str] = []

    def lines(self, name: str) -> list[str]:
        return [f"message {name} {{", *self.fields, *self.declared, "}"]


class _File:
    __slots__ = ("_imports", "_mapping", "_names")

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._names = Names(mapping)
        self._imports: dict[str, None] = {}

    def of(self, schema: Schema) -> tuple[str, str]:
        package, name = self._names.split(schema.name)
        message = self._message(name, schema, 0)
        head = ['syntax = "proto3";', *([f"package {package};"] if package else ())]
        imports = [f'import "{path}";' for path in self._imports]
        return "\n".join([*head, *imports, *message, ""]), f"{package}.{name}" if package else name

    def _message(self, name: str, schema: Schema, depth: int) -> list[str]:
        if depth > MOST_DEPTH:
            raise DataException(f"Structs more than {MOST_DEPTH} deep in each other have no schema in Protobuf")
        numbers = _numbers(schema)
        body = _Body(frozenset(self._names.plain(inner or field) for field, inner in numbers))
        for field in schema.fields:
            if not is_union(field.schema):
                self._field(field.name, field.schema, numbers[field.name, ""], body, depth)
                continue
            body.fields.append(f"oneof {self._union_name(field.schema)} {{")
            for inner in field.schema.fields:
                number = numbers[field.name, inner.name]
                self._field(inner.name, inner.schema.but(optional=False), number, body, depth)
            body.fields.append("}")
        return body.lines(name)

    def _union_name(self, schema: Schema) -> str:
        general = (schema.parameters or {}).get(GENERAL_UNION)
        name = general if general is not None else (schema.name or "").removeprefix(UNION_PREFIX)
        return self._names.plain(name.rpartition(".")[2])

    def _field(self, name: str, schema: Schema, number: int, body: _Body, depth: int) -> None:
        label, inner = "", schema
        if schema.type is Type.ARRAY:
            label, inner = "repeated ", _known(schema.value_schema)
            if inner.type in (Type.ARRAY, Type.MAP):
                raise DataException(f"Array cannot be nested: the field {name} is a list of lists or maps")
        elif schema.type is Type.MAP:
            self._map(name, schema, number, body, depth)
            return
        elif self._mapping.optional_keyword and schema.optional:
            label = "optional "
        kind, params = self._kind(inner, body, depth)
        body.fields.append(f"{label}{kind} {self._names.plain(name)} = {number}{self._meta(params)};")

    def _meta(self, params: Dict[str, str]) -> str:
        if not params:
            return ""
        self._imports["confluent/meta.proto"] = None
        entries = ", ".join(f'{{ key: "{key}", value: "{value}" }}' for key, value in params.items())
        return f" [(confluent.field_meta) = {{ params: [{entries}] }}]"

    def _map(self, name: str, schema: Schema, number: int, body: _Body, depth: int) -> None:
        key, value = _known(schema.key_schema), _known(schema.value_schema)
        field = self._names.plain(name)
        is_plain = key.type in _KEYS and key.name not in MESSAGE_OF and enum_symbols(key) is None
        if is_plain and value.type not in (Type.ARRAY, Type.MAP):
            keys = (key.parameters or {}).get(KIND, _SCALARS[key.type])
            body.fields.append(f"map<{keys}, {self._kind(value, body, depth)[0]}> {field} = {number};")
            return
        entry = self._unique(_camel(self._names.split(schema.name)[1]) + ENTRY, body)
        body.types[entry] = schema
        inner = _Body(frozenset(("key", "value")))
        self._field("key", key.but(optional=False), 1, inner, depth + 1)
        self._field("value", value, 2, inner, depth + 1)
        body.declared += inner.lines(entry)
        body.fields.append(f"repeated {entry} {field} = {number}{self._meta({CONNECT_TYPE: 'map'})};")

    def _unique(self, name: str, body: _Body) -> str:
        while name in body.field_names or name in body.types:
            name = f"{name.removesuffix(ENTRY)}Message{ENTRY}"
        return name

    def _kind(self, schema: Schema, body: _Body, depth: int) -> tuple[str, dict[str, str]]:
        """The type of a field, and the parameters that are kept beside it."""
        logical = MESSAGE_OF.get(schema.name or "")
        if logical is not None:
            message, path = logical
            self._imports[path] = None
            return message, _decimal_params(schema) if schema.name == DECIMAL_NAME else {}
        if schema.type is Type.STRUCT:
            return self._struct(schema, body, depth), {}
        enum = enum_symbols(schema)
        if enum is not None:
            return self._enum(*enum, schema, body), {}
        params = {CONNECT_TYPE: schema.type.value} if schema.type in (Type.INT8, Type.INT16) else {}
        own = (schema.parameters or {}).get(KIND) if schema.type in (Type.INT32, Type.INT64) else None
        if self._mapping.wrappers and schema.optional:
            self._imports[WRAPPERS_PATH] = None
            unsigned = _UNSIGNED.get(own or "")
            return f"google.protobuf.{unsigned}Value" if unsigned else _WRAPPERS[_wide(schema.type)], params
        return own or _SCALARS[schema.type], params

    def _struct(self, schema: Schema, body: _Body, depth: int) -> str:
        name = self._names.split(schema.name)[1]
        if name in body.field_names:  # a message and a field of one name cannot stand beside each other
            name += "Message"
        return self._put(name, schema, body, lambda: self._message(name, schema, depth + 1))

    def _enum(self, full_name: str, numbers: Dict[str, int], schema: Schema, body: _Body) -> str:
        name = self._names.split(full_name)[1]
        ordered = sorted(numbers.items(), key=lambda pair: pair[1] != 0)  # proto3 wants zero first
        aliased = ["option allow_alias = true;"] if len(set(numbers.values())) < len(numbers) else []
        lines = [f"enum {name} {{", *aliased, *(f"{symbol} = {number};" for symbol, number in ordered), "}"]
        return self._put(name, schema, body, lambda: lines)

    def _put(self, name: str, schema: Schema, body: _Body, lines: Callable[[], list[str]]) -> str:
        bare = schema.but(optional=False, default=None, doc=None, parameters=_without_tag(schema))
        known = body.types.get(name)
        if known is None:
            body.types[name] = bare
            body.declared += lines()
        elif known != bare:
            raise DataException(f"Two schemas that differ have one name: {name}")
        return name


def _numbers(schema: Schema) -> dict[tuple[str, str], int]:
    """Of fields, and of those inside unions: what their tags say; the others get what is left, in order."""
    named: list[tuple[tuple[str, str], Schema]] = []
    for field in schema.fields:
        inside = field.schema.fields if is_union(field.schema) else ()
        named += [((field.name, inner.name), inner.schema) for inner in inside]
        if not is_union(field.schema):
            named.append(((field.name, ""), field.schema))
    tags = {key: _tag(each) for key, each in named}
    taken = {tag for tag in tags.values() if tag is not None}
    free = (number for number in range(1, 1 << 29) if number not in taken and not 19000 <= number <= 19999)
    return {key: next(free) if tag is None else tag for key, tag in tags.items()}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) if "_" in name else name


def _tag(schema: Schema) -> int | None:
    text = (schema.parameters or {}).get(TAG, "")
    return int(text) if text.isdecimal() else None


def _without_tag(schema: Schema) -> dict[str, str] | None:
    return {key: value for key, value in (schema.parameters or {}).items() if key != TAG} or None


def _decimal_params(schema: Schema) -> dict[str, str]:
    parameters = schema.parameters or {}
    found = {"precision": parameters.get(PRECISION), "scale": parameters.get("scale")}
    return {key: value for key, value in found.items() if value is not None}


def _known(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataException("A list or map of which nothing is known has no schema in Protobuf")
    return schema
