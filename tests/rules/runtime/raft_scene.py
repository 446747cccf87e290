"""Members of a quorum in one loop whose time jumps: real drivers and logs, a simulated disk each, messages by call."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

from ottla.metadata.image import MetadataImage
from ottla.metrics.counts import Traffic
from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.net.peer import Address, Then, Unreachable
from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import Message, Request, ResponseT_co
from ottla.raft.snapshots import SnapshotId
from ottla.runtime.committed import CommittedImage
from ottla.runtime.disk import InlineDisk
from ottla.runtime.formatting import identify
from ottla.runtime.metadata_log import MetadataLog, MetadataLogSettings
from ottla.runtime.raft_driver import RaftDriver, start_quorum
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from ottla.testing.sim.loop import SimLoop

T = TypeVar("T")
CLUSTER = "the-cluster-id-of-tests"
METADATA_VERSION = 30


class LoopClock:
    def wall(self) -> Millis:
        return Millis(1_700_000_000_000 + self.monotonic())

    def monotonic(self) -> Millis:
        return Millis(int(asyncio.get_running_loop().time() * 1000))


class RandomIds:
    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)

    def uuid(self) -> Uuid:
        return Uuid(self._dice.randbytes(15) + b"x")

    def number(self, low: int, high: int) -> int:
        return self._dice.randint(low, high)


class Wire:
    """Every message is encoded and decoded at the latest version, and may find its receiver gone."""

    def __init__(self) -> None:
        self.members: dict[Address, Member] = {}
        self._waiting: list[tuple[Address, Address, Then]] = []
        self.to_damage = 0
        """So many of the next answers with records arrive with a wrong bit."""

    def send(self, sender: Address, to: Address, request: Message, then: Then) -> None:
        loop = asyncio.get_running_loop()
        target = self.members.get(to)
        if target is None or not target.is_up or not self.members[sender].is_up:
            loop.call_soon(then, Unreachable("nobody is there"))
            return
        version = API[request.API_KEY].stable_max
        received = type(request).decode(memoryview(request.encode(version)), version)
        entry = (sender, to, then)
        self._waiting.append(entry)

        def answered(response: Message) -> None:
            if entry in self._waiting:
                self._waiting.remove(entry)
                self._damage(response)
                data = memoryview(response.encode(version))
                loop.call_later(0.001, lambda: then(type(response).decode(data, version)))

        loop.call_later(0.001, target.receive, received, version, answered)

    def _damage(self, response: Message) -> None:
        if self.to_damage and isinstance(response, messages.FetchResponse) and response.responses:
            partition = response.responses[0].partitions[0]
            if partition.records:
                self.to_damage -= 1
                partition.records = bytes(partition.records)[:-1] + b"!"

    def lost(self, address: Address) -> None:
        """Connections to and from it break."""
        for entry in [e for e in self._waiting if address in e[:2]]:
            self._waiting.remove(entry)
            asyncio.get_running_loop().call_soon(entry[2], Unreachable("the connection broke"))


class WirePeers:
    def __init__(self, wire: Wire, own: Address) -> None:
        self._wire = wire
        self._own = own
        self.traffic: dict[str, Traffic] = {}

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        self._wire.send(self._own, Address(*to), request, then)

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        raise NotImplementedError

    def close(self) -> None: ...


class Member:
    """A node as far as the quorum goes. It is the driver's listener and keeps the committed image."""

    def __init__(
        self,
        wire: Wire,
        node_id: int,
        settings: Settings,
        *,
        disk: Any = None,
        seed: int | None = None,
        cluster_id: str = CLUSTER,
    ) -> None:
        self.id = node_id
        self._seed = node_id if seed is None else seed
        self.wire = wire
        self.cluster_id = cluster_id
        self.settings = settings
        self.storage = SimDisk()
        self.disk = disk or InlineDisk()
        self.address = Address("127.0.0.1", 9000 + node_id)
        self.is_up = False
        self.leaders: list[tuple[int, int]] = []
        self.snapshots: list[SnapshotId] = []
        self.error: BaseException | None = None
        wire.members[self.address] = self

    async def start(self) -> "Member":
        clock = LoopClock()
        identity = identify(self.settings, self.storage, clock, RandomIds(self._seed))
        self.log = MetadataLog(MetadataLogSettings.of(self.settings), OpenFiles(self.storage), clock)
        self.committed_image = CommittedImage(self.log.load(CLUSTER))
        self.log.metadata_version = METADATA_VERSION
        quorum = start_quorum(
            self.settings,
            self.log,
            identity.metadata_directory_id,
            clock.monotonic(),
            RandomIds(self._seed).number,
        )
        self.key = quorum.local.key
        self.driver = RaftDriver(
            self.log,
            quorum,
            disk=self.disk,
            clock=clock,
            peers=WirePeers(self.wire, self.address),
            listener=self,
            cluster_id=self.cluster_id,
        )
        self.is_up = True
        await self.driver.start()
        return self

    def receive(self, request: Message, version: int, then: Callable[[Message], None]) -> None:
        if not self.is_up:
            return
        if isinstance(request, messages.ApiVersionsRequest):
            kind = messages.ApiVersionsResponse
            feature = kind.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            then(kind(supported_features=[feature]))
            return
        assert isinstance(request, Request)
        self.driver.handle(request, version, then)

    async def stop(self) -> None:
        """At once, as by kill -9; what was written stays."""
        self.is_up = False
        self.wire.lost(self.address)
        await self.driver.close()
        self.log.log.close(clean=False)

    # What the driver says

    def committed(self, high_watermark: int) -> None:
        self.committed_image.follow(self.log.log, high_watermark)

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        self.leaders.append((leader_id, epoch))

    def snapshot_loaded(self, snapshot: SnapshotId) -> None:
        self.snapshots.append(snapshot)
        self.committed_image.replace(self.log.load(CLUSTER))

    def failed(self, error: BaseException) -> None:
        self.error = error

    # What tests do

    @property
    def image(self) -> MetadataImage:
        return self.committed_image.image

    @property
    def topics(self) -> list[str]:
        return sorted(self.image.topics)

    async def write(self, *names: str) -> None:
        """Topics, one record each, until they are committed."""
        for name in names:
            record = messages.TopicRecord(name=name, topic_id=name.encode().rjust(16, b"_"))
            placed = self.driver.append([record])
            self.driver.commit()
        await until(lambda: self.driver.high_watermark > placed.last_offset)

    def take_snapshot(self) -> None:
        """And let go of the log below it."""
        job = self.log.begin_snapshot(self.image)
        job.run()
        self.log.remove(self.log.finish_snapshot(job))

    def ask(self, request: Request[Message], version: int | None = None) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        version = API[request.API_KEY].stable_max if version is None else version
        self.driver.handle(request, version, lambda answer: None if future.done() else future.set_result(answer))
        return future


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """In the loop's own time, which costs nothing."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, "it did not come to pass"
        await asyncio.sleep(0.001)


async def passed(seconds: float) -> None:
    await asyncio.sleep(seconds)


def run(action: Callable[[], Awaitable[T]]) -> T:
    loop = SimLoop(Random(1))
    asyncio.set_event_loop(loop)
    try:

        async def main() -> T:
            return await action()

        result = loop.run_until_complete(main())
        assert loop.errors == []
        return result
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def static(
    node_id: int, voters: tuple[int, ...] = (1, 2, 3), *, roles: str = "broker,controller", **more: str
) -> Settings:
    listeners = [f"PLAINTEXT://127.0.0.1:{9100 + node_id}"] if "broker" in roles else []
    listeners += [f"CONTROLLER://127.0.0.1:{9000 + node_id}"] if "controller" in roles else []
    given = {
        "node.id": str(node_id),
        "process.roles": roles,
        "log.dirs": "/data",
        "cluster.id": CLUSTER,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{i}@127.0.0.1:{9000 + i}" for i in voters),
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "metadata.max.retention.bytes": "0",
        "internal.metadata.log.segment.bytes": "8388608",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Settings.from_properties(given)


def dynamic(node_id: int, *, auto_join: bool = False) -> Settings:
    """The first begins the quorum, the others know where it is."""
    given = dict(static(node_id).given)
    del given["controller.quorum.voters"]
    given["controller.quorum.bootstrap.servers"] = ",".join(f"127.0.0.1:{9000 + i}" for i in (1, 2, 3))
    given["controller.quorum.auto.join.enable"] = str(auto_join).lower()
    return Settings.from_properties(given)


async def a_quorum(*ids: int) -> tuple[Wire, dict[int, Member]]:
    wire = Wire()
    members = {i: Member(wire, i, static(i, ids)) for i in ids}
    for member in members.values():
        await member.start()
    await the_leader(members)
    return wire, members


async def the_leader(members: dict[int, Member]) -> Member:
    up = [m for m in members.values() if m.is_up]
    await until(lambda: any(m.driver.is_leader for m in up))
    return next(m for m in up if m.driver.is_leader)
