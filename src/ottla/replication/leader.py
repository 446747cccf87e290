"""The leader's side of one partition: its epoch, its followers, who is in sync, and up to where records are committed.

Deals in offsets only; the log is someone else's. The rules are Kafka's: the high watermark is the least end offset over
the maximal ISR (KIP-497), waits for a caught-up replica that may join, and stands still below min.insync.replicas
(KIP-966). An ISR change is proposed here, sent by someone else, and counts for more replicas at once, for fewer only
when the controller has agreed.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.metadata.image import BrokerRegistration, PartitionImage, effective_min_isr
from ottla.model.errors import Errors
from ottla.model.ids import BrokerId
from ottla.replication.follower import FollowerLog

UNKNOWN: Final = -1
LONG_AGO: Final = -(1 << 62)
"""Long before any moment of a monotonic clock."""

NOTHING_MOVED: Final = 0
HIGH_WATERMARK_MOVED: Final = 1
ISR_CHANGE_WANTED: Final = 2
LOG_START_MOVED: Final = 4

_NOT_APPLIED: Final = (Errors.OPERATION_NOT_ATTEMPTED, Errors.INELIGIBLE_REPLICA)
"""The controller says that the partition epoch is right and that nothing was changed: the committed ISR holds."""
_NEWS_WILL_COME: Final = (
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.UNKNOWN_TOPIC_ID,
    Errors.FENCED_LEADER_EPOCH,
    Errors.INVALID_UPDATE_VERSION,
    Errors.INVALID_REQUEST,
    Errors.NEW_LEADER_ELECTED,
)
"""Nobody can say what holds until the metadata does: the proposal stays pending and keeps the high watermark back."""


class Brokers:
    """What the metadata says of the cluster's brokers now. One for all partitions of a node."""

    __slots__ = ("registered",)

    def __init__(self, registered: Mapping[int, BrokerRegistration] | None = None) -> None:
        self.registered: Mapping[int, BrokerRegistration] = registered or {}

    def may_join(self, broker_id: int, fetched_epoch: int | None) -> bool:
        """KIP-841 and KIP-903: neither fenced nor leaving, and still the same run of the broker that fetched."""
        broker = self.registered.get(broker_id)
        if broker is None or not broker.is_active or fetched_epoch is None:
            return False
        return fetched_epoch in (UNKNOWN, broker.epoch)

    def is_stale(self, broker_id: int, fetched_epoch: int) -> bool:
        """A fetch of a run of the broker before the one that is registered."""
        broker = self.registered.get(broker_id)
        return broker is not None and not broker.fenced and UNKNOWN < fetched_epoch < broker.epoch

    def is_alive(self, broker_id: int) -> bool:
        broker = self.registered.get(broker_id)
        return broker is not None and not broker.fenced


class FollowerState:
    """What the leader knows of one follower, all of it from the follower's fetches."""

    __slots__ = (
        "broker_epoch",
        "caught_up_at",
        "fetched_at",
        "id",
        "leader_end_then",
        "log_end_offset",
        "log_start_offset",
        "takes_records",
    )

    def __init__(self, broker_id: int, caught_up_at: int) -> None:
        self.id = broker_id
        self.broker_epoch: int | None = None
        """None before its first fetch in this leadership."""
        self.log_start_offset = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.leader_end_then = UNKNOWN
        """The leader's log end at the time of the follower's last fetch."""
        self.fetched_at = LONG_AGO
        self.caught_up_at = caught_up_at
        self.takes_records = True
        """False while its disk is full."""

    def fetched(self, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now: int) -> None:
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_then:
            # It has all there was at its last fetch: under a steady load it would never reach the present end.
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.log_start_offset = log_start_offset
        self.log_end_offset = offset
        self.leader_end_then = max(self.leader_end_then, leader_end)
        self.fetched_at = now
        self.broker_epoch = broker_epoch

    def begin_epoch(self, leader_end: int, in_sync: bool, now: int) -> None:
        """The same leader leads on in a new epoch. One out of sync has to fetch before it counts again."""
        self.leader_end_then = leader_end
        self.fetched_at = self.caught_up_at = now if in_sync else LONG_AGO

    def is_caught_up(self, leader_end: int, now: int, max_lag_ms: int) -> bool:
        return self.log_end_offset >= leader_end or now - self.caught_up_at <= max_lag_ms


