"""A typed query as a topology: told to the DSL's builder, step by step.

Between topics the value is a struct of columns and the key is a bare value (one column), a struct (several) or a window
of one of these. What is joined lies in the value as ALIAS_COLUMN. Internal topics and stores hold JSON with a schema:
Spark reads and writes them itself; keys of a repartition topic lie as in the topic they have to meet.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.serdes.base import Serde
from ottla.serdes.json import JsonSerde
from ottla.serdes.types import Type
from ottla.sql.analysis.scope import key_type, record_types
from ottla.sql.analysis.typed import Exploded, Fields, Grouping, Joining, Read, Side, TypedQuery
from ottla.sql.functions.coercions import conversion
from ottla.sql.functions.declare import Argument
from ottla.sql.model import DataSource, EventTime, WindowedKey
from ottla.sql.records import Formats, event_column, event_ms, windowed_serde
from ottla.streams import expressions as e
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import KTable
from ottla.streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced, StreamJoined
from ottla.streams.expressions import Expression, Inputs
from ottla.streams.record import Record
from ottla.streams.topology.graph import InvalidTimestamp, TimestampExtractor
from ottla.streams.topology.processor import FixedKeyProcessor, ProcessorContext
from ottla.streams.topology.topology import Topology
from ottla.streams.windows import Emit, TimeWindows

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry
    from ottla.sql.catalog import PersistentQuery

Rows = KStream[Any, Any] | KTable[Any, Any]


@dataclass(frozen=True, slots=True)
class Flow:
    """The rows so far, and what their keys and values are."""

    rows: Rows
    types: dict[str, Type]
    key_serde: Serde[Any]

    @property
    def value_serde(self) -> Serde[Any]:
        return JsonSerde(self.types["value"])

    def with_rows(self, rows: Rows) -> "Flow":
        return Flow(rows, self.types, self.key_serde)


@dataclass(frozen=True, slots=True)
class Building:
    builder: StreamsBuilder
    formats: Formats
    kept: frozenset[str] = frozenset()
    """Tables that have a store of their own."""
    read: dict[str, Flow] = field(default_factory=dict)
    """Sources that are in the topology already: several queries may read one."""


def _kept_tables(queries: Iterable[TypedQuery]) -> frozenset[str]:
    """Tables that a query hands on row by row. What was there before tells whether a row has passed: one that never did
    is not deleted downstream. Also without a WHERE, which OR REPLACE may add."""
    return frozenset(
        query.source.source.name
        for query in queries
        if isinstance(query.source, Read) and query.source.source.is_table and query.grouping is None
    )


def topology(query: TypedQuery, sink: DataSource, registry: "Registry | None" = None) -> Topology:
    """A persistent query: from its sources to the sink's topic."""
    building = Building(StreamsBuilder(), Formats(registry), _kept_tables([query]))
    write(_result(query, building), sink, building.formats)
    return building.builder.build()


def application_topology(queries: "Sequence[PersistentQuery]", registry: "Registry | None" = None) -> Topology:
    """Several persistent queries in one: what one writes another may read."""
    builder = StreamsBuilder()
    tell(builder, queries, registry)
    return builder.build()


def tell(builder: StreamsBuilder, queries: "Sequence[PersistentQuery]", registry: "Registry | None" = None) -> None:
    """The queries, one after another, in the words of the DSL."""
    building = Building(builder, Formats(registry), _kept_tables(each.query for each in queries))
    for query in queries:
        write(_result(query.query, building), query.sink, building.formats)


def _result(query: TypedQuery, building: Building) -> Flow:
    flow = _filtered(_rows(query.source, building), query.where)
    if query.exploded is not None:
        flow = _exploded(flow, query.exploded)
    if query.grouping is not None:
        flow = _grouped(flow, query.grouping, query.window, Emit.EACH_ON_CLOSE if query.final else Emit.ON_UPDATE)
    return _projected(flow, query)


# ---- reading


def _rows(source: Read | Joining, building: Building) -> Flow:
    return _joined(source, building) if isinstance(source, Joining) else _read(source.source, building)


def _read(source: DataSource, building: Building) -> Flow:
    if source.name not in building.read:
        building.read[source.name] = _read_first(source, building)
    return building.read[source.name]


