"""Nodes as Spark columns: records are decoded, filtered, mapped, counted and encoded without leaving the JVM.

A `Flow` is a data frame with typed key and value. Nodes that stand in a line change the flow; where it branches, every
way to a sink becomes one struct, and one pass over the rows gives them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from ottla.pipelines import rows as r
from ottla.pipelines.progress import OBSERVED_DROPS
from ottla.pipelines.type_names import named
from ottla.serdes.base import ColumnSerde, Serde
from ottla.serdes.json import JsonSerde
from ottla.serdes.primitives import BytesSerde, StringSerde
from ottla.serdes.schema_ids import SCHEMA_HEADERS
from ottla.serdes.types import ANY, Type
from ottla.streams.expressions import Expression
from ottla.streams.run.expression_columns import to_column
from ottla.streams.run.parsed_records import decoded_name
from ottla.streams.run.serde_columns import (
    Decoded,
    decode_column,
    encode_column,
)
from ottla.streams.run.serde_columns import decoded as decoded_column
from ottla.streams.run.type_columns import spark_type
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.failures import DESERIALIZATION_ERROR
from ottla.streams.tasks.inputs import INVALID_TIMESTAMP
from ottla.streams.tasks.operators.base import NO_KEY_FOR_REPARTITION
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import InvalidTimestamp, Node, ProcessorNode, SinkNode, SourceNode, SubTopology

DEAD_LETTER_EXCEPTION: Final = "__streams.errors.exception"
DEAD_LETTER_MESSAGE: Final = "__streams.errors.message"
DEAD_LETTER_STACKTRACE: Final = "__streams.errors.stacktrace"
DEAD_LETTER_TOPIC: Final = "__streams.errors.topic"
DEAD_LETTER_PARTITION: Final = "__streams.errors.partition"
DEAD_LETTER_OFFSET: Final = "__streams.errors.offset"
NEXT_SEQUENCE: Final = 1 << 12
"""Behind a second flat_map_values: places of the first one stay in front of those of the second."""


class Unreadable(NamedTuple):
    """What happens to a record whose bytes cannot be read."""

    fail: bool = True
    dead_letters: str | None = None
    """The topic, when the application goes on."""


class KeyBytes(NamedTuple):
    serde: Serde[Any]
    column: Column


@dataclass(frozen=True, slots=True)
class Flow:
    """Columns k, v, ts (ms), p, o, t, h, seq of a frame, and what the first two are.

    `e` tells what is wrong with a record that only waits to become a dead letter; rk and rv are its bytes.
    """

    frame: DataFrame
    key: Type
    value: Type
    dead_letters: str | None = None
    key_bytes: KeyBytes | None = None
    """The key is there as bytes already, until somebody changes it."""

    def types(self) -> dict[str, Type]:
        return {"key": self.key, "value": self.value}


_LEAVES: Final = {
    "key": "k",
    "value": "v",
    "timestamp": "ts",
    "partition": "p",
    "offset": "o",
    "topic": "t",
    "headers": "h",
}


def resolve(name: str) -> Column:
    return F.col(_LEAVES[name])


# ---- reading


def read(frame: DataFrame, node: SourceNode, errors: Unreadable) -> Flow:
    """Rows of the source, with headers, as records, which may be parsed already. What cannot be read fails, goes, or
    waits as a dead letter."""
    key_serde, value_serde = node.key_serde or Serdes.bytes, node.value_serde or Serdes.bytes
    headers = F.col("headers") if "headers" in frame.columns else None
    if isinstance(value_serde, JsonSerde) and value_serde.type != ANY:
        # Into a select of its own, so that a document is parsed one time for its value and what is wrong with it.
        frame = frame.withColumn(decoded_name("value"), decoded_column(value_serde, F.col("value")))
    key, value = (_decoded(frame, *part, headers) for part in (("key", key_serde), ("value", value_serde)))
    wanted = [
        key.value.alias("k"),
        value.value.alias("v"),
        _ms_of(frame).alias("ts"),
        F.col("partition").alias("p"),
        F.col("offset").alias("o"),
        F.col("topic").alias("t"),
        (null(r.HEADERS_TYPE) if headers is None else headers).alias("h"),
        F.lit(0).alias("seq"),
        *([F.col("origin")] if "origin" in frame.columns else []),
    ]
    checked = not (_never_fails(key_serde) and _never_fails(value_serde))
    if checked:
        wanted.append(F.coalesce(key.error, value.error).alias("e"))
        if errors.dead_letters is not None:
            wanted += [F.col("key").alias("rk"), F.col("value").alias("rv")]
    decoded = frame.select(*wanted)
    dead_letters = errors.dead_letters if checked and not errors.fail else None
    if checked and dead_letters is None:
        if not errors.fail:
            decoded = _unreadable_observed(decoded)
        decoded = decoded.where(_unless(F.col("e").isNotNull(), "cannot be read", F.col("e"), errors.fail)).drop("e")
    return Flow(_timed(decoded, node), key_serde.type, value_serde.type, dead_letters)


def _decoded(frame: DataFrame, part: str, serde: Serde[Any], headers: Column | None) -> Decoded:
    if decoded_name(part) in frame.columns:
        both = F.col(decoded_name(part))
        return Decoded(both["value"], both["error"])
    return decode_column(serde, F.col(part), headers)


def _ms_of(frame: DataFrame) -> Column:
    is_number = isinstance(frame.schema["timestamp"].dataType, LongType)
    return F.col("timestamp") if is_number else F.unix_millis("timestamp")


def observed(frame: DataFrame, what: str, **dropped: Column) -> DataFrame:
    """Counts records that are about to be left out, by reason."""
    counts = [F.count_if(condition).alias(reason) for reason, condition in dropped.items()]
    return frame.observe(f"{OBSERVED_DROPS}-{what}", *counts)


def _unreadable_observed(frame: DataFrame) -> DataFrame:
    return observed(frame, "unreadable", **{DESERIALIZATION_ERROR: F.col("e").isNotNull()})


def _keyless_observed(flow: Flow, keyless: Sequence[Column]) -> DataFrame:
    """Counts records that are about to be left out in front of repartition topics, since they have no key."""
    counts = [F.count_if(condition) for condition in keyless]
    return flow.frame.observe(f"{OBSERVED_DROPS}-unkeyed", reduce(add, counts).alias(NO_KEY_FOR_REPARTITION))


def _never_fails(serde: Serde[Any]) -> bool:
    return isinstance(serde, (StringSerde, BytesSerde))


def _timed(frame: DataFrame, node: SourceNode) -> DataFrame:
    """A negative timestamp is invalid, and so is none. Fails unless the source says to skip such records: one that says
    to take the partition's time runs in a task."""
    fail = node.extractor.on_invalid is not InvalidTimestamp.SKIP
    time = F.coalesce(F.col("ts"), F.lit(-1))
    if not fail:
        frame = observed(frame, "untimed", **{INVALID_TIMESTAMP: time < 0})
    return frame.where(_unless(time < 0, "has the invalid timestamp", time.cast("string"), fail))


