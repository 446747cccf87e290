"""A follower's side of one partition: what to ask its leader for, and what to do with the answer.

The log itself says where to fetch from and in which epoch it was written last. A leader that finds our log parted from
its own says so in its answer (KIP-595); we cut back and ask again, and only an answer without divergence moves the high
watermark (KAFKA-14704). An answer to a question we would not ask any more is ignored.
"""

from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from ottla.model.errors import Errors

NO_LEADER: Final = -1
FIRST_PAUSE_MS: Final = 20
"""Doubled with each failure, up to replica.fetch.backoff.ms: after an election the leader may hear of it a little later
than its followers, and nothing is committed while they pause."""


class FollowerLog(Protocol):
    log_start_offset: int
    log_end_offset: int

    @property
    def latest_epoch(self) -> int: ...

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]: ...


class Ask(NamedTuple):
    """A partition as it stands in a fetch."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    takes_records: bool = True
    """False for lack of room: the leader is asked for 0 bytes, and goes on without this follower."""


class Do(IntEnum):
    NOTHING = 0
    """The answer came too late, or there is nothing to be done but to wait."""
    APPEND = 1
    TRUNCATE = 2
    """To the offset given."""
    RESTART = 3
    """With an empty log at the offset given."""
    ASK_RANGE = 4
    """The leader's first and last offsets decide."""
    STOP = 5
    """Until the metadata brings a new epoch."""


class Step(NamedTuple):
    do: Do
    offset: int = -1


NOTHING: Final = Step(Do.NOTHING)
APPEND: Final = Step(Do.APPEND)
ASK_RANGE: Final = Step(Do.ASK_RANGE)
STOP: Final = Step(Do.STOP)


def common_end(epoch: int, end_offset: int, log: FollowerLog) -> int:
    """Where our log and the leader's may still agree (KIP-279).

    The leader gave its largest epoch not above our last one, and where that ends. If we do not know that epoch, all we
    have above our next smaller one is not the leader's; the next answer tells more.
    """
    own_epoch, own_end = log.offset_for_leader_epoch(epoch)
    if own_end < 0:
        return min(end_offset, log.log_end_offset)
    if own_epoch != epoch:
        return min(own_end, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)


class PartitionFollower:
    __slots__ = (
        "_pause_ms",
        "high_watermark",
        "is_behind",
        "is_stopped",
        "leader_epoch",
        "leader_id",
        "partition_epoch",
        "ready_at",
    )

    def __init__(self, leader_id: int, leader_epoch: int, partition_epoch: int, high_watermark: int) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.high_watermark = high_watermark
        self.ready_at = 0
        """Not to be fetched before this moment."""
        self.is_stopped = False
        self.is_behind = True
        """The leader has committed more than we hold, as far as we know."""
        self._pause_ms = FIRST_PAUSE_MS

    def updated(self, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        """The metadata names this broker as a follower. True if fetching begins anew."""
        if partition_epoch < self.partition_epoch:
            return False
        self.partition_epoch = partition_epoch
        if leader_epoch == self.leader_epoch and leader_id == self.leader_id:
            return False
        assert leader_epoch >= self.leader_epoch, f"epoch {leader_epoch} after {self.leader_epoch}"
        self.leader_id, self.leader_epoch = leader_id, leader_epoch
        self.is_stopped = False
        self.ready_at = 0
        self._pause_ms = FIRST_PAUSE_MS
        return True

    def ask(self, log: FollowerLog, *, takes_records: bool = True) -> Ask:
        return Ask(self.leader_epoch, log.log_end_offset, log.latest_epoch, log.log_start_offset, takes_records)

    # ---- answers

    def answered(
        self,
        asked: Ask,
        log: FollowerLog,
        now: int,
        longest_pause_ms: int,
        *,
        error: int = 0,
        diverging_epoch: int = -1,
        diverging_end: int = -1,
    ) -> Step:
        if not self._is_current(asked, log):
            return NOTHING
        if error == Errors.NONE:
            self._pause_ms = FIRST_PAUSE_MS
            if diverging_end >= 0:
                return Step(Do.TRUNCATE, common_end(diverging_epoch, diverging_end, log))
            return APPEND
        if error == Errors.OFFSET_OUT_OF_RANGE:
            return ASK_RANGE
        if error == Errors.FENCED_LEADER_EPOCH:
            self.is_stopped = True
            return STOP
        self.pause(now, longest_pause_ms)
        return NOTHING

    def _is_current(self, asked: Ask, log: FollowerLog) -> bool:
        """The log may have been cut back and have grown to the same end again since: the epoch of the last record tells
        the one from the other, as end and epoch together stand for all that lies before them."""
        return (
            not self.is_stopped
            and asked.leader_epoch == self.leader_epoch
            and asked.fetch_offset == log.log_end_offset
            and asked.last_fetched_epoch == log.latest_epoch
        )

    def range_known(self, asked: Ask, leader_start: int, leader_end: int, log: FollowerLog) -> Step:
        """The leader keeps [leader_start, leader_end), and what we asked for was outside."""
        if not self._is_current(asked, log):
            return NOTHING
        self._pause_ms = FIRST_PAUSE_MS
        if leader_end < log.log_end_offset:
            return Step(Do.TRUNCATE, leader_end)
        if leader_start > log.log_end_offset:
            return Step(Do.RESTART, leader_start)
        return NOTHING

    def pause(self, now: int, longest_ms: int) -> None:
        self.ready_at = now + min(self._pause_ms, longest_ms)
        self._pause_ms = min(self._pause_ms * 2, longest_ms)

    # ---- what was done

    def caught(self, leader_high_watermark: int, log: FollowerLog) -> bool:
        """After an append, or an answer without records. True if the high watermark moved.

        It never retreats here: a leader just elected may know less than we do, but what was committed once stays so.
        """
        self.is_behind = leader_high_watermark > log.log_end_offset
        known = min(leader_high_watermark, log.log_end_offset)
        if known <= self.high_watermark:
            return False
        self.high_watermark = known
        return True

    def truncated(self, log: FollowerLog) -> bool:
        """True if committed records went: only an election of a replica out of sync can cause that."""
        lost = log.log_end_offset < self.high_watermark
        self.high_watermark = min(self.high_watermark, log.log_end_offset)
        return lost

    def restarted(self, log: FollowerLog) -> None:
        self.high_watermark = log.log_end_offset
