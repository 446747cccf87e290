"""A control plane on a simulated disk, with a clock that stands still and ids that count."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.metadata.image import MetadataImage
from ottla.metrics.counts import Traffic
from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.net.peer import Address, Then
from ottla.protocol import messages
from ottla.protocol.codec import Message, Request, ResponseT_co
from ottla.runtime.committed import CommittedImage
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.disk import InlineDisk
from ottla.runtime.lifecycle import BrokerLifecycle
from ottla.testing.disk import SimDisk

T = TypeVar("T")
LOG = "/data/__cluster_metadata-0"


class StillClock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def wall(self) -> Millis:
        return Millis(self.now)

    def monotonic(self) -> Millis:
        return Millis(self.now)


class CountingIds:
    def __init__(self, start: int = 1000) -> None:
        self.last = start

    def uuid(self) -> Uuid:
        self.last += 1
        return Uuid(self.last.to_bytes(16, "big"))

    def number(self, low: int, high: int) -> int:
        return low


def settings(**overrides: str) -> Settings:
    return Settings.defaults("/data", **overrides)


def dynamic(**overrides: str) -> Settings:
    """A quorum whose voters live in the log (KIP-853)."""
    given = dict(settings(**overrides).given)
    del given["controller.quorum.voters"]
    return Settings.from_properties({**given, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"})


class Nobody:
    """A quorum of one has no one to talk to."""

    def __init__(self) -> None:
        self.traffic: dict[str, Traffic] = {}

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        raise AssertionError(f"{type(request).__name__} was sent to {to}")

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        raise AssertionError(f"{type(request).__name__} was sent to {to}")

    def close(self) -> None: ...


def opened(
    disk: SimDisk,
    configured: Settings | None = None,
    *,
    ids: int = 1000,
    on_failure: Callable[[BaseException], None] = lambda _: None,
) -> ControlPlane:
    return ControlPlane.open(
        configured or settings(),
        peers=Nobody(),
        fs=disk,
        clock=StillClock(),
        ids=CountingIds(ids),
        disk=InlineDisk(),
        on_failure=on_failure,
    )


def image_on(disk: SimDisk, configured: Settings | None = None) -> MetadataImage:
    """What the snapshot and the whole log on a disk say."""
    log = opened(disk, configured).raft.metadata_log
    committed = CommittedImage(log.load("") if log.snapshots else MetadataImage())
    committed.follow(log.log, log.log.log_end_offset)
    return committed.image


def run(action: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await action()

    return asyncio.run(main())


async def started(
    disk: SimDisk,
    configured: Settings | None = None,
    *,
    ids: int = 1000,
    on_failure: Callable[[BaseException], None] = lambda _: None,
) -> ControlPlane:
    return (await registered(disk, configured, ids=ids, on_failure=on_failure))[0]


async def registered(
    disk: SimDisk,
    configured: Settings | None = None,
    *,
    ids: int = 1000,
    on_failure: Callable[[BaseException], None] = lambda _: None,
) -> tuple[ControlPlane, BrokerLifecycle]:
    plane = opened(disk, configured, ids=ids, on_failure=on_failure)
    await plane.start()
    broker = BrokerLifecycle(plane.settings, plane, CountingIds(ids + 500), plane.settings.advertised_listeners)
    await broker.register()
    await broker.unfence()
    return plane, broker


async def create(plane: ControlPlane, *names: str) -> None:
    kind = messages.CreateTopicsRequest
    topics = [kind.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    reply = await plane.submit(kind(topics=topics))
    assert [t.error_code for t in reply.topics] == [0] * len(names)
