"""ShortConverter to DoubleConverter: numbers of two, four and eight bytes, big-endian, as Kafka's serializers write
them. A family in one file: they differ by a name, a schema and a format."""

import struct
from typing import ClassVar

from ottla.connect.converters.base import Converter
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import (
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    Schema,
)
from ottla.connect.data.struct import fits


class NumberConverter(Converter):
    """A value of another class, or of another size, is an error."""

    type_name: ClassVar[str]
    schema: ClassVar[Schema]
    layout: ClassVar[struct.Struct]

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(self.schema, None)
        if len(data) != self.layout.size:
            raise DataException(
                f"Failed to deserialize {self.type_name}: {self.layout.size} bytes expected, found {len(data)}"
            )
        return SchemaAndValue(self.schema, self.layout.unpack(data)[0])

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        schema, value = given
        if value is None:
            return None
        # Java tells an Integer from a Long by its class; the schema, where there is one, says what it is here.
        if (schema is not None and schema.type is not self.schema.type) or not fits(self.schema, value):
            of = java_class_name(value, None if schema is None else schema.type)
            raise DataException(f"Failed to serialize to {self.type_name} (was class {of}): ")
        return self.layout.pack(value)


class ShortConverter(NumberConverter):
    type_name, schema, layout = "short", OPTIONAL_INT16, struct.Struct(">h")


class IntegerConverter(NumberConverter):
    type_name, schema, layout = "integer", OPTIONAL_INT32, struct.Struct(">i")


class LongConverter(NumberConverter):
    type_name, schema, layout = "long", OPTIONAL_INT64, struct.Struct(">q")


class FloatConverter(NumberConverter):
    type_name, schema, layout = "float", OPTIONAL_FLOAT32, struct.Struct(">f")


class DoubleConverter(NumberConverter):
    type_name, schema, layout = "double", OPTIONAL_FLOAT64, struct.Struct(">d")