def _read_first(source: DataSource, building: Building) -> Flow:
    builder, keys = building.builder, building.formats.key(source)
    consumed: Consumed[Any, Any] = Consumed(
        keys, building.formats.value(source), timestamp_extractor=_extractor(source)
    )
    types = record_types(source.keys, source.values, source.window is not None)
    if source.is_table:
        store = store_name(source.name) if source.name in building.kept else None
        kept: Materialized[Any, Any] = Materialized(store, key_serde=keys, value_serde=JsonSerde(types["value"]))
        return Flow(builder.table(source.topic, consumed, kept), types, keys)
    return Flow(builder.stream(source.topic, consumed), types, keys)


def store_name(source: str) -> str:
    """Of a table. A name of SQL in quotes may hold anything, one of a store what topics may."""
    return "Table-" + "".join(
        each if (each.isascii() and each.isalnum()) or each in "_-" else f".{ord(each):x}." for each in source
    )


def _extractor(source: DataSource) -> TimestampExtractor | None:
    if source.event_time is None:
        return None
    invalid = InvalidTimestamp.FAIL if source.event_time.fails else InvalidTimestamp.SKIP
    return TimestampExtractor(event_ms(event_column(source, source.event_time), source.event_time), invalid)


def _filtered(flow: Flow, where: Expression | None) -> Flow:
    if where is None:
        return flow
    if isinstance(flow.rows, KTable):
        return flow.with_rows(flow.rows.filter(where))
    return flow.with_rows(flow.rows.filter(e.value.is_not_null() & where))


# ---- structs of columns


def struct_of(fields: Fields, types: dict[str, Type]) -> Expression:
    return e.struct(**{name: exactly(argument, types) for name, argument in fields})


def exactly(argument: Argument, types: dict[str, Type]) -> Expression:
    """Of just the type that was promised: a literal may stand for a wider one."""
    bound = argument.expression.bind(types).type
    return argument.expression if bound == argument.type else conversion(argument.expression, bound, argument.type)


def type_of_fields(fields: Fields) -> Type:
    return Type("struct", fields=tuple((name, argument.type) for name, argument in fields))


def _mapped(flow: Flow, fields: Fields) -> Flow:
    """Another value. A record without one stays without."""
    made = struct_of(fields, flow.types)
    types = {**flow.types, "value": type_of_fields(fields)}
    if isinstance(flow.rows, KTable):
        return Flow(flow.rows.map_values(made), types, flow.key_serde)
    kept = e.when(e.value.is_not_null(), made).otherwise(None)
    return Flow(flow.rows.map_values(kept), types, flow.key_serde)


# ---- table functions


def _exploded(flow: Flow, exploded: Exploded) -> Flow:
    """One row for each place of the longest list."""
    assert isinstance(flow.rows, KStream)
    lengths = [e.coalesce(e.array_length(argument.expression), 0) for _, argument in exploded.lists]
    longest = lengths[0] if len(lengths) == 1 else e.greatest(*lengths)

    def row(place: Expression) -> Expression:
        items = {name: e.ksql_item(argument.expression, place) for name, argument in exploded.lists}
        return e.struct(**{name: exactly(argument, flow.types) for name, argument in exploded.fields}, **items)

    made = e.transform(e.when(longest > 0, e.generate_series(1, longest)).otherwise(None), row)
    fields = [(name, argument.type) for name, argument in exploded.fields]
    fields += [(name, argument.type.element) for name, argument in exploded.lists if argument.type.element is not None]
    types = {**flow.types, "value": Type("struct", fields=tuple(fields))}
    rows = flow.rows.filter(e.value.is_not_null()).flat_map_values(made)
    return Flow(rows, types, flow.key_serde)


# ---- joins


def _joined(join: Joining, building: Building) -> Flow:
    left, right = _rows(join.left, building), _rows(join.right, building)
    first, second = join.sides
    left, right = _side(left, first, right.key_serde), _side(right, second, left.key_serde)
    joiner = _joiner(left, right)
    rows = _JOINS[join.how](join, left, right, joiner)
    keys = left.key_serde if not first.rekeyed or join.how == "foreign-key" else right.key_serde
    types = {"key": left.types["key"], "value": join.value_type}
    return Flow(rows, types, keys)


