"""A topology of SQL, told to Kafka Streams step by step: whatever `sql.compile` says to the DSL is written down.

Operators, windows, joins and stores are Kafka Streams' own then. What an expression, an aggregate or a serde says of
one record is asked of ours (calls.py): those have tests of their own.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.serdes.base import Where, placed
from ottla.serdes.types import ANY, Type
from ottla.sql.catalog import PersistentQuery
from ottla.sql.compile import tell
from ottla.streams import Topology
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.options import Consumed, Grouped, Materialized
from ottla.streams.expressions import Aggregate, Expression, Inputs
from ottla.streams.record import Record
from ottla.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.topology.node_types import NodeTypes, type_of
from ottla.streams.windows import Emit, JoinWindows, SessionWindows, TimeWindows
from tests.oracle.calls import Kept, Text, key_of, state_of, text_of, value_of
from tests.oracle.cases import Case

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

Types = Mapping[str, Type]
Maker = Callable[[NodeTypes], Callable[..., Any]]

_numbers = itertools.count(1)
IN_JAVA: Final = frozenset({"key", "value"})
"""What a function of Kafka Streams' DSL is given; times, headers and offsets only processors see."""
LONG_MS: Final = 1_000_000_000_000
"""The windows of EMIT FINAL are kept for so long: in less, Kafka's store forgets some before they come out."""


class NotTold(Exception):
    """A query that Kafka Streams' DSL cannot be told."""


def recorded(
    name: str, queries: Sequence[PersistentQuery], registry: "Registry | None" = None
) -> tuple[Case, Topology]:
    """The queries as one topology of ours, and as the steps that make Kafka Streams' of it."""
    tape = Tape()
    builder = SeenBuilder(tape)
    tell(builder, queries, registry)
    made = builder.real.build()
    case = Case(name, tape.steps, lenient=True)
    case.functions = tape.functions(NodeTypes(made.graph))
    return case, made


