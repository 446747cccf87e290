"""KAFKA: one column as Kafka's own serializers write it."""

from typing import Any, Final

from ottla.serdes.base import Serde
from ottla.serdes.by_name import Serdes
from ottla.sql.arguments import Refused
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns, Headers, RowSerde
from ottla.sql.types import sql_text

_SERDES: Final[dict[str, Serde[Any]]] = {
    "int": Serdes.int,
    "long": Serdes.long,
    "double": Serdes.double,
    "string": Serdes.string,
    "binary": Serdes.bytes,
}


def check(format: Format, columns: Columns, part: str) -> None:
    if len(columns) > 1:
        names = ", ".join(name for name, _ in columns)
        raise Refused(
            f"KAFKA holds one {part} column, not {len(columns)} ({names}): use {part.upper()}_FORMAT='JSON' or another"
        )
    for name, kind in columns:
        if kind.name not in _SERDES:
            raise Refused(
                f"KAFKA holds INT, BIGINT, DOUBLE, STRING or BYTES, not {sql_text(kind)} of {name}: "
                f"use {part.upper()}_FORMAT='JSON'"
            )
    if format.wrap:
        raise Refused("KAFKA does not wrap its column: leave WRAP_SINGLE_VALUE out")


class KafkaSerde(RowSerde):
    name = "KAFKA"

    def __init__(self, columns: Columns, part: str) -> None:
        super().__init__(columns, part, wrapped=False)
        self._inner = _SERDES[columns[0][1].name]

    def read_content(self, data: bytes, headers: Headers) -> Any:
        return self._inner.decode(data)

    def write_content(self, content: Any, topic: str) -> bytes:
        return self._inner.encode(content)


def serde(format: Format, columns: Columns, part: str) -> Serde[Any]:
    # The plain serde, of which Spark has columns.
    return _SERDES[columns[0][1].name] if part == "key" else KafkaSerde(columns, part)
