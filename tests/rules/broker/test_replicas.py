"""What becomes of a produce request on the way through handler, leaders and logs, when something is not as usual."""

import errno
import gc
import weakref
from asyncio import sleep
from collections import OrderedDict
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.broker.coordination.coordinators import Host, PartitionJournal
from ottla.broker.events import Events
from ottla.broker.front.dispatch import Routes
from ottla.broker.front.session import Session
from ottla.broker.handlers import k00_produce
from ottla.broker.partition import Partition
from ottla.broker.quotas.clients import ClientQuotas, Windows
from ottla.broker.replicas.fetch_sessions import FetchSession
from ottla.broker.replicas.placement import Placement
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.security.authorizer import AllowAll
from ottla.broker.services import Limits, Services
from ottla.broker.settings.configs import Configs
from ottla.broker.waiting.purgatory import FetchWait
from ottla.broker.waiting.requests import WaitingRequests
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import BrokerRegistration, MetadataImage, PartitionImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, BrokerId, Millis, TopicPartition, Uuid
from ottla.model.properties import Settings
from ottla.protocol import messages as m
from ottla.protocol.apis import ListenerType
from ottla.protocol.ordinary_produce import ProduceAck, read_row
from ottla.protocol.records import NewRecord
from ottla.replication.follower import PartitionFollower
from ottla.storage.checkpoints import MetaProperties
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import CorruptLog, StorageError
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.world import SeededIds, SimClock
from tests.rules.storage.scene import a_batch, values

STORAGE = Errors.KAFKA_STORAGE_ERROR
TOPIC = Uuid(bytes(range(1, 17)))
DIRECTORIES = (Uuid(b"directory-number1"[:16]), Uuid(b"directory-2-of-us"[:16]))
ME = BrokerId(1)
Answers = list[tuple[int, int, int]]
"""Index, error, base offset."""


WINDOWS = Windows(11, 1000), Windows(11, 1000)


class BreakingDisk(SimDisk):
    """Refuses to write to files whose path contains `broken`."""

    broken = "?"

    def step(self, operation: str, path: str) -> None:
        if operation == "pwrite" and self.broken in path:
            raise OSError(errno.EIO, "a simulated disk breaks")
        super().step(operation, path)


