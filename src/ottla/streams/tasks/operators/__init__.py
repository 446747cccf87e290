"""What each operation of a topology does with a record. No I/O, no clock, no Spark.

The test driver and Spark's tasks run the same code.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.streams.tasks.operators.aggregates import Aggregating, SessionAggregating, WindowAggregating
from ottla.streams.tasks.operators.joins import Buffering, Joining, TableJoining
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
from ottla.streams.tasks.operators.tables import (
    Reading,
    Regrouping,
    Streaming,
    Suppressing,
    TableAggregating,
    TableFiltering,
    TableMappingValues,
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
    ops.StreamAggregate: Aggregating,
    ops.WindowAggregate: WindowAggregating,
    ops.SessionAggregate: SessionAggregating,
    ops.TableSource: Reading,
    ops.TableFilter: TableFiltering,
    ops.TableMapValues: TableMappingValues,
    ops.TableToStream: Streaming,
    ops.TableRepartitionMap: Regrouping,
    ops.TableAggregate: TableAggregating,
    ops.Suppress: Suppressing,
    ops.BufferSide: Buffering,
    ops.StreamStreamJoin: Joining,
    ops.StreamTableJoin: TableJoining,
    ops.StreamGlobalJoin: TableJoining,
}


def processor_for(operation: ops.Operation) -> Processor:
    """A new processor: `init` with a task's context comes next. Each task needs its own."""
    maker = _MAKERS.get(type(operation))
    if maker is None:
        raise TypeError(f"{type(operation).__name__} cannot be run record by record")
    return maker(operation)
