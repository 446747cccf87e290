"""A case on our own tasks as Spark runs them: one task per sub-topology, which lives for one micro-batch only.

What a task knows has to be in its stores and in what it saves: after each batch it is thrown away, and the next one
begins with those. No Spark here, so that every operator can be put through it.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

from ottla.streams import Topology
from ottla.streams.record import Raw
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.memory_stores import MemoryBackend
from ottla.streams.tasks.offset_metadata import decode, encode
from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.tasks.stores.key_value import KeyValues
from ottla.streams.tasks.task import Task
from ottla.streams.topology.graph import SourceNode, SubTopology, changelog_topic, decorated
from tests.oracle.cases import Answer, Case, Input, Written
from tests.oracle.ours import settings_of
from tests.oracle.topologies import topology_of

APPLICATION = "oracle"


def in_batches(case: Case, size: int = 1, *, lost: bool = False) -> Answer:
    """`size` inputs make a batch. Outputs of a batch stand where its last input is. With `lost` nothing is left of a
    task when a batch has ended but its changelogs, and what was committed beside the offsets of its inputs."""
    return topology_in_batches(topology_of(case), case, size, lost=lost)


def topology_in_batches(topology: Topology, case: Case, size: int = 1, *, lost: bool = False) -> Answer:
    runner = _Runner(topology if case.cache else topology.without_caches(), settings_of(case), lost=lost)
    answer = Answer()
    waiting: list[Input] = []
    for number, step in enumerate(case.inputs, 1):
        waiting.append(step)
        last = number == len(case.inputs) or "advance_wall_clock" in step
        if len(waiting) < size and not last:
            answer.outputs.append([])
            continue
        answer.outputs.append(list(runner.batch(waiting)))
        waiting = []
    return answer


def raw_of(step: Input, offset: int) -> Raw:
    headers = tuple((name, _bytes(value)) for name, value in step["headers"])
    return Raw(step["topic"], 0, offset, _bytes(step["key"]), _bytes(step["value"]), step["timestamp"], headers)


def written(raw: Raw) -> Written:
    headers = tuple((name, _text(value)) for name, value in raw.headers)
    return Written(raw.topic, _text(raw.key), _text(raw.value), raw.timestamp, headers)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


class _Piece:
    """A sub-topology and what stays of it between batches."""

    def __init__(
        self,
        sub_topology: SubTopology,
        topology: Topology,
        shared: dict[str, KeyValues],
        settings: dict[str, str],
        *,
        lost: bool,
    ) -> None:
        self._settings = settings
        self._lost = lost
        self._log: list[Raw] = []
        self._reused = {store.name: store.source_topic for store in sub_topology.stores}
        self._committed: dict[tuple[str, int], str] = {}
        graph = topology.graph
        self.sub_topology = sub_topology
        self._graph = graph
        self._shared = shared
        self._backends: dict[str, MemoryBackend] = {}
        self._saved: bytes | None = None
        sources = [node for node in sub_topology.nodes if isinstance(node, SourceNode)]
        topics = {topic for node in sources for topic in node.topics}
        self.topics = {decorated(APPLICATION, name) if name in graph.repartition_topics else name for name in topics}

    def batch(self, records: list[Raw], now: int, *, tick: bool) -> list[Raw]:
        task = Task(
            self.sub_topology,
            self._graph,
            APPLICATION,
            0,
            self._backend,
            self._settings,
            global_stores=self._shared,
            now=now,
        )
        if self._lost:
            self._restore(task)
        elif self._saved is not None:
            task.restore(self._saved)
        out = task.advance_wall_clock(now) if tick else task.process(records, now)
        out += task.commit()
        self._saved = task.save()
        if self._lost:
            self._log += [*records, *out]
            self._committed = {place: encode(times) for place, times in task.times().items()}
            self._backends = {}
        task.close()
        return out

    def _restore(self, task: Task) -> None:
        for name, store in task.stores.items():
            for raw in self._log:
                if raw.topic == (self._reused.get(name) or changelog_topic(APPLICATION, name)) and raw.key is not None:
                    store.restore(raw.key, raw.value, raw.timestamp, raw.headers)
                    # As if every record were one too many for memory.
                    store.flush()
                    store.forget()
        task.resume({place: decode(said) for place, said in self._committed.items()})

    def _backend(self, name: str) -> MemoryBackend:
        return self._backends.setdefault(name, MemoryBackend())


class _Runner:
    def __init__(self, topology: Topology, settings: dict[str, str], *, lost: bool) -> None:
        self._shared: dict[str, KeyValues] = {}
        self._global_topics: dict[str, KeyValues] = {}
        for table in topology.graph.global_tables.values():
            key = table.store.key_serde or Serdes.string
            value = table.store.value_serde or Serdes.string
            store = KeyValues(table.store, StoreContext(MemoryBackend(), key, value))
            self._shared[table.store.name] = self._global_topics[table.topic] = store
        self._pieces = [_Piece(each, topology, self._shared, settings, lost=lost) for each in topology.sub_topologies()]
        self._offsets: dict[str, int] = {}
        self._now = 0

    def batch(self, steps: list[Input]) -> Iterator[Written]:
        records = [step for step in steps if "topic" in step]
        clocks = [step["advance_wall_clock"] for step in steps if "advance_wall_clock" in step]
        found = self._flow([raw_of(step, self._next_offset(step["topic"])) for step in records])
        for advance in clocks:
            self._now += advance
            for piece in self._pieces:
                found += self._flow_on(piece.batch([], self._now, tick=True))
        yield from sorted((written(raw) for raw in found), key=lambda each: each.topic)

    def _next_offset(self, topic: str) -> int:
        self._offsets[topic] = self._offsets.get(topic, -1) + 1
        return self._offsets[topic]

    def _flow(self, records: list[Raw]) -> list[Raw]:
        """Through one sub-topology after the other, for as long as they feed each other."""
        found: list[Raw] = []
        queue = deque([records])
        while queue:
            batch = queue.popleft()
            for raw in batch:
                if raw.topic in self._global_topics:
                    self._learn(raw)
            for piece in self._pieces:
                mine = [raw for raw in batch if raw.topic in piece.topics]
                if mine:
                    out = piece.batch(mine, self._now, tick=False)
                    found += out
                    queue.append(self._numbered(out))
        return found

    def _flow_on(self, out: list[Raw]) -> list[Raw]:
        return out + self._flow(self._numbered(out))

    def _numbered(self, out: list[Raw]) -> list[Raw]:
        read = set(self._global_topics).union(*(piece.topics for piece in self._pieces))
        return [raw._replace(partition=0, offset=self._next_offset(raw.topic)) for raw in out if raw.topic in read]

    def _learn(self, raw: Raw) -> None:
        store = self._global_topics[raw.topic]
        key: Any = raw.key
        if key is None:
            return
        value = None if raw.value is None else (store.spec.value_serde or Serdes.string).deserialize(raw.value)
        store.write(key, value, raw.timestamp)