def _side(flow: Flow, side: Side, other_keys: Serde[Any]) -> Flow:
    ready = _mapped(flow, side.fields)
    if not side.rekeyed:
        return ready
    assert isinstance(ready.rows, KStream)
    key = exactly(side.key, ready.types)
    kept = ready.rows.filter(e.value.is_not_null())
    kind = side.key.type
    keys = other_keys if other_keys.type == kind else JsonSerde(kind)
    return Flow(kept.select_key(key), {**ready.types, "key": kind}, keys)


def _joiner(left: Flow, right: Flow) -> Expression:
    def parts(side: Expression, flow: Flow) -> dict[str, Expression]:
        return {name: side[name] for name, _ in flow.types["value"].fields}

    return e.struct(**parts(e.left, left), **parts(e.right, right))


def _stream_stream(join: Joining, left: Flow, right: Flow, joiner: Expression) -> Rows:
    assert isinstance(left.rows, KStream) and isinstance(right.rows, KStream) and join.windows is not None
    kind, windows = join.kind, join.windows
    if kind == "RIGHT":
        turned = _turned(joiner)
        back = type(windows)(windows.after_ms, windows.before_ms, windows.grace_ms, windows.is_eager)
        said = StreamJoined(right.key_serde, right.value_serde, left.value_serde)
        return right.rows.left_join(left.rows, turned, back, said)
    said = StreamJoined(left.key_serde, left.value_serde, right.value_serde)
    method = {"INNER": left.rows.join, "LEFT": left.rows.left_join, "FULL": left.rows.outer_join}[kind]
    return method(right.rows, joiner, windows, said)


def _turned(joiner: Expression) -> Expression:
    """Left and right exchanged."""
    names = {"left": e.right, "right": e.left}

    def turned(part: Expression) -> Expression:
        if part.function == "leaf":
            return names.get(part.options[0], part)
        return Expression(part.function, [turned(each) for each in part.args], part.options)

    return turned(joiner)


def _stream_table(join: Joining, left: Flow, right: Flow, joiner: Expression) -> Rows:
    assert isinstance(left.rows, KStream) and isinstance(right.rows, KTable)
    said = Joined(left.key_serde, left.value_serde, right.value_serde)
    method = left.rows.join if join.kind == "INNER" else left.rows.left_join
    return method(right.rows, joiner, None, said)


def _table_table(join: Joining, left: Flow, right: Flow, joiner: Expression) -> Rows:
    assert isinstance(left.rows, KTable) and isinstance(right.rows, KTable)
    if join.kind == "RIGHT":
        return right.rows.left_join(left.rows, _turned(joiner))
    method = {"INNER": left.rows.join, "LEFT": left.rows.left_join, "FULL": left.rows.outer_join}[join.kind]
    return method(right.rows, joiner)


def _foreign_key(join: Joining, left: Flow, right: Flow, joiner: Expression) -> Rows:
    assert isinstance(left.rows, KTable) and isinstance(right.rows, KTable)
    foreign = exactly(join.sides[0].key, left.types)
    kept: Materialized[Any, Any] = Materialized(key_serde=left.key_serde, value_serde=JsonSerde(join.value_type))
    first, second = _serded(left), _serded(right)
    method = first.join if join.kind == "INNER" else first.left_join
    return method(second, joiner, kept, foreign_key=foreign)


def _serded(flow: Flow) -> KTable[Any, Any]:
    """A table whose serdes are known: of what travels between both sides the bytes are compared."""
    assert isinstance(flow.rows, KTable)
    flow.rows.value_serde = flow.rows.value_serde or flow.value_serde
    return flow.rows


_JOINS: dict[str, Callable[[Joining, Flow, Flow, Expression], Rows]] = {
    "stream-stream": _stream_stream,
    "stream-table": _stream_table,
    "table-table": _table_table,
    "foreign-key": _foreign_key,
}


# ---- grouping


def _grouped(flow: Flow, grouping: Grouping, window: WindowedKey | None, emit: Emit) -> Flow:
    ready = _mapped(flow, grouping.inputs)
    kind = key_type(grouping.keys)
    keys = flow.key_serde if flow.key_serde.type == kind and not grouping.regrouped else JsonSerde(kind)
    aggregate = e.aggregates(**dict(grouping.aggregates))
    result = aggregate.bind(ready.types).type
    kept: Materialized[Any, Any] = Materialized(
        key_serde=keys, value_serde=JsonSerde(result), retention_ms=grouping.retention_ms
    )
    said: Grouped[Any, Any] = Grouped(keys, ready.value_serde)
    if isinstance(ready.rows, KTable):
        table = ready.rows.group_by(_selector(grouping, ready), said).aggregate(aggregate, materialized=kept)
    else:
        table = _aggregated(ready.rows, grouping, said, kept, aggregate, emit)
    types = record_types(grouping.keys, (), window is not None)
    types["value"] = result
    done = Flow(table, types, windowed_serde(keys, window))
    return done if grouping.having is None else done.with_rows(table.filter(grouping.having))


