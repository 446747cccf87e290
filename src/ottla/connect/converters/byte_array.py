"""ByteArrayConverter: bytes as they are."""

from collections.abc import Sequence

from ottla.connect.converters.base import Converted, Converter, RawHeaders
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_class_name
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import OPTIONAL_BYTES
from ottla.connect.data.types import Type


class ByteArrayConverter(Converter):
    """Nothing but bytes is taken."""

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(OPTIONAL_BYTES, data)

    def to_connect(
        self, topic: str, column: Sequence[bytes | None], headers: Sequence[RawHeaders] | None = None
    ) -> list[Converted]:
        return [SchemaAndValue(OPTIONAL_BYTES, data) for data in column]

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        schema, value = given
        if schema is not None and schema.type is not Type.BYTES:
            raise DataException(f"Invalid schema type for ByteArrayConverter: {schema.type}")
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        of = java_class_name(value)
        raise DataException(f"ByteArrayConverter is not compatible with objects of type class {of}")
