"""JSON: an object of the columns, or the bare value of a single one. What is read is told by `serdes.lenient_json`."""

from typing import Any

from ottla.serdes.base import Serde
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import Type
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns, row_type


def check(format: Format, columns: Columns, part: str) -> None:
    """It holds everything."""


def serde(format: Format, columns: Columns, part: str) -> Serde[Any]:
    if part == "value" and len(columns) == 1 and not is_wrapped(format, part):
        ((name, kind),) = columns
        return LenientJsonSerde(kind, single=name)
    return LenientJsonSerde(row_type(columns, part) if part == "key" else Type("struct", fields=columns))


def is_wrapped(format: Format, part: str) -> bool:
    """A single column: of a key it is bare, of a value it is a field unless WRAP_SINGLE_VALUE says otherwise."""
    return part == "value" and format.wrap is not False
