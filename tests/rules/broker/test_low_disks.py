"""A disk that fills: when records are refused, when they are taken again, and how often that is told."""

import logging
from asyncio import sleep
from random import Random

import pytest

from ottla.broker.events import Events
from ottla.broker.housekeeping.housekeeping import Housekeeping
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.image import EMPTY
from ottla.model.ids import BrokerId
from ottla.model.properties import Settings
from ottla.runtime.cleaner.cleaners import Cleaner, Pace
from ottla.storage.directory import LogDirectory
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.world import SimClock

MB = 1_000_000


def nothing_to_clean(pace: Pace) -> Cleaner:
    raise AssertionError("there is no log to clean")


class Scene:
    """A broker's housekeeping over a disk of so many bytes, with the settings that a new node has."""

    def __init__(self, room: int, **settings: str) -> None:
        self.loop = SimLoop(Random(1))
        self.disk = SimDisk()
        self.disk.room = room
        chosen = Settings.defaults("/data", log_cleaner_enable="false", **settings)
        reserve = chosen.get_int("ottla.disk.reserve.bytes")
        self.directory = LogDirectory.open(OpenFiles(self.disk), "/data", reserve_bytes=reserve)
        clock = SimClock(self.loop)
        self.replicas = Replicas(BrokerId(1), [self.directory], WaitingRequests(self.loop, clock), clock, Events())
        configs = Configs(chosen, BrokerId(1), EMPTY)
        self.housekeeping = Housekeeping(self.loop, self.replicas, configs, clock, nothing_to_clean)

    def lives(self, seconds: float) -> None:
        async def life() -> None:
            self.housekeeping.start()
            await sleep(seconds)
            await self.housekeeping.stop()

        self.loop.run_until_complete(life())
        self.loop.close()

    def put(self, size: int) -> None:
        """A file of somebody's that leaves so much less room."""
        self.disk.open("/other", create=True).pwrite(bytes(size), 0)

    @property
    def takes_records(self) -> bool:
        return not self.directory.low_on_space


@pytest.mark.parametrize("room", [8 * MB, 32 * MB, 64 << 20, 100 * MB], ids=["8 MB", "32 MB", "64 MiB", "100 MB"])
def test_an_empty_disk_takes_records_however_small_it_is(room: int) -> None:
    scene = Scene(room)
    scene.lives(3)
    assert scene.takes_records
    assert scene.directory.space()[0] > room * 9 // 10


def test_a_full_disk_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene(32 * MB)
    scene.put(29 * MB)
    scene.replicas.no_room(scene.directory)
    scene.lives(30)
    assert [record.getMessage() for record in caplog.records] == [
        "/data is full: records are refused until there is room"
    ]
    assert not scene.takes_records


def test_a_full_disk_without_a_low_water_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene(32 * MB, ottla_disk_low_water_bytes="0")
    scene.put(30 * MB - 1000)
    scene.replicas.no_room(scene.directory)
    scene.lives(30)
    assert len(caplog.records) == 1


def test_records_are_taken_again_when_there_is_room_beside_the_reserve(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    scene = Scene(32 * MB)
    scene.put(29 * MB)
    scene.replicas.no_room(scene.directory)
    scene.disk.remove("/other")
    scene.lives(5)
    assert scene.takes_records
    assert scene.directory.has_reserve
    assert [record.getMessage() for record in caplog.records][1:] == ["/data has room again: records are taken"]
