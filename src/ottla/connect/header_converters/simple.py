"""SimpleHeaderConverter: texts that say themselves what they are, `1`, `true`, `[1,2]`, `2020-01-31` or a string."""

from ottla.connect.converters.base import Converter, Role
from ottla.connect.data.errors import ConnectException
from ottla.connect.data.parsing import parse_text
from ottla.connect.data.record import NOTHING, SchemaAndValue
from ottla.connect.data.schema import BYTES
from ottla.connect.data.values import to_text
from ottla.connect.definitions import ConfigDef, ParsedConfig, Texts


class SimpleHeaderConverter(Converter):
    """Has no settings."""

    CONFIG = ConfigDef()

    def __init__(self, given: Texts, role: Role = "header") -> None:
        self.role: Role = role
        self.config = ParsedConfig({})

    def read(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NOTHING
        try:
            return parse_text(data.decode(errors="replace"))
        except (ConnectException, RecursionError):
            return SchemaAndValue(BYTES, data)

    def write(self, topic: str, given: SchemaAndValue) -> bytes | None:
        return None if given.value is None else to_text(given.value, given.schema).encode("utf-8", "replace")
