"""NONE: a key that is not there, of streams without key columns. Whatever bytes there are, nobody looks at them."""

from typing import Any

from ottla.serdes.base import Serde
from ottla.sql.arguments import Refused
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns, Headers, RowSerde


def check(format: Format, columns: Columns, part: str) -> None:
    if part != "key":
        raise Refused("NONE is a format of keys alone: VALUE_FORMAT='JSON', for instance")
    if columns:
        raise Refused("KEY_FORMAT='NONE' is for streams without key columns: leave it out, or the columns")


class NoneSerde(RowSerde):
    name = "NONE"

    def __init__(self) -> None:
        super().__init__((), "key", wrapped=True)

    def read(self, data: bytes, headers: Headers, *, for_columns: bool) -> Any:
        return None

    def serialize(self, value: Any) -> bytes | None:
        return None

    def read_content(self, data: bytes, headers: Headers) -> Any:
        return None

    def write_content(self, content: Any, topic: str) -> bytes:
        return b""


def serde(format: Format, columns: Columns, part: str) -> Serde[Any]:
    return NoneSerde()
