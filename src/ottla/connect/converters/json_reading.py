"""Payloads of JSON as values of a schema: a function per schema.

Java narrows what does not fit without a word: a text in an int32 field reads as 0, 3000000000 as a negative number.
Here that is an error of the record, which a dead letter keeps.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import as_float32
from ottla.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    LOGICAL_NAMES,
    TIME_NAME,
    date_from_days,
    decimal_from_bytes,
    time_from_millis,
    timestamp_from_millis,
)
from ottla.connect.data.schema import Schema
from ottla.connect.data.struct import Struct, validate_value
from ottla.connect.data.types import BITS, Type, wrapped

Read: TypeAlias = Callable[[Any], Any]


def needs_exact_numbers(schema: Schema) -> bool:
    """Whether a decimal may stand there as a number, all of whose digits count."""
    if schema.name == DECIMAL_NAME:
        return True
    inner = [field.schema for field in schema.fields]
    inner += [each for each in (schema.key_schema, schema.value_schema) if each is not None]
    return any(map(needs_exact_numbers, inner))


def schemaless(value: Any) -> Any:
    """Numbers of any length stay what they are; Java cuts them to 64 bits."""
    return value


def reader_of(schema: Schema, replace_null: bool) -> Read:
    """Of parsed JSON. The function raises DataException."""
    read = _reader(schema, replace_null)
    default = schema.default if replace_null else None

    def nullable(found: Any) -> Any:
        if found is not None:
            return read(found)
        if default is not None or schema.optional:
            return default
        raise DataException(f"Invalid null value for required {schema.type} field")

    return nullable


def _reader(schema: Schema, replace_null: bool) -> Read:
    if schema.name in LOGICAL_NAMES:
        return _logical(schema)
    if schema.type is Type.STRUCT:
        return _struct(schema, replace_null)
    if schema.type is Type.ARRAY:
        return _array(schema, replace_null)
    if schema.type is Type.MAP:
        return _map(schema, replace_null)
    if schema.type in BITS:
        return _whole(schema.type)
    return _SCALARS[schema.type]


def node_type(found: Any) -> str:
    """JsonNodeType's name."""
    if found is None:
        return "NULL"
    if isinstance(found, bool):
        return "BOOLEAN"
    kinds: tuple[tuple[type, str], ...] = ((str, "STRING"), (dict, "OBJECT"), (list, "ARRAY"))
    return next((name for kind, name in kinds if isinstance(found, kind)), "NUMBER")


def _whole(type: Type) -> Read:
    bits = BITS[type]
    top = 1 << (bits - 1)

    def read(found: Any) -> int:
        if isinstance(found, float | Decimal) and found == found.__trunc__():
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool):
            raise DataException(f"Invalid type for {type}: {_shown(found)}")
        if not -top <= found < top:
            raise DataException(f"Invalid value for {type}: {found} has more than {bits} bits")
        return found

    return read


def _shown(found: Any) -> str:
    return f"a number with a fraction, {found}" if node_type(found) == "NUMBER" else node_type(found)


def _number(found: Any, type: Type) -> float:
    if isinstance(found, str) and found in _NOT_FINITE:
        return _NOT_FINITE[found]  # as Jackson writes them, and reads as 0
    if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
        raise DataException(f"Invalid type for {type}: {node_type(found)}")
    try:
        return float(found)
    except OverflowError:
        return float("inf") if found > 0 else float("-inf")


_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def _string(found: Any) -> str:
    if not isinstance(found, str):
        raise DataException(f"Invalid type for STRING: {node_type(found)}")
    return found


def _boolean(found: Any) -> bool:
    if not isinstance(found, bool):
        raise DataException(f"Invalid type for BOOLEAN: {node_type(found)}")
    return found


