"""A line of nodes from a source of a task to a topic, over columns of Arrow: joins with a table are looked up once for
each key, and no record becomes a Python object.

What `tasks.chains` does record by record, where functions are expressions that Arrow has as well. It knows of no errors
either: where anything raises, the records go the other way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ottla.pipelines.rows import have_no_headers
from ottla.serdes.arrow import arrow_type
from ottla.serdes.base import Serde
from ottla.serdes.types import Type
from ottla.streams.expressions import Expression
from ottla.streams.expressions.vectors import why_no_vector
from ottla.streams.plan.in_source import ALWAYS_READABLE, why_no_node
from ottla.streams.run.stages import AtOnce, EncodedColumns
from ottla.streams.run.vectors import Records, decoded, encoded, through, without
from ottla.streams.tasks.chains import Chain, Table
from ottla.streams.tasks.operators.base import NULL_KEY_OR_VALUE
from ottla.streams.topology import operations as op
from ottla.streams.topology.graph import Node, ProcessorNode, SinkNode, SubTopology
from ottla.streams.topology.node_types import NodeTypes

_RIGHT: Final = "right"


@dataclass(frozen=True, slots=True)
class VectorLine:
    """Of a chain that has one sink and no branches."""

    chain: Chain
    nodes: tuple[ProcessorNode, ...]
    types: Mapping[str, Mapping[str, Type]]
    """What the joiner of each join sees."""
    tables: Mapping[str, Table]

    def run(self, batch: pa.RecordBatch) -> AtOnce | None:
        """None where there are headers, or times that are none. Raises whatever Arrow raises."""
        times = batch.column("timestamp")
        if not have_no_headers(batch.column("headers")) or pc.min(times).as_py() < 0:
            return None
        dropped: Counter[str] = Counter()
        records = Records.of(batch)
        serdes = {"key": _serde(self.chain.source.key_serde), "value": _serde(self.chain.source.value_serde)}
        records = records.having(**{name: decoded(serde, records.column(name))[0] for name, serde in serdes.items()})
        types = {name: serde.type for name, serde in serdes.items()}
        for node in self.nodes:
            match node.operation:
                case op.StreamTableJoin() as join:
                    records = self._joined(node.name, join, records, types, dropped)
                case operation:
                    records = through(operation, records, types, dropped)
        (sink,) = self.chain.sinks
        (topic,) = self.chain.topics
        key, value = (
            encoded(_serde(serde), records.column(name))
            for name, serde in (("key", sink.key_serde), ("value", sink.value_serde))
        )
        nothing = pa.nulls(records.count, batch.column("headers").type)
        made = EncodedColumns(topic, key, value, records.column("timestamp"), nothing)
        return AtOnce(batch.column("partition")[0].as_py(), batch.column("offset")[0].as_py(), [made], dict(dropped))

    def _joined(
        self, name: str, join: op.StreamTableJoin, records: Records, types: dict[str, Type], dropped: Counter[str]
    ) -> Records:
        there = records.column("value").is_valid()
        if not join.left:
            there = pc.and_(there, records.column("key").is_valid())
        records = without(records, there, NULL_KEY_OR_VALUE, dropped)
        codes = records.column("key").dictionary_encode()
        find, seen = self.tables[name].find, self.types[name]
        rows = [find(key) for key in codes.dictionary.to_pylist()]
        values = pa.array([None if row is None else row[0] for row in rows], arrow_type(seen[_RIGHT]))
        if not join.left:
            matched = pa.array([row is not None for row in rows], pa.bool_()).take(codes.indices)
            records, codes = records.where(matched), codes.filter(matched)
        joined = records.having(left=records.column("value"), right=values.take(codes.indices))
        assert isinstance(join.joiner, Expression)
        bound = join.joiner.bind(seen)
        types["value"] = bound.type
        return joined.having(value=joined.compute(bound))


def line_of(chain: Chain, sub: SubTopology, types: NodeTypes, tables: Mapping[str, Table]) -> VectorLine | None:
    """None where records have to be looked at one by one."""
    source = chain.source
    nodes: list[ProcessorNode] = []
    last: Node = source
    while not isinstance(last, SinkNode):
        children = [node for node in sub.nodes if last.name in node.parents]
        if len(children) != 1 or children[0].parents != (last.name,):
            return None
        (last,) = children
        if isinstance(last, ProcessorNode):
            nodes.append(last)
    ends = (source.key_serde, source.value_serde, last.key_serde, last.value_serde)
    if any(type(serde) not in ALWAYS_READABLE for serde in ends):
        return None
    seen: dict[str, Mapping[str, Type]] = {}
    for node in nodes:
        given = types.given[node.name]
        if isinstance(node.operation, op.StreamTableJoin):
            seen[node.name] = types.joined(node.name, node.operation)
            if not _is_vector(node.operation, seen[node.name]):
                return None
        elif why_no_node(node, given.key, given.value) is not None:
            return None
    out = types.given[last.name]
    if (out.key, out.value) != (_serde(last.key_serde).type, _serde(last.value_serde).type):
        return None
    return VectorLine(chain, tuple(nodes), seen, tables)


def _is_vector(join: op.StreamTableJoin, types: Mapping[str, Type]) -> bool:
    function: Any = join.joiner
    return isinstance(function, Expression) and why_no_vector(function.bind(types)) is None


def _serde(serde: Serde[Any] | None) -> Serde[Any]:
    assert serde is not None, "line_of has looked"
    return serde