def _unless(bad: Column, what: str, detail: Column, fail: bool) -> Column:
    if not fail:
        return ~bad
    return F.when(~bad, F.lit(True)).otherwise(_failure(F.lit(f" {what}: "), detail).cast("boolean"))


def _failure(*what: Column) -> Column:
    """Ends the query, in words that begin with the record."""
    place = F.lit("[ottla] the record at offset "), F.col("o"), F.lit(" of "), F.col("t"), F.lit("-"), F.col("p")
    return F.raise_error(F.concat(*place, *what, F.lit(" [end]")))


def from_output(frame: DataFrame, source: SourceNode) -> Flow:
    """What a Python stage wrote for the next node, as records again. The bytes are our own: they can be read."""
    key_serde, value_serde = source.key_serde or Serdes.bytes, source.value_serde or Serdes.bytes
    decoded = frame.select(
        decode_column(key_serde, F.col("key"), F.col("headers")).value.alias("k"),
        decode_column(value_serde, F.col("value"), F.col("headers")).value.alias("v"),
        F.col("timestamp").alias("ts"),
        F.col("src_partition").alias("p"),
        F.col("src_offset").alias("o"),
        F.col("topic").alias("t"),
        F.col("headers").alias("h"),
        F.col("seq").alias("seq"),
        (F.col("src_offset") * 2 + F.col("headers").isNotNull().cast("bigint")).alias("origin"),
    )
    return Flow(decoded, key_serde.type, value_serde.type)


def null(kind: str) -> Column:
    return F.lit(None).cast(named(kind))


# ---- nodes in a line


def _column(function: op.Function, types: Mapping[str, Type], resolve: Callable[[str], Column]) -> tuple[Column, Type]:
    assert isinstance(function, Expression)
    bound = function.bind(types)
    return to_column(bound, resolve), bound.type


