"""What is done to logs by the clock."""

from asyncio import all_tasks, current_task, sleep
from collections.abc import Iterator
from random import Random

import pytest

from ottla.broker.events import Events
from ottla.broker.housekeeping.housekeeping import Housekeeping, flush_is_due
from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.image import EMPTY
from ottla.metrics.counts import TopicCounts
from ottla.model.ids import BrokerId
from ottla.model.properties import Settings
from ottla.runtime.cleaner.cleaners import Cleaner, Pace
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.world import SimClock
from tests.rules.storage.scene import NOW, PARTITION, TOPIC_ID, append, created

YEAR_MS = 365 * 24 * 3_600_000


def nothing_to_clean(pace: Pace) -> Cleaner:
    raise AssertionError("there is no log to clean")


class Scene:
    """A broker's housekeeping over one directory with one log, whose files go a minute after it is deleted."""

    def __init__(self) -> None:
        self.loop = SimLoop(Random(1))
        self.clock = SimClock(self.loop)
        self.disk = SimDisk()
        self.directory = LogDirectory.open(OpenFiles(self.disk), "/data")
        self.directory.create_log(PARTITION, TOPIC_ID, LogConfig(file_delete_delay_ms=60_000), self.clock.wall())
        configs = Configs(Settings.defaults("/data", log_cleaner_enable="false"), BrokerId(1), EMPTY)
        self.replicas = Replicas(
            BrokerId(1), [self.directory], WaitingRequests(self.loop, self.clock), self.clock, Events()
        )
        self.housekeeping = Housekeeping(self.loop, self.replicas, configs, self.clock, nothing_to_clean)

    def live(self, seconds: float) -> None:
        self.loop.run_until_complete(sleep(seconds))

    async def start(self) -> None:
        self.housekeeping.start()

    def delete(self) -> None:
        self.replicas.deletions.append((self.directory, self.directory.delete_log(PARTITION, "0" * 32)))

    @property
    def files(self) -> list[str]:
        return [path for path in self.disk.names if "-delete/" in path]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    scene.loop.run_until_complete(scene.start())
    yield scene
    scene.loop.run_until_complete(scene.housekeeping.stop())
    scene.loop.close()


@pytest.mark.parametrize("jump_ms", [-YEAR_MS, 0, YEAR_MS], ids=["set back", "left alone", "set forward"])
def test_files_of_a_deleted_log_go_after_their_delay_whatever_the_wall_clock_is_set_to(
    scene: Scene, jump_ms: int
) -> None:
    scene.delete()
    scene.live(10)
    scene.clock.jump_ms = jump_ms
    scene.live(45)
    assert scene.files
    scene.live(10)
    assert not scene.files


def test_nothing_is_begun_any_more_when_it_has_stopped(scene: Scene) -> None:
    """What was asked for while a round of fsyncs ran waits for the next round; logs are flushed by their close."""
    partition = Partition("t", TOPIC_ID, 0, TopicCounts())
    partition.log, partition.directory = scene.directory.logs[PARTITION], scene.directory
    append(partition.log, b"a")

    async def ask_and_stop() -> set[str]:
        scene.housekeeping.flush_soon(partition)
        await sleep(0)
        scene.housekeeping.flush_soon(partition)
        await scene.housekeeping.stop()
        return {task.get_name() for task in all_tasks() if task is not current_task()}

    assert scene.loop.run_until_complete(ask_and_stop()) == set()


def test_flush_ms_holds_also_when_the_wall_clock_was_set_back() -> None:
    log = created(config=LogConfig(flush_ms=1000))
    append(log, b"a")
    assert not flush_is_due(log, NOW + 999)
    assert flush_is_due(log, NOW + 1000)
    assert flush_is_due(log, NOW - 3_600_000)
