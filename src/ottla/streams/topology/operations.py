"""What each node of a topology does, as data.

The test driver and Spark's tasks make processors of it; the planner makes native Spark operators of those it can. A
`Function` is a column expression (fast on Spark) or a Python callable; what a callable is given is said at each field.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.streams.expressions import Aggregate as NativeAggregate
from ottla.streams.expressions import Expression
from ottla.streams.topology.processor import Processor
from ottla.streams.windows import Emit, JoinWindows, SessionWindows, TimeWindows

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


@dataclass(frozen=True, slots=True)
class TableMapValues(Operation):
    function: Function  # (value), or (key, value) with_key
    with_key: bool = False
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


@dataclass(frozen=True, slots=True)
class TableAggregate(Operation):
    """KGroupedTable: subtracts the old, adds the new."""

    store: str
    kind: str  # "count", "reduce", "aggregate"
    initializer: Callable[[], Any] | None
    adder: Callable[..., Any]  # aggregate: (key, value, aggregate); reduce: (aggregate, value)
    subtractor: Callable[..., Any]
    send_old: bool = False


@dataclass(frozen=True, slots=True)
class Suppress(Operation):
    """suppress until the window closes: one final result per window."""

    store: str
    grace_ms: int
    max_records: int | None = None
    max_bytes: int | None = None


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
class StreamTableJoin(Operation):
    table_store: str
    joiner: Function  # (stream value, table value), or (key, ...) with_key
    left: bool
    with_key: bool = False
    view: tuple[Operation, ...] = ()
    """What makes the table out of what lies in its store, nearest to the store first: TableFilter and TableMapValues
    without a store of their own (applied to every value looked up), and Suppress (a key that it holds back still has
    the value it had before)."""


@dataclass(frozen=True, slots=True)
class StreamGlobalJoin(Operation):
    table_store: str
    key_mapper: Function  # (key, value) -> key of the table
    joiner: Function
    left: bool
    with_key: bool = False
