"""A schema for a value that came without one: what a table, Avro or a mapping can be made of."""

from decimal import Decimal
from typing import Any

from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.logical import OPTIONAL_TIMESTAMP, decimal_schema, scale_of
from ottla.connect.data.schema import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT8,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    Schema,
    array_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Float32, Instant, Int8, Int16, Int32

_SCALARS = {
    bool: OPTIONAL_BOOLEAN,
    Int8: OPTIONAL_INT8,
    Int16: OPTIONAL_INT16,
    Int32: OPTIONAL_INT32,
    int: OPTIONAL_INT64,
    Float32: OPTIONAL_FLOAT32,
    float: OPTIONAL_FLOAT64,
    str: OPTIONAL_STRING,
    bytes: OPTIONAL_BYTES,
    Instant: OPTIONAL_TIMESTAMP,
}
MOST_DEPTH = 100


def inferred_schema(value: Any, depth: int = 0) -> Schema:
    """Everything in it may be null; null itself reads as a text. Raises DataException."""
    if depth > MOST_DEPTH:
        raise DataException(f"Values more than {MOST_DEPTH} deep in each other")
    if value is None:
        return OPTIONAL_STRING
    known = _SCALARS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Struct):
        return value.schema
    if isinstance(value, Decimal):
        return decimal_schema(scale_of(value), optional=True)
    if isinstance(value, dict):
        fields = [(str(key), inferred_schema(each, depth + 1)) for key, each in value.items()]
        return struct_schema(fields, optional=True)
    if isinstance(value, list | tuple):
        schemas = {inferred_schema(each, depth + 1) for each in value if each is not None}
        if len(schemas) > 1:
            raise DataException("A list of values of several types has no schema")
        return array_schema(schemas.pop() if schemas else OPTIONAL_STRING, optional=True)
    raise DataException(f"Java class class {java_class_name(value)} does not have corresponding schema type.")
