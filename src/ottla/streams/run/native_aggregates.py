"""Aggregates that Spark computes: of the records of a flow, or of parts of results that tasks have made before.

What comes out is one row for each key (and window) that a batch changed, for the changelog and for what follows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ottla.pipelines import rows as r
from ottla.pipelines.source.origins import MARK
from ottla.pipelines.type_names import named
from ottla.serdes.base import Serde
from ottla.serdes.types import Type, windowed
from ottla.streams.errors import AGGREGATE_RESULT
from ottla.streams.expressions import BoundAggregate
from ottla.streams.expressions.bound import Bound
from ottla.streams.expressions.parts import with_leaves
from ottla.streams.plan.plan import NativeAggregate
from ottla.streams.run.aggregate_columns import aggregate_column, merged_part, result_column
from ottla.streams.run.expression_columns import to_column
from ottla.streams.run.native import Flow, KeyBytes, null, observed, resolve, row
from ottla.streams.run.partials import Partials
from ottla.streams.run.serde_columns import bytes_of_int, bytes_of_long, decode_column, encode_column
from ottla.streams.run.type_columns import spark_type
from ottla.streams.run.windowing import Windowing
from ottla.streams.serdes import TimeWindowedSerde
from ottla.streams.tasks.operators.base import NULL_KEY, NULL_KEY_OR_VALUE
from ottla.streams.topology import operations as op
from ottla.streams.windows import TimeWindows

BY_KEY: Final = ("task", "kb")
BY_WINDOW: Final = ("kb", "task", "hash", "start")
"""What results are told apart by."""


class Timing(NamedTuple):
    """What a windowed aggregate needs to tell late records."""

    directory: str
    """Where the stream time is carried from batch to batch."""
    tasks: int
    """Partitions of the topic in front of it, written or not."""
    retention_ms: int
    """How much longer than grace Spark keeps the state of windows, for partitions that are behind others."""
    dropped: Any = None
    """Counts late records."""


class Aggregated(NamedTuple):
    """Results: columns k, v, ts, p, o, t, h, seq as in a flow, kb and vb (bytes), and for windows hash, start."""

    flow: Flow
    target_hash: str | None


def windows_of(native: NativeAggregate) -> TimeWindows:
    operation = native.node.operation
    assert isinstance(operation, op.WindowAggregate)
    return operation.windows


# ---- of records


def aggregate(flow: Flow, native: NativeAggregate, timing: Timing, null_key: str | None = None) -> Aggregated:
    """`null_key`: the reason for which records without a key are left out, where it is another one than that of records
    without a value."""
    store = native.store
    assert store.key_serde is not None
    bound = native.aggregate.bind(flow.types())
    arguments: dict[str, Bound] = {}
    plain = with_leaves(bound, arguments)
    slim = _present(flow, native, null_key).select(
        encode_column(store.key_serde, F.col("k"), flow.key).alias("kb"),
        F.col("ts"),
        *([F.col("p"), F.col("o")] if native.windowed else [_task(native).alias("task")]),
        F.col("origin"),
        *(to_column(argument, resolve).alias(name) for name, argument in arguments.items()),
    )
    if native.windowed:
        return _windowed(slim, native, timing, plain)
    grouped = slim.groupBy(*BY_KEY).agg(aggregate_column(plain, F.col).alias("v"), *_latest())
    return _results(grouped, native, bound.type)


def _present(flow: Flow, native: NativeAggregate, null_key: str | None) -> DataFrame:
    """Without records that have no key, or no value where that matters."""
    has_key = F.col("k").isNotNull()
    present = has_key if native.windowed else has_key & F.col("v").isNotNull()
    if null_key is None:
        left_out = {NULL_KEY if native.windowed else NULL_KEY_OR_VALUE: ~present}
    else:
        left_out = {null_key: ~has_key, **({} if native.windowed else {NULL_KEY_OR_VALUE: has_key & ~present})}
    # What cannot be null by its type, as the words of a text, needs no second look: each costs every batch something.
    certain = not any(flow.frame.schema[name].nullable for name in ("k", "v"))
    return flow.frame if certain else observed(flow.frame, "keyless", **left_out).where(present)


def _task(native: NativeAggregate) -> Column:
    return F.lit(0) if native.repartitioned is not None else F.col("p")


def _windowed(slim: DataFrame, native: NativeAggregate, timing: Timing, bound: BoundAggregate) -> Aggregated:
    """Windows are told in Python, where the stream's time is; parts of results are made there as well."""
    partials = Partials(BY_WINDOW, native.parts) if native.parts else None
    if partials is not None:
        columns = [f"`{name}` {spark_type(kind)}" for name, kind in partials.columns().items()]
    else:
        others = [field for field in slim.schema.fields if field.name not in ("p", "o")]
        columns = [f"`{field.name}` {field.dataType.simpleString()}" for field in others]
        columns += ["task int", "hash int", "start bigint"]
    tasks = timing.tasks if native.repartitioned is not None else None
    stage = Windowing(timing.directory, tasks, windows_of(native), partials, dropped=timing.dropped)
    opened = slim.mapInArrow(stage, ", ".join(columns))
    if partials is not None:
        return merged_windows(opened, native, timing, bound)
    grouped = _watched(opened, native, timing).agg(aggregate_column(bound, F.col).alias("v"), *_latest())
    return _results(_with_bounds(grouped, native), native, bound.type)


