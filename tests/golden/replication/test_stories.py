"""One partition on three brokers, told as a story: fetches, the high watermark, the ISR, a change of leaders."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.metadata.image import PartitionImage
from ottla.model.ids import BrokerId
from ottla.replication.follower import Do, PartitionFollower
from ottla.replication.leader import ISR_CHANGE_WANTED, Brokers, Diverging, PartitionLeader, check_position
from tests.golden.transcripts import compare
from tests.rules.replication.cluster import NO_DIR, MemoryLog, registration

HERE = Path(__file__).parent
MAX_LAG_MS = 1_000


@dataclass
class Replica:
    id: int
    log: MemoryLog = field(default_factory=MemoryLog)
    leader: PartitionLeader | None = None
    follower: PartitionFollower | None = None

    @property
    def high_watermark(self) -> int:
        role = self.leader or self.follower
        return 0 if role is None else role.high_watermark


class Story:
    def __init__(self, *, min_isr: int) -> None:
        self.now = 0
        self.min_isr = min_isr
        self.lines: list[str] = []
        self.brokers = Brokers({id_: registration(id_, id_ * 10) for id_ in (1, 2, 3)})
        self.replicas = {id_: Replica(id_) for id_ in (1, 2, 3)}
        self.placed = PartitionImage(
            (1, 2, 3), (NO_DIR,) * 3, (1, 2, 3), (), (), (), (), 1, 0, leader_epoch=1, partition_epoch=1
        )
        self._heard(1, 2, 3)

    def say(self, *text: str) -> None:
        self.lines += ["", *(f"# {line}" for line in text)]

    def state(self) -> None:
        for replica in self.replicas.values():
            role = f"leads epoch {replica.leader.leader_epoch}" if replica.leader else "follows"
            log = " ".join(str(epoch) for epoch, _ in replica.log.records)
            self.lines.append(f"  = {replica.id}: {role}, high watermark {replica.high_watermark}, log [{log}]")

    def elect(self, leader: int, isr: tuple[int, ...], *heard_by: int) -> None:
        self.placed = self.placed._replace(
            leader=leader,
            isr=isr,
            leader_epoch=self.placed.leader_epoch + 1,
            partition_epoch=self.placed.partition_epoch + 1,
        )
        self.lines.append(f"controller: {leader} leads epoch {self.placed.leader_epoch}, ISR {_list(isr)}")
        self._heard(*heard_by)

    def _heard(self, *ids: int) -> None:
        for id_ in ids:
            replica, placed = self.replicas[id_], self.placed
            if placed.leader == id_:
                replica.leader = PartitionLeader(
                    BrokerId(id_),
                    placed,
                    self.brokers,
                    min_isr=self.min_isr,
                    max_lag_ms=MAX_LAG_MS,
                    high_watermark=replica.high_watermark,
                    log_end_offset=replica.log.log_end_offset,
                    now=self.now,
                )
                replica.follower = None
            else:
                replica.follower = PartitionFollower(
                    placed.leader, placed.leader_epoch, placed.partition_epoch, replica.high_watermark
                )
                replica.leader = None

    def produce(self, id_: int, value: int) -> None:
        replica = self.replicas[id_]
        leader = replica.leader
        assert leader is not None
        end = replica.log.log_end_offset
        replica.log.records.append((leader.leader_epoch, value))
        leader.appended(end, self.now)
        moved = leader.log_end_moved(end + 1, self.now)
        self.lines.append(f"{id_}: takes a record at {end}{_moved(leader, moved)}")

    def fetch(self, id_: int) -> None:
        replica = self.replicas[id_]
        follower, log = replica.follower, replica.log
        assert follower is not None
        other = self.replicas[follower.leader_id]
        leader = other.leader
        assert leader is not None
        ask = follower.ask(log)
        self.lines.append(f"{id_} -> {other.id}  fetch from {ask.fetch_offset}, last epoch {ask.last_fetched_epoch}")
        position = None
        if ask.last_fetched_epoch >= 0:
            position = check_position(other.log, leader.leader_epoch, ask.fetch_offset, ask.last_fetched_epoch)
        if isinstance(position, Diverging):
            self._cut_back(replica, ask, position)
            return
        assert position is None
        before = leader.high_watermark
        end = other.log.log_end_offset
        flags = leader.fetched(id_, ask.fetch_offset, ask.log_start_offset, id_ * 10, end, self.now)
        if flags & ISR_CHANGE_WANTED:
            assert leader.pending is not None
            self.lines.append(f"  {other.id} asks the controller for ISR {_list(leader.pending.isr)}")
        if leader.high_watermark > before:
            self.lines.append(f"  {other.id}'s high watermark is {leader.high_watermark}")
        records = other.log.records[ask.fetch_offset - other.log.log_start_offset :]
        step = follower.answered(ask, log, self.now, 100)
        assert step.do == Do.APPEND
        log.records += records
        moved = follower.caught(leader.high_watermark, log)
        told = f", high watermark {follower.high_watermark}" if moved else ""
        self.lines.append(f"{other.id} -> {id_}  {len(records)} records{told}")

    def _cut_back(self, replica: Replica, ask: Any, position: Diverging) -> None:
        follower = replica.follower
        assert follower is not None
        step = follower.answered(
            ask, replica.log, self.now, 100, diverging_epoch=position.epoch, diverging_end=position.end_offset
        )
        assert step.do == Do.TRUNCATE
        replica.log.truncate(step.offset)
        follower.truncated(replica.log)
        where = f"epoch {position.epoch} ends at {position.end_offset} here"
        self.lines.append(f"{follower.leader_id} -> {replica.id}  diverging: {where}")
        self.lines.append(f"  {replica.id} cuts its log back to {step.offset}")

    def look_for_laggards(self, id_: int) -> None:
        replica = self.replicas[id_]
        leader = replica.leader
        assert leader is not None
        if leader.shrink(replica.log.log_end_offset, self.now):
            assert leader.pending is not None
            self.lines.append(f"{id_}: at {self.now} ms asks the controller for ISR {_list(leader.pending.isr)}")

    def agree(self, id_: int) -> None:
        """The controller takes the proposal that is pending."""
        leader = self.replicas[id_].leader
        assert leader is not None and leader.pending is not None
        change = leader.pending
        self.placed = self.placed._replace(isr=change.isr, partition_epoch=self.placed.partition_epoch + 1)
        moved = leader.agreed(change, leader.leader_epoch, self.placed.partition_epoch, change.isr, self.now)
        self.lines.append(f"controller -> {id_}  ISR {_list(change.isr)}{_moved(leader, moved)}")


def _moved(leader: PartitionLeader, moved: bool) -> str:
    return f", high watermark {leader.high_watermark}" if moved else ""


def _list(ids: tuple[int, ...]) -> str:
    return " ".join(map(str, ids))


def test_a_record_is_committed_when_all_in_sync_have_it() -> None:
    story = Story(min_isr=2)
    story.produce(1, 42)
    story.say("A fetch says what a follower has: it asks for what comes behind it.")
    story.fetch(2)
    story.fetch(3)
    story.fetch(2)
    story.say("Node 2 has it, node 3 has not said so yet: not committed.")
    story.fetch(3)
    story.say("Now it is. Followers hear of it with their next fetch.")
    story.fetch(2)
    story.fetch(3)
    story.state()
    compare(HERE / "commit.txt", story.lines)


def test_a_follower_that_lags_leaves_the_isr_and_comes_back() -> None:
    story = Story(min_isr=2)
    story.fetch(2)
    story.fetch(3)
    story.produce(1, 42)
    story.fetch(2)
    story.fetch(2)
    story.say("Node 3 does not fetch for longer than replica.lag.time.max.ms. Until the controller agrees it counts.")
    story.now = MAX_LAG_MS + 1
    story.fetch(2)
    story.look_for_laggards(1)
    story.agree(1)
    story.say("It comes back: with the fetch that shows it at the high watermark it is proposed, and counts at once.")
    story.fetch(3)
    story.fetch(3)
    story.produce(1, 43)
    story.fetch(2)
    story.fetch(2)
    story.say("Node 3 is not in the ISR yet as far as the controller has said, but it may be: it is waited for.")
    story.agree(1)
    story.fetch(3)
    story.fetch(3)
    story.state()
    compare(HERE / "isr.txt", story.lines)


def test_what_an_old_leader_could_not_commit_goes_when_it_follows() -> None:
    story = Story(min_isr=1)
    story.produce(1, 42)
    story.fetch(2)
    story.fetch(2)
    story.say("Leader 1 takes two records that nobody fetches, and is fenced.")
    story.produce(1, 43)
    story.produce(1, 44)
    story.elect(2, (2,), 2)
    story.produce(2, 45)
    story.say("It comes back as a follower: its last epoch ended earlier at the new leader (KIP-101, KIP-595).")
    story._heard(1)
    story.fetch(1)
    story.fetch(1)
    story.fetch(1)
    story.state()
    compare(HERE / "divergence.txt", story.lines)
