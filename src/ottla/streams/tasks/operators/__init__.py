"""What each operation of a topology does with a record. No I/O, no clock, no Spark.

The test driver and Spark's tasks run the same code.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.tasks.operators.aggregates import SessionAggregating
from ottla.streams.tasks.operators.batches import stream_aggregating, window_aggregating
from ottla.streams.tasks.operators.foreign_keys import Answering, Receiving, Resolving, Sending, Telling
from ottla.streams.tasks.operators.joins import Buffering, Joining, SelfJoining, TableJoining, table_joining
from ottla.streams.tasks.operators.sliding import SlidingAggregating
from ottla.streams.tasks.operators.stateless import (
    Branching,
    DroppingNullKeys,
    Filtering,
    FlatMapping,
    FlatMappingValues,
    Passing,
    Peeking,
    SelectingKey,
    mapping_pairs,
    mapping_values,
)
from ottla.streams.tasks.operators.table_folds import table_aggregating
from ottla.streams.tasks.operators.table_joins import Merging, TableTableJoining
from ottla.streams.tasks.operators.tables import (
    Reading,
    Regrouping,
    Streaming,
    Suppressing,
    TableFiltering,
    TableMappingValues,
    TransformingValues,
)
from ottla.streams.tasks.operators.user import user_processor
from ottla.streams.topology import operations as ops
from ottla.streams.topology.processor import Processor

_MAKERS: Final[dict[type[ops.Operation], Callable[[Any], Processor]]] = {
    ops.PassThrough: lambda _: Passing(),
    ops.Filter: Filtering,
    ops.MapValues: mapping_values,
    ops.MapPairs: mapping_pairs,
    ops.FlatMap: FlatMapping,
    ops.FlatMapValues: FlatMappingValues,
    ops.SelectKey: SelectingKey,
    ops.Peek: Peeking,
    ops.Branch: Branching,
    ops.DropNullKeys: DroppingNullKeys,
    ops.UserProcessor: user_processor,
    ops.StreamAggregate: stream_aggregating,
    ops.WindowAggregate: window_aggregating,
    ops.UnlimitedAggregate: window_aggregating,
    ops.SlidingAggregate: SlidingAggregating,
    ops.SessionAggregate: SessionAggregating,
    ops.TableSource: Reading,
    ops.TableFilter: TableFiltering,
    ops.TableMapValues: TableMappingValues,
    ops.TableTransformValues: TransformingValues,
    ops.TableToStream: Streaming,
    ops.TableRepartitionMap: Regrouping,
    ops.TableAggregate: table_aggregating,
    ops.Suppress: Suppressing,
    ops.BufferSide: Buffering,
    ops.StreamStreamJoin: Joining,
    ops.StreamSelfJoin: SelfJoining,
    ops.StreamTableJoin: table_joining,
    ops.StreamGlobalJoin: TableJoining,
    ops.TableTableJoin: TableTableJoining,
    ops.TableMerge: Merging,
    ops.SubscriptionSend: Sending,
    ops.SubscriptionReceive: Receiving,
    ops.SubscriptionJoin: Answering,
    ops.ForeignTableJoin: Telling,
    ops.ResponseJoin: Resolving,
}


def processor_for(operation: ops.Operation) -> Processor:
    """A new processor: `init` with a task's context comes next. Each task needs its own."""
    maker = _MAKERS.get(type(operation))
    if maker is None:
        raise TypeError(f"{type(operation).__name__} cannot be run record by record")
    return maker(operation)
