"""Nodes over Arrow columns, in the task that reads: records are decoded, filtered, mapped and multiplied, and what an
aggregate takes of them comes out. The same results as `run.native` has by columns of Spark.

Which nodes and serdes can be had so is decided by `plan.in_source`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.serdes.arrow import arrow_type
from ottla.serdes.base import Serde, SerdeError
from ottla.serdes.primitives import BytesSerde, DoubleSerde, IntSerde, LongSerde, StringSerde
from ottla.serdes.types import Type
from ottla.streams.expressions import Expression
from ottla.streams.expressions.bound import FUNCTIONS, Bound
from ottla.streams.expressions.vectors import VECTORS
from ottla.streams.plan.in_source import functions_of_pair
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR
from ottla.streams.tasks.inputs import INVALID_TIMESTAMP
from ottla.streams.tasks.operators.base import NO_KEY_FOR_REPARTITION, NULL_KEY, NULL_KEY_OR_VALUE
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import ProcessorNode, SourceNode

Resolve = Callable[[str], pa.Array]


# ---- expressions


def vector(node: Bound, resolve: Resolve, count: int) -> pa.Array:
    """The column of an expression over `count` records."""
    found = _vector(node, resolve, count)
    return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


def _vector(node: Bound, resolve: Resolve, count: int) -> Any:
    match node.function:
        case "leaf":
            return resolve(node.options[0])
        case "lit":
            return pa.scalar(node.options[0], arrow_type(node.type))
    args = [_vector(each, resolve, count) for each in node.args]
    if all(isinstance(each, pa.Scalar) for each in args):
        args = [pa.repeat(each, count) for each in args]
    try:
        made = VECTORS[node.function].form(pc, node, args)
    except pa.ArrowInvalid:
        made = None
    return _by_rows(node, args, count) if made is None else made


def _by_rows(node: Bound, args: Sequence[Any], count: int) -> pa.Array:
    """By the function's body."""
    body = FUNCTIONS[node.function].build(node, [itemgetter(place) for place in range(len(args))])
    columns = [[each.as_py()] * count if isinstance(each, pa.Scalar) else each.to_pylist() for each in args]
    return pa.array([body(row) for row in zip(*columns, strict=True)], arrow_type(node.type))


# ---- bytes


_NUMBERS: Final[dict[type[Serde[Any]], str]] = {IntSerde: ">i4", LongSerde: ">i8", DoubleSerde: ">f8"}


