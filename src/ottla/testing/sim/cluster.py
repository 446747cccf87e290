"""A whole cluster with clients under a seed: faults for a while, then peace in which everything must come right.

Three nodes, each broker and controller, replicate a topic with min.insync.replicas=2. Writers and readers keep a
history. Processes are killed, power is cut, links are cut in one or both directions, connections are reset, clocks
jump. A power cut is only allowed while every replica is in sync, and nothing is killed until it is made good: the
controller cannot tell a kill from a power cut (KIP-966), and of several of them Kafka's promise covers one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any, ClassVar, Final

from ottla.metadata.image import MetadataImage
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.testing.checkers import (
    Leadership,
    OneLeaderPerEpoch,
    ReplicasIdentical,
    Verdict,
    WatermarksAdvance,
    judge,
    operations,
)
from ottla.testing.sim.clients import History, Reader, Routing, Writer
from ottla.testing.sim.loop import Deadlock, Life, SimLoop, hushed
from ottla.testing.sim.network import CALM, SimNetwork, SimPeers, Weather
from ottla.testing.sim.world import Machine

NODES: Final = (1, 2, 3)
TOPIC: Final = "t"
PARTITIONS: Final = 2
_CONVERGE_SECONDS: Final = 120.0
_SAMPLE_SECONDS: Final = 0.02
_DIRECTORIES: Final = ("/data", "/more")


@dataclass(slots=True)
class Report:
    """What a seed showed. No problem and a fair number of acknowledged records: it passed."""

    seed: int
    simulation: str = "cluster"
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0
    read: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    virtual_seconds: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)
    """Of clients that have to be allowed what they do."""
    trace: str = ""
    """Two runs of a seed have the same one."""

    def __str__(self) -> str:
        told = ", ".join(f"{count} x {name}" for name, count in self.faults.items())
        lines = [
            f"seed {self.seed}: {self.acknowledged} records acknowledged, {self.read} read in "
            f"{self.virtual_seconds:.0f} s; {told}",
            *self.problems[:10],
        ]
        if self.problems:
            lines.append(f"again: python -m ottla.testing.sim {self.simulation} --seed {self.seed}")
        return "\n".join(lines)


def run(seed: int, *, fault_seconds: float = 20.0, kind: "type[Simulation] | None" = None) -> Report:
    with hushed():
        simulation = (kind or Simulation)(seed, fault_seconds)
        try:
            return simulation.run()
        finally:
            simulation.close()


class Simulation:
    topics: ClassVar[Mapping[str, int]] = {TOPIC: PARTITIONS}
    """Made before anything goes wrong, with their partitions."""
    more_settings: ClassVar[Mapping[str, str]] = {}

    def __init__(self, seed: int, fault_seconds: float) -> None:
        self._dice = Random(seed)
        self._fault_seconds = fault_seconds
        self.report = Report(seed)
        self._loop = SimLoop(self._dice)
        self._network = SimNetwork(self._loop, self._dice)
        self._machines = {
            node_id: Machine(node_id, _settings(node_id, self.more_settings), self._loop, self._network, self._dice)
            for node_id in NODES
        }
        self._clients = Life("clients")
        self._history = History(self._loop)
        self._leaderships: dict[Leadership, None] = {}
        self._digests: dict[int, tuple[int, int]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._moves: list[asyncio.Task[Any]] = []
        self._wounded = False
        """A machine has lost power and what it lost is not back on it yet."""

    def run(self) -> Report:
        try:
            self._clients.run(self._loop.run_until_complete, self._everything())
        except Deadlock:
            self.report.problems.append("deadlock: nothing is ready and no timer is set")
        self._judge()
        return self.report

    def close(self) -> None:
        for machine in self._machines.values():
            if machine.up:
                machine.kill()
        self._clients.end()
        self._loop.close()

    # ---- the story

    async def _everything(self) -> None:
        for machine in self._machines.values():
            machine.start()
        if not await self._create_topic():
            self.report.problems.append("the cluster did not form: the topic could not be created")
            return
        writers = [Writer(self._routing(), self._history, self._dice, p) for p in range(PARTITIONS) for _ in range(2)]
        readers = [Reader(self._routing(), self._history, self._dice, p) for p in range(PARTITIONS)]
        runs = [*(writer.run() for writer in writers), *(reader.run() for reader in readers)]
        self._tasks = [asyncio.ensure_future(run) for run in runs]
        others = [asyncio.ensure_future(run) for run in self._others()]
        watching = asyncio.ensure_future(self._watch())
        await self._faults(readers)
        await self._heal()
        for writer in writers:
            writer.stopping = True
        await self._converge(readers)
        watching.cancel()
        for reader in readers:
            reader.stopping = True
        self._end_others()
        await asyncio.wait([*self._tasks, *others])
        self.report.virtual_seconds = self._loop.time()

    def _others(self) -> Sequence[Coroutine[None, None, None]]:
        """Clients beside those of the log, until `_end_others`."""
        return ()

    def _end_others(self) -> None: ...

    def _routing(self, topic: str = TOPIC) -> Routing:
        nodes = [machine.address for machine in self._machines.values()]
        # Connections of its own: a fetch that waits must not hold up somebody else's answer.
        return Routing(SimPeers(self._network, self._clients, "client"), nodes, topic, self._dice)

    async def _create_topic(self) -> bool:
        kind = messages.CreateTopicsRequest
        request = kind(
            topics=[
                kind.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=len(NODES),
                    configs=[kind.CreatableTopicConfig(name="min.insync.replicas", value="2")],
                )
                for name, partitions in self.topics.items()
            ],
            timeout_ms=5_000,
        )
        routing = self._routing()
        while self._loop.time() < _CONVERGE_SECONDS:
            await routing.ask(self._machines[self._dice.choice(NODES)].address, request)
            await routing.refresh()
            if len(routing.leaders) == PARTITIONS:
                return True
            await asyncio.sleep(0.1)
        return False

    # ---- faults

    async def _faults(self, readers: list[Reader]) -> None:
        end = self._loop.time() + self._fault_seconds
        kinds: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "kill all": self._kill_all,
            "power cut": self._cut_power,
            "isolate": self._isolate,
            "one-way cut": self._one_way,
            "reset": self._network.reset_some,
            "bad weather": self._bad_weather,
            "clock jump": self._jump,
            "full disk": self._fill_a_disk,
            "broken directory": self._break_a_directory,
            "move": self._move_a_replica,
            "heal": self._mend,
        }
        names = list(kinds)
        weights = [4, 1, 2, 2, 2, 2, 1, 1, 2, 1, 3, 3]
        while self._loop.time() < end:
            await asyncio.sleep(self._dice.expovariate(1.0))
            self._wounded = self._wounded and not self._all_in_sync()
            (name,) = self._dice.choices(names, weights)
            kinds[name]()
            self.report.faults[name] = self.report.faults.get(name, 0) + 1
            self._restart_some()
            await self._dice.choice(readers).end()

    def _kill(self) -> None:
        up = [machine for machine in self._machines.values() if machine.up]
        if up and not self._wounded:
            self._dice.choice(up).kill()

    def _kill_all(self) -> None:
        for machine in self._machines.values():
            if machine.up and not self._wounded:
                machine.kill()

    def _cut_power(self) -> None:
        if not self._wounded and self._all_in_sync():
            self._wounded = True
            self._machines[self._dice.choice(NODES)].cut_power()

    def _all_in_sync(self) -> bool:
        images = [machine.image for machine in self._machines.values()]
        return all(image is not None and _all_in_sync(image) for image in images)

    def _isolate(self) -> None:
        lonely = f"node-{self._dice.choice(NODES)}"
        for other in NODES:
            if f"node-{other}" != lonely:
                self._network.cut(lonely, f"node-{other}")
                self._network.cut(f"node-{other}", lonely)

    def _one_way(self) -> None:
        one, other = self._dice.sample(NODES, 2)
        self._network.cut(f"node-{one}", f"node-{other}")

    def _bad_weather(self) -> None:
        self._network.weather = Weather(
            delay_high=self._dice.choice((0.003, 0.05)), slow=0.05, slow_seconds=1.0, reset=0.001
        )

    def _jump(self) -> None:
        machine = self._machines[self._dice.choice(NODES)]
        machine.clock.jump_ms += self._dice.choice((-3_600_000, 3_600_000, 1_000))

    def _fill_a_disk(self) -> None:
        machine = self._machines[self._dice.choice(NODES)]
        machine.disk.room = machine.disk.used + self._dice.randrange(2_000)

    def _break_a_directory(self) -> None:
        """Not the one with the metadata, which its node cannot do without."""
        self._machines[self._dice.choice(NODES)].disk.broken_below = _DIRECTORIES[1]

    def _move_a_replica(self) -> None:
        """To another directory of its node, or back while it is on its way (KIP-113)."""
        kind = messages.AlterReplicaLogDirsRequest
        topic = kind.AlterReplicaLogDirTopic(TOPIC, [self._dice.randrange(PARTITIONS)])
        request = kind([kind.AlterReplicaLogDir(self._dice.choice(_DIRECTORIES), [topic])])
        asking = self._routing().ask(self._machines[self._dice.choice(NODES)].address, request)
        self._moves.append(asyncio.ensure_future(asking))

    def _mend(self) -> None:
        self._network.weather = Weather()
        self._network.heal()
        self._make_room()

    def _make_room(self) -> None:
        for machine in self._machines.values():
            machine.disk.room = None

    def _restart_some(self) -> None:
        for machine in self._machines.values():
            if machine.has_given_up:
                machine.kill()
            if not machine.up and self._dice.random() < 0.5:
                machine.disk.room = None  # nobody starts a node on a disk that is full
                if self._dice.random() < 0.5:
                    machine.disk.broken_below = ""
                machine.start()

    # ---- peace

    async def _heal(self) -> None:
        self._network.weather = CALM
        self._network.heal()
        self._make_room()
        for machine in self._machines.values():
            if machine.has_given_up or (machine.up and machine.disk.broken_below):
                machine.kill()
            machine.disk.broken_below = ""
            if not machine.up:
                machine.start()

    async def _converge(self, readers: list[Reader]) -> None:
        deadline = self._loop.time() + _CONVERGE_SECONDS
        while self._loop.time() < deadline:
            writing = [task for task in self._tasks[: -len(readers)] if not task.done()]
            if not writing and self._all_in_sync():
                ends = [await reader.end() for reader in readers]
                if all(end is not None and reader.offset >= end for reader, end in zip(readers, ends, strict=True)):
                    return
            await asyncio.sleep(0.1)
        self.report.problems.append(f"not converged {_CONVERGE_SECONDS:.0f} s after healing: {self._state()}")

    def _state(self) -> str:
        found = []
        for machine in self._machines.values():
            image = machine.image
            if image is None:
                found.append(f"node {machine.node_id} down")
            else:
                topic = image.topics.get(TOPIC)
                parts = {} if topic is None else {i: (p.leader, p.isr) for i, p in topic.partitions.items()}
                found.append(f"node {machine.node_id} at offset {image.offset}: {parts}")
        return "; ".join(found)

    # ---- looking

    async def _watch(self) -> None:
        while True:
            for machine in self._machines.values():
                image = machine.image
                if image is not None:
                    self._look(machine.node_id, image)
            await asyncio.sleep(_SAMPLE_SECONDS)

    def _look(self, node_id: int, image: MetadataImage) -> None:
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                if partition.leader >= 0:
                    self._leaderships[Leadership(f"{topic.name}-{index}", partition.leader_epoch, partition.leader)] = (
                        None
                    )
        digest = hash((repr(image.topics_by_id), repr(image.configs), repr(image.features)))
        first = self._digests.setdefault(image.offset, (node_id, digest))
        if first[1] != digest:
            self.report.problems.append(
                f"nodes {first[0]} and {node_id} have different images at offset {image.offset} of the metadata log"
            )

    def _judge(self) -> None:
        verdict: Verdict = judge(operations(self._history.events))
        self.report.acknowledged, self.report.read = verdict.acknowledged, verdict.read
        if not verdict.valid:
            self.report.problems += str(verdict).splitlines()
        self.report.problems += map(str, WatermarksAdvance().find(self._history.watermarks))
        self.report.problems += map(str, OneLeaderPerEpoch().find(self._leaderships))
        self.report.problems += self._differing_replicas()
        self.report.problems += [f"a task died: {_death(context)}" for context in self._loop.errors]
        if not verdict.acknowledged:
            self.report.problems.append("nothing was acknowledged")
        self.report.trace = sha256(repr(self._history.events).encode()).hexdigest()[:16]

    def _differing_replicas(self) -> Iterator[str]:
        for index in range(PARTITIONS):
            name = f"{TOPIC}-{index}"
            end = max((w.high_watermark for w in self._history.watermarks if w.partition == name), default=0)
            replicas = {m.node_id: _segments(m, index) for m in self._machines.values()}
            yield from map(str, ReplicasIdentical().find(f"{TOPIC}-{index}", end, replicas))


def _death(context: dict[str, object]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"


def _all_in_sync(image: MetadataImage) -> bool:
    topic = image.topics.get(TOPIC)
    return topic is not None and all(len(p.isr) == len(NODES) and p.leader >= 0 for p in topic.partitions.values())


def _segments(machine: Machine, index: int) -> list[bytes]:
    for directory in (f"{path}/{TOPIC}-{index}" for path in _DIRECTORIES):
        if machine.disk.exists(directory):
            names = sorted(entry.name for entry in machine.disk.list(directory) if entry.name.endswith(".log"))
            return [machine.disk.read(f"{directory}/{name}") for name in names]
    return []


def _settings(node_id: int, more: Mapping[str, str]) -> Settings:
    voters = ",".join(f"{other}@node-{other}:9093" for other in NODES)
    return Settings.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://node-{node_id}:9092,CONTROLLER://node-{node_id}:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": ",".join(_DIRECTORIES),
            "min.insync.replicas": "2",
            "ottla.disk.reserve.bytes": "10000",
            "replica.lag.time.max.ms": "3000",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "log.retention.check.interval.ms": "300000",
            **more,
        }
    )