class Diverging(NamedTuple):
    """The reader's log has parted from this one: its largest epoch not above the reader's last, and where it ends."""

    epoch: int
    end_offset: int


def end_of_epoch(log: FollowerLog, leader_epoch: int, asked: int) -> tuple[int, int]:
    """The largest epoch of the log that is not above `asked`, and where it ends; (-1, -1) if nobody can know.

    A leader's epoch begins with its election, not with its first record: a reader may know a later epoch than any
    record here, from a leader whose records did not survive.
    """
    if asked > leader_epoch:
        return UNKNOWN, UNKNOWN
    if asked == leader_epoch:
        return leader_epoch, log.log_end_offset
    latest = log.latest_epoch
    if asked > latest:
        return (latest if latest >= 0 else asked), log.log_end_offset
    return log.offset_for_leader_epoch(asked)


def check_position(
    log: FollowerLog, leader_epoch: int, fetch_offset: int, last_fetched_epoch: int
) -> Diverging | Errors | None:
    """What is wrong with a reader's position; None if it may read on from there."""
    epoch, end_offset = end_of_epoch(log, leader_epoch, last_fetched_epoch)
    if end_offset < 0 or fetch_offset < log.log_start_offset:
        return Errors.OFFSET_OUT_OF_RANGE
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return Diverging(epoch, end_offset)
    return None