def apply(flow: Flow, operation: op.Operation) -> Flow:
    """One node that every record passes."""
    match operation:
        case op.Filter(predicate=predicate, negated=negated):
            holds, _ = _column(predicate, flow.types(), resolve)
            return _where(flow, ~holds if negated else holds)
        case op.DropNullKeys():
            counted = replace(flow, frame=_keyless_observed(flow, [F.col("k").isNull()]))
            return _where(counted, F.col("k").isNotNull())
        case op.MapValues(function=function):
            column, kind = _column(function, flow.types(), resolve)
            return replace(flow, frame=flow.frame.withColumn("v", column), value=kind)
        case op.TableMapValues(function=function):
            column, kind = _column(function, flow.types(), resolve)
            # A deletion stays one, whatever the function would make of it.
            return replace(flow, frame=flow.frame.withColumn("v", F.when(F.col("v").isNotNull(), column)), value=kind)
        case op.SelectKey(function=function):
            return _rekeyed(flow, function)
        case op.TableToStream(select_key=function) if function is not None:
            return _rekeyed(flow, function)
        case op.MapPairs(key=key, value=value):
            return _mapped(flow, key, value)
        case op.FlatMapValues(function=function):
            return _multiplied(flow, function)
    return flow


def _where(flow: Flow, condition: Column) -> Flow:
    kept = F.col("e").isNotNull() | condition if flow.dead_letters is not None else condition
    return replace(flow, frame=flow.frame.where(kept))


def _rekeyed(flow: Flow, function: op.Function) -> Flow:
    column, kind = _column(function, flow.types(), resolve)
    return replace(flow, frame=flow.frame.withColumn("k", column), key=kind, key_bytes=None)


def _mapped(flow: Flow, key: Expression | None, value: Expression | None) -> Flow:
    columns: dict[str, Column] = {}
    kinds = [flow.key, flow.value]
    for place, (name, function) in enumerate((("k", key), ("v", value))):
        if function is not None:
            columns[name], kinds[place] = _column(function, flow.types(), resolve)
    known = flow.key_bytes if key is None else None
    return replace(flow, frame=flow.frame.withColumns(columns), key=kinds[0], value=kinds[1], key_bytes=known)


def _multiplied(flow: Flow, function: op.Function) -> Flow:
    several, kind = _column(function, flow.types(), resolve)
    element = kind.element
    assert element is not None
    if flow.dead_letters is not None:
        several = F.when(F.col("e").isNotNull(), F.array(null(spark_type(element)))).otherwise(several)
    others = [name for name in flow.frame.columns if name not in ("v", "seq")]
    exploded = flow.frame.select(*others, F.col("seq").alias("before"), F.posexplode(several).alias("place", "v"))
    sequence = (F.col("before") * NEXT_SEQUENCE + F.col("place")).cast("int")
    return replace(flow, frame=exploded.withColumn("seq", sequence).drop("before", "place"), value=element)


# ---- a whole sub-topology


class _Way(NamedTuple):
    """From where the flow branches to some node: which records go there, and as what."""

    condition: Column | None
    key: Column
    value: Column
    key_type: Type
    value_type: Type
    key_bytes: KeyBytes | None = None

    def types(self) -> dict[str, Type]:
        return {"key": self.key_type, "value": self.value_type}

    def resolve(self, name: str) -> Column:
        if name == "key":
            return self.key
        return self.value if name == "value" else F.col(_LEAVES[name])

    def only(self, condition: Column) -> _Way:
        certain = F.coalesce(condition, F.lit(False))
        return self._replace(condition=certain if self.condition is None else self.condition & certain)


class Target(NamedTuple):
    """How rows reach topics: internal ones carry the application's id, windowed keys choose their partitions."""

    decorate: Callable[[str], str]
    partitions: Callable[[str], int]
    hash_column: str | None = None
    """Of the key inside a windowed key; None: keys are not windowed, and the sink hashes them."""


def trunk(nodes: Sequence[Node], start: str, flow: Flow) -> tuple[Flow, str]:
    """Follows the line of nodes from `start` to where it branches or ends; gives the flow and the last node's name."""
    name = start
    while True:
        children = [node for node in nodes if name in node.parents]
        if len(children) != 1 or not isinstance(children[0], ProcessorNode):
            return flow, name
        operation = children[0].operation
        if isinstance(operation, op.Branch):
            return flow, name
        flow = apply(flow, operation)
        name = children[0].name


