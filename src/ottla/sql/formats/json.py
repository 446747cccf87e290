"""JSON: an object of the columns, or the bare value of a single one. What is read is told by `json_values`."""

from typing import Any

from ottla.serdes.base import Serde, SerdeError, shown_value
from ottla.serdes.json import json_writer
from ottla.sql.formats import json_values
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns, Headers, RowSerde


def check(format: Format, columns: Columns, part: str) -> None:
    """It holds everything."""


class KsqlJsonSerde(RowSerde):
    """All columns are written, in order, with their nulls."""

    name = "JSON"

    def read_content(self, data: bytes, headers: Headers) -> Any:
        return json_values.read(data, self.content, self)

    def write_content(self, content: Any, topic: str) -> bytes:
        try:
            return json_writer(self.content)(content).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerdeError(f"{self!r}: {error}; the value is {shown_value(content)}") from error


def serde(format: Format, columns: Columns, part: str) -> Serde[Any]:
    return KsqlJsonSerde(columns, part, wrapped=is_wrapped(format, part))


def is_wrapped(format: Format, part: str) -> bool:
    """A single column: of a key it is bare, of a value it is a field unless WRAP_SINGLE_VALUE says otherwise."""
    return part == "value" and format.wrap is not False