class IsrChange(NamedTuple):
    """A proposal to the controller. Compared by identity: only the answer to the latest one counts."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """One for each replica as it was in its last fetch; -1 for the leader itself and for those not heard of yet."""
    leader_epoch: int
    partition_epoch: int


class PartitionLeader:
    __slots__ = (
        "_brokers",
        "_max_lag_ms",
        "_min_isr",
        "_replica_count",
        "broker_id",
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "isr",
        "leader_epoch",
        "maximal_isr",
        "own_end",
        "partition_epoch",
        "pending",
        "under_min_isr",
    )

    def __init__(
        self,
        broker_id: BrokerId,
        placed: PartitionImage,
        brokers: Brokers,
        *,
        min_isr: int,
        max_lag_ms: int,
        high_watermark: int,
        log_end_offset: int,
        now: int,
    ) -> None:
        """`high_watermark` is the last one known here, as leader, as follower or from the checkpoint."""
        self.broker_id = broker_id
        self._brokers = brokers
        self._min_isr = min_isr
        self._max_lag_ms = max_lag_ms
        self.leader_epoch = placed.leader_epoch
        self.epoch_start_offset = log_end_offset
        self.high_watermark = min(high_watermark, log_end_offset)
        self.own_end = log_end_offset
        """How much of its own log the leader counts: all of it, or what is on the disk where fsync is promised."""
        self.followers: dict[int, FollowerState] = {}
        self.pending: IsrChange | None = None
        self._adopt(placed, now)
        self._advance(now)

    # ---- what the metadata says

    def _adopt(self, placed: PartitionImage, now: int) -> None:
        self.partition_epoch = placed.partition_epoch
        self.isr = self.maximal_isr = placed.isr
        self.pending = None
        self._replica_count = len(placed.replicas)
        known = self.followers
        for follower in known.values():
            if follower.id not in placed.isr:
                # The controller may have put it out, with its directory or its broker. What it was a moment ago must
                # not hold the high watermark back; if it lives, its next fetch says so.
                follower.caught_up_at = LONG_AGO
        self.followers = {
            replica: known.get(replica) or FollowerState(replica, now if replica in placed.isr else LONG_AGO)
            for replica in placed.replicas
            if replica != self.broker_id
        }
        self._judge_isr()

    def _judge_isr(self) -> None:
        assert all(replica in self.followers or replica == self.broker_id for replica in self.isr), self.isr
        self.under_min_isr = len(self.isr) < self.effective_min_isr

    @property
    def effective_min_isr(self) -> int:
        return effective_min_isr(self._min_isr, self._replica_count)

    @property
    def is_at_min_isr(self) -> bool:
        """With one replica less in sync it would take no more."""
        return len(self.isr) == self.effective_min_isr

    @property
    def refusal(self) -> Errors:
        """Of records that all in sync must hold (acks=all, and whatever coordinators write); NONE to take them."""
        return Errors.NOT_ENOUGH_REPLICAS if self.under_min_isr else Errors.NONE

    @property
    def refusal_after_append(self) -> Errors:
        """Of such records when they are committed: they stay, but fewer hold them than was asked for."""
        too_few = len(self.maximal_isr) < self.effective_min_isr
        return Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND if too_few else Errors.NONE

    def updated(self, placed: PartitionImage, log_end_offset: int, now: int) -> bool:
        """The metadata names this broker as leader, again or still. True if the high watermark moved."""
        if placed.partition_epoch <= self.partition_epoch:
            # Known already, from the answer to a proposal. A proposal made since then stays pending: dropping it
            # would let the high watermark pass a replica that the controller may have added by now.
            return False
        assert placed.leader_epoch >= self.leader_epoch, f"epoch {placed.leader_epoch} after {self.leader_epoch}"
        new_epoch = placed.leader_epoch > self.leader_epoch
        self._adopt(placed, now)
        if new_epoch:
            self.leader_epoch = placed.leader_epoch
            self.epoch_start_offset = log_end_offset
            for follower in self.followers.values():
                follower.begin_epoch(log_end_offset, follower.id in placed.isr, now)
        return self._advance(now)

    def reconfigure(self, min_isr: int, max_lag_ms: int, now: int) -> bool:
        """True if the high watermark moved."""
        self._min_isr = min_isr
        self._max_lag_ms = max_lag_ms
        self._judge_isr()
        return self._advance(now)

    # ---- the high watermark

    def log_end_moved(self, durable_end: int, now: int = 0) -> bool:
        """The leader's own copy reaches `durable_end` now. True if the high watermark moved.

        Flat, because every produce request comes here: a leader without followers commits by itself.
        """
        self.own_end = durable_end
        if self.followers:
            return self._advance(now)
        if durable_end <= self.high_watermark:
            return False
        self.high_watermark = durable_end
        return True

    def appended(self, end_before: int, now: int) -> None:
        """Whoever had everything before this append was in sync until now: an idle follower does not repeat that."""
        for follower in self.followers.values():
            if follower.log_end_offset >= end_before:
                follower.caught_up_at = now

    def _advance(self, now: int) -> bool:
        if self.under_min_isr:
            return False  # KIP-966: what fewer than min.insync.replicas hold is not committed, whatever acks said
        end = own_end = self.own_end
        for follower in self.followers.values():
            if follower.log_end_offset < end and (
                follower.id in self.maximal_isr
                or (
                    follower.takes_records
                    and follower.is_caught_up(own_end, now, self._max_lag_ms)
                    and self._brokers.may_join(follower.id, follower.broker_epoch)
                )
            ):
                end = follower.log_end_offset
        if end <= self.high_watermark:
            return False
        assert end <= own_end
        self.high_watermark = end
        return True

    def looked_at_again(self, now: int) -> bool:
        """Nothing was written or fetched, but a follower that was about to join may be fenced, or silent for too long
        by now: what waits for it alone is committed without it. True if the high watermark moved."""
        return self.high_watermark < self.own_end and self._advance(now)

    # ---- followers

    def refuses(self, replica_id: int, broker_epoch: int, current_leader_epoch: int) -> Errors:
        """Why a replica may not fetch; NONE if it may."""
        if replica_id not in self.followers:
            # In the right epoch but not known: the assignment that names it is on its way to one of the two.
            return Errors.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else Errors.NOT_LEADER_OR_FOLLOWER
        if self._brokers.is_stale(replica_id, broker_epoch):
            return Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.NONE

    def fetched(
        self,
        replica_id: int,
        offset: int,
        log_start_offset: int,
        broker_epoch: int,
        leader_end: int,
        now: int,
        *,
        takes_records: bool = True,
    ) -> int:
        """A follower that does not diverge asks for `offset`, so it has everything below. Gives flags of what moved.

        One that takes no records, for lack of room, is out of sync with the next one: it leaves the ISR before that,
        and not after `replica.lag.time.max.ms` in which nothing would be committed.
        """
        follower = self.followers[replica_id]
        before, start_before = follower.log_end_offset, follower.log_start_offset
        follower.fetched(offset, log_start_offset, broker_epoch, leader_end, now)
        follower.takes_records = takes_records
        moved = NOTHING_MOVED
        if self.pending is None and (replica_id not in self.isr) == takes_records and self._joins_or_leaves(follower):
            moved |= ISR_CHANGE_WANTED
        if offset != before and self._advance(now):
            moved |= HIGH_WATERMARK_MOVED
        if log_start_offset > start_before:
            moved |= LOG_START_MOVED
        return moved

    def _joins_or_leaves(self, follower: FollowerState) -> bool:
        if follower.id in self.isr:
            self._propose(tuple(replica for replica in self.isr if replica != follower.id))
            return True
        if self._is_in_sync(follower):
            self._propose((*self.isr, follower.id))
            self.maximal_isr = (*self.isr, follower.id)
            return True
        return False

    def _is_in_sync(self, follower: FollowerState) -> bool:
        """At or beyond the epoch's start as well: committed records may lie between a fresh leader's high watermark
        and its log end (KIP-320)."""
        end = follower.log_end_offset
        return (
            end >= self.high_watermark
            and end >= self.epoch_start_offset
            and self._brokers.may_join(follower.id, follower.broker_epoch)
        )

    def low_watermark(self, log_start_offset: int) -> int:
        """Below it no living replica keeps a record any more."""
        starts = [f.log_start_offset for f in self.followers.values() if self._brokers.is_alive(f.id)]
        return min([*starts, log_start_offset])

    # ---- the ISR

    def shrink(self, leader_end: int, now: int) -> bool:
        """Proposes to go on without those that lag for too long. True if there is a proposal to send now."""
        if self.pending is not None or len(self.isr) < 2:
            return False
        kept = tuple(
            replica
            for replica in self.isr
            if replica == self.broker_id
            or (replica in self.followers and self.followers[replica].is_caught_up(leader_end, now, self._max_lag_ms))
        )
        if kept == self.isr:
            return False
        self._propose(kept)  # the maximal ISR stays: should this fail, the lagging ones are in sync still
        return True

    def stand_down(self, leader_end: int) -> bool:
        """Proposes an ISR without the leader itself, so that the controller elects another one of it: if all of these
        have everything, and are enough to go on. True if there is a proposal to send now."""
        others = tuple(replica for replica in self.isr if replica != self.broker_id)
        if self.pending is not None or not others or len(others) < self.effective_min_isr:
            return False
        if any(self.followers[replica].log_end_offset < leader_end for replica in others):
            return False
        self._propose(others)
        return True

    def _propose(self, isr: tuple[int, ...]) -> None:
        epochs = []
        for replica in isr:
            follower = self.followers.get(replica)
            epochs.append(UNKNOWN if follower is None or follower.broker_epoch is None else follower.broker_epoch)
        self.pending = IsrChange(isr, tuple(epochs), self.leader_epoch, self.partition_epoch)

    def agreed(
        self, change: IsrChange, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...], now: int
    ) -> bool:
        """The controller's answer to `change`. True if the high watermark moved."""
        if self.pending is not change:
            return False  # the metadata was faster
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return False  # another leader, or news on their way: they will settle it
        self.partition_epoch = partition_epoch
        self.isr = self.maximal_isr = isr
        self.pending = None
        self._judge_isr()
        return self._advance(now)

    def refused(self, change: IsrChange, error: Errors) -> bool:
        """True if `change` is to be sent again."""
        if self.pending is not change:
            return False
        stays = error == Errors.INVALID_REQUEST and self.broker_id not in change.isr  # Kafka's controller keeps leaders
        if error in _NOT_APPLIED or stays:
            self.pending = None
            self.maximal_isr = self.isr
            return False
        return error not in _NEWS_WILL_COME

    # ---- clients

    def check_epoch(self, current_leader_epoch: int) -> int:
        """KIP-320: -1 if the client is behind (fenced), 1 if it knows a later epoch than we do, 0 if all is well."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return 0
        return -1 if current_leader_epoch < self.leader_epoch else 1

    @property
    def is_settled(self) -> bool:
        """False after an election until all that the last leader may have committed is known to be committed: a
        reader who asked for the end before could see it go back."""
        return self.high_watermark >= self.epoch_start_offset
