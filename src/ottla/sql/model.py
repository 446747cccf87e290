"""Streams and tables as the catalog knows them: columns, formats, topic."""

from dataclasses import dataclass, field
from typing import Final

from ottla.serdes.types import BINARY, INT, LONG, Type
from ottla.sql.formats.format import Format
from ottla.sql.types import quoted, sql_text
from ottla.streams.expressions.bound import HEADERS

ROWTIME: Final = "ROWTIME"
ROWPARTITION: Final = "ROWPARTITION"
ROWOFFSET: Final = "ROWOFFSET"
WINDOWSTART: Final = "WINDOWSTART"
WINDOWEND: Final = "WINDOWEND"
ROWKEY: Final = "ROWKEY"

PSEUDO: Final[dict[str, Type]] = {ROWTIME: LONG, ROWPARTITION: INT, ROWOFFSET: LONG}
"""Of every source."""
BOUNDS: Final[dict[str, Type]] = {WINDOWSTART: LONG, WINDOWEND: LONG}
"""Of sources with windowed keys."""
SYSTEM: Final = (*PSEUDO, *BOUNDS)

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class WindowedKey:
    """What the keys of a topic carry besides the key: TUMBLING, HOPPING (of a size) or SESSION."""

    kind: str
    size_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    name: str
    key: str | None
    """None: all headers."""

    @property
    def type(self) -> Type:
        return HEADERS if self.key is None else BINARY


@dataclass(frozen=True, slots=True)
class EventTime:
    """Where the time of a record is, if not in its timestamp."""

    column: str
    format: str | None = None
    fails: bool = False
    """Whether a query ends at a record that has none; it is left out otherwise."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """A stream or a table: a topic, and how to read it."""

    name: str
    kind: str
    """STREAM or TABLE."""
    topic: str
    keys: Columns
    values: Columns
    key_format: Format
    value_format: Format
    headers: tuple[HeaderColumn, ...] = ()
    window: WindowedKey | None = None
    event_time: EventTime | None = None
    partitions: int | None = None
    replicas: int | None = None
    is_source: bool = False
    """Read-only."""
    query_id: str | None = None
    """Of the query that made it, if one did."""
    topic_settings: tuple[tuple[str, str], ...] = ()
    """Of its topic, if that has to be made."""
    statement: str = field(default="", compare=False)

    @property
    def is_table(self) -> bool:
        return self.kind == "TABLE"

    def column(self, name: str) -> Type | None:
        return next((kind for known, kind in self.all_columns() if known == name), None)

    def all_columns(self) -> Columns:
        """In the order of `SELECT *`."""
        return (*self.keys, *self.values, *((each.name, each.type) for each in self.headers))

    def schema_text(self) -> str:
        keys = [f"{quoted(name)} {sql_text(kind)} KEY" for name, kind in self.keys]
        values = [f"{quoted(name)} {sql_text(kind)}" for name, kind in self.values]
        headers = [
            f"{quoted(each.name)} {sql_text(each.type)} " + ("HEADERS" if each.key is None else f"HEADER('{each.key}')")
            for each in self.headers
        ]
        return ", ".join([*keys, *values, *headers])
