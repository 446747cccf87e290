"""Simulated machines: a disk that survives its processes, a clock, dice, and a node that is killed and restarted."""

import asyncio
from collections.abc import Callable
from random import Random

from ottla.metadata.image import MetadataImage
from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.net.peer import Address
from ottla.node.node import Node
from ottla.node.surroundings import Surroundings
from ottla.runtime.disk import Done, Job
from ottla.storage.fs import NO_ROOM, StorageError
from ottla.testing.cleaner import CleanerInPlace
from ottla.testing.disk import SimDisk
from ottla.testing.sim.loop import Life, SimLoop
from ottla.testing.sim.network import SimNetwork, SimPeers, SimServer

_WALL_START = 1_700_000_000_000


class SimClock:
    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.jump_ms = 0

    def wall(self) -> Millis:
        return Millis(_WALL_START + self.jump_ms + int(self._loop.time() * 1000))

    def monotonic(self) -> Millis:
        return Millis(int(self._loop.time() * 1000))


class SeededIds:
    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def uuid(self) -> Uuid:
        return Uuid(bytes([self._dice.randint(1, 127)]) + self._dice.randbytes(15))

    def number(self, low: int, high: int) -> int:
        return self._dice.randint(low, high)


class SlowDisk:
    """Jobs one after the other, each at some later moment; what was not done when its process dies is never done."""

    def __init__(self, loop: SimLoop, dice: Random) -> None:
        self._loop = loop
        self._dice = dice
        self._free_at = 0.0

    def run(self, job: Job, done: Done) -> None:
        self._free_at = max(self._free_at, self._loop.time()) + self._dice.choice((0.0005, 0.002, 0.02))
        self._loop.call_at(self._free_at, self._work, job, done)

    def _work(self, job: Job, done: Done) -> None:
        try:
            job()
        except OSError as error:
            done(error)
        else:
            done(None)

    def close(self) -> None:
        """Nothing to wait for: the loop runs what was given."""


class Machine:
    """One node of the cluster, over all its lives."""

    def __init__(self, node_id: int, settings: Settings, loop: SimLoop, network: SimNetwork, dice: Random) -> None:
        self.node_id = node_id
        self.name = f"node-{node_id}"
        self.clock = SimClock(loop)
        self.disk = SimDisk()
        self.node: Node | None = None
        self._settings = settings
        self._loop = loop
        self._network = network
        self._dice = dice
        self._life: Life | None = None
        self._knew = -1

    @property
    def up(self) -> bool:
        return self._life is not None and self._life.alive

    @property
    def has_given_up(self) -> bool:
        """As a node does that has lost its metadata log, or finds no room when it starts."""
        return self.up and self.node is not None and self.node.stopped.is_set()

    @property
    def image(self) -> MetadataImage | None:
        """What this node knows, if it is far enough to know anything."""
        return self.node.control_plane.image if self.up and self.node is not None and self.node.has_joined else None

    @property
    def furthest(self) -> int:
        """How far in the metadata log any life of this node has been."""
        image = self.image
        return self._knew if image is None else max(self._knew, image.offset)

    @property
    def address(self) -> Address:
        listener = self._settings.broker_listeners[0]
        return Address(listener.host, listener.port)

    def start(self) -> None:
        assert not self.up
        life = self._life = Life(self.name)
        surroundings = Surroundings(
            clock=self.clock,
            ids=SeededIds(self._dice),
            filesystem=self.disk,
            disk=lambda: SlowDisk(self._loop, self._dice),
            cleaner=lambda _: CleanerInPlace(self.disk),
            listen=lambda *_: SimServer(self._network, life),  # type: ignore[arg-type]
            peers=lambda _, name, ways: SimPeers(self._network, life, name),
        )
        node = self.node = Node(self._settings, surroundings=surroundings)
        life.run(lambda: self._loop.create_task(node.start()).add_done_callback(self._started))

    def _started(self, starting: "asyncio.Task[None]") -> None:
        problem = None if starting.cancelled() else starting.exception()
        if isinstance(problem, StorageError) and problem.errno in NO_ROOM:
            assert self.node is not None
            self.node.stopped.set()
        elif problem is not None:
            self._loop.call_exception_handler({"message": f"{self.name} cannot start", "exception": problem})

    def kill(self) -> None:
        """As kill -9: what was written stays, synced or not."""
        self._end(self.disk.killed)

    def cut_power(self) -> None:
        """What was not synced may be gone, in part, or torn."""
        self._end(lambda: self.disk.crash(self._dice))

    def _end(self, found: Callable[[], SimDisk]) -> None:
        assert self._life is not None
        self._knew = self.furthest
        self._life.end()
        self.disk = found()
        self.node = None