def _latest() -> list[Column]:
    """Of a key's records: the latest time, and the number of the last one that came."""
    return [F.max("ts").alias("ts"), F.max("origin").alias("origin")]


# ---- of parts


def merged(frame: DataFrame, native: NativeAggregate, bound: BoundAggregate) -> Aggregated:
    """`frame`: columns task, kb, ts, origin and parts. `bound` is over leaves."""
    grouped = frame.groupBy(*BY_KEY).agg(*map(merged_part, native.parts), *_latest())
    return _results(grouped.withColumn("v", result_column(bound)), native, bound.type)


def merged_windows(frame: DataFrame, native: NativeAggregate, timing: Timing, bound: BoundAggregate) -> Aggregated:
    grouped = _watched(frame, native, timing).agg(*map(merged_part, native.parts), *_latest())
    made = grouped.withColumn("v", result_column(bound))
    return _results(_with_bounds(made, native), native, bound.type)


def whole_windows(frame: DataFrame, native: NativeAggregate, bound: BoundAggregate) -> Aggregated:
    """Of windows that nobody else knows a part of."""
    made = frame.withColumn("v", result_column(bound))
    return _results(made.withColumn("end", F.col("start") + windows_of(native).size_ms), native, bound.type)


def _watched(frame: DataFrame, native: NativeAggregate, timing: Timing) -> Any:
    """Spark evicts a window when the latest start is that much ahead of its own: never before its grace is over."""
    windows = windows_of(native)
    delay = windows.size_ms + windows.grace_ms + timing.retention_ms
    timed = frame.withColumn("window", F.timestamp_millis("start"))
    return timed.withWatermark("window", f"{delay} milliseconds").groupBy("task", "kb", "hash", "window")


def _with_bounds(grouped: DataFrame, native: NativeAggregate) -> DataFrame:
    start = F.unix_millis("window")
    return grouped.withColumn("start", start).withColumn("end", start + windows_of(native).size_ms).drop("window")


# ---- results


def _results(grouped: DataFrame, native: NativeAggregate, kind: Type) -> Aggregated:
    store = native.store
    assert store.key_serde is not None and store.value_serde is not None
    key = decode_column(store.key_serde, F.col("kb")).value
    key_type = store.key_serde.type
    if native.windowed:
        key = F.struct(key.alias("key"), F.col("start"), F.col("end"))
        key_type = windowed(key_type)
    frame = grouped.select(
        key.alias("k"),
        "v",
        "ts",
        F.col("task").alias("p"),
        # Rows of one partition go out in the order of their times, those of windows with the oldest first.
        F.col("start" if native.windowed else "ts").alias("o"),
        F.lit(AGGREGATE_RESULT).alias("t"),
        _origin_mark().alias("h"),
        F.lit(0).alias("seq"),
        "kb",
        encode_column(store.value_serde, F.col("v"), kind).alias("vb"),
        *(["hash", "start"] if native.windowed else []),
    )
    value_type = kind if kind == store.value_serde.type or kind.name != "any" else store.value_serde.type
    known = KeyBytes(store_serde(native), key_bytes(native))
    return Aggregated(Flow(frame, key_type, value_type, key_bytes=known), "hash" if native.windowed else None)


def _origin_mark() -> Column:
    """In place of the headers, where the last record has some: the sink knows how to find them."""
    origin = F.col("origin")
    mark = F.struct(F.lit(MARK).alias("key"), bytes_of_long(origin).alias("value"))
    return F.when(origin.bitwiseAND(1) == 1, F.array(mark)).cast(named(r.HEADERS_TYPE))


def changelog_row(native: NativeAggregate, topic: str) -> Column:
    """As Kafka's stores log a change: the plain value, whose time is that of the record, and no headers; a deletion
    without value."""
    key, partition = F.col("kb"), null("int")
    if native.windowed:
        key, partition = F.concat(F.col("kb"), bytes_of_long(F.col("start")), bytes_of_int(F.lit(0))), F.col("p")
    elif native.repartitioned is None:
        partition = F.col("p")
    return row(topic=F.lit(topic), partition=partition, key=key, value=F.col("vb"), headers=null(r.HEADERS_TYPE))


def result_row(native: NativeAggregate) -> Column:
    """For a Python stage behind the aggregate, which reads it with the serdes of the store."""
    return row(topic=F.lit(AGGREGATE_RESULT), partition=F.col("p"), key=key_bytes(native), value=F.col("vb"))


def key_bytes(native: NativeAggregate) -> Column:
    """The keys of the results, as they lie in a topic."""
    return F.concat(F.col("kb"), bytes_of_long(F.col("start"))) if native.windowed else F.col("kb")


def store_serde(native: NativeAggregate) -> Serde[Any]:
    """Of the keys that come out of the aggregate."""
    assert native.store.key_serde is not None
    serde = native.store.key_serde
    return TimeWindowedSerde(serde, windows_of(native).size_ms) if native.windowed else serde
