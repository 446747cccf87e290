"""What each node of a topology does, as data.

The test driver and Spark's tasks make processors of it; the planner makes native Spark operators of those it can. A
`Function` is a column expression (fast on Spark) or a Python callable; what a callable is given is said at each field.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.streams.expressions import Aggregate as NativeAggregate
from ottla.streams.expressions import Expression
from ottla.streams.topology.processor import Processor
from ottla.streams.windows import Emit, JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.topology.processor import ValueTransformerWithKey

Function: TypeAlias = Expression | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """The base of all."""


# ---- streams, without state


@dataclass(frozen=True, slots=True)
class PassThrough(Operation):
    """merge, and the nodes that only give a place to a name."""


@dataclass(frozen=True, slots=True)
class Filter(Operation):
    predicate: Function  # (key, value) -> bool
    negated: bool = False


@dataclass(frozen=True, slots=True)
class MapValues(Operation):
    function: Function  # (value), or (key, value) with_key
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class MapPairs(Operation):
    """map: a callable gives a (key, value) pair; as expressions the two are given apart."""

    function: Callable[..., Any] | None  # (key, value) -> (key, value)
    key: Expression | None = None
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class FlatMap(Operation):
    function: Callable[..., Any]  # (key, value) -> iterable of (key, value)


@dataclass(frozen=True, slots=True)
class FlatMapValues(Operation):
    function: Function  # (value), or (key, value) with_key -> iterable of values; an expression of array type
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class SelectKey(Operation):
    """select_key and the re-keying half of group_by."""

    function: Function  # (key, value) -> key


@dataclass(frozen=True, slots=True)
class Peek(Operation):
    function: Callable[..., Any]  # (key, value)
    last: bool = False
    """foreach: nothing goes on."""


@dataclass(frozen=True, slots=True)
class Branch(Operation):
    """split: the record goes to the child of the first predicate that holds; children in the order of `children`."""

    predicates: tuple[Function, ...]  # (key, value) -> bool
    children: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class DropNullKeys(Operation):
    """In front of every repartition sink."""


@dataclass(frozen=True, slots=True)
class UserProcessor(Operation):
    """process, process_values and add_processor."""

    supplier: Callable[[], Processor]
    fixed_key: bool = False


# ---- aggregates of streams. Exactly one way to say how: `native` or the callables.


@dataclass(frozen=True, slots=True)
class Fold:
    """How an aggregate is computed."""

    kind: str  # "count", "reduce", "aggregate"
    initializer: Callable[[], Any] | None = None
    function: Callable[..., Any] | None = None  # reduce: (aggregate, value); aggregate: (key, value, aggregate)
    merger: Callable[..., Any] | None = None  # sessions: (key, left aggregate, right aggregate)
    native: NativeAggregate | None = None


@dataclass(frozen=True, slots=True)
class StreamAggregate(Operation):
    store: str
    fold: Fold
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class WindowAggregate(Operation):
    store: str
    fold: Fold
    windows: TimeWindows
    emit: Emit = Emit.ON_UPDATE
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class UnlimitedAggregate(Operation):
    """Over one window without end, so there is no other way than to emit at every update."""

    store: str
    fold: Fold
    windows: UnlimitedWindows
    emit: Emit = Emit.ON_UPDATE
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class SlidingAggregate(Operation):
    store: str
    fold: Fold
    windows: SlidingWindows
    emit: Emit = Emit.ON_UPDATE
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class SessionAggregate(Operation):
    store: str
    fold: Fold
    windows: SessionWindows
    emit: Emit = Emit.ON_UPDATE
    send_old: bool = False


# ---- tables: their nodes hand on `Change` values


@dataclass(frozen=True, slots=True)
class TableSource(Operation):
    """A topic, or a stream by to_table, as a table."""

    store: str | None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableFilter(Operation):
    predicate: Function  # (key, value) -> bool
    negated: bool = False
    store: str | None = None
    send_old: bool = False
    versioned: bool = False
    """Of a versioned table: what never passed may have passed at another time, so its tombstones go on."""


@dataclass(frozen=True, slots=True)
class TableMapValues(Operation):
    function: Function  # (value), or (key, value) with_key
    with_key: bool = False
    store: str | None = None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableTransformValues(Operation):
    """transform_values: deleted rows are given to the transformer, too."""

    supplier: "Callable[[], ValueTransformerWithKey]"
    store: str | None = None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class TableToStream(Operation):
    """A Change becomes a record with the new value."""

    select_key: Function | None = None  # (key, value) -> key


@dataclass(frozen=True, slots=True)
class TableRepartitionMap(Operation):
    """KTable.group_by: sends the old pair and the new pair on their ways."""

    selector: Callable[..., Any]  # (key, value) -> (key, value)
    versioned: bool = False
    """Of a versioned table: records that are not the latest of their key are left out (KIP-914)."""


@dataclass(frozen=True, slots=True)
class TableAggregate(Operation):
    """KGroupedTable: subtracts the old, adds the new."""

    store: str
    kind: str  # "count", "reduce", "aggregate"
    initializer: Callable[[], Any] | None
    adder: Callable[..., Any] | None  # aggregate: (key, value, aggregate); reduce: (aggregate, value)
    subtractor: Callable[..., Any] | None
    send_old: bool = False
    native: NativeAggregate | None = None
    """An aggregate that can take back what it was given, instead of the functions."""


@dataclass(frozen=True, slots=True)
class Suppress(Operation):
    """Holds changes back: until stream time is `wait_ms` past the end of their window, or past their own time."""

    store: str
    wait_ms: int
    max_records: int | None = None
    max_bytes: int | None = None
    until_closed: bool = True
    """One final result per window. Nobody saw the row before, so its tombstone need not be sent."""
    emit_early: bool = False
    """What a full buffer does: hand on the oldest, or end the application."""


# ---- joins


@dataclass(frozen=True, slots=True)
class BufferSide(Operation):
    """KSTREAM-WINDOWED: puts a record into its side's window store and hands it on."""

    store: str