def sink_rows(sub: SubTopology, flow: Flow, start: str, target: Target, more: Sequence[Column] = ()) -> DataFrame:
    """All rows for the sink from the nodes behind `start`. `more` are structs of further rows, one for each record."""
    flow, name = trunk(sub.nodes, start, flow)
    good = None if flow.dead_letters is None else F.col("e").isNull()
    way = _Way(good, F.col("k"), F.col("v"), flow.key, flow.value, flow.key_bytes)
    keyless: list[Column] = []
    structs = [*(each if good is None else F.when(good, each) for each in more)]
    structs += _ways(sub.nodes, name, way, target, keyless)
    if keyless:
        flow = replace(flow, frame=_keyless_observed(flow, keyless))
    if flow.dead_letters is not None:
        structs.append(F.when(F.col("e").isNotNull(), _dead_letter(flow.dead_letters)))
        flow = replace(flow, frame=_unreadable_observed(flow.frame))
    if not structs:
        return flow.frame.where(F.lit(False)).select(_row_of_nothing().alias("row")).select("row.*")
    if len(structs) == 1:
        single = flow.frame.select(structs[0].alias("row"))
        return single.where(F.col("row").isNotNull()).select("row.*")
    several = F.filter(F.array(*structs), lambda row: row.isNotNull())
    return flow.frame.select(F.explode(several).alias("row")).select("row.*")


def _ways(nodes: Sequence[Node], name: str, way: _Way, target: Target, keyless: list[Column]) -> list[Column]:
    """A row for each sink. `keyless` gets the conditions under which records fall out for want of a key."""
    found: list[Column] = []
    for node in nodes:
        if name not in node.parents:
            continue
        if isinstance(node, SinkNode):
            row = _sink_row(node, way, target)
            found.append(row if way.condition is None else F.when(way.condition, row))
        elif isinstance(node, ProcessorNode) and isinstance(node.operation, op.Branch):
            for child, branch in _branches(node.operation, way):
                found += _behind(nodes, child, branch, target, keyless)
        elif isinstance(node, ProcessorNode):
            found += _behind(nodes, node.name, way, target, keyless)
    return found


def _behind(nodes: Sequence[Node], child: str, way: _Way, target: Target, keyless: list[Column]) -> list[Column]:
    (node,) = [each for each in nodes if each.name == child]
    assert isinstance(node, ProcessorNode)
    if isinstance(node.operation, op.DropNullKeys):
        falls = way.only(way.key.isNull()).condition
        assert falls is not None
        keyless.append(falls)
    return _ways(nodes, child, _step(node.operation, way), target, keyless)


def _branches(operation: op.Branch, way: _Way) -> list[tuple[str, _Way]]:
    """The first predicate that holds takes the record."""
    left = way
    found = []
    for predicate, child in zip(operation.predicates, operation.children, strict=False):
        column, _ = _column(predicate, way.types(), way.resolve)
        certain = F.coalesce(column, F.lit(False))
        found.append((child, left.only(certain)))
        left = left.only(~certain)
    if operation.default is not None:
        found.append((operation.default, left))
    return found


def _step(operation: op.Operation, way: _Way) -> _Way:
    def column(function: op.Function) -> tuple[Column, Type]:
        return _column(function, way.types(), way.resolve)

    match operation:
        case op.Filter(predicate=predicate, negated=negated):
            holds, _ = column(predicate)
            return way.only(~holds if negated else holds)
        case op.DropNullKeys():
            return way.only(way.key.isNotNull())
        case op.MapValues(function=function):
            made, kind = column(function)
            return way._replace(value=made, value_type=kind)
        case op.TableMapValues(function=function):
            made, kind = column(function)
            return way._replace(value=F.when(way.value.isNotNull(), made), value_type=kind)
        case op.SelectKey(function=function):
            made, kind = column(function)
            return way._replace(key=made, key_type=kind, key_bytes=None)
        case op.TableToStream(select_key=function) if function is not None:
            made, kind = column(function)
            return way._replace(key=made, key_type=kind, key_bytes=None)
        case op.MapPairs(key=key, value=value):
            new_key = (way.key, way.key_type) if key is None else column(key)
            new_value = (way.value, way.value_type) if value is None else column(value)
            known = way.key_bytes if key is None else None
            return _Way(way.condition, new_key[0], new_value[0], new_key[1], new_value[1], known)
    return way


