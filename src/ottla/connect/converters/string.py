"""StringConverter: bytes as text, and any value as Java prints it."""

import codecs
from typing import Final

from ottla.connect.converters.base import TYPE, Converter, Role
from ottla.connect.data.errors import DataException
from ottla.connect.data.java_text import java_text
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.data.schema import OPTIONAL_STRING
from ottla.connect.definitions import HIGH, STRING, ConfigDef, ConfigError, ConfigKey, Texts, Width

_ENCODING: Final = "converter.encoding"


class StringConverter(Converter):
    """Bytes that are not of the encoding read as U+FFFD, as in Java."""

    CONFIG = ConfigDef(
        TYPE,
        ConfigKey(
            _ENCODING,
            STRING,
            "UTF-8",
            HIGH,
            "The character set in which texts lie in the topic, by the name that Java has for it.",
            width=Width.MEDIUM,
            display_name="Encoding",
        ),
    )

    def __init__(self, given: Texts, role: Role) -> None:
        super().__init__(given, role)
        encoding = self.config.get_str(_ENCODING)
        try:
            self._codec = codecs.lookup(encoding)
        except LookupError as error:
            raise ConfigError.of(_ENCODING, encoding, "There is no such character set") from error

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(OPTIONAL_STRING, None if data is None else self._codec.decode(data, "replace")[0])

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        schema, value = given
        if value is None:
            return None
        try:
            return self._codec.encode(java_text(value, None if schema is None else schema.type), "replace")[0]
        except UnicodeError as error:
            raise DataException("Failed to serialize to a string: ") from error
