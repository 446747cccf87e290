"""Records of one input partition that go through the nodes behind it together.

Where a source leads to nothing that remembers (`chains`), its records need not go one by one: those that stand between
two records of the other input are one run. A run that raises is gone through again by the task, record by record.
"""

from collections.abc import Mapping
from itertools import repeat
from typing import Any, Final, NamedTuple

from ottla.streams.record import Raw, Record
from ottla.streams.tasks.chains import Chain, Table, chain_behind, is_text, text_bytes
from ottla.streams.tasks.current import TaskState, new
from ottla.streams.tasks.inputs import Queue, Source
from ottla.streams.tasks.nodes import TaskNodes
from ottla.streams.tasks.operators.joins import TableJoining
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.topology.graph import ProcessorNode, SourceNode, SubTopology
from ottla.streams.topology.node_types import NodeTypes
from ottla.streams.topology.operations import StreamTableJoin

FEWEST: Final = 64
"""For fewer records no loop is compiled."""


class Run:
    """The records of a partition, deserialized, and how far they have gone."""

    __slots__ = ("at", "headers", "keys", "raws", "times", "values")

    def __init__(self, queue: Queue) -> None:
        """Raises whatever a serde raises."""
        raws = list(queue.raws)
        source = queue.source
        key_of, value_of = source.key_of, source.value_of
        self.raws = raws
        self.keys = [None if raw[3] is None else key_of(raw[3]) for raw in raws]
        self.values = [None if raw[4] is None else value_of(raw[4]) for raw in raws]
        self.times = [raw[5] for raw in raws]
        self.headers = [raw[6] for raw in raws] if any(raw[6] for raw in raws) else None
        self.at = 0

    def until(self, time: int) -> int:
        """The place of the first record behind the next one that is not older than `time`."""
        at, times = self.at + 1, self.times
        end = len(times)
        while at < end and times[at] < time:
            at += 1
        return at


class Way(NamedTuple):
    """What the records of a source go through, for whoever has columns of them instead of records."""

    chain: Chain
    sub: SubTopology
    types: NodeTypes
    tables: Mapping[str, Table]


class Bulk:
    """Which sources of a task have a chain."""

    __slots__ = ("_chains", "_nodes", "_state", "_stores", "_sub")

    def __init__(self, state: TaskState, nodes: TaskNodes, sub: SubTopology, stores: Mapping[str, Any]) -> None:
        self._state = state
        self._nodes = nodes
        self._sub = sub
        self._stores = stores
        self._chains: dict[str, Chain | None] = {}

    def run_of(self, queue: Queue) -> Run | None:
        """None if its records have to go one by one."""
        if len(queue.raws) < FEWEST or queue.source.extract is not None or self._chain(queue.source.node) is None:
            return None
        try:
            run = Run(queue)
        except Exception:  # noqa: BLE001  whoever reads them one by one finds out which it is
            return None
        return run if min(run.times) >= 0 else None

    def way_of(self, source: Source) -> Way | None:
        """None if its records have to go one by one."""
        chain = None if source.extract is not None else self._chain(source.node)
        return None if chain is None else Way(chain, self._sub, self._nodes.types, self._tables())

    def passed(self, queue: Queue, latest: int, dropped: Mapping[str, int]) -> None:
        """What the task has to know of records that went through."""
        state = self._state
        for reason, number in dropped.items():
            state.dropped[reason] = state.dropped.get(reason, 0) + number
        state.stream_time = max(state.stream_time, latest)
        queue.time = max(queue.time, latest)

    def pass_on(self, queue: Queue, run: Run, end: int) -> list[tuple[Raw, Record]]:
        """Lets the records up to `end` through. Those that are returned have to go one by one."""
        chain = self._chain(queue.source.node)
        assert chain is not None
        some = slice(run.at, end)
        run.at = end
        keys, values, times = run.keys[some], run.values[some], run.times[some]
        headers = None if run.headers is None else run.headers[some]
        try:
            made, dropped = chain.run(keys, values, times, headers)
            rows = [row for sink, columns in zip(chain.sinks, made, strict=True) for row in _rows(sink, columns)]
        except Exception:  # noqa: BLE001  the task finds out what it is about
            records = zip(keys, values, times, headers or repeat(()), strict=False)
            return list(zip(run.raws[some], map(new, repeat(Record), records), strict=False))
        self._state.outputs += rows
        self.passed(queue, max(times), dropped)
        return []

    def _chain(self, source: SourceNode) -> Chain | None:
        if source.name not in self._chains:
            state = self._state
            self._chains[source.name] = chain_behind(
                source, self._sub, self._nodes.types, state.application_id, self._tables()
            )
        return self._chains[source.name]

    def _tables(self) -> dict[str, Table]:
        """Those of joins that look into a plain store, as it is."""
        found: dict[str, Table] = {}
        for node in self._sub.nodes:
            if not isinstance(node, ProcessorNode) or not isinstance(node.operation, StreamTableJoin):
                continue
            store, join = self._stores.get(node.operation.table_store), self._nodes.processor(node.name)
            if node.operation.view or not isinstance(store, KeyValues) or type(join) is not TableJoining:
                continue
            text = is_text(store.spec.key_serde) and is_text(store.spec.value_serde)
            found[node.name] = Table(join.find, text)
        return found


def _rows(sink: Any, columns: Any) -> Any:
    keys = text_bytes(columns.keys) if is_text(sink.key_serde) else columns.keys
    values = text_bytes(columns.values) if is_text(sink.value_serde) else columns.values
    headers = columns.headers or repeat(())
    cells = zip(repeat(columns.topic), repeat(-1), repeat(-1), keys, values, columns.times, headers, strict=False)
    return map(new, repeat(Raw), cells)
