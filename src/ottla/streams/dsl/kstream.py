"""Streams: a record is an event of its own.

Functions are column expressions (they run inside Spark, without Python) or Python callables, which are given plain
values: a predicate (key, value), a value mapper (value), or (key, value) with `with_key=True`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, overload

from ottla.streams.dsl.draft import Draft, step_of
from ottla.streams.dsl.function_checks import checked, checked_callable, of_value
from ottla.streams.dsl.options import (
    Branched,
    Grouped,
    Joined,
    Materialized,
    Printed,
    Produced,
    Repartitioned,
    StreamJoined,
    checked_name,
    renamed,
)
from ottla.streams.dsl.steps import MergeStep, OperationStep, RepartitionStep, SinkStep, Step
from ottla.streams.dsl.stream_join import StreamSide, add_stream_join
from ottla.streams.dsl.table_logic import SourceTable
from ottla.streams.dsl.table_stores import key_value_store, named_store
from ottla.streams.expressions import Expression
from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import SinkNode
from ottla.streams.topology.operations import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Function,
    MapPairs,
    MapValues,
    PassThrough,
    Peek,
    SelectKey,
    StreamGlobalJoin,
    StreamTableJoin,
    UserProcessor,
)
from ottla.streams.topology.processor import Processor
from ottla.streams.topology.stores import StoreSpec
from ottla.streams.topology.topology import used_stores, user_processor
from ottla.streams.windows import JoinWindows

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.dsl.grouped import KGroupedStream
    from ottla.streams.dsl.ktable import GlobalKTable, KTable

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

SOURCE: Final = "KSTREAM-SOURCE-"


class KStream(Generic[K, V]):
    """A stream of records. Every method gives a new stream and leaves this one usable."""

    __slots__ = (
        "_draft",
        "_join_repartition",
        "_needs_repartition",
        "_sources",
        "_step",
        "key_serde",
        "name",
        "value_serde",
    )

    def __init__(
        self,
        draft: Draft,
        step: Step,
        sources: Sequence[str],
        *,
        key_serde: "Serde[K] | None" = None,
        value_serde: "Serde[V] | None" = None,
        needs_repartition: bool = False,
    ) -> None:
        self.name = step.name
        self.key_serde = key_serde
        self.value_serde = value_serde
        self._draft = draft
        self._step = step
        self._sources = tuple(sources)
        self._needs_repartition = needs_repartition
        self._join_repartition: RepartitionStep | None = None

    def _next(
        self,
        step: Step,
        *,
        key_serde: "Serde[Any] | None" = None,
        value_serde: "Serde[Any] | None" = None,
        needs_repartition: bool | None = None,
    ) -> "KStream[Any, Any]":
        needed = self._needs_repartition if needs_repartition is None else needs_repartition
        return KStream(
            self._draft,
            step,
            self._sources,
            key_serde=key_serde,
            value_serde=value_serde,
            needs_repartition=needed,
        )

    # ---- without state

    def filter(self, predicate: Expression | Callable[[K, V], bool], *, name: str | None = None) -> "KStream[K, V]":
        """Keeps the records for which the predicate holds."""
        return self._filtered(Filter(checked(predicate, "the predicate of filter", "key, value")), name)

    def filter_not(self, predicate: Expression | Callable[[K, V], bool], *, name: str | None = None) -> "KStream[K, V]":
        """Drops the records for which the predicate holds."""
        return self._filtered(
            Filter(checked(predicate, "the predicate of filter_not", "key, value"), negated=True), name
        )

    def _filtered(self, operation: Filter | Peek, name: str | None) -> "KStream[K, V]":
        prefix = "KSTREAM-FILTER-" if isinstance(operation, Filter) else "KSTREAM-PEEK-"
        step = step_of(self._draft, name, prefix, operation, self._step)
        return self._next(step, key_serde=self.key_serde, value_serde=self.value_serde)

    @overload
    def select_key(self, function: Expression, *, name: str | None = None) -> "KStream[Any, V]": ...
    @overload
    def select_key(self, function: Callable[[K, V], K2], *, name: str | None = None) -> "KStream[K2, V]": ...
    def select_key(self, function: Expression | Callable[[K, V], Any], *, name: str | None = None) -> "KStream[Any, V]":
        """Gives each record a new key. Grouping or joining behind it goes over a repartition topic."""
        operation = SelectKey(checked(function, "the function of select_key", "key, value"))
        step = step_of(self._draft, name, "KSTREAM-KEY-SELECT-", operation, self._step)
        return self._next(step, value_serde=self.value_serde, needs_repartition=True)

    @overload
    def map(self, function: Callable[[K, V], tuple[K2, V2]], *, name: str | None = None) -> "KStream[K2, V2]": ...
    @overload
    def map(
        self, *, key: Expression | None = None, value: Expression | None = None, name: str | None = None
    ) -> "KStream[Any, Any]": ...
    def map(
        self,
        function: Callable[[K, V], tuple[Any, Any]] | None = None,
        *,
        key: Expression | None = None,
        value: Expression | None = None,
        name: str | None = None,
    ) -> "KStream[Any, Any]":
        """New key and new value: a function that gives the pair, or one expression for each (one left out stays).

        If only the value changes, use map_values: behind map a repartition is needed.
        """
        if isinstance(function, Expression):
            raise TopologyError("map takes expressions by name: map(key=..., value=...)")
        if (function is None) == (key is None and value is None):
            raise TopologyError("map takes a function (key, value) -> (key, value), or expressions: key=..., value=...")
        if function is not None:
            checked_callable(function, "the function of map", "key, value")
        step = step_of(self._draft, name, "KSTREAM-MAP-", MapPairs(function, key, value), self._step)
        return self._next(step, needs_repartition=True)

    @overload
    def map_values(self, function: Expression, *, name: str | None = None) -> "KStream[K, Any]": ...
    @overload
    def map_values(
        self, function: Callable[[V], V2], *, with_key: Literal[False] = False, name: str | None = None
    ) -> "KStream[K, V2]": ...
    @overload
    def map_values(
        self, function: Callable[[K, V], V2], *, with_key: Literal[True], name: str | None = None
    ) -> "KStream[K, V2]": ...
    def map_values(
        self, function: Expression | Callable[..., Any], *, with_key: bool = False, name: str | None = None
    ) -> "KStream[K, Any]":
        """A new value for each record; the key stays, so no repartition is needed."""
        operation = MapValues(checked(function, "the function of map_values", of_value(with_key)), with_key)
        step = step_of(self._draft, name, "KSTREAM-MAPVALUES-", operation, self._step)
        return self._next(step, key_serde=self.key_serde)

    def flat_map(
        self, function: Callable[[K, V], Iterable[tuple[K2, V2]]], *, name: str | None = None
    ) -> "KStream[K2, V2]":
        """Any number of (key, value) pairs for each record."""
        operation = FlatMap(checked_callable(function, "the function of flat_map", "key, value"))
        step = step_of(self._draft, name, "KSTREAM-FLATMAP-", operation, self._step)
        return self._next(step, needs_repartition=True)

    @overload
    def flat_map_values(self, function: Expression, *, name: str | None = None) -> "KStream[K, Any]": ...
    @overload
    def flat_map_values(
        self, function: Callable[[V], Iterable[V2]], *, with_key: Literal[False] = False, name: str | None = None
    ) -> "KStream[K, V2]": ...
    @overload
    def flat_map_values(
        self, function: Callable[[K, V], Iterable[V2]], *, with_key: Literal[True], name: str | None = None
    ) -> "KStream[K, V2]": ...
    def flat_map_values(
        self, function: Expression | Callable[..., Iterable[Any]], *, with_key: bool = False, name: str | None = None
    ) -> "KStream[K, Any]":
        """Any number of values for each record, all under its key. An expression has to give an array."""
        operation = FlatMapValues(checked(function, "the function of flat_map_values", of_value(with_key)), with_key)
        step = step_of(self._draft, name, "KSTREAM-FLATMAPVALUES-", operation, self._step)
        return self._next(step, key_serde=self.key_serde)

    def peek(self, function: Callable[[K, V], Any], *, name: str | None = None) -> "KStream[K, V]":
        """Calls the function and hands the record on. A batch may run again after a crash, and the function with it."""
        return self._filtered(Peek(checked_callable(function, "the function of peek", "key, value")), name)

    def foreach(self, function: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """Calls the function and ends here. Not exactly once: see peek."""
        operation = Peek(checked_callable(function, "the function of foreach", "key, value"), last=True)
        step_of(self._draft, name, "KSTREAM-FOREACH-", operation, self._step)

    def print(self, printed: "Printed[K, V] | None" = None, *, name: str | None = None) -> None:
        """Writes each record as a line, to the standard output or a file, and ends here. On Spark each worker writes:
        the lines of a cluster are in the logs of its executors. Not exactly once: see peek."""
        said = renamed(printed or Printed(), name)
        step_name = self._draft.named(said.name, "KSTREAM-PRINTER-")
        operation = Peek(said.printing(self.name), last=True)
        self._draft.add(OperationStep(step_name, lambda: operation), self._step)

    def merge(self, other: "KStream[K, V]", *, name: str | None = None) -> "KStream[K, V]":
        """Records of both, in no order between the two."""
        if not isinstance(other, KStream) or other._draft is not self._draft:
            raise TopologyError("merge takes another stream of the same builder")
        step = MergeStep(self._draft.named(name, "KSTREAM-MERGE-"))
        self._draft.add(step, self._step, other._step)
        return KStream(
            self._draft,
            step,
            tuple(dict.fromkeys((*self._sources, *other._sources))),
            key_serde=self.key_serde if self.key_serde == other.key_serde else None,
            value_serde=self.value_serde if self.value_serde == other.value_serde else None,
            needs_repartition=self._needs_repartition or other._needs_repartition,
        )

    def split(self, *, name: str | None = None) -> "BranchedKStream[K, V]":
        """Begins a split: `.branch(predicate, Branched("a")).default_branch()`. The first predicate that holds wins."""
        return BranchedKStream(self, self._draft.named(name, "KSTREAM-BRANCH-"))

    # ---- topics

    def repartition(
        self, repartitioned: "Repartitioned[K, V] | None" = None, *, name: str | None = None
    ) -> "KStream[K, V]":
        """Sends the records over an internal topic, partitioned anew by key."""
        said = renamed(repartitioned or Repartitioned(), name)
        key_serde = said.key_serde or self.key_serde
        value_serde = said.value_serde or self.value_serde
        names = self._draft.repartition_names(said.name or self._draft.new_name("KSTREAM-REPARTITION-"))
        step = RepartitionStep(
            names,
            key_serde,
            value_serde,
            partitions=said.partitions,
            partitioner=said.partitioner,
            is_mergeable=False,
        )
        self._draft.add(step, self._step)
        return KStream(self._draft, step, (names.source,), key_serde=key_serde, value_serde=value_serde)

    def to(self, topic: str | Function, produced: "Produced[K, V] | None" = None, *, name: str | None = None) -> None:
        """Writes the records to a topic, or to the one that a function (key, value, record metadata) names.

        The topic has to exist. Timestamps and headers go with the records.
        """
        said = renamed(produced or Produced(), name)
        if not isinstance(topic, str):
            checked(topic, "the topic of to", "key, value, metadata")
        sink = SinkNode(
            self._draft.named(said.name, "KSTREAM-SINK-"),
            topic if isinstance(topic, str) else None,
            (),
            None if isinstance(topic, str) else topic,
            said.key_serde or self.key_serde,
            said.value_serde or self.value_serde,
            said.partitioner,
        )
        self._draft.add(SinkStep(sink), self._step)

    def to_table(
        self, materialized: "Materialized[K, V] | str | None" = None, *, name: str | None = None
    ) -> "KTable[K, V]":
        """The last value per key. A record with value None deletes; one without key is dropped."""
        from ottla.streams.dsl.ktable import KTable  # noqa: PLC0415  tables and streams make each other

        step_name = self._draft.named(name, "KSTREAM-TOTABLE-")
        said, kept = named_store(self._draft, materialized, "KSTREAM-TOTABLE-")
        key_serde = said.key_serde or self.key_serde
        value_serde = said.value_serde or self.value_serde
        parent, sources = self._step, self._sources
        if self._needs_repartition:
            names = self._draft.repartition_names(step_name)
            parent, sources = RepartitionStep(names, key_serde, value_serde), (names.source,)
            self._draft.add(parent, self._step)
        table = SourceTable(key_value_store(said, key_serde, value_serde), kept=kept)
        step = OperationStep(step_name, table.operation, own_stores=table.stores, is_versioned=table.is_versioned)
        self._draft.add(step, parent)
        return KTable(
            self._draft,
            step,
            sources,
            table,
            key_serde=key_serde,
            value_serde=value_serde,
            store_name=said.name if kept else None,
        )

    # ---- grouping

    def group_by_key(
        self, grouped: "Grouped[K, V] | None" = None, *, name: str | None = None
    ) -> "KGroupedStream[K, V]":
        """Groups by the key the records have; goes over a repartition topic only if the key was changed before."""
        from ottla.streams.dsl.grouped import KGroupedStream  # noqa: PLC0415

        said = renamed(grouped or Grouped(), name)
        return KGroupedStream(
            self._draft,
            self._step,
            self._sources,
            key_serde=said.key_serde or self.key_serde,
            value_serde=said.value_serde or self.value_serde,
            repartition_name=said.name,
            needs_repartition=self._needs_repartition,
        )

    @overload
    def group_by(
        self, function: Expression, grouped: "Grouped[Any, Any] | None" = None, *, name: str | None = None
    ) -> "KGroupedStream[Any, V]": ...
    @overload
    def group_by(
        self, function: Callable[[K, V], K2], grouped: "Grouped[Any, Any] | None" = None, *, name: str | None = None
    ) -> "KGroupedStream[K2, V]": ...
    def group_by(
        self,
        function: Expression | Callable[[K, V], Any],
        grouped: "Grouped[Any, V] | None" = None,
        *,
        name: str | None = None,
    ) -> "KGroupedStream[Any, V]":
        """Groups by a new key, over a repartition topic. Records that get no key are dropped."""
        from ottla.streams.dsl.grouped import KGroupedStream  # noqa: PLC0415

        said = renamed(grouped or Grouped(), name)
        operation = SelectKey(checked(function, "the function of group_by", "key, value"))
        step = step_of(self._draft, said.name, "KSTREAM-KEY-SELECT-", operation, self._step)
        return KGroupedStream(
            self._draft,
            step,
            self._sources,
            key_serde=said.key_serde,
            value_serde=said.value_serde or self.value_serde,
            repartition_name=said.name,
            needs_repartition=True,
        )

    # ---- joins

    @overload
    def join(
        self,
        other: "KStream[K, Any]",
        joiner: Function,
        windows: JoinWindows,
        joined: "StreamJoined[K, V, Any] | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]": ...
    @overload
    def join(
        self,
        other: "KTable[K, Any]",
        joiner: Function,
        windows: None = None,
        joined: "Joined[K, V, Any] | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]": ...
    @overload
    def join(
        self,
        other: "GlobalKTable[Any, Any]",
        joiner: Function,
        *,
        key_mapper: Function,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]": ...
    def join(
        self,
        other: "KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any]",
        joiner: Function,
        windows: JoinWindows | None = None,
        joined: "StreamJoined[K, V, Any] | Joined[K, V, Any] | None" = None,
        *,
        key_mapper: Function | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]":
        """Records with a partner of the same key. The joiner is given (this value, other value), or the key first.

        With a stream: all pairs whose times are within `windows`. With a table: each record once, with the value the
        table has at that moment. With a global table: by the key that `key_mapper` (key, value) gives.
        """
        return self._joined(other, joiner, windows, joined, key_mapper, with_key, name, "join")

    @overload
    def left_join(
        self,
        other: "KStream[K, Any]",
        joiner: Function,
        windows: JoinWindows,
        joined: "StreamJoined[K, V, Any] | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]": ...
    @overload
    def left_join(
        self,
        other: "KTable[K, Any]",
        joiner: Function,
        windows: None = None,
        joined: "Joined[K, V, Any] | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]": ...
    @overload
    def left_join(
        self,
        other: "GlobalKTable[Any, Any]",
        joiner: Function,
        *,
        key_mapper: Function,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]": ...
    def left_join(
        self,
        other: "KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any]",
        joiner: Function,
        windows: JoinWindows | None = None,
        joined: "StreamJoined[K, V, Any] | Joined[K, V, Any] | None" = None,
        *,
        key_mapper: Function | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]":
        """As join, but a record without a partner comes out too, joined with None.

        With a stream it comes out once its window and grace are over, so only when other records move time on.
        """
        return self._joined(other, joiner, windows, joined, key_mapper, with_key, name, "left_join")

    def outer_join(
        self,
        other: "KStream[K, Any]",
        joiner: Function,
        windows: JoinWindows,
        joined: "StreamJoined[K, V, Any] | None" = None,
        *,
        with_key: bool = False,
        name: str | None = None,
    ) -> "KStream[K, Any]":
        """As left_join with a stream, and records of the other side without a partner come out as well."""
        return self._joined(other, joiner, windows, joined, None, with_key, name, "outer_join")

    def _joined(
        self,
        other: Any,
        joiner: Function,
        windows: JoinWindows | None,
        joined: "StreamJoined[Any, Any, Any] | Joined[Any, Any, Any] | None",
        key_mapper: Function | None,
        with_key: bool,
        name: str | None,
        kind: str,
    ) -> "KStream[Any, Any]":
        from ottla.streams.dsl.ktable import GlobalKTable, KTable  # noqa: PLC0415

        checked(joiner, f"the joiner of {kind}", "key, left, right" if with_key else "left, right")
        if isinstance(other, KStream | KTable) and other._draft is not self._draft:
            raise TopologyError(f"{kind} with {other.name} of another builder: both sides belong to one topology")
        if isinstance(other, KStream):
            return self._join_stream(other, joiner, windows, joined, with_key, name, kind)
        if windows is not None:
            raise TopologyError(f"{kind} with a table has no windows: only a join of two streams has")
        if isinstance(other, KTable) and kind != "outer_join":
            if joined is not None and not isinstance(joined, Joined):
                raise TopologyError(f"{kind} with a table takes Joined, not {type(joined).__name__}")
            return self._join_table(other, joiner, joined or Joined(), with_key, name, kind == "left_join")
        if isinstance(other, GlobalKTable) and kind != "outer_join":
            return self._join_global(other, joiner, key_mapper, with_key, name, kind == "left_join")
        raise TopologyError(f"{kind} with {type(other).__name__}: there is no such join")

    def _join_stream(
        self,
        other: "KStream[Any, Any]",
        joiner: Function,
        windows: JoinWindows | None,
        joined: Any,
        with_key: bool,
        name: str | None,
        kind: str,
    ) -> "KStream[Any, Any]":
        if not isinstance(windows, JoinWindows):
            raise TopologyError(
                f"{kind} of two streams needs JoinWindows, for example JoinWindows.of(5000, grace_ms=0)"
            )
        if joined is not None and not isinstance(joined, StreamJoined):
            raise TopologyError(f"{kind} of two streams takes StreamJoined, not {type(joined).__name__}")
        said: StreamJoined[Any, Any, Any] = joined or StreamJoined()
        given = checked_name(name) or said.name
        this = self._ready_to_join(f"{given}-left" if given else None, said.key_serde, said.value_serde)
        that = other._ready_to_join(f"{given}-right" if given else None, said.key_serde, said.other_value_serde)
        sources = self._draft.copartition(this._sources, that._sources)
        step = add_stream_join(
            self._draft,
            (StreamSide(this._step, this.value_serde), StreamSide(that._step, that.value_serde)),
            said,
            given,
            (joiner, with_key, windows),
            left_outer=kind != "join",
            right_outer=kind == "outer_join",
            key_serde=said.key_serde or this.key_serde or that.key_serde,
        )
        key_serde = said.key_serde or this.key_serde or that.key_serde
        return KStream(self._draft, step, sources, key_serde=key_serde)

    def _ready_to_join(
        self, repartition_name: str | None, key_serde: "Serde[Any] | None", value_serde: "Serde[Any] | None"
    ) -> "KStream[Any, Any]":
        """Itself, or behind a repartition topic if its key was changed. Without a name one topic serves all joins."""
        if not self._needs_repartition:
            return self
        key_serde = key_serde or self.key_serde
        value_serde = value_serde or self.value_serde
        names = self._draft.repartition_names(repartition_name or self.name)
        if self._join_repartition is None or repartition_name not in (None, self.name):
            self._join_repartition = RepartitionStep(names, key_serde, value_serde)
            self._draft.add(self._join_repartition, self._step)
        step = self._join_repartition
        return KStream(self._draft, step, (step.names.source,), key_serde=key_serde, value_serde=value_serde)

    def _join_table(
        self,
        table: "KTable[Any, Any]",
        joiner: Function,
        said: "Joined[Any, Any, Any]",
        with_key: bool,
        name: str | None,
        left: bool,
    ) -> "KStream[Any, Any]":
        given = checked_name(name) or said.name
        stream = self._ready_to_join(given, said.key_serde, said.value_serde)
        sources = self._draft.copartition(stream._sources, table.sources)
        step_name = self._draft.named(given, "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-")
        view = table.view()
        buffer = None
        if said.grace_ms is not None:
            buffer = table.join_buffer(
                step_name, said, said.key_serde or stream.key_serde, said.value_serde or stream.value_serde
            )
        waits_in = None if buffer is None else buffer.name
        step = OperationStep(
            step_name,
            lambda: StreamTableJoin(
                view.store, joiner, left, with_key, view.operations(), grace_ms=said.grace_ms, buffer=waits_in
            ),
            own_stores=lambda: () if buffer is None else (buffer,),
            connected=view.stores,
            keeps_null_keys=left,
        )
        self._draft.add(step, stream._step)
        return KStream(self._draft, step, sources, key_serde=said.key_serde or stream.key_serde)

    def _join_global(
        self,
        table: "GlobalKTable[Any, Any]",
        joiner: Function,
        key_mapper: Function | None,
        with_key: bool,
        name: str | None,
        left: bool,
    ) -> "KStream[Any, Any]":
        mapper = checked(key_mapper, "the key_mapper of a join with a global table", "key, value")
        operation = StreamGlobalJoin(table.store_name, mapper, joiner, left, with_key)
        # Kafka numbers both kinds under this name.
        step = OperationStep(self._draft.named(name, "KSTREAM-LEFTJOIN-"), lambda: operation, keeps_null_keys=left)
        self._draft.add(step, self._step)
        return self._next(step, key_serde=self.key_serde)

    # ---- the Processor API

    def process(
        self, supplier: Callable[[], Processor], *, stores: Sequence[StoreSpec | str] = (), name: str | None = None
    ) -> "KStream[Any, Any]":
        """What a processor makes of the records. `supplier` makes one per task; `stores` are names, or specs to add,
        beside those that the supplier names by a `stores()` of its own (see `Topology.add_processor`).

        The key may change, so grouping or joining behind it goes over a repartition topic. If it does not change, use
        process_values.
        """
        step = self._processed(supplier, stores, name, "KSTREAM-PROCESSOR-", fixed_key=False)
        return self._next(step, needs_repartition=True)

    def process_values(
        self, supplier: Callable[[], Processor], *, stores: Sequence[StoreSpec | str] = (), name: str | None = None
    ) -> "KStream[K, Any]":
        """As process, for one that forwards records under the key they came with: no repartition is needed after."""
        step = self._processed(supplier, stores, name, "KSTREAM-PROCESSVALUES-", fixed_key=True)
        return self._next(step, key_serde=self.key_serde)

    def _processed(
        self,
        supplier: Callable[[], Processor],
        stores: Sequence[StoreSpec | str],
        name: str | None,
        prefix: str,
        *,
        fixed_key: bool,
    ) -> OperationStep:
        step_name = checked_name(name) or self._draft.new_name(prefix)  # the one place where a name saves a number
        operation = UserProcessor(user_processor(step_name, supplier).supplier, fixed_key)
        used = used_stores(supplier, stores)
        own = tuple(store for store in used if isinstance(store, StoreSpec))
        connected = tuple(store for store in used if isinstance(store, str))
        step = OperationStep(step_name, lambda: operation, own_stores=lambda: own, connected=connected)
        self._draft.add(step, self._step)
        return step


class BranchedKStream(Generic[K, V]):
    """A split in progress."""

    __slots__ = ("_branches", "_children", "_default", "_name", "_predicates", "_source", "_step")

    def __init__(self, source: KStream[K, V], name: str) -> None:
        self._source = source
        self._name = name
        self._predicates: list[Function] = []
        self._children: list[str] = []
        self._default: str | None = None
        self._branches: dict[str, KStream[Any, Any]] = {}
        self._step = OperationStep(name, self._operation)
        source._draft.add(self._step, source._step)

    def _operation(self) -> Branch:
        return Branch(tuple(self._predicates), tuple(self._children), self._default)

    def branch(
        self, predicate: Expression | Callable[[K, V], bool], branched: "Branched[K, V] | None" = None
    ) -> "BranchedKStream[K, V]":
        """The records for which no predicate before and this one holds."""
        self._predicates.append(checked(predicate, "the predicate of branch", "key, value"))
        self._children.append(self._add(branched or Branched(), len(self._predicates)))
        return self

    def default_branch(self, branched: "Branched[K, V] | None" = None) -> dict[str, KStream[Any, Any]]:
        """The rest; ends the split. All branches by name: the split's name, then the branch's name or its number."""
        if self._default is not None:
            raise TopologyError(f"{self._name} has a default branch already")
        self._default = self._add(branched or Branched(), 0)
        return self._branches

    def no_default_branch(self) -> dict[str, KStream[Any, Any]]:
        """Ends the split; the rest is dropped."""
        return self._branches

    def _add(self, branched: Branched[K, V], number: int) -> str:
        source = self._source
        name = f"{self._name}{branched.name if branched.name is not None else number}"
        source._draft.new_name(name)  # Kafka burns a number here
        step = OperationStep(name, PassThrough)
        source._draft.add(step, self._step)
        stream = source._next(step, key_serde=source.key_serde, value_serde=source.value_serde)
        result = stream if branched.chain is None else branched.chain(stream)
        if result is not None:
            self._branches[name] = result
        return name
