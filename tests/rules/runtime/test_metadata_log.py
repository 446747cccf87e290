"""The metadata log as the quorum's core reads it, beside the simulation's log, which never forgets anything here."""

from random import Random

import pytest

from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.protocol import messages
from ottla.raft import leader
from ottla.raft.core import LogView, Quorum
from ottla.raft.election import ElectionState
from ottla.raft.exchange import FetchRequest
from ottla.raft.snapshots import SnapshotId
from ottla.raft.voters import voters_record
from ottla.runtime.committed import CommittedImage
from ottla.runtime.metadata_log import MetadataLog, MetadataLogSettings
from ottla.storage.fs import StorageError
from ottla.storage.reading import batches_of
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from ottla.testing.sim.raft_log import SimLog
from tests.rules.raft.scene import a_fetch, a_voter, the_voters
from tests.rules.runtime.raft_scene import METADATA_VERSION, static


class NoClock:
    def wall(self) -> Millis:
        return Millis(1_700_000_000_000)

    monotonic = wall


def opened(disk: SimDisk) -> tuple[MetadataLog, CommittedImage]:
    log = MetadataLog(MetadataLogSettings.of(static(1)), OpenFiles(disk), NoClock())
    image = log.load("")
    log.metadata_version = METADATA_VERSION
    return log, CommittedImage(image)


def a_topic(number: int) -> "messages.TopicRecord":
    return messages.TopicRecord(name=f"t{number}", topic_id=number.to_bytes(16, "big"))


