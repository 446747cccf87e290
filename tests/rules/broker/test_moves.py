"""Replicas that move between the log directories of one broker, with records, crashes and failures on the way."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

import pytest

from ottla.broker.events import Events
from ottla.broker.partition import Partition
from ottla.broker.replicas.moves import AT_ONCE, Moves
from ottla.broker.replicas.placement import Placement
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import BrokerRegistration, MetadataImage, PartitionImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId, TopicPartition, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages as m
from ottla.storage.answers import Appended
from ottla.storage.checkpoints import MetaProperties
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import StorageError
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import Crashed, SimDisk
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.world import SeededIds, SimClock
from tests.rules.storage.scene import a_batch, values

ME = BrokerId(1)
TOPIC = Uuid(bytes(range(1, 17)))
NAME = TopicPartition("t", 0)
HERE, THERE, ELSEWHERE = (Uuid(f"directory-{number}-of-us".encode()[:16]) for number in range(3))
PATHS = {HERE: "/disk0", THERE: "/disk1", ELSEWHERE: "/disk2"}
BIG = b"x" * (AT_ONCE // 2)


class Scene:
    """One partition, which lies in the first of three directories, and a controller that agrees if it is told to."""

    def __init__(self, disk: SimDisk | None = None, placed: Uuid = HERE) -> None:
        self.loop = SimLoop(Random(1))
        self.clock = SimClock(self.loop)
        self.disk = disk or SimDisk()
        files = OpenFiles(self.disk)
        self.directories = [LogDirectory.open(files, path) for path in PATHS.values()]
        for directory, directory_id in zip(self.directories, PATHS, strict=True):
            directory.format(MetaProperties("cluster", ME, directory_id))
        topic = TopicImage("t", TOPIC, {0: PartitionImage((1,), (placed,), (1,), (), (), (), (), ME, 0, 0, 0)})
        self.image = MetadataImage(
            topics={"t": topic},
            topics_by_id={TOPIC: topic},
            brokers={1: BrokerRegistration(1, 5, TOPIC, (), {}, None, False, False, (), ())},
        )
        configs = Configs(Settings.defaults("/disk0"), ME, self.image)
        waiting = WaitingRequests(self.loop, self.clock)
        events, ids = Events(), SeededIds(Random(2))
        self.placed = placed
        self.told: list[Uuid] = []
        self.agrees = True
        self.replicas = Replicas(ME, self.directories, waiting, self.clock, events)
        self.moves = Moves(self.loop, self.replicas, configs, self.clock, ids, lambda: True)
        self.placement = Placement(self.replicas, configs, waiting, self.clock, ids)
        events.moving.hear(self.moves.start)
        events.lies_in.hear(self._hear)
        for directory in self.directories:
            directory.load(configs.log_config, self.clock.wall())
        self.placement.load(self.image)

    def _hear(self, partition: Partition, directory: Uuid) -> None:
        self.told.append(directory)
        if self.agrees:
            self.loop.call_later(0.01, self.decided, directory)

    def decided(self, directory: Uuid) -> None:
        """By the controller."""
        self.placed = directory
        self._replay(m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=[directory]))

    def deleted(self) -> None:
        self._replay(m.RemoveTopicRecord(topic_id=TOPIC))

    def _replay(self, record: object) -> None:
        delta = MetadataDelta(self.image)
        delta.replay_all([record])
        self.image = delta.apply(self.image.offset + 1, 0, 0)
        self.placement.on_metadata(delta, self.image, settings_changed=False)

    @property
    def partition(self) -> Partition:
        return self.replicas.by_id[TOPIC].partitions[0]

    def append(self, *texts: bytes) -> None:
        for text in texts:
            outcome = self.replicas.append(self.partition, a_batch(text, at=self.clock.wall()), self.clock.wall())
            assert isinstance(outcome, Appended)

    def move(self, to: Uuid) -> Errors:
        return self.moves.alter(NAME, PATHS[to])

    def pass_time(self, seconds: float = 5.0) -> None:
        self.loop.call_later(seconds, self.loop.stop)
        self.loop.run_forever()

    def lies_in(self) -> tuple[Uuid | None, bool]:
        """Where the replica is, and whether it is on its way."""
        assert self.partition.directory is not None
        return self.partition.directory.id, self.partition.future is not None

    def records(self) -> list[bytes | None]:
        assert self.partition.log is not None
        return values(self.partition.log)

    def found(self, directory: Uuid) -> list[str]:
        """Names of logs, without what is different in each run."""
        entries = [entry.name for entry in self.disk.list(PATHS[directory]) if entry.is_dir]
        return sorted(name.partition(".")[0] + name.rpartition("-")[2] if "." in name else name for name in entries)

    def killed(self) -> SimDisk:
        self.loop.close()
        self.disk.locked.clear()
        return self.disk

    def stopped(self) -> SimDisk:
        self.loop.run_until_complete(self.moves.stop())
        for directory in self.directories:
            directory.close()
        return self.disk


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    assert made.loop.errors == []
    made.loop.close()


@pytest.fixture
def restarted() -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def again(disk: SimDisk, placed: Uuid = HERE) -> Scene:
        made.append(Scene(disk, placed))
        return made[-1]

    yield again
    for each in made:
        assert each.loop.errors == []
        each.loop.close()


def test_a_replica_moves_with_all_its_records(scene: Scene) -> None:
    scene.append(b"one", BIG, BIG, BIG, b"two")
    assert scene.move(THERE) == Errors.NONE
    assert scene.lies_in() == (HERE, True)
    scene.pass_time()
    assert (scene.lies_in(), scene.told) == ((THERE, False), [THERE])
    assert scene.records() == [b"one", BIG, BIG, BIG, b"two"]
    assert (scene.found(HERE), scene.found(THERE)) == (["t-0delete"], ["t-0"])
    scene.append(b"three")
    assert scene.records()[-1] == b"three"


def test_a_replica_that_is_written_to_all_the_time_moves_all_the_same(scene: Scene) -> None:
    def write() -> None:
        scene.append(b"again")
        if scene.lies_in() != (THERE, False):
            scene.loop.call_later(0.0005, write)

    write()
    scene.move(THERE)
    scene.pass_time()
    assert scene.lies_in() == (THERE, False)
    assert scene.records() == [b"again"] * len(scene.records())


def test_it_stays_where_it_is_until_the_controller_has_agreed(scene: Scene) -> None:
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    scene.append(b"two")
    scene.pass_time()
    assert (scene.lies_in(), scene.told) == ((HERE, True), [THERE])
    scene.decided(THERE)
    scene.pass_time()
    assert (scene.lies_in(), scene.records()) == ((THERE, False), [b"one", b"two"])


def test_a_move_that_is_taken_back_leaves_nothing_and_the_metadata_hears_of_it(scene: Scene) -> None:
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    assert scene.move(HERE) == Errors.NONE
    scene.pass_time()
    assert (scene.lies_in(), scene.told) == ((HERE, False), [THERE, HERE])
    assert (scene.found(HERE), scene.found(THERE)) == (["t-0"], ["t-0delete"])


def test_a_move_is_sent_elsewhere(scene: Scene) -> None:
    scene.append(b"one", BIG, BIG, BIG)
    scene.move(THERE)
    assert scene.move(ELSEWHERE) == Errors.NONE
    scene.pass_time()
    assert (scene.lies_in(), scene.records()) == ((ELSEWHERE, False), [b"one", BIG, BIG, BIG])
    assert (scene.found(THERE), scene.found(ELSEWHERE)) == (["t-0delete"], ["t-0"])


def test_records_that_are_deleted_meanwhile_do_not_come_back(scene: Scene) -> None:
    scene.agrees = False
    scene.append(b"one", b"two", b"three")
    scene.move(THERE)
    scene.pass_time()
    scene.replicas.delete_records_before(scene.partition, 2)
    scene.decided(THERE)
    scene.pass_time()
    assert scene.partition.log is not None
    assert (scene.lies_in(), scene.partition.log.log_start_offset) == ((THERE, False), 2)


def test_what_is_deleted_of_a_copy_is_gone_when_it_is_the_log(scene: Scene) -> None:
    """Its files wait for their removal under a name that nobody knows once the copy has another: half a disk, until the
    next start."""
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    assert scene.partition.future is not None
    scene.partition.future.log.roll(scene.clock.wall())
    scene.append(b"two")
    scene.replicas.delete_records_before(scene.partition, 1)
    scene.pass_time()
    scene.decided(THERE)
    scene.pass_time()
    assert scene.lies_in() == (THERE, False)
    for directory, deletion in scene.replicas.deletions:
        directory.perform(deletion)
    logs = [entry.name for entry in scene.disk.list("/disk1/t-0") if ".log" in entry.name]
    assert logs == ["00000000000000000001.log"]


def test_a_topic_that_is_deleted_takes_its_copy_with_it(scene: Scene) -> None:
    scene.append(b"one", BIG, BIG, BIG)
    scene.move(THERE)
    scene.deleted()
    scene.pass_time()
    assert (scene.found(HERE), scene.found(THERE)) == (["t-0delete"], ["t-0delete"])


@pytest.mark.parametrize("clean", [True, False])
def test_a_move_goes_on_after_a_restart(scene: Scene, restarted: Callable[..., Scene], clean: bool) -> None:
    scene.agrees = False
    scene.append(b"one", BIG, BIG)
    scene.move(THERE)
    scene.pass_time()
    scene.append(b"two")
    again = restarted(scene.stopped() if clean else scene.killed())
    assert again.lies_in() == (HERE, True)
    again.pass_time()
    assert (again.lies_in(), again.records()) == ((THERE, False), [b"one", BIG, BIG, b"two"])
    assert (again.found(HERE), again.found(THERE)) == (["t-0delete"], ["t-0"])


def test_a_power_cut_at_any_moment_of_a_move_costs_nothing_that_was_on_the_disk(
    restarted: Callable[..., Scene],
) -> None:
    moments = 0
    while True:
        scene = restarted(SimDisk())
        scene.append(b"one", BIG, b"two")
        assert scene.partition.log is not None
        scene.partition.log.flush()
        scene.append(b"three")
        scene.disk.crash_at = len(scene.disk.steps) + moments
        with suppress(Crashed):
            scene.move(THERE)
            scene.pass_time()
        scene.loop.errors.clear()
        if len(scene.disk.steps) < scene.disk.crash_at:
            break
        for seed in range(3):
            again = restarted(scene.disk.crash(Random(seed)), placed=scene.placed)
            again.pass_time()
            assert again.records()[:3] == [b"one", BIG, b"two"], f"at {moments}, seed {seed}"
            assert again.partition.future is None
        moments += 1
    assert moments > 20


def test_what_the_metadata_takes_for_done_is_done_after_a_restart(
    scene: Scene, restarted: Callable[..., Scene]
) -> None:
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    scene.append(b"two")
    again = restarted(scene.stopped(), placed=THERE)
    again.pass_time()
    assert (again.lies_in(), again.told, again.records()) == ((THERE, False), [], [b"one", b"two"])


def test_a_copy_alone_is_the_log_if_the_metadata_says_so(scene: Scene, restarted: Callable[..., Scene]) -> None:
    """The directory that had the log is empty: it was replaced after the copy had everything."""
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    disk = scene.stopped()
    disk.rename("/disk0/t-0", "/disk0/gone")
    again = restarted(disk, placed=THERE)
    assert (again.lies_in(), again.records(), again.found(THERE)) == ((THERE, False), [b"one"], ["t-0"])


def test_of_two_logs_the_one_that_the_metadata_knows_is_taken(scene: Scene, restarted: Callable[..., Scene]) -> None:
    """A crash between the two renames at the end of a move."""
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    disk = scene.stopped()
    (old,) = [entry.name for entry in disk.list("/disk0") if entry.name.endswith("-delete")]
    disk.rename(f"/disk0/{old}", "/disk0/t-0")
    again = restarted(disk, placed=THERE)
    assert (again.lies_in(), again.records()) == ((THERE, False), [b"one"])
    assert (again.found(HERE), again.found(THERE)) == (["t-0stray"], ["t-0"])


def test_a_directory_that_fails_ends_the_moves_to_it(scene: Scene) -> None:
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    scene.disk.broken_below = PATHS[THERE]
    scene.append(b"two")
    scene.pass_time()
    assert (scene.lies_in(), scene.told) == ((HERE, False), [THERE, HERE])
    assert scene.records() == [b"one", b"two"]
    assert scene.move(THERE) == Errors.KAFKA_STORAGE_ERROR
    assert scene.move(ELSEWHERE) == Errors.KAFKA_STORAGE_ERROR, "a copy may lie in the one that is away"


def test_a_directory_that_fails_takes_what_moves_from_it_offline(scene: Scene) -> None:
    scene.agrees = False
    scene.append(b"one")
    scene.move(THERE)
    scene.pass_time()
    scene.directories[0].latch.take_offline(StorageError(PATHS[HERE], "it broke"))
    scene.replicas.take_offline(scene.directories[0])
    scene.pass_time()
    assert (scene.partition.offline, scene.partition.future) == (True, None)
    assert scene.move(THERE) == Errors.KAFKA_STORAGE_ERROR


def test_a_replica_that_is_not_here_yet_is_made_where_it_was_asked_for(scene: Scene) -> None:
    assert scene.moves.alter(TopicPartition("t", 1), PATHS[ELSEWHERE]) == Errors.REPLICA_NOT_AVAILABLE
    scene._replay(
        m.PartitionRecord(
            partition_id=1, topic_id=TOPIC, replicas=[1], isr=[1], leader=1, directories=[HERE], partition_epoch=0
        )
    )
    directory = scene.replicas.by_id[TOPIC].partitions[1].directory
    assert directory is not None and (directory.id, scene.told) == (ELSEWHERE, [ELSEWHERE])


def test_what_cannot_be_is_refused_with_kafkas_codes(scene: Scene) -> None:
    assert scene.moves.alter(NAME, "/no/such/directory") == Errors.LOG_DIR_NOT_FOUND
    assert scene.moves.alter(TopicPartition("x" * 240, 0), PATHS[THERE]) == Errors.INVALID_TOPIC_EXCEPTION
    assert scene.moves.alter(TopicPartition("unknown", 0), PATHS[THERE]) == Errors.REPLICA_NOT_AVAILABLE
    assert scene.move(HERE) == Errors.NONE
    assert scene.lies_in() == (HERE, False)


def test_a_directory_without_room_is_waited_for(scene: Scene) -> None:
    scene.append(b"one", BIG, BIG, BIG)
    scene.directories[1].low_on_space = True
    scene.move(THERE)
    scene.pass_time()
    assert scene.lies_in() == (HERE, True)
    scene.directories[1].low_on_space = False
    scene.pass_time()
    assert scene.lies_in() == (THERE, False)
