"""A query that is understood: what is read, joined, filtered, grouped, and what goes where. `compile` decides nothing.

Every `Argument` is an expression over the record at its point of the way: see each field.
"""

from dataclasses import dataclass

from ottla.serdes.types import Type
from ottla.sql.functions.declare import Argument
from ottla.sql.model import Columns, DataSource, EventTime, WindowedKey
from ottla.streams.expressions import Aggregate, Expression
from ottla.streams.windows import JoinWindows, SessionWindows, TimeWindows

Fields = tuple[tuple[str, Argument], ...]


@dataclass(frozen=True, slots=True)
class Read:
    source: DataSource
    alias: str

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join, as it is made ready."""

    fields: Fields
    """What becomes its value, over its record."""
    key: Argument
    """What becomes its key, over the new value."""
    rekeyed: bool
    """Whether that is another key than the record has."""


@dataclass(frozen=True, slots=True)
class Joining:
    left: "Read | Joining"
    right: Read
    kind: str
    """INNER, LEFT, RIGHT or FULL."""
    how: str
    """stream-stream, stream-table, table-table or foreign-key."""
    sides: tuple[Side, Side]
    windows: JoinWindows | None
    value_type: Type

    @property
    def is_table(self) -> bool:
        return self.how in ("table-table", "foreign-key")


@dataclass(frozen=True, slots=True)
class Grouping:
    inputs: Fields
    """What aggregates and keys are made of, over the record; the keys first."""
    keys: Columns
    """Of the inputs: those that become the key, under the names of the result."""
    names: tuple[str, ...]
    """Of the inputs that are the keys."""
    regrouped: bool
    """Whether that is another key than the record has."""
    aggregates: tuple[tuple[str, Aggregate], ...]
    """Over the inputs as value."""
    window: TimeWindows | SessionWindows | None
    retention_ms: int | None
    having: Expression | None
    """Over key and aggregates."""


@dataclass(frozen=True, slots=True)
class TypedQuery:
    source: Read | Joining
    where: Expression | None
    exploded: "Exploded | None"
    grouping: Grouping | None
    key: Fields
    """The key columns of the result, over the record before it (or behind the aggregate)."""
    key_changes: bool
    """Whether the record's key is another one than before."""
    values: Fields
    is_table: bool
    window: WindowedKey | None
    final: bool = False
    kept_keys: tuple[str, ...] = ()
    """Of a result that is not stored, so that it has no key of its own: which values are key columns of the source."""

    @property
    def keys(self) -> Columns:
        return tuple((name, argument.type) for name, argument in self.key)

    @property
    def columns(self) -> Columns:
        return tuple((name, argument.type) for name, argument in self.values)

    def reads(self) -> list[DataSource]:
        """From left to right."""
        found, at = [], self.source
        while isinstance(at, Joining):
            found.append(at.right.source)
            at = at.left
        return [at.source, *reversed(found)]


@dataclass(frozen=True, slots=True)
class Exploded:
    """Rows made of one: `lists` are walked through together, the shorter filled up with nulls."""

    fields: Fields
    """Of the record, that stay."""
    lists: Fields


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a query writes."""

    source: DataSource
    event_time: EventTime | None = None