def _bytes(found: Any) -> bytes:
    if not isinstance(found, str):
        raise DataException(f"Invalid type for BYTES: {node_type(found)}")
    try:
        return b64decode(found, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataException("Invalid bytes field") from error


_SCALARS: Final[dict[Type, Read]] = {
    Type.FLOAT32: lambda found: as_float32(_number(found, Type.FLOAT32)),
    Type.FLOAT64: lambda found: _number(found, Type.FLOAT64),
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
}


def _struct(schema: Schema, replace_null: bool) -> Read:
    fields = [(field.name, reader_of(field.schema, replace_null), field.schema) for field in schema.fields]

    def read(found: Any) -> Struct:
        if type(found) is not dict:
            raise DataException(f"Structs should be encoded as JSON objects, but found {node_type(found)}")
        get = found.get
        values = [each(get(name)) for name, each, _ in fields]
        return Struct.of(schema, values)

    if any(needs_check(field.schema) for field in schema.fields):

        def checked(found: Any) -> Struct:
            row = read(found)
            for (name, _, inner), value in zip(fields, row.values, strict=True):
                validate_value(inner, value, name)
            return row

        return checked
    return read


def needs_check(schema: Schema) -> bool:
    """Readers give values of the schema, but for names that promise more than the type."""
    return schema.name in LOGICAL_NAMES


def _array(schema: Schema, replace_null: bool) -> Read:
    assert schema.value_schema is not None
    inner = reader_of(schema.value_schema, replace_null)

    def read(found: Any) -> list[Any]:
        if type(found) is not list:
            raise DataException(f"Arrays should be encoded as JSON arrays, but found {node_type(found)}")
        return [inner(each) for each in found]

    return read


def _map(schema: Schema, replace_null: bool) -> Read:
    assert schema.key_schema is not None and schema.value_schema is not None
    keys, values = reader_of(schema.key_schema, replace_null), reader_of(schema.value_schema, replace_null)

    def of_object(found: Any) -> dict[Any, Any]:
        if type(found) is not dict:
            of = node_type(found)
            raise DataException(f"Maps with string fields should be encoded as JSON objects, but found {of}")
        return {key: values(each) for key, each in found.items()}

    def of_pairs(found: Any) -> dict[Any, Any]:
        if type(found) is not list:
            of = node_type(found)
            raise DataException(
                f"Maps with non-string fields should be encoded as JSON array of tuples, but found {of}"
            )
        made = {}
        for each in found:
            if type(each) is not list:
                raise DataException(f"Found invalid map entry instead of array tuple: {node_type(each)}")
            if len(each) != 2:
                raise DataException(f"Found invalid map entry, expected length 2 but found :{len(each)}")
            key, value = keys(each[0]), values(each[1])
            try:
                made[key] = value
            except TypeError as error:
                raise DataException("Keys of maps that are lists, maps or structs are not supported") from error
        return made

    return of_object if schema.key_schema.type is Type.STRING else of_pairs


def _logical(schema: Schema) -> Read:
    def decimal(found: Any) -> Decimal:
        if isinstance(found, int | float | Decimal) and not isinstance(found, bool):
            return found if isinstance(found, Decimal) else Decimal(repr(found))
        if isinstance(found, str):
            try:
                return decimal_from_bytes(schema, b64decode(found, validate=True))
            except Exception as error:
                raise DataException("Invalid bytes for Decimal field") from error
        raise DataException(
            f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {node_type(found)}"
        )

    def whole(kind: str, expected: str, bits: int, make: Callable[[Schema, int], Any]) -> Read:
        def read(found: Any) -> Any:
            if not isinstance(found, int) or isinstance(found, bool) or wrapped(found, bits) != found:
                problem = f"underlying representation should be {expected} but was {node_type(found)}"
                raise DataException(f"Invalid type for {kind}, {problem}")
            return make(schema, found)

        return read

    if schema.name == DECIMAL_NAME:
        return decimal
    if schema.name == DATE_NAME:
        return whole("Date", "integer", 32, date_from_days)
    if schema.name == TIME_NAME:
        return whole("Time", "integer", 32, time_from_millis)
    return whole("Timestamp", "integral", 64, timestamp_from_millis)


# ---- rows of plain values


def _int_of(bits: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=-(1 << (bits - 1)), le=(1 << (bits - 1)) - 1)]


_QUICK: Final[dict[Type, Any]] = {
    **{kind: _int_of(bits) for kind, bits in BITS.items()},
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
}


_PLAIN_NAME: Final = re.compile(r'[^"\\\x00-\x1f]*')
"""Of which msgspec takes fields."""


def quick_reader(schema: Schema) -> Read | None:
    """Of the JSON itself, if it is an object of plain values. What it does not take (msgspec.DecodeError) may be fine
    for `reader_of`, which tells what is wrong as well."""
    if schema.type is not Type.STRUCT or schema.name in LOGICAL_NAMES or not schema.fields:
        return None
    fields: list[Any] = []
    for index, inner in enumerate(field.schema for field in schema.fields):
        kind = _QUICK.get(inner.type)
        if (
            kind is None
            or not _PLAIN_NAME.fullmatch(schema.fields[index].name)
            or inner.name in LOGICAL_NAMES
            or inner.default is not None
        ):
            return None
        fields.append((f"f{index}", kind | None, None) if inner.optional else (f"f{index}", kind))
    names = {f"f{index}": field.name for index, field in enumerate(schema.fields)}
    row = msgspec.defstruct("Row", fields, rename=names, kw_only=True, gc=False)
    decode = msgspec.json.Decoder(row).decode
    values_of = msgspec.structs.astuple

    def read(data: Any) -> Struct:
        return Struct.of(schema, list(values_of(decode(data))))

    return read