def _group_key(grouping: Grouping) -> Expression:
    parts = [e.value[name] for name in grouping.names]
    if len(parts) == 1:
        return parts[0]
    made = e.struct(**{name: part for (name, _), part in zip(grouping.keys, parts, strict=True)})
    return e.when(_all_there(parts), made).otherwise(None)


def _all_there(parts: Sequence[Expression]) -> Expression:
    found = parts[0].is_not_null()
    for part in parts[1:]:
        found = found & part.is_not_null()
    return found


def _aggregated(
    rows: KStream[Any, Any],
    grouping: Grouping,
    said: "Grouped[Any, Any]",
    kept: "Materialized[Any, Any]",
    aggregate: Any,
    emit: Emit,
) -> KTable[Any, Any]:
    there = rows.filter(e.value.is_not_null() & _all_there([e.value[name] for name in grouping.names]))
    group = there.group_by(_group_key(grouping), said) if grouping.regrouped else there.group_by_key(said)
    if grouping.window is None:
        return group.aggregate(aggregate, materialized=kept)
    if isinstance(grouping.window, TimeWindows):
        return group.windowed_by(grouping.window).emit_strategy(emit).aggregate(aggregate, materialized=kept)
    return group.windowed_by(grouping.window).emit_strategy(emit).aggregate(aggregate, materialized=kept)


def _selector(grouping: Grouping, flow: Flow) -> Callable[[Any, Any], tuple[Any, Any]]:
    key = _group_key(grouping).compile(flow.types)
    return lambda given, value: (key(Inputs(given, value)), value)


# ---- the result


def _projected(flow: Flow, query: TypedQuery) -> Flow:
    if query.key_changes:
        return _rekeyed(flow, query)
    return _mapped(flow, query.values)


def _rekeyed(flow: Flow, query: TypedQuery) -> Flow:
    """The new key is made of the record as it was, so both change in one step."""
    rows = flow.rows.to_stream() if isinstance(flow.rows, KTable) else flow.rows
    kind = key_type(query.keys)
    if not query.key:
        key: Expression = Expression("cast", (e.lit(None),), (kind,))
    elif len(query.key) == 1:
        key = _of_there(exactly(query.key[0][1], flow.types))
    else:
        key = e.struct(**{name: _of_there(exactly(each, flow.types)) for name, each in query.key})
    value = e.when(e.value.is_not_null(), struct_of(query.values, flow.types)).otherwise(None)
    types = {"key": kind, "value": type_of_fields(query.values)}
    return Flow(rows.map(key=key, value=value), types, JsonSerde(kind))


def _of_there(part: Expression) -> Expression:
    """What is made of the record, not of its key alone, is null where there is no value: IS NULL and ROWTIME, too."""
    return e.when(e.value.is_not_null(), part).otherwise(None) if part.leaves() - {"key"} else part


def write(flow: Flow, sink: DataSource, formats: Formats) -> None:
    rows = flow.rows.to_stream() if isinstance(flow.rows, KTable) else flow.rows
    if sink.event_time is not None:
        rows = _stamped(rows, flow, sink, sink.event_time)
    rows.to(sink.topic, Produced(formats.key(sink), formats.value(sink)))


def _stamped(rows: KStream[Any, Any], flow: Flow, sink: DataSource, at: EventTime) -> KStream[Any, Any]:
    """Records get the time that a column of the result holds. One whose time cannot be read is left out."""
    run = event_ms(event_column(sink, at), at).compile(flow.types)

    return rows.process_values(lambda: Stamp(run))


class Stamp(FixedKeyProcessor):
    """Gives records another time; one for which there is none is left out and counted."""

    def __init__(self, run: Callable[[Any], int | None]) -> None:
        self._run = run

    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        if record.value is None:
            self._context.forward(record)
            return
        found = self._run(record)
        if found is None or found < 0:
            self._context.dropped("invalid-timestamp")
        else:
            self._context.forward(record.with_timestamp(found))
