"""A control plane on a simulated disk, with a clock that stands still and ids that count."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.model.ids import Millis, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.disk import InlineDisk
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


def settings(**overrides: str) -> Settings:
    return Settings.defaults("/data", **overrides)


def dynamic(**overrides: str) -> Settings:
    """A quorum whose voters live in the log (KIP-853)."""
    given = dict(settings(**overrides).given)
    del given["controller.quorum.voters"]
    return Settings.from_properties({**given, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"})


def opened(disk: SimDisk, configured: Settings | None = None, *, ids: int = 1000) -> ControlPlane:
    return ControlPlane.open(
        configured or settings(), fs=disk, clock=StillClock(), ids=CountingIds(ids), disk=InlineDisk()
    )


def run(action: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await action()

    return asyncio.run(main())


async def started(disk: SimDisk, configured: Settings | None = None, *, ids: int = 1000) -> ControlPlane:
    plane = opened(disk, configured, ids=ids)
    await plane.start()
    await plane.register_broker()
    return plane


async def create(plane: ControlPlane, *names: str) -> None:
    kind = messages.CreateTopicsRequest
    topics = [kind.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    reply = await plane.submit(kind(topics=topics))
    assert [t.error_code for t in reply.topics] == [0] * len(names)