def _sink_row(node: SinkNode, way: _Way, target: Target) -> Column:
    assert node.key_serde is not None and node.value_serde is not None
    serdes = node.key_serde, node.value_serde
    if isinstance(node.chooser, Expression):
        chosen, _ = _column(node.chooser, way.types(), way.resolve)
        topic = F.coalesce(chosen, _failure(F.lit(f" has no topic: the expression of {node.name} gave null")))
        partition = null("int")
    else:
        assert node.topic is not None
        name = target.decorate(node.topic) if node.repartition else node.topic
        topic, partition = F.lit(name), _partition(node.topic if node.repartition else name, way, target)
    return row(
        topic=topic,
        partition=partition,
        key=_encoded_key(node.key_serde, way, topic),
        value=_encoded(node.value_serde, way, way.value, way.value_type, topic),
        headers=_without_schemas() if any(isinstance(serde, ColumnSerde) for serde in serdes) else None,
    )


def _without_schemas() -> Column:
    """The headers of a record that is written with a schema of its own: those that named another are left out."""
    return F.filter(F.col("h"), lambda header: ~header["key"].isin(*sorted(SCHEMA_HEADERS)))


def _partition(topic: str, way: _Way, target: Target) -> Column:
    """Windowed keys go where the key inside them would go, as Kafka Streams has it."""
    if way.key_type.name != "windowed" or target.hash_column is None:
        return null("int")
    return (F.col(target.hash_column) % target.partitions(topic)).cast("int")


def _encoded_key(serde: Serde[Any], way: _Way, topic: Column) -> Column:
    if way.key_bytes is not None and way.key_bytes.serde == serde:
        return way.key_bytes.column
    return _encoded(serde, way, way.key, way.key_type, topic)


def _encoded(serde: Serde[Any], way: _Way, column: Column, kind: Type, topic: Column) -> Column:
    """Spark calls a function of Python for every record, also for those that go another way (to the dead letters, into
    another branch), whatever condition stands around it: there it is given nothing to write."""
    if way.condition is not None and isinstance(serde, ColumnSerde):
        column, topic = F.when(way.condition, column), F.when(way.condition, topic)
    return encode_column(serde, column, kind, topic)


def row(
    *, topic: Column, partition: Column, key: Column, value: Column, headers: Column | None = None,
) -> Column:  # fmt: skip
    """A row for the sink, of the record that the columns ts, p, o and seq are of."""
    return F.struct(
        topic.alias("topic"),
        partition.alias("partition"),
        key.alias("key"),
        value.alias("value"),
        (F.col("h") if headers is None else headers).alias("headers"),
        F.col("ts").alias("timestamp"),
        F.col("p").alias("src_partition"),
        F.col("o").alias("src_offset"),
        F.col("seq").alias("seq"),
    )


def _row_of_nothing() -> Column:
    return row(topic=null("string"), partition=null("int"), key=null("binary"), value=null("binary"))


def _dead_letter(topic: str) -> Column:
    """The record as it was, and Kafka Streams' six headers (KIP-1034) after its own."""

    def header(name: str, text: Column) -> Column:
        return F.struct(F.lit(name).alias("key"), text.cast("string").cast("binary").alias("value"))

    about = F.array(
        header(DEAD_LETTER_EXCEPTION, F.lit("ottla.serdes.base.SerdeError")),
        header(DEAD_LETTER_MESSAGE, F.col("e")),
        header(DEAD_LETTER_STACKTRACE, F.col("e")),
        header(DEAD_LETTER_TOPIC, F.col("t")),
        header(DEAD_LETTER_PARTITION, F.col("p")),
        header(DEAD_LETTER_OFFSET, F.col("o")),
    )
    headers = F.when(F.col("h").isNull(), about.cast(r.HEADERS_TYPE)).otherwise(F.concat("h", about))
    return row(topic=F.lit(topic), partition=null("int"), key=F.col("rk"), value=F.col("rv"), headers=headers)


def readable(flow: Flow) -> Flow:
    return replace(flow, frame=_unreadable_observed(flow.frame).where(F.col("e").isNull()), dead_letters=None)


def dead_letter_rows(flow: Flow) -> DataFrame:
    assert flow.dead_letters is not None
    bad = flow.frame.where(F.col("e").isNotNull())
    return bad.select(_dead_letter(flow.dead_letters).alias("row")).select("row.*")
