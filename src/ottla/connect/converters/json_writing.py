"""Values as JSON, in Jackson's bytes: a function per schema, made once."""

from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec

from ottla.connect.converters.json_texts import quoted
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import double_text, float_text, java_class_name
from ottla.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_to_days,
    decimal_to_bytes,
    time_to_millis,
    timestamp_to_millis,
)
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct, fits
from ottla.connect.data.types import BITS, Float32, Instant, Int8, Int16, Int32, Type

Write: TypeAlias = Callable[[Any], str]

_AS_IT_IS: Final = frozenset((str, int, bool, type(None)))
_INTS: Final = (int, Int8, Int16, Int32)
MOST_DEPTH: Final = 500


def schemaless_bytes(value: Any) -> bytes:
    """Without a schema. Plain values take the quick way."""
    if _is_plain(value):
        try:
            out = msgspec.json.encode(value)
        except UnicodeEncodeError:
            out = b"\\u00"  # half of a surrogate pair, which is written as '?'
        if b"\\u00" not in out:
            return out
    return schemaless_text(value).encode("utf-8", "replace")


def _is_plain(value: Any) -> bool:
    """Whether msgspec writes it as Jackson does. It does not of floats that Java writes with an exponent."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return True
    if kind is float:
        return bool(1e-3 <= value < 1e7 or -1e7 < value <= -1e-3 or value == 0)
    if kind is dict:
        for key, each in value.items():
            if type(key) is not str or (type(each) not in _AS_IT_IS and not _is_plain(each)):
                return False
        return True
    return kind is list and all(type(each) in _AS_IT_IS or _is_plain(each) for each in value)


def schemaless_text(value: Any, depth: int = 0) -> str:
    if depth > MOST_DEPTH:
        raise DataException(f"Values more than {MOST_DEPTH} deep in each other")
    kind = type(value)
    if value is None:
        return "null"
    if kind is str:
        return quoted(value)
    if kind is bool:
        return "true" if value else "false"
    if kind in _INTS:
        return int.__repr__(value)
    if kind is float:
        return double_json(value)
    if kind is Float32:
        return _float(value)
    if kind is dict:
        return _schemaless_map(value, depth)
    if kind in (list, tuple):
        return "[" + ",".join(schemaless_text(each, depth + 1) for each in value) + "]"
    if isinstance(value, bytes | bytearray | memoryview):
        return _base64(value)
    if kind is Struct:
        raise DataException("Mismatching schema.")
    raise DataException(f"Java class class {java_class_name(value)} does not have corresponding schema type.")


def _schemaless_map(value: dict[Any, Any], depth: int) -> str:
    if all(type(key) is str for key in value):
        return "{" + ",".join(f"{quoted(k)}:{schemaless_text(v, depth + 1)}" for k, v in value.items()) + "}"
    pairs = (f"[{schemaless_text(k, depth + 1)},{schemaless_text(v, depth + 1)}]" for k, v in value.items())
    return "[" + ",".join(pairs) + "]"


def double_json(value: float) -> str:
    return double_text(value) if isfinite(value) else f'"{double_text(value)}"'


def _float(value: float) -> str:
    return float_text(value) if isfinite(value) else f'"{float_text(value)}"'


def _base64(value: bytes | bytearray | memoryview) -> str:
    return f'"{b64encode(bytes(value)).decode()}"'


class Writers:
    """The functions of one converter, by its two settings."""

    __slots__ = ("_made", "_most", "decimals_as_numbers", "replace_null")

    def __init__(self, *, decimals_as_numbers: bool, replace_null: bool, cache_size: int) -> None:
        self.decimals_as_numbers = decimals_as_numbers
        self.replace_null = replace_null
        self._most = cache_size
        self._made: dict[Schema, Write] = {}

    def of(self, schema: Schema) -> Write:
        """Of values that may be null."""
        made = self._made.get(schema)
        if made is None:
            while len(self._made) >= max(self._most, 1):
                self._made.pop(next(iter(self._made)))
            made = self._made[schema] = self._nullable(schema)
        return made

    def _nullable(self, schema: Schema) -> Write:
        write = self._plain(schema)
        default = schema.default if self.replace_null else None

        def written(value: Any) -> str:
            if value is not None:
                return write(value)
            if default is not None:
                return write(default)
            if schema.optional:
                return "null"
            raise DataException("Conversion error: null value for field that is required and has no default value")

        return written

    def _plain(self, schema: Schema) -> Write:
        if schema.name in (DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME):
            return self._logical(schema)
        if schema.type is Type.STRUCT:
            return self._struct(schema)
        if schema.type is Type.ARRAY:
            return self._array(schema)
        if schema.type is Type.MAP:
            return self._map(schema)
        return _checked(schema, _SCALARS[schema.type])

    def _struct(self, schema: Schema) -> Write:
        fields = [(f"{quoted(field.name)}:", self.of(field.schema)) for field in schema.fields]

        def written(value: Any) -> str:
            if type(value) is not Struct:
                raise _wrong(schema, value)
            if value.schema is not schema and value.schema != schema:
                raise DataException("Mismatching schema.")
            parts = [name + write(each) for (name, write), each in zip(fields, value.values, strict=True)]
            return "{" + ",".join(parts) + "}"

        return written

    def _array(self, schema: Schema) -> Write:
        inner: Write = schemaless_text if schema.value_schema is None else self.of(schema.value_schema)

        def written(value: Any) -> str:
            if not isinstance(value, list | tuple):
                raise _wrong(schema, value)
            return "[" + ",".join(map(inner, value)) + "]"

        return written

    def _map(self, schema: Schema) -> Write:
        inner: Write = schemaless_text if schema.value_schema is None else self.of(schema.value_schema)
        keys: Write = schemaless_text if schema.key_schema is None else self.of(schema.key_schema)
        as_object = schema.key_schema is None or schema.key_schema.type is Type.STRING

        def written(value: Any) -> str:
            if type(value) is not dict:
                raise _wrong(schema, value)
            if as_object:
                return "{" + ",".join(f"{keys(k)}:{inner(v)}" for k, v in value.items()) + "}"
            return "[" + ",".join(f"[{keys(k)},{inner(v)}]" for k, v in value.items()) + "]"

        return written

    def _logical(self, schema: Schema) -> Write:
        if schema.name == DECIMAL_NAME:
            if self.decimals_as_numbers:
                return _of_class(schema, Decimal, "Decimal, expected BigDecimal", str)
            return _of_class(
                schema, Decimal, "Decimal, expected BigDecimal", lambda value: _base64(decimal_to_bytes(schema, value))
            )
        number = {DATE_NAME: date_to_days, TIME_NAME: time_to_millis, TIMESTAMP_NAME: timestamp_to_millis}[
            schema.name or ""
        ]
        kind = (schema.name or "").rpartition(".")[2]
        return _of_class(schema, Instant, f"{kind}, expected Date", lambda value: str(number(schema, value)))


_SCALARS: Final[dict[Type, Write]] = {
    **dict.fromkeys(BITS, int.__repr__),
    Type.FLOAT32: _float,
    Type.FLOAT64: double_json,
    Type.BOOLEAN: lambda value: "true" if value else "false",
    Type.STRING: quoted,
    Type.BYTES: _base64,
}


def _checked(schema: Schema, write: Write) -> Write:
    bare = Schema(schema.type)

    def written(value: Any) -> str:
        if not fits(bare, value):
            raise _wrong(schema, value)
        return write(value)

    return written


def _of_class(schema: Schema, kind: type, expected: str, write: Write) -> Write:
    def written(value: Any) -> str:
        if type(value) is not kind:
            raise DataException(f"Invalid type for {expected} but was class {java_class_name(value, schema.type)}")
        return write(value)

    return written


def _wrong(schema: Schema, value: Any) -> DataException:
    return DataException(f"Invalid type for {schema.type}: class {java_class_name(value)}")