class Both:
    """The same done to both logs."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.log, self.committed = opened(self.disk)
        self.model = SimLog()
        self.last = 0

    def append(self, epoch: int) -> None:
        self.last += 1
        self.log.epoch = epoch
        self.log.append([a_topic(self.last)])
        self.model.append(epoch, self.last)

    def change_voters(self, epoch: int, *ids: int) -> None:
        voters = the_voters(*ids, dynamic=True)
        version = messages.KRaftVersionRecord(version=0, kraft_version=1)
        self.log.epoch = epoch
        # Two records in one batch: the model gets two as well.
        self.log.append_control([version, voters_record(voters)])
        self.model.append(epoch, 0)
        self.model.append(epoch, voters)

    def truncate_to(self, offset: int) -> None:
        self.log.truncate_to(offset)
        self.model.truncate_to(offset)

    def snapshot(self, offset: int) -> None:
        self.committed.follow(self.log.log, offset)
        job = self.log.begin_snapshot(self.committed.image)
        job.run()
        self.log.remove(self.log.finish_snapshot(job))

    def reopen(self) -> None:
        self.log.log.flush()
        self.log, self.committed = opened(self.disk)

    def agree(self) -> None:
        ours, model = self.log, self.model
        assert (ours.end_offset, ours.last_epoch) == (model.end_offset, model.last_epoch)
        assert (ours.history.voters, ours.history.kraft_version) == (model.history.voters, model.history.kraft_version)
        whole, real = a_reader(model), a_reader(ours)
        for offset in range(model.end_offset + 2):
            for epoch in range(model.last_epoch + 1):
                self._answers_agree(a_fetch(2, offset, epoch=99, last_epoch=epoch), whole, real)

    def _answers_agree(self, request: FetchRequest, whole: Quorum, real: Quorum) -> None:
        """A leader with snapshots says the same as one that still has everything, or sends a snapshot."""
        answer = leader.where(real, request)
        latest = self.log.latest_snapshot
        if isinstance(answer, SnapshotId):
            assert answer == latest
            assert request.offset < answer.offset or request.last_epoch < answer.epoch
        else:
            assert answer == leader.where(whole, request), request
            assert answer is not None or request.offset >= self.log.start_offset


def a_reader(log: LogView) -> Quorum:
    return Quorum(a_voter(1), log, election=ElectionState(), draw=lambda low, high: low, now=0)


@pytest.mark.parametrize("seed", range(25))
def test_a_leader_answers_from_this_log_as_from_one_that_was_never_shortened(seed: int) -> None:
    dice = Random(seed)
    both = Both()
    epoch = 0
    for _ in range(60):
        match dice.choice("aaaaaaevtsr"):
            case "a" if epoch:
                both.append(epoch)
            case "e":
                epoch += dice.randint(1, 3)
                both.append(epoch)
            case "v" if epoch:
                both.change_voters(epoch, *range(1, dice.randint(2, 6)))
            case "t" if both.log.end_offset > both.committed.image.offset + 1:
                # Never below what a snapshot may have: that is committed. Batches are cut nowhere else.
                edges = [int.from_bytes(data[:8], "big") for data in batches_of(both.log.log, both.log.start_offset)]
                free = [edge for edge in edges if edge > both.committed.image.offset]
                if free:
                    both.truncate_to(dice.choice(free))
            case "s" if both.log.end_offset > max(both.log.start_offset, both.committed.image.offset + 1):
                both.snapshot(both.log.end_offset)
            case "r":
                both.reopen()
        both.agree()


def test_what_is_flushed_is_known_only_after_a_flush_of_this_run() -> None:
    both = Both()
    both.append(1)
    assert both.log.flushed == 0
    both.log.log.flush()
    assert both.log.flushed == 1
    both.append(1)
    both.truncate_to(1)
    assert both.log.flushed == 1
    again, _ = opened(both.disk)
    assert (again.end_offset, again.flushed) == (1, 0)


def test_a_snapshot_that_was_fetched_takes_the_place_of_the_log_even_if_the_node_dies_in_between() -> None:
    ahead = Both()
    for number in range(8):
        ahead.append(1 + number // 4)
    ahead.snapshot(8)
    wanted = ahead.log.latest_snapshot
    assert wanted == SnapshotId(8, 2)
    size = ahead.log.snapshot_size(wanted)
    assert size is not None
    for installed in (True, False):
        follower = Both()
        for _ in range(10):
            follower.append(1)
        follower.log.log.flush()
        for position in range(0, size, 100):
            follower.log.store_snapshot(wanted, position, ahead.log.read_snapshot(wanted, position, 100))
        follower.log.finish_download(wanted)
        if installed:
            follower.log.install_snapshot(wanted)
            assert (follower.log.start_offset, follower.log.end_offset, follower.log.last_epoch) == (8, 8, 2)
        again, committed = opened(follower.disk)
        assert (again.start_offset, again.end_offset, again.last_epoch) == (8, 8, 2)
        assert sorted(committed.image.topics) == sorted(ahead.committed.image.topics)


def test_a_snapshot_that_came_too_late_leaves_nothing_behind() -> None:
    ahead, follower = Both(), Both()
    for both in (ahead, follower):
        for _ in range(4):
            both.append(1)
    ahead.snapshot(4)
    wanted = ahead.log.latest_snapshot
    assert wanted is not None
    follower.log.store_snapshot(wanted, 0, ahead.log.read_snapshot(wanted, 0, 1 << 20))
    follower.log.finish_download(wanted)
    follower.log.discard_download(wanted)
    follower.reopen()
    follower.agree()


def test_a_snapshot_has_the_voters_of_its_own_offset() -> None:
    both = Both()
    both.append(1)
    both.change_voters(1, 1, 2)
    both.committed.follow(both.log.log, both.log.end_offset)
    image: MetadataImage = both.committed.image
    both.change_voters(1, 1, 2, 3)
    job = both.log.begin_snapshot(image)
    job.run()
    both.log.finish_snapshot(job)
    again, _ = opened(both.disk)
    assert again.history.voters.ids == (1, 2, 3)
    both.truncate_to(3)
    both.log.log.flush()
    assert opened(both.disk)[0].history.voters.ids == (1, 2)


def test_the_vote_is_read_back() -> None:
    log, _ = opened(SimDisk())
    assert log.read_election() == ElectionState()
    log.write_election(ElectionState(4, -1, 2))
    assert log.read_election() == ElectionState(4, -1, 2)


# ---- a full disk


def on_a_full_disk(reserve: int) -> tuple[SimDisk, MetadataLog]:
    disk = SimDisk()
    log, _ = opened(disk)
    log.epoch = 1
    log.append([a_topic(1)])
    path = f"{log.settings.path.rpartition('/')[0]}/.ottla_reserve"
    if reserve:
        disk.reserve(path, reserve)
    disk.room = disk.used
    return disk, log


def test_metadata_is_written_on_what_is_held_back_for_it_when_the_disk_is_full() -> None:
    _, log = on_a_full_disk(reserve=1_000)
    assert log.append([a_topic(2)]).base_offset == 1
    log.write_election(ElectionState(epoch=7))
    assert log.read_election().epoch == 7
    with pytest.raises(StorageError, match="no space left"):
        for number in range(100):
            log.append([a_topic(number)])


def test_what_the_leader_sends_is_asked_for_again_until_there_is_room() -> None:
    leading = opened(SimDisk())[0]
    leading.epoch = 1
    leading.append([a_topic(1)])
    leading.append([a_topic(2)])
    sent = leading.read(1, 10_000)
    disk, log = on_a_full_disk(reserve=0)
    for _ in range(3):
        rejected = log.append_replicated(sent, 1)
        assert rejected is not None and rejected.error == Errors.KAFKA_STORAGE_ERROR
        assert log.end_offset == 1
    disk.room = None
    assert log.append_replicated(sent, 1) is None
    assert log.end_offset == 2
