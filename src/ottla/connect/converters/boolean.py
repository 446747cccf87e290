"""BooleanConverter: one byte, 0 or 1."""

from ottla.connect.converters.base import Converter
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import OPTIONAL_BOOLEAN
from ottla.connect.data.types import Type


class BooleanConverter(Converter):
    """Any other byte, or more of them, is an error."""

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(OPTIONAL_BOOLEAN, None)
        if data not in (b"\0", b"\1"):
            why = f"found {data[:8].hex()}" if len(data) == 1 else f"found {len(data)} bytes"
            raise DataException(f"Failed to deserialize boolean: one byte, 0 or 1, expected, {why}")
        return SchemaAndValue(OPTIONAL_BOOLEAN, data == b"\1")

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        schema, value = given
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataException(f"Invalid schema type for BooleanConverter: {schema.type}")
        if value is None:
            return None
        if not isinstance(value, bool):
            of = java_class_name(value, None if schema is None else schema.type)
            raise DataException(f"BooleanConverter is not compatible with objects of type class {of}")
        return b"\1" if value else b"\0"
