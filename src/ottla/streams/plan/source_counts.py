"""When a source may count by key and window itself, so that records need not travel. Pure: no Spark here."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ottla.serdes import primitives
from ottla.streams.expressions import Aggregate
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import InvalidTimestamp, Node, ProcessorNode, SourceNode
from ottla.streams.topology.stores import StoreSpec

REASON: Final = "it counts by key and window and keeps the open windows, so that records need not travel"


def source_can_count(before: Sequence[Node], node: ProcessorNode, aggregate: Aggregate, store: StoreSpec) -> bool:
    """Whether nothing happens between the source and a windowed count, and no bytes could turn out unreadable."""
    source = before[0]
    return (
        isinstance(node.operation, op.WindowAggregate)
        and aggregate.counts_records
        and isinstance(source, SourceNode)
        and isinstance(source.key_serde, _ALWAYS_READABLE)
        and isinstance(source.value_serde, _ALWAYS_READABLE)
        and source.key_serde == store.key_serde
        and source.extractor.on_invalid is not InvalidTimestamp.PARTITION_TIME
        and _is_line((*before, node))
        and all(isinstance(each, ProcessorNode) and isinstance(each.operation, _NOTHING_DONE) for each in before[1:])
    )


def _is_line(nodes: Sequence[Node]) -> bool:
    return all(below.parents == (above.name,) for above, below in pairwise(nodes))


_NOTHING_DONE: Final = (op.PassThrough, op.DropNullKeys)
_ALWAYS_READABLE: Final = (primitives.StringSerde, primitives.BytesSerde)
