"""Connect's schemas as Avro's, and Connect's values as what Avro's bytes are written of."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ottla.connect.converters.avro_reading import (
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    ENUM,
    FIXED_SIZE,
    MAP_ENTRY,
    PACKAGE,
    PRECISION,
    UNION,
    plain_default,
)
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_to_days,
    decimal_scale,
    decimal_to_bytes,
    time_to_millis,
    timestamp_to_millis,
)
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct, fits
from ottla.connect.data.types import Type
from ottla.registry.schemas.avro.tree import Array, Map, Node, Record, Union

Write: TypeAlias = Callable[[Any], Any]

_SCALARS: Final = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Final = {DATE_NAME: "date", TIME_NAME: "time-millis", TIMESTAMP_NAME: "timestamp-millis"}
_NUMBERS: Final = {DATE_NAME: date_to_days, TIME_NAME: time_to_millis, TIMESTAMP_NAME: timestamp_to_millis}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


def avro_schema(schema: Schema, *, meta: bool = True, enums: bool = False) -> Any:
    """As JSON's trees. Raises DataException."""
    return _Rendering(meta, enums).of(schema)


class _Rendering:
    """Names that were written are referred to afterwards."""

    def __init__(self, meta: bool, enums: bool) -> None:
        self._meta = meta
        self._enums = enums
        self._written: dict[str, Schema] = {}
        self._defaults = 0

    def of(self, schema: Schema) -> Any:
        if schema.name == UNION and schema.type is Type.STRUCT:
            branches = [self._plain(field.schema) for field in schema.fields]
            return ["null", *branches] if schema.optional else branches
        inner = self._plain(schema)
        if not schema.optional:
            return inner
        return [inner, "null"] if schema.default is not None else ["null", inner]

    def _plain(self, schema: Schema) -> Any:
        if schema.type is Type.STRUCT:
            return self._record(schema)
        if schema.type is Type.ARRAY:
            if schema.value_schema is None:
                raise DataException("An array of which no element is known has no schema in Avro")
            return self._described({"type": "array", "items": self.of(schema.value_schema)}, schema)
        if schema.type is Type.MAP:
            return self._map(schema)
        return self._scalar(schema)

    def _scalar(self, schema: Schema) -> Any:
        if self._enums and schema.name == ENUM and schema.parameters:
            return self._enum(schema, schema.parameters)
        made: dict[str, Any] = {"type": _SCALARS[schema.type]}
        if schema.parameters and FIXED_SIZE in schema.parameters and schema.name:
            space, _, simple = schema.name.rpartition(".")
            return {"type": "fixed", "name": simple, "namespace": space, "size": int(schema.parameters[FIXED_SIZE])}
        if schema.name == DECIMAL_NAME:
            precision = (schema.parameters or {}).get(PRECISION)
            made |= {"scale": decimal_scale(schema), "precision": int(precision or DEFAULT_PRECISION)}
        if schema.type in (Type.INT8, Type.INT16):
            made["connect.type"] = schema.type.value
        made = self._described(made, schema)
        if schema.name == DECIMAL_NAME:
            made["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            made["logicalType"] = _LOGICAL[schema.name]
        return made["type"] if len(made) == 1 else made

    def _enum(self, schema: Schema, parameters: dict[str, str]) -> Any:
        full = parameters.get(ENUM, DEFAULT_NAME)
        if full in self._written:
            return full
        self._written[full] = schema
        space, _, simple = full.rpartition(".")
        symbols = [value for key, value in parameters.items() if key.startswith(f"{ENUM}.")]
        return {"type": "enum", "name": simple, **({"namespace": space} if space else {}), "symbols": symbols}

    def _map(self, schema: Schema) -> Any:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataException("A map of which no entry is known has no schema in Avro")
        values = self.of(schema.value_schema)
        if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
            return self._described({"type": "map", "values": values}, schema)
        fields = [{"name": "key", "type": self.of(schema.key_schema)}, {"name": "value", "type": values}]
        name = schema.name or f"{PACKAGE}.{MAP_ENTRY}"
        space, _, simple = name.rpartition(".")
        self._defaults += simple == MAP_ENTRY
        simple += str(self._defaults) if self._defaults > 1 else ""
        entry = {
            "type": "record",
            "name": simple,
            **({"namespace": space} if space else {}),
            "fields": fields,
            "connect.internal.type": MAP_ENTRY,
        }
        return self._described({"type": "array", "items": entry}, schema)

    def _record(self, schema: Schema) -> Any:
        full = schema.name
        if full is None:
            count = sum(key.startswith(f"{PACKAGE}.{DEFAULT_NAME}") for key in self._written)
            full = f"{PACKAGE}.{DEFAULT_NAME}{count + 1 if count else ''}"
        full = ".".join(_valid_name(part) for part in full.split("."))
        known = self._written.get(full)
        if known is not None:
            if known.but(optional=False, default=None) != schema.but(optional=False, default=None):
                raise DataException(f"Two schemas that differ have one name: {full}")
            return full
        self._written[full] = schema
        space, _, simple = full.rpartition(".")
        made: dict[str, Any] = {"type": "record", "name": simple, **({"namespace": space} if space else {})}
        made["fields"] = [self._field(field.name, field.schema) for field in schema.fields]
        if schema.doc is not None:
            made["doc"] = schema.doc
        return self._described(made, schema)

    def _field(self, name: str, schema: Schema) -> Any:
        made: dict[str, Any] = {"name": _valid_name(name), "type": self.of(schema)}
        if schema.doc is not None:
            made["doc"] = schema.doc
        if schema.default is not None:
            made["default"] = _default(schema, schema.default)
        elif schema.optional:
            made["default"] = None
        return made

    def _described(self, made: dict[str, Any], schema: Schema) -> dict[str, Any]:
        if not self._meta:
            return made
        if schema.doc is not None and made["type"] != "record":
            made["connect.doc"] = schema.doc
        if schema.version is not None:
            made["connect.version"] = schema.version
        if schema.parameters is not None:
            made["connect.parameters"] = schema.parameters
        if schema.name is not None:
            made["connect.name"] = schema.name
        return made


def _valid_name(name: str) -> str:
    """Avro takes letters, digits and underscores."""
    clean = _NOT_IN_NAMES.sub("_", name)
    return clean if clean and not clean[0].isdigit() else f"_{clean}"


def _default(schema: Schema, default: Any) -> Any:
    plain = writer(schema.but(optional=False))(default)
    return _as_json(plain)


def _as_json(plain: Any) -> Any:
    if isinstance(plain, bytes):
        return plain.decode("latin-1")
    if isinstance(plain, dict):
        return {key: _as_json(each) for key, each in plain.items()}
    if isinstance(plain, list):
        return [_as_json(each) for each in plain]
    return plain


# ---- values


def writer(schema: Schema, *, schemaless: bool = False, enums: bool = False) -> Write:
    """Gives what `Binary` writes. `schemaless`: rows are dicts, as no schema came with them."""
    write = _writer(schema, schemaless, enums)

    def nullable(value: Any) -> Any:
        if value is not None:
            return write(value)
        if schema.optional or schema.default is not None:
            return None if schema.optional else write(schema.default)
        raise DataException(f"Found null value for non-optional schema {schema}")

    return nullable


def _writer(schema: Schema, schemaless: bool, enums: bool) -> Write:
    if schema.type is Type.STRUCT:
        return _union_writer(schema, enums) if schema.name == UNION else _row_writer(schema, schemaless, enums)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        items = writer(schema.value_schema, schemaless=schemaless, enums=enums)
        return _checked(schema, lambda value: [items(each) for each in value])
    if schema.type is Type.MAP:
        return _map_writer(schema, schemaless, enums)
    if schema.name == DECIMAL_NAME:
        return _checked(schema, lambda value: decimal_to_bytes(schema, value))
    number = _NUMBERS.get(schema.name or "")
    if number is not None:
        return _checked(schema, lambda value: number(schema, value))
    if schema.type is Type.BYTES:
        return _checked(schema, bytes)
    return _checked(schema, lambda value: value)


def _checked(schema: Schema, write: Write) -> Write:
    def written(value: Any) -> Any:
        if not fits(schema, value):
            raise DataException(f"Invalid type for {schema.type}: class {java_class_name(value, schema.type)}")
        return write(value)

    return written


def _row_writer(schema: Schema, schemaless: bool, enums: bool) -> Write:
    fields = [
        (field.name, _valid_name(field.name), writer(field.schema, schemaless=schemaless, enums=enums))
        for field in schema.fields
    ]

    def of_struct(value: Any) -> dict[str, Any]:
        if type(value) is not Struct:
            raise DataException(f"Invalid type for STRUCT: class {java_class_name(value)}")
        if value.schema is not schema and value.schema.but(optional=schema.optional, default=schema.default) != schema:
            raise DataException("Mismatching struct schema")
        return {name: write(each) for (_, name, write), each in zip(fields, value.values, strict=True)}

    def of_dict(value: Any) -> dict[str, Any]:
        return {name: write(value.get(key)) for key, name, write in fields}

    return of_dict if schemaless else of_struct


def _map_writer(schema: Schema, schemaless: bool, enums: bool) -> Write:
    assert schema.key_schema is not None and schema.value_schema is not None
    keys = writer(schema.key_schema, schemaless=schemaless, enums=enums)
    values = writer(schema.value_schema, schemaless=schemaless, enums=enums)
    if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
        return _checked(schema, lambda value: {keys(key): values(each) for key, each in value.items()})
    return _checked(schema, lambda value: [{"key": keys(key), "value": values(each)} for key, each in value.items()])


def _union_writer(schema: Schema, enums: bool) -> Write:
    """One field of them is there."""
    writers = [writer(field.schema, enums=enums) for field in schema.fields]

    def written(value: Any) -> Any:
        for write, each in zip(writers, value.values, strict=True):
            if each is not None:
                return write(each)
        raise DataException("A union of which no branch is there")

    return written


# ---- by somebody else's schema


def fitted(node: Node) -> Write:
    """Values of one's own schema as another wants them: fields by name, defaults for those that are not there."""
    return _Fitting().of(node)


class _Fitting:
    """A record that contains itself is met again."""

    def __init__(self) -> None:
        self._made: dict[int, Write] = {}

    def of(self, node: Node) -> Write:
        if isinstance(node, Record):
            return self._made.get(id(node)) or self._record(node)
        if isinstance(node, Array):
            items = self.of(node.items)
            return lambda value: [items(each) for each in value]
        if isinstance(node, Map):
            values = self.of(node.values)
            return lambda value: {key: values(each) for key, each in value.items()}
        known = [each for each in node.branches if each.kind != "null"] if isinstance(node, Union) else []
        if len(known) == 1:
            inner = self.of(known[0])
            return lambda value: None if value is None else inner(value)
        return lambda value: value

    def _record(self, node: Record) -> Write:
        fields: list[tuple[str, Write, Any]] = []

        def write(value: Any) -> dict[str, Any]:
            made = {}
            for name, inner, default in fields:
                if name in value:
                    made[name] = inner(value[name])
                elif default is not None:
                    made[name] = default()
            return made

        self._made[id(node)] = write
        for field in node.fields:
            default = None
            if field.has_default:
                of = field.type.branches[0] if isinstance(field.type, Union) else field.type
                default = _giving(plain_default(of, field.default))
            fields.append((field.name, self.of(field.type), default))
        return write


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value