def registered(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(broker_id, 5, TOPIC, (), {}, None, False, False, (), ())


class Scene:
    """One broker, its four partitions alternating between two directories, and the client that writes to them."""

    def __init__(self, replicas: tuple[int, ...] = (1,), isr: tuple[int, ...] = (1,), min_isr: int = 1) -> None:
        self.loop = SimLoop(Random(1))
        self.clock = SimClock(self.loop)
        self.disk = BreakingDisk()
        files = OpenFiles(self.disk)
        directories = []
        for number, directory_id in enumerate(DIRECTORIES):
            directory = LogDirectory.open(files, f"/disk{number}")
            directory.format(MetaProperties("cluster", ME, directory_id))
            directories.append(directory)
        topic = TopicImage("t", TOPIC, {index: self._placed(index, replicas, isr) for index in range(4)})
        image = self.image = MetadataImage(
            topics={"t": topic},
            topics_by_id={TOPIC: topic},
            brokers={broker: registered(broker) for broker in replicas},
        )
        configs = Configs(Settings.defaults("/disk0", min_insync_replicas=str(min_isr)), ME, image)
        self.waiting = WaitingRequests(self.loop, self.clock)
        self.events = Events()
        self.replicas = Replicas(ME, directories, self.waiting, self.clock, self.events)
        self.placement = Placement(self.replicas, configs, self.waiting, self.clock, SeededIds(Random(2)))
        self.placement.load(image)
        unused = cast("Any", None)
        self.services = Services(
            configs=configs, limits=Limits(100, 1 << 20, 1 << 20, 1000), clock=self.clock,
            control_plane=cast("Any", SimpleNamespace(image=image)), replicas=self.replicas, waiting=self.waiting,
            fetch_sessions=unused, authorizer=AllowAll(), quotas=ClientQuotas(*WINDOWS, limit=100),
            new_fetch_session_id=unused, moves=unused, coordination=unused, throttle=unused, leader_news=unused,
        )  # fmt: skip
        line = cast("Any", SimpleNamespace(seconds=self.loop.time))
        self.session = Session(line, "here", "PLAINTEXT", Routes(ListenerType.BROKER), self.services, self.loop, unused)

    @staticmethod
    def _placed(index: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionImage:
        directory = DIRECTORIES[index % 2]
        return PartitionImage(replicas, (directory,) * len(replicas), isr, (), (), (), (), ME, 0, 0, 0)

    def partition(self, index: int) -> Partition:
        return self.replicas.by_id[TOPIC].partitions[index]

    def ends(self) -> list[int]:
        logs = [self.partition(index).log for index in range(4)]
        return [-1 if log is None else log.log_end_offset for log in logs]

    def ask(self, *batches: tuple[int, bytes], acks: int = 1) -> Any:
        kind = m.ProduceRequest
        data = [kind.PartitionProduceData(index, a_batch(value, at=self.clock.wall())) for index, value in batches]
        topics = [kind.TopicProduceData(topic_id=TOPIC, partition_data=data)]
        frame = memoryview(bytearray(kind(acks=acks, timeout_ms=1000, topic_data=topics).encode(13)))
        return k00_produce.handle(self.services, self.session, k00_produce.DECODERS[13](frame, 0)[0], 13)

    def send(self, *batches: tuple[int, bytes], acks: int = 1) -> Answers:
        return answers(self.ask(*batches, acks=acks))

    def warm(self) -> None:
        """From now on batches for these partitions are ordinary: two lie in each."""
        for value in (b"one", b"two"):
            self.send(*((index, value) for index in range(4)))

    def copied(self, index: int, offset: int, *followers: int) -> None:
        for follower in followers:
            self.replicas.fetched_by(self.partition(index), follower, offset, 0, 5)

    def decided(self, *records: object) -> None:
        """By the controller."""
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.image = delta.apply(self.image.offset + len(records), 0, 0)
        self.placement.on_metadata(delta, self.image, settings_changed=False)

    def room_again(self) -> None:
        for directory in self.replicas.directories:
            self.replicas.room_again(directory)

    def turn(self) -> None:
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()


def answers(answer: Any) -> Answers:
    if isinstance(answer, ProduceAck):
        ((_, rows),) = answer.topics
        return [read_row(one)[:3] for one in rows]
    assert isinstance(answer, m.ProduceResponse)
    (topic,) = answer.responses
    return [(part.index, part.error_code, part.base_offset) for part in topic.partition_responses]


@pytest.fixture
def scenes() -> Iterator[type[Scene]]:
    made: list[Scene] = []

    class Noted(Scene):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    yield Noted
    for scene in made:
        scene.loop.close()


# ---- when a disk refuses in the middle of a request


@pytest.mark.parametrize("acks", [1, -1])
def test_a_disk_without_room_refuses_one_partition_and_those_behind_it(scenes: type[Scene], acks: int) -> None:
    scene = scenes()
    scene.warm()
    scene.disk.room = scene.disk.used + 150  # for the first of these, and a part of the second
    sent = [(index, b"x" * 50) for index in (2, 0, 3, 1)]

    assert scene.send(*sent, acks=acks) == [(2, 0, 2), (0, STORAGE, -1), (3, STORAGE, -1), (1, STORAGE, -1)]
    assert scene.ends() == [2, 2, 3, 2]

    scene.disk.room = None
    scene.room_again()
    assert scene.send(*sent, acks=acks) == [(2, 0, 3), (0, 0, 2), (3, 0, 2), (1, 0, 2)]
    log = scene.partition(0).log
    assert log is not None
    assert values(log) == [b"one", b"two", b"x" * 50]


def test_a_disk_without_room_says_so_once_and_not_for_every_request(
    scenes: type[Scene], caplog: pytest.LogCaptureFixture
) -> None:
    scene = scenes()
    scene.warm()
    scene.disk.room = scene.disk.used
    for _ in range(50):
        assert scene.send((0, b"x")) == [(0, STORAGE, -1)]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]  # what happened, what it means
    assert "/disk0 is full" in caplog.text
    scene.send((1, b"x"))  # another disk speaks for itself
    assert len(caplog.records) == 4


def test_a_broken_disk_takes_its_partitions_along_and_no_others(scenes: type[Scene]) -> None:
    scene = scenes()
    scene.warm()
    scene.disk.broken = "t-2/"
    sent = [(index, b"x") for index in (0, 1, 2, 3)]

    # 0 was written, but to the directory that is offline now; 3 lies elsewhere, behind the one that failed.
    assert scene.send(*sent) == [(0, STORAGE, -1), (1, 0, 2), (2, STORAGE, -1), (3, STORAGE, -1)]
    assert scene.ends() == [-1, 3, -1, 2]
    assert scene.send(*sent) == [(0, STORAGE, -1), (1, 0, 3), (2, STORAGE, -1), (3, 0, 2)]


def test_a_leader_without_room_stands_down_once_those_in_sync_have_everything(scenes: type[Scene]) -> None:
    scene = scenes((1, 2, 3), (1, 2, 3), 2)
    scene.warm()
    wanted: list[Partition] = []
    scene.events.isr_change_wanted.hear(wanted.append)
    scene.disk.room = scene.disk.used
    partition = scene.partition(0)
    assert partition.leader is not None
    for followers in ((), (2,)):
        scene.copied(0, 2, *followers)
        assert scene.send((0, b"x")) == [(0, STORAGE, -1)]
        assert wanted == []
    scene.copied(0, 2, 3)
    assert scene.send((0, b"x")) == [(0, STORAGE, -1)]
    assert (wanted, partition.leader.pending and partition.leader.pending.isr) == ([partition], (2, 3))

    partition.leader.pending = None  # it leads again, where others have no room either: not before a minute has gone
    for seconds, count in ((59, 1), (1, 2)):
        scene.loop.run_until_complete(sleep(seconds))
        scene.send((0, b"x"))
        assert len(wanted) == count


def test_a_leader_whose_disk_is_nearly_full_stands_down(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    scene.warm()
    scene.copied(0, 2, 2)
    wanted: list[Partition] = []
    scene.events.isr_change_wanted.hear(wanted.append)
    directory = scene.partition(0).directory
    assert directory is not None
    directory.low_on_space = True
    assert scene.send((0, b"x")) == [(0, STORAGE, -1)]
    assert wanted == [scene.partition(0)]


def test_followers_on_a_full_disk_tell_their_leaders_and_do_so_again_when_there_is_room(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    for index in (0, 1, 2):
        scene.decided(m.PartitionChangeRecord(partition_id=index, topic_id=TOPIC, leader=2))
    told: list[int] = []
    scene.events.followed.hear(lambda partition: told.append(partition.index))
    directory = scene.partition(0).directory
    assert directory is not None
    scene.disk.room = scene.disk.used
    for _ in range(2):
        scene.replicas.storage_failed(directory, StorageError("/disk0", "x", OSError(errno.ENOSPC, "full")))
    assert (told, directory.is_full) == ([0, 2], True)  # 1 lies elsewhere
    scene.replicas.room_again(directory)
    assert (told, directory.is_full) == ([0, 2, 0, 2], False)


# ---- where logs lie


def test_the_metadata_is_told_where_a_replica_lies_if_it_does_not_know(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    told: list[tuple[int, Uuid]] = []
    scene.events.lies_in.hear(lambda partition, directory: told.append((partition.index, directory)))
    known, unknown = DIRECTORIES[0], UNASSIGNED_DIRECTORY
    scene.decided(m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=[known, known]))
    assert told == []
    scene.decided(m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=[unknown, known]))
    assert told == [(0, known)]


def test_a_log_that_finds_no_room_is_made_when_there_is_some_and_others_lead_meanwhile(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    told: list[Uuid] = []
    scene.events.lies_in.hear(lambda _, directory: told.append(directory))
    scene.disk.room = scene.disk.used
    scene.decided(
        m.PartitionRecord(
            partition_id=4, topic_id=TOPIC, replicas=[1, 2], isr=[1, 2], leader=1, directories=[DIRECTORIES[0]] * 2
        )
    )
    late = scene.partition(4)
    assert (late.log, late.offline, told) == (None, True, [LOST_DIRECTORY])
    scene.loop.run_until_complete(sleep(5))
    assert late.log is None

    scene.decided(m.PartitionChangeRecord(partition_id=4, topic_id=TOPIC, directories=[LOST_DIRECTORY, DIRECTORIES[0]]))
    told.clear()
    came: list[bool] = []
    scene.events.came_late.hear(lambda: came.append(True))
    scene.loop.run_until_complete(sleep(3))
    assert (told, came) == ([], [])  # the metadata knows
    scene.disk.room = None
    scene.loop.run_until_complete(sleep(2))
    assert late.log is not None and late.leader is not None
    assert came == [True]
    assert (late.offline, told[:1]) == (False, [DIRECTORIES[0]])


@pytest.mark.parametrize(
    ("isr", "all_online", "made"), [((2,), True, True), ((2,), False, False), ((1,), True, False), ((1,), False, False)]
)
def test_a_log_in_a_directory_that_is_gone_is_made_anew_only_if_others_have_it_and_it_cannot_come_back(
    scenes: type[Scene], isr: tuple[int, ...], all_online: bool, made: bool
) -> None:
    scene = scenes((1, 2), (1, 2))
    if not all_online:
        scene.replicas.directories[1].latch.take_offline(StorageError("/disk1", "is broken"))
    gone = Uuid(b"of another disk."[:16])
    scene.decided(
        m.PartitionRecord(
            partition_id=4, topic_id=TOPIC, replicas=[1, 2], isr=list(isr), leader=isr[0], directories=[gone, gone]
        )
    )
    assert (scene.partition(4).log is not None, scene.partition(4).offline) == (made, not made)


def test_a_damaged_log_is_told_to_be_lost_where_others_have_it_too(scenes: type[Scene]) -> None:
    for replicas, expected in (((1, 2), [LOST_DIRECTORY]), ((1,), [])):
        scene = scenes(replicas, replicas)
        told: list[Uuid] = []
        scene.events.lies_in.hear(lambda _, directory, told=told: told.append(directory))  # type: ignore[misc]
        for directory in scene.replicas.directories:
            directory.refused[TopicPartition("t", 4)] = CorruptLog("/disk0/t-4", "damaged")
        scene.decided(
            m.PartitionRecord(
                partition_id=4,
                topic_id=TOPIC,
                replicas=list(replicas),
                isr=list(replicas),
                leader=1,
                directories=[DIRECTORIES[0]] * len(replicas),
            )
        )
        assert (scene.partition(4).offline, told) == (True, expected)


# ---- the order of a request


def test_answers_come_in_the_order_of_the_request_whatever_took_a_closer_look(scenes: type[Scene]) -> None:
    scene = scenes()
    assert scene.send((1, b"a"), (3, b"a")) == [(1, 0, 0), (3, 0, 0)]
    scene.send((1, b"b"), (3, b"b"))
    sent = ((9, b"c"), (3, b"c"), (0, b"c"), (1, b"c"))
    unknown = Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert scene.send(*sent) == [(9, unknown, -1), (3, 0, 2), (0, 0, 0), (1, 0, 2)]


def test_of_two_batches_for_one_partition_the_last_counts_as_in_kafka(scenes: type[Scene]) -> None:
    scene = scenes()
    scene.warm()
    log = scene.partition(0).log
    assert log is not None
    assert scene.send((0, b"a"), (1, b"x"), (0, b"b")) == [(0, 0, 2), (1, 0, 2)]
    assert values(log) == [b"one", b"two", b"b"]


# ---- with followers


def test_an_ordinary_batch_is_acknowledged_when_all_in_sync_have_it(scenes: type[Scene]) -> None:
    scene = scenes((1, 2, 3), (1, 2, 3), 2)
    scene.warm()
    scene.copied(0, 2, 2, 3)
    copying = FetchSession(7, True, True, OrderedDict(), Millis(0), Millis(0))
    scene.replicas.attend(2, copying)
    woken: list[bool] = []
    wait = FetchWait(Millis(10_000), 1, lambda: woken.append(True))
    scene.waiting.park_copy(wait, 2, scene.loop.create_future())

    answer = scene.ask((0, b"three"), acks=-1)
    scene.turn()
    assert (woken, copying.attention) == ([True], {(TOPIC, 0): None})
    assert (answer.done(), scene.partition(0).high_watermark) == (False, 2)
    scene.copied(0, 3, 2)
    scene.turn()
    assert not answer.done()
    scene.copied(0, 3, 3)
    scene.turn()
    assert isinstance(answer.result(), ProduceAck)
    assert answers(answer.result()) == [(0, 0, 2)]


def test_an_acknowledged_request_leaves_nothing_to_the_garbage_collector(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2), 2)
    scene.warm()
    scene.copied(0, 2, 2)
    gc.disable()
    try:
        answer = weakref.ref(scene.ask((0, b"three"), acks=-1))
        assert answer() is not None
        scene.copied(0, 3, 2)
        scene.turn()
        scene.turn()
        assert answer() is None
    finally:
        gc.enable()


def test_a_follower_that_had_everything_when_it_was_put_out_of_sync_is_looked_at_again(scenes: type[Scene]) -> None:
    """A broker fenced by mistake goes on fetching. On a partition that nobody writes to, nothing else would let it back
    in: it stayed out of sync until the next record."""
    scene = scenes((1, 2, 3), (1, 2, 3))
    scene.warm()
    scene.copied(0, 2, 2, 3)
    copying = FetchSession(7, True, True, OrderedDict(), Millis(0), Millis(0))
    scene.replicas.attend(2, copying)
    copying.attention = {}  # it has everything
    wanted: list[Partition] = []
    scene.events.isr_change_wanted.hear(wanted.append)

    scene.decided(m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[1, 3]))
    assert copying.attention == {(TOPIC, 0): None}
    scene.copied(0, 2, 2)
    assert wanted == [scene.partition(0)]


def test_what_waits_for_a_follower_that_was_about_to_join_is_committed_when_that_is_fenced(
    scenes: type[Scene],
) -> None:
    """Its fencing changes nothing of a partition that it is not in sync with: the next record would have told it."""
    scene = scenes((1, 2, 3), (1, 2), 2)
    scene.warm()
    scene.copied(0, 2, 2, 3)
    answer = scene.ask((0, b"three"), acks=-1)
    scene.copied(0, 3, 2)
    leader = scene.partition(0).leader
    assert leader is not None and leader.pending is not None
    leader.refused(leader.pending, Errors.INELIGIBLE_REPLICA)
    scene.turn()
    assert not answer.done()
    scene.decided(m.FenceBrokerRecord(id=3, epoch=5))
    scene.turn()
    assert answers(answer.result()) == [(0, 0, 2)]


def test_a_follower_that_had_everything_was_in_sync_until_the_next_ordinary_batch(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    scene.warm()
    scene.copied(0, 2, 2)
    scene.loop.run_until_complete(sleep(100))
    scene.send((0, b"three"))
    leader = scene.partition(0).leader
    assert leader is not None
    assert leader.followers[2].caught_up_at == scene.clock.monotonic() == 100_000


def test_without_enough_in_sync_acks_all_is_refused_and_acks_one_is_not_shown(scenes: type[Scene]) -> None:
    scene = scenes((1, 2, 3), (1,), 2)
    scene.warm()
    refused = Errors.NOT_ENOUGH_REPLICAS
    assert scene.send((0, b"three"), (1, b"three"), acks=-1) == [(0, refused, -1), (1, refused, -1)]
    assert scene.send((0, b"three"), acks=1) == [(0, 0, 2)]
    assert (scene.ends(), scene.partition(0).high_watermark) == ([3, 2, 2, 2], 0)


def test_what_too_few_hold_when_it_is_committed_is_answered_as_such(scenes: type[Scene]) -> None:
    scene = scenes((1, 2, 3), (1, 2), 2)
    scene.warm()
    for index in (0, 1):
        scene.copied(index, 2, 2)
    answer = scene.ask((0, b"three"), (1, b"three"), acks=-1)
    for index in (0, 1):
        scene.copied(index, 3, 2)
    leader = scene.partition(1).leader
    assert leader is not None
    leader.reconfigure(3, 30_000, 0)
    scene.turn()
    assert answers(answer.result()) == [(0, 0, 2), (1, Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)]


def test_a_high_watermark_that_moves_but_not_to_the_end_acknowledges_nothing(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    log = scene.partition(0).log
    assert log is not None
    log.update_config(LogConfig(flush_messages=1))  # the leader counts what is on its disk: nothing yet
    scene.warm()
    scene.copied(0, 2, 2)
    log.config = LogConfig()  # as a new configuration, but the next batch is ordinary
    answer = scene.ask((0, b"three"), acks=-1)
    scene.turn()
    assert (scene.partition(0).high_watermark, answer.done()) == (2, False)
    scene.copied(0, 3, 2)
    scene.turn()
    assert isinstance(answer.result(), ProduceAck)
    assert answers(answer.result()) == [(0, 0, 2)]


def test_an_ordinary_batch_that_is_promised_to_be_on_the_disk_waits_for_it(scenes: type[Scene]) -> None:
    scene = scenes()
    wanted: list[Partition] = []
    scene.events.flush_wanted.hear(wanted.append)
    partition = scene.partition(0)
    assert partition.log is not None
    partition.log.update_config(LogConfig(flush_messages=1))
    scene.warm()
    wanted.clear()
    answer = scene.ask((0, b"three"), (1, b"three"), acks=-1)
    scene.turn()
    assert (wanted, answer.done(), partition.high_watermark) == ([partition], False, 0)
    partition.log.flush()
    scene.replicas.flushed(partition)
    scene.turn()
    assert answers(answer.result()) == [(0, 0, 2), (1, 0, 2)]


def test_who_leads_instead_is_told_of_partitions_that_moved_and_the_others_are_written(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    scene.warm()
    moved = scene.partition(0)
    moved.leader, moved.follower = None, PartitionFollower(2, 1, 1, 0)
    answer = scene.ask((0, b"three"), (1, b"three"))
    assert answers(answer) == [(0, Errors.NOT_LEADER_OR_FOLLOWER, -1), (1, 0, 2)]
    hints = [part.current_leader.leader_id for part in answer.responses[0].partition_responses]
    assert hints == [ME, -1]  # as the image says, which has not heard of the change


def test_a_leadership_lost_while_waiting_is_answered_with_the_next_leader(scenes: type[Scene]) -> None:
    scene = scenes((1, 2), (1, 2))
    scene.warm()
    answer = scene.ask((0, b"three"), (1, b"three"), acks=-1)
    for index in (0, 1):
        scene.copied(index, 3 if index else 2, 2)
    lost = scene.partition(0)
    lost.leader, lost.follower = None, PartitionFollower(2, 1, 1, 0)
    scene.waiting.partition_changed(lost)
    scene.turn()
    assert answers(answer.result()) == [(0, Errors.NOT_LEADER_OR_FOLLOWER, -1), (1, 0, 2)]
    hints = [part.current_leader.leader_id for part in answer.result().responses[0].partition_responses]
    assert hints == [ME, -1]


# ---- a coordinator that waits for its log


@pytest.mark.parametrize("late_ms", [0, 1])
def test_what_is_committed_while_a_coordinator_is_told_that_it_is_late_is_told_too(
    scenes: type[Scene], late_ms: int
) -> None:
    """A node that was paused finds its deadlines passed and the copies of its followers in the same turn. The record is
    the last of its log: nothing behind it would ever wake who missed it, and its transaction stayed prepared."""
    scene = scenes(replicas=(1, 2), isr=(1, 2), min_isr=2)
    host = Host(scene.loop, scene.clock, scene.replicas, scene.waiting, cast("Any", None))
    journal = PartitionJournal(host, scene.partition(0), codec=0, timeout_ms=5000)
    offset = journal.append([NewRecord(b"copier", b"prepare commit", scene.clock.wall())], None)
    told: list[Errors] = []

    def then(error: Errors) -> None:
        told.append(error)
        if error:
            journal.when_committed(offset, then)

    journal.when_committed(offset, then)
    scene.loop.call_later(5 + late_ms / 1000 + 1e-8, scene.copied, 0, offset + 1, 2)  # in the turn of the deadline
    scene.loop.call_later(60, scene.loop.stop)
    scene.loop.run_forever()
    assert (told, journal.is_committed(offset)) == ([Errors.COORDINATOR_NOT_AVAILABLE, Errors.NONE], True)