@dataclass(frozen=True, slots=True)
class StreamStreamJoin(Operation):
    """One direction of a windowed join: records of this side look into the other side's store."""

    other_store: str
    joiner: Function  # (this side's or left value, right value): always called as (left, right)
    windows: JoinWindows
    is_left_side: bool
    outer: bool
    """Whether a record of this side without a match comes out too."""
    outer_store: str | None = None
    """Records that still wait for a match; shared by both directions."""
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class StreamSelfJoin(Operation):
    """Both directions of a windowed join of a stream with itself, over one buffer (KIP-862)."""

    other_store: str
    joiner: Function  # (left value, right value), or (key, ...) with_key
    windows: JoinWindows
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class StreamTableJoin(Operation):
    table_store: str
    joiner: Function  # (stream value, table value), or (key, ...) with_key
    left: bool
    with_key: bool = False
    view: tuple[Operation, ...] = ()
    """What makes the table out of what lies in its store, nearest to the store first: TableFilter, TableMapValues and
    TableTransformValues without a store of their own (applied to every value looked up), TableTableJoin (joined with
    what the other table has under the key), and Suppress (a key that it holds back still has the value it had
    before)."""
    grace_ms: int | None = None
    """With a versioned table: how long the stream's records wait for late ones of the table (KIP-923)."""
    buffer: str | None = None
    """The store in which they wait."""


@dataclass(frozen=True, slots=True)
class StreamGlobalJoin(Operation):
    table_store: str
    key_mapper: Function  # (key, value) -> key of the table
    joiner: Function
    left: bool
    with_key: bool = False


# ---- joins of tables


@dataclass(frozen=True, slots=True)
class TableTableJoin(Operation):
    """One direction of a join of two tables: a change of this side looks the key up in the other one."""

    other_store: str
    other_view: tuple[Operation, ...]
    """As of StreamTableJoin."""
    joiner: Function  # (left value, right value), or (key, ...) with_key
    is_left_side: bool
    outer: bool
    """Whether a row of this side without a match comes out too."""
    other_outer: bool
    with_key: bool = False
    send_old: bool = False
    versioned: bool = False
    """This side is a versioned table: records that are not the latest of their key are left out (KIP-914)."""


@dataclass(frozen=True, slots=True)
class TableMerge(Operation):
    """Where both directions of a join of tables meet; the result's own store is here."""

    store: str | None = None
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKeySerdes:
    """How a join by foreign key writes down what both sides tell each other."""

    key: "Serde[Any] | None" = None
    value: "Serde[Any] | None" = None
    """Of the table that has the foreign key: of a value only the hash travels."""
    foreign_key: "Serde[Any] | None" = None

    @property
    def lacking(self) -> tuple[str, ...]:
        return tuple(name for name in ("key", "value", "foreign_key") if getattr(self, name) is None)


@dataclass(frozen=True, slots=True)
class ForeignKeyJoin(Operation):
    """One of the four nodes of a join by foreign key (KIP-213). The subscription store tells which belong together."""

    store: str
    serdes: ForeignKeySerdes


@dataclass(frozen=True, slots=True)
class SubscriptionSend(ForeignKeyJoin):
    """Tells the other table, by the foreign key, which row wants to hear from it and which no longer does."""

    foreign_key: Function  # (value), or (key, value) with_key
    with_key: bool
    left: bool
    foreign_store: str
    """Of the other table: whose keys foreign keys are."""
    versioned: bool = False
    """As of TableTableJoin."""


@dataclass(frozen=True, slots=True)
class SubscriptionReceive(ForeignKeyJoin):
    """Keeps who wants to hear of which row."""


@dataclass(frozen=True, slots=True)
class SubscriptionJoin(ForeignKeyJoin):
    """Answers a subscription with what the other table has now."""

    foreign_store: str
    foreign_view: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class ForeignTableJoin(ForeignKeyJoin):
    """A change of the other table goes to all who subscribed to it."""

    versioned: bool = False
    """As of TableTableJoin."""


@dataclass(frozen=True, slots=True)
class ResponseJoin(ForeignKeyJoin):
    """Joins an answer with the row it was asked for, unless that has changed since (KIP-775: by its hash)."""

    table_store: str
    view: tuple[Operation, ...]
    joiner: Function  # (value, foreign value), or (key, ...) with_key
    left: bool
    with_key: bool = False
