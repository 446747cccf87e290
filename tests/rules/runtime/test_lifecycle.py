"""A broker's life in its cluster, while the disk of the controller, which is of the same node, has no room."""

import asyncio

import pytest

from ottla.runtime.lifecycle import BrokerLifecycle
from ottla.testing.disk import SimDisk
from tests.rules.runtime.scene import CountingIds, opened, registered, run


def test_a_broker_leaves_also_if_nobody_can_write_it_down(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        disk = SimDisk()
        _, broker = await registered(disk)
        disk.room = disk.used
        await broker.leave()

    run(main)
    assert "the controller cannot write that this broker goes: it goes without." in caplog.text


def test_heartbeats_outlive_a_full_disk(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        disk = SimDisk()
        plane = opened(disk)
        await plane.start()
        broker = BrokerLifecycle(plane.settings, plane, CountingIds(), plane.settings.advertised_listeners)
        await broker.register()
        disk.room = disk.used
        broker.start()
        await told(caplog, "cannot write")
        assert broker.fenced
        disk.room = None
        async with asyncio.timeout(60):
            await plane.reached(plane.image.offset + 1)
        assert not plane.image.brokers[1].fenced
        broker.stop()

    run(main)
    assert sum("cannot write" in record.getMessage() for record in caplog.records) == 1


async def told(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async with asyncio.timeout(60):
        while not any(words in record.getMessage() for record in caplog.records):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
