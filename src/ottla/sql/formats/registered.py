"""Formats by the schemas of a registry: read with the schema of each record, written with that of the columns.

Reading takes what there is by name, so that a schema of others need not be that of the columns. Written is the schema
that the columns make, registered under `<topic>-key` or `<topic>-value`; or the one that *_SCHEMA_ID names.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.registry.lookup import Registered, Registry, UnknownSchema
from ottla.serdes.base import SerdeError
from ottla.serdes.registered import RegisteredSerde
from ottla.serdes.types import ANY, Type
from ottla.sql.arguments import Refused
from ottla.sql.formats.fitting import Unfit, fitted
from ottla.sql.formats.format import Format
from ottla.sql.formats.rows import Columns, Headers, RowSerde

Make: TypeAlias = Callable[[Registry, str | None, str], RegisteredSerde[Any]]
"""The serde of a language, of registry, schema (None: that of each record) and part."""


class RegisteredRows(RowSerde):
    """`name` is that of the format; `text` the schema that is written."""

    def __init__(self, columns: Columns, part: str, wrapped: bool, reading: Any, writing: Any, name: str) -> None:
        super().__init__(columns, part, wrapped)
        self.name = name
        self._reading = reading
        self._writing = writing

    def read_content(self, data: bytes, headers: Headers) -> Any:
        found = self._reading.read(data, headers, for_columns=False)
        try:
            return fitted(self.content)(found)
        except (Unfit, KeyError, ArithmeticError) as error:
            raise SerdeError(f"{self!r}: {error}") from error

    def write_content(self, content: Any, topic: str) -> bytes:
        made: bytes = self._writing.encode_for(self.as_written(content), topic, [])
        return made

    def announce(self, topic: str) -> None:
        self._writing.announce(topic)

    def as_written(self, content: Any) -> Any:
        """As the schema wants it, which may be one of others with other names."""
        kind = self._writing.type
        return content if kind in (ANY, self.content) else fitted(kind)(content)


def schema_of(format: Format, registry: Registry, language: str, topic: str, part: str) -> Registered:
    """The schema that the registry has for a topic, or by its id. Raises Refused."""
    try:
        by_id = format.schema_id
        found = registry.latest(f"{topic}-{part}") if by_id is None else registry.by_id(by_id)
    except UnknownSchema as error:
        what = f"{part.upper()}_SCHEMA_ID {format.schema_id}" if format.schema_id else f"subject {topic}-{part}"
        raise Refused(
            f"the columns of the {part} cannot be taken from the registry: {what} has no schema ({error}). "
            "Declare the columns, or register one"
        ) from None
    if found.language != language:
        raise Refused(f"the schema of the {part} is of {found.language}, not of {format.name}: use another format")
    return found


def columns_of(kind: Type, part: str, *, bare: bool = False) -> Columns:
    """Of a schema's type. A schema that is no record has one column, and so has every one of a *bare* part: a key in a
    format whose single keys are not wrapped, which a record may be as well as a number."""
    if kind.name != "struct" or bare:
        return (("ROWKEY" if part == "key" else "ROWVAL", _known(kind)),)
    return tuple((name.upper(), _known(each)) for name, each in kind.fields if not each.has("any", "null"))


def _known(kind: Type) -> Type:
    if kind.has("any", "null"):
        raise Refused("the schema leaves the types of some fields open: declare the columns")
    if kind.name == "struct":
        return Type("struct", fields=columns_of(kind, ""))
    if kind.element is not None:
        return Type(kind.name, _known(kind.element))
    return kind