class Tape:
    """The steps so far, and the functions that they name. Those are made when the types of all records are known."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self._makers: dict[str, Maker] = {}
        self._serdes: list[tuple[Any, str]] = []

    def add(self, op: str, source: str | None = None, **fields: Any) -> str:
        out = f"{op}-{len(self.steps)}"
        step = {"op": op, "in": source, "out": out, **fields}
        self.steps.append({name: each for name, each in step.items() if each is not None})
        return out

    def call(self, make: Maker) -> str:
        name = f"call:{next(_numbers)}"
        self._makers[name] = make
        return name

    def functions(self, types: NodeTypes) -> dict[str, Callable[..., Any]]:
        return {name: make(types) for name, make in self._makers.items()}

    def serde(self, serde: Any) -> str | None:
        if serde is None:
            return None
        if isinstance(serde, TimeWindowedSerde):
            return f"windowed:{serde.size_ms}:{self.serde(serde.inner)}"
        if isinstance(serde, SessionWindowedSerde):
            return f"session:{self.serde(serde.inner)}"
        known = next((name for there, name in self._serdes if there is serde), None)
        if known is None:
            known = self.call(lambda _: _both_ways(serde))
            self._serdes.append((serde, known))
        return known

    def serdes(self, options: Any, value: str | None = None) -> dict[str, Any]:
        found = {"key": self.serde(options.key_serde), "value": value or self.serde(options.value_serde)}
        if getattr(options, "other_value_serde", None) is not None:
            found["other"] = self.serde(options.other_value_serde)
        if getattr(options, "retention_ms", None) is not None:
            found["retention"] = options.retention_ms
        if isinstance(options, Materialized) and options.name is not None:
            found["store"] = options.name
        return found

    def of_record(self, expression: Expression, types: "Callable[[NodeTypes], Types]", kind: str = "value") -> str:
        """A function (key, value), or of all that there is of a record."""

        def make(known: NodeTypes) -> Callable[..., Any]:
            run = expression.compile(types(known))
            return lambda key, value, *more: _GIVEN[kind](run(_inputs(key, value, *more)))

        return self.call(make)


def _inputs(key: Any, value: Text, timestamp: int = -1, headers: Sequence[Any] = (), *origin: Any) -> Inputs:
    read = tuple((name, None if text is None else text.encode("latin-1")) for name, text in headers)
    return Inputs(key_of(key), value_of(value), timestamp, read, *origin)


def _told(expression: Expression) -> None:
    if _sees_more(expression):
        raise NotTold(f"it reads {', '.join(sorted(expression.leaves() - IN_JAVA))}")


def _sees_more(*expressions: Expression) -> bool:
    return any(not each.leaves() <= IN_JAVA for each in expressions)


def _both_ways(serde: Any) -> Callable[[str, str, str], Text]:
    def call(way: str, topic: str, given: str) -> Text:
        here = placed(serde, Where(topic))
        if way == "read":
            return text_of(here.deserialize(given.encode("latin-1")))
        data = here.serialize(value_of(given))
        assert data is not None
        return str(data, "latin-1")

    return call


_GIVEN: Final[dict[str, Callable[[Any], Any]]] = {
    "value": text_of,
    "predicate": lambda made: made is True,
    "list": lambda made: [text_of(each) for each in made or ()],
    "plain": lambda made: made,
}


class SeenBuilder(StreamsBuilder):
    __slots__ = ("real", "tape")

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.real = StreamsBuilder()

    def _consumed(self, said: "Consumed[Any, Any]") -> dict[str, Any]:
        found = self.tape.serdes(said)
        function = said.extractor.function
        if isinstance(function, Expression):
            types = {"key": type_of(said.key_serde), "value": type_of(said.value_serde)}
            run = function.compile(types)
            found["extractor"] = self.tape.call(
                lambda _: lambda key, value, at: _at_least(run(Inputs(key_of(key), value_of(value), at)))
            )
        return found

    def stream(self, topics: Any, consumed: Any = None, *, name: str | None = None) -> Any:
        out = self.tape.add("stream", topics=[topics], consumed=self._consumed(consumed))
        return SeenStream(self.real.stream(topics, consumed), self.tape, out)

    def table(self, topic: str, consumed: Any = None, materialized: Any = None, *, name: str | None = None) -> Any:
        kept = self.tape.serdes(materialized)
        out = self.tape.add("table", topic=topic, consumed=self._consumed(consumed), materialized=kept)
        return SeenTable(self.real.table(topic, consumed, materialized), self.tape, out)


def _at_least(time: int | None) -> int:
    return -1 if time is None else time


class SeenStream(KStream[Any, Any]):
    """A stream of which all that is done is written down."""

    __slots__ = ("out", "real", "tape")

    def __init__(self, real: KStream[Any, Any], tape: Tape, out: str) -> None:
        self.real = real
        self.tape = tape
        self.out = out
        self.key_serde, self.value_serde = real.key_serde, real.value_serde

    def _types(self, known: NodeTypes) -> Types:
        return known.result[self.real.name].named()

    def _seen(self, op: str, real: KStream[Any, Any], **fields: Any) -> "SeenStream":
        return SeenStream(real, self.tape, self.tape.add(op, self.out, **fields))

    def _f(self, expression: Any, kind: str = "value") -> str:
        return self.tape.of_record(expression, self._types, kind)

    def filter(self, predicate: Any, *, name: str | None = None) -> Any:
        return self._by_value("filter", self.real.filter(predicate), predicate, "predicate")

    def map_values(self, function: Any, *, with_key: bool = False, name: str | None = None) -> Any:
        return self._by_value("map_values", self.real.map_values(function), function, "value")

    def _by_value(self, op: str, real: KStream[Any, Any], expression: Expression, kind: str) -> "SeenStream":
        f = self._f(expression, kind)
        if not _sees_more(expression):
            return self._seen(op, real, f=f)
        return self._seen("process_values", real, processor={"kind": "record", "f": f, "filters": op == "filter"})

    def flat_map_values(self, function: Any, *, with_key: bool = False, name: str | None = None) -> Any:
        _told(function)
        return self._seen("flat_map_values", self.real.flat_map_values(function), f=self._f(function, "list"))

    def select_key(self, function: Any, *, name: str | None = None) -> Any:
        _told(function)
        return self._seen("select_key", self.real.select_key(function), f=self._f(function))

    def map(self, function: Any = None, *, key: Any = None, value: Any = None, name: str | None = None) -> Any:
        real = self.real.map(key=key, value=value)
        both = {"key_f": self._f(key), "value_f": self._f(value)}
        if _sees_more(key, value):
            return self._seen("process", real, processor={"kind": "record", **both})
        return self._seen("map", real, **both)

    def process_values(self, supplier: Any, *, stores: Any = (), name: str | None = None) -> Any:
        stamp = supplier()
        run = self.tape.call(
            lambda _: lambda key, value: _at_least(stamp._run(Record(key_of(key), value_of(value), 0, ())))
        )
        return self._seen("process_values", self.real.process_values(supplier), processor={"kind": "stamp", "f": run})

    def to(self, topic: Any, produced: Any = None, *, name: str | None = None) -> None:
        self.real.to(topic, produced)
        self.tape.add("to", self.out, topic=topic, produced=self.tape.serdes(produced))

    def group_by_key(self, grouped: Any = None, *, name: str | None = None) -> Any:
        out = self.tape.add("group_by_key", self.out, grouped=self.tape.serdes(grouped))
        return SeenGroup(self.real.group_by_key(grouped), self.tape, out, grouped)

    def group_by(self, function: Any, grouped: Any = None, *, name: str | None = None) -> Any:
        _told(function)
        out = self.tape.add("group_by", self.out, key_f=self._f(function), grouped=self.tape.serdes(grouped))
        return SeenGroup(self.real.group_by(function, grouped), self.tape, out, grouped)

    def join(self, other: Any, joiner: Any, windows: Any = None, joined: Any = None, **options: Any) -> Any:
        return self._with("join", other, joiner, windows, joined)

    def left_join(self, other: Any, joiner: Any, windows: Any = None, joined: Any = None, **options: Any) -> Any:
        return self._with("left_join", other, joiner, windows, joined)

    def outer_join(self, other: Any, joiner: Any, windows: Any = None, joined: Any = None, **options: Any) -> Any:
        return self._with("outer_join", other, joiner, windows, joined)

    def _with(self, op: str, other: Any, joiner: Any, windows: JoinWindows | None, joined: Any) -> "SeenStream":
        real = getattr(self.real, op)(other.real, joiner, windows, joined)
        fields: dict[str, Any] = {"other": other.out, "f": _joiner(self.tape, joiner, self.real, other.real)}
        if windows is None:
            return self._seen(op, real, joined=self.tape.serdes(joined), **fields)
        fields |= {"before": windows.before_ms, "after": windows.after_ms, "grace": windows.grace_ms}
        return self._seen(op, real, eager=windows.is_eager, stream_joined=self.tape.serdes(joined), **fields)


def _joiner(tape: Tape, joiner: Expression, left: Any, right: Any) -> str:
    def make(known: NodeTypes) -> Callable[[Any, Text, Text], Text]:
        types = {"left": known.result[left.name].value, "right": known.result[right.name].value}
        run = joiner.compile(types)
        return lambda _, this, that: text_of(run(Inputs(left=value_of(this), right=value_of(that))))

    return tape.call(make)


class SeenGroup:
    """A grouped stream, with windows or without."""

    def __init__(
        self,
        real: Any,
        tape: Tape,
        out: str,
        grouped: "Grouped[Any, Any]",
        windows: "SessionWindows | Any" = None,
        emit: Emit = Emit.ON_UPDATE,
    ) -> None:
        self.real = real
        self.tape = tape
        self.out = out
        self._grouped = grouped
        self._windows = windows
        self._emit = emit

    def windowed_by(self, windows: Any) -> "SeenGroup":
        if isinstance(windows, SessionWindows):
            fields: dict[str, Any] = {"type": "session", "gap": windows.gap_ms, "grace": windows.grace_ms}
        else:
            assert isinstance(windows, TimeWindows)
            fields = {"type": "time", "size": windows.size_ms, "advance": windows.advance_ms, "grace": windows.grace_ms}
        out = self.tape.add("windowed_by", self.out, **fields)
        return SeenGroup(self.real.windowed_by(windows), self.tape, out, self._grouped, windows)

    def emit_strategy(self, emit: Emit) -> "SeenGroup":
        self.tape.steps[-1]["emit"] = "close" if emit.waits else "update"
        return SeenGroup(self.real.emit_strategy(emit), self.tape, self.out, self._grouped, self._windows, emit)

    def aggregate(self, aggregate: Aggregate, *, materialized: "Materialized[Any, Any]") -> "SeenTable":
        if self._emit.waits:
            materialized = replace(materialized, retention_ms=LONG_MS)
        real = self.real.aggregate(aggregate, materialized=materialized)
        functions = _folded(self.tape, aggregate, self._grouped, undo=False)
        if not isinstance(self._windows, SessionWindows):
            functions.pop("merger")
        kept = self.tape.serdes(materialized, "latin")
        return SeenTable(real, self.tape, self.tape.add("aggregate", self.out, materialized=kept, **functions))


def _folded(tape: Tape, aggregate: Aggregate, grouped: "Grouped[Any, Any]", *, undo: bool) -> dict[str, str]:
    types = {"key": type_of(grouped.key_serde) if grouped.key_serde else ANY, "value": type_of(grouped.value_serde)}
    fold = aggregate.bind(types).fold(undo=undo)

    def kept(state: Any) -> Text:
        return text_of(Kept(state, fold.result(state)))

    def added(key: Any, value: Text, so_far: Text) -> Text:
        return kept(fold.add(state_of(so_far), Inputs(key_of(key), value_of(value))))

    def taken_back(key: Any, value: Text, so_far: Text) -> Text:
        return kept(fold.undo(state_of(so_far), Inputs(key_of(key), value_of(value))))

    def merged(_: Any, left: Text, right: Text) -> Text:
        return kept(fold.merge(state_of(left), state_of(right)))

    found = {"initial": tape.call(lambda _: lambda: kept(fold.initial())), "f": tape.call(lambda _: added)}
    return found | (
        {"subtractor": tape.call(lambda _: taken_back)} if undo else {"merger": tape.call(lambda _: merged)}
    )


class SeenTable(KTable[Any, Any]):
    """A table of which all that is done is written down."""

    __slots__ = ("out", "real", "tape")

    def __init__(self, real: KTable[Any, Any], tape: Tape, out: str) -> None:
        self.real = real
        self.tape = tape
        self.out = out
        self.key_serde = real.key_serde

    @property
    def value_serde(self) -> Any:
        return self.real.value_serde

    @value_serde.setter
    def value_serde(self, serde: Any) -> None:
        if serde is not self.real.value_serde:
            self.real.value_serde = serde
            self.out = self.tape.add("serded", self.out, value=self.tape.serde(serde))

    def _types(self, known: NodeTypes) -> Types:
        return known.result[self.real.name].named()

    def _seen(self, op: str, real: KTable[Any, Any], **fields: Any) -> "SeenTable":
        return SeenTable(real, self.tape, self.tape.add(op, self.out, **fields))

    def _f(self, expression: Any, kind: str = "value") -> str:
        _told(expression)
        return self.tape.of_record(expression, self._types, kind)

    def filter(self, predicate: Any, materialized: Any = None, *, name: str | None = None) -> Any:
        return self._seen("filter", self.real.filter(predicate), f=self._f(predicate, "predicate"))

    def map_values(
        self, function: Any, materialized: Any = None, *, with_key: bool = False, name: str | None = None
    ) -> Any:
        return self._seen("map_values", self.real.map_values(function), f=self._f(function))

    def to_stream(self, select_key: Any = None, *, name: str | None = None) -> Any:
        return SeenStream(self.real.to_stream(), self.tape, self.tape.add("to_stream", self.out))

    def group_by(self, function: Any, grouped: Any = None, *, name: str | None = None) -> Any:
        def half(place: int) -> str:
            def call(key: Any, value: Text) -> Text:
                return text_of(function(key_of(key), value_of(value))[place])

            return self.tape.call(lambda _: call)

        said = self.tape.serdes(grouped)
        out = self.tape.add("group_by", self.out, key_f=half(0), value_f=half(1), grouped=said)
        return SeenGroupedTable(self.real.group_by(function, grouped), self.tape, out, grouped)

    def join(self, other: Any, joiner: Any, materialized: Any = None, **options: Any) -> Any:
        return self._with("join", other, joiner, materialized, options)

    def left_join(self, other: Any, joiner: Any, materialized: Any = None, **options: Any) -> Any:
        return self._with("left_join", other, joiner, materialized, options)

    def outer_join(self, other: Any, joiner: Any, materialized: Any = None, **options: Any) -> Any:
        return self._with("outer_join", other, joiner, materialized, options)

    def _with(self, op: str, other: Any, joiner: Any, materialized: Any, options: dict[str, Any]) -> "SeenTable":
        real = getattr(self.real, op)(other.real, joiner, materialized, **options)
        fields: dict[str, Any] = {"other": other.out, "f": _joiner(self.tape, joiner, self.real, other.real)}
        if materialized is not None:
            fields["materialized"] = self.tape.serdes(materialized)
        if "foreign_key" in options:
            foreign = options["foreign_key"]
            fields["key_f"] = self._f(foreign)
        return self._seen(op, real, **fields)


class SeenGroupedTable:
    def __init__(self, real: Any, tape: Tape, out: str, grouped: "Grouped[Any, Any]") -> None:
        self.real = real
        self.tape = tape
        self.out = out
        self._grouped = grouped

    def aggregate(self, aggregate: Aggregate, *, materialized: "Materialized[Any, Any]") -> SeenTable:
        real = self.real.aggregate(aggregate, materialized=materialized)
        functions = _folded(self.tape, aggregate, self._grouped, undo=True)
        kept = self.tape.serdes(materialized, "latin")
        return SeenTable(real, self.tape, self.tape.add("aggregate", self.out, materialized=kept, **functions))