def decoded(serde: Serde[Any], column: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Values, and which of them could be read; None: all."""
    if isinstance(serde, BytesSerde):
        return column, None
    if isinstance(serde, StringSerde):
        return _texts(serde, column), None
    width = np.dtype(_NUMBERS[type(serde)]).itemsize
    readable = pc.fill_null(pc.equal(pc.binary_length(column), width), True)
    whole = pc.all(readable).as_py() in (True, None)
    return _numbers(serde, column if whole else pc.if_else(readable, column, None)), None if whole else readable


def _texts(serde: StringSerde, column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:  # no UTF-8: the serde has a replacement for what cannot be read
        return pa.array([None if data is None else serde.decode(data) for data in column.to_pylist()], pa.string())


def _numbers(serde: Serde[Any], column: pa.Array) -> pa.Array:
    order = np.dtype(_NUMBERS[type(serde)])
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    cells = column.cast(pa.binary(order.itemsize))
    there = np.frombuffer(cells.buffers()[1], order, len(cells)) if len(cells) else np.empty(0, order)
    return pa.array(there.astype(order.newbyteorder("=")), mask=missing)


def encoded(serde: Serde[Any], column: pa.Array) -> pa.Array:
    """The bytes of keys, none of which is null."""
    if isinstance(serde, (BytesSerde, StringSerde)):
        return column.cast(pa.binary())
    order = np.dtype(_NUMBERS[type(serde)])
    width, data = order.itemsize, column.to_numpy().astype(order)
    cuts = pa.py_buffer(np.arange(len(data) + 1, dtype=np.int32) * width)
    return pa.Array.from_buffers(pa.binary(), len(data), [None, cuts, pa.py_buffer(data.tobytes())])


# ---- records


class Later:
    """A column that is made when somebody asks for it, once."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], pa.Array]) -> None:
        self._make = make
        self._made: pa.Array | None = None

    def get(self) -> pa.Array:
        if self._made is None:
            self._made = self._make()
        return self._made


class Records:
    """Columns key, value, timestamp, partition, offset, topic, origin, and how many records there are."""

    __slots__ = ("_columns", "count")

    def __init__(self, count: int, columns: Mapping[str, Later]) -> None:
        self.count = count
        self._columns = columns

    @staticmethod
    def of(batch: pa.RecordBatch) -> Records:
        return Records(batch.num_rows, {name: _there(batch.column(name)) for name in batch.schema.names})

    def column(self, name: str) -> pa.Array:
        return self._columns[name].get()

    def compute(self, node: Bound) -> pa.Array:
        return vector(node, self.column, self.count)

    def having(self, **columns: pa.Array) -> Records:
        return Records(self.count, {**self._columns, **{name: _there(each) for name, each in columns.items()}})

    def where(self, kept: pa.Array) -> Records:
        """Null is not true."""
        certain = pc.fill_null(kept, False)
        count = pc.sum(certain).as_py() or 0
        return self if count == self.count else self._changed(count, lambda column: column.filter(certain))

    def take(self, rows: pa.Array) -> Records:
        return self._changed(len(rows), lambda column: column.take(rows))

    def _changed(self, count: int, change: Callable[[pa.Array], pa.Array]) -> Records:
        return Records(count, {name: _after(column, change) for name, column in self._columns.items()})


def _there(column: pa.Array) -> Later:
    return Later(lambda: column)


def _after(column: Later, change: Callable[[pa.Array], pa.Array]) -> Later:
    return Later(lambda: change(column.get()))


# ---- nodes


@dataclass(frozen=True, slots=True)
class VectorChain:
    """From what is read to what an aggregate takes."""

    source: SourceNode
    nodes: tuple[ProcessorNode, ...]
    """In a line."""
    key_serde: Serde[Any]
    """As which the aggregate keeps its keys."""
    arguments: Mapping[str, Bound]
    """Of the aggregate: its columns, by name."""
    windowed: bool
    """Records without a value count; otherwise they are left out."""
    fails: bool
    """Whether a record that cannot be read ends the query; it is left out otherwise."""
    skips_untimed: bool

    def run(self, batches: Iterator[pa.RecordBatch], dropped: Counter[str]) -> Iterator[pa.RecordBatch]:
        """Columns kb, ts, p, o, origin and the arguments. `dropped` is told what was left out, by reason."""
        for batch in batches:
            records = self._present(self._passed(self._read(Records.of(batch), dropped), dropped), dropped)
            if records.count:
                yield self._columns(records)

    def _read(self, records: Records, dropped: Counter[str]) -> Records:
        """Decoded, without what is unreadable or has no time."""
        serdes = {"key": _serde(self.source.key_serde), "value": _serde(self.source.value_serde)}
        found = {name: decoded(serde, records.column(name)) for name, serde in serdes.items()}
        for name, (_, good) in found.items():
            if good is not None and self.fails:
                row = pc.index(good, False).as_py()
                raise _refusal(records, row, f"cannot be read: {_complaint(serdes[name], records.column(name)[row])}")
        whole = records.having(**{name: values for name, (values, _) in found.items()})
        unread = [good for _, good in found.values() if good is not None]
        if unread:
            whole = without(whole, reduce(pc.and_, unread), DESERIALIZATION_ERROR, dropped)
        return self._timed(whole, dropped)

    def _timed(self, records: Records, dropped: Counter[str]) -> Records:
        timed = pc.greater_equal(records.column("timestamp"), 0)
        if not self.skips_untimed and (row := pc.index(timed, False).as_py()) >= 0:
            raise _refusal(records, row, f"has the invalid timestamp: {records.column('timestamp')[row]}")
        return without(records, timed, INVALID_TIMESTAMP, dropped)

    def _passed(self, records: Records, dropped: Counter[str]) -> Records:
        types = {"key": _serde(self.source.key_serde).type, "value": _serde(self.source.value_serde).type}
        for node in self.nodes:
            records = through(node.operation, records, types, dropped)
        return records

    def _present(self, records: Records, dropped: Counter[str]) -> Records:
        has_key = records.column("key").is_valid()
        if self.windowed:
            return without(records, has_key, NULL_KEY, dropped)
        there = pc.and_(has_key, records.column("value").is_valid())
        return without(records, there, NULL_KEY_OR_VALUE, dropped)

    def _columns(self, records: Records) -> pa.RecordBatch:
        columns = {
            "kb": encoded(self.key_serde, records.column("key")),
            "ts": records.column("timestamp"),
            "p": records.column("partition"),
            "o": records.column("offset"),
            "origin": records.column("origin"),
            **{name: records.compute(each) for name, each in self.arguments.items()},
        }
        return pa.record_batch(columns)


def _serde(serde: Serde[Any] | None) -> Serde[Any]:
    assert serde is not None, "a source in a chain has its serdes"
    return serde


def without(records: Records, kept: pa.Array, reason: str, dropped: Counter[str]) -> Records:
    left = records.where(kept)
    if left.count < records.count:
        dropped[reason] += records.count - left.count
    return left


def _refusal(records: Records, row: int, what: str) -> ValueError:
    offset, topic, partition = (records.column(name)[row].as_py() for name in ("offset", "topic", "partition"))
    return ValueError(f"[ottla] the record at offset {offset} of {topic}-{partition} {what} [end]")


def _complaint(serde: Serde[Any], data: pa.Scalar) -> str:
    try:
        serde.deserialize(data.as_py())
    except SerdeError as error:
        return str(error)
    raise AssertionError("the serde reads what Arrow did not")


def through(operation: op.Operation, records: Records, types: dict[str, Type], dropped: Counter[str]) -> Records:
    """Past one node. `types` become those of what it hands on."""
    match operation:
        case op.Filter(predicate=Expression() as predicate, negated=negated):
            holds = records.compute(predicate.bind(types))
            return records.where(pc.invert(holds) if negated else holds)
        case op.DropNullKeys():
            return without(records, records.column("key").is_valid(), NO_KEY_FOR_REPARTITION, dropped)
        case op.FlatMapValues(function=Expression() as function):
            return _multiplied(records, function, types)
    bound = {name: function.bind(types) for name, function in functions_of_pair(operation).items()}
    types.update({name: each.type for name, each in bound.items()})
    return records.having(**{name: records.compute(each) for name, each in bound.items()})


def _multiplied(records: Records, function: Expression, types: dict[str, Type]) -> Records:
    bound = function.bind(types)
    assert bound.type.element is not None
    several = records.compute(bound)
    types["value"] = bound.type.element
    return records.take(pc.list_parent_indices(several)).having(value=several.flatten())
