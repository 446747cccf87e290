"""One partition on this node: its log, and what this node is to it, leader or follower."""

import asyncio
from typing import Final

from ottla.metrics.counts import TopicCounts
from ottla.model.errors import Errors
from ottla.model.ids import Uuid
from ottla.replication.directory_move import DirectoryMove, Stage
from ottla.replication.follower import PartitionFollower
from ottla.replication.leader import LONG_AGO, PartitionLeader, end_of_epoch
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log

NOT_TOLD: Final = -1
"""As leader epoch: the client does not know one."""


class FutureReplica:
    """The copy of a partition's log in another directory of this node, which it moves to."""

    __slots__ = ("_agreed", "directory", "log", "move")

    def __init__(self, log: Log, directory: LogDirectory, move: DirectoryMove) -> None:
        self.log = log
        self.directory = directory
        self.move = move
        self._agreed = asyncio.Event()

    def placed(self, directory: Uuid) -> None:
        """The metadata says that the replica lies there."""
        self.move.placed(here=directory == self.directory.id)
        if self.move.stage is Stage.AGREED:
            self._agreed.set()

    async def is_agreed_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._agreed.wait()
        except TimeoutError:
            return False


class Partition:
    """Compared by identity: a topic created again under the same name is another partition."""

    __slots__ = (
        "counts",
        "directory",
        "follower",
        "future",
        "index",
        "key",
        "leader",
        "log",
        "offline",
        "stood_down_at",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: bytes, index: int, counts: TopicCounts) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.counts = counts
        """Its topic's, for all partitions together."""
        self.key: tuple[str | bytes, int] = (topic_id, index)
        """As fetch sessions know it."""
        self.log: Log | None = None
        self.directory: LogDirectory | None = None
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        """With a log there is always one of the two, never both."""
        self.future: FutureReplica | None = None
        """While it moves to another directory of this node (KIP-113)."""
        self.stood_down_at: int = LONG_AGO
        """When this node last asked for another leader, for lack of room."""
        self.offline = False
        """Its directory has failed: nothing is read from it or written to it until a restart."""

    def unavailable_error(self) -> Errors:
        return Errors.KAFKA_STORAGE_ERROR if self.offline else Errors.NOT_LEADER_OR_FOLLOWER

    @property
    def role(self) -> PartitionLeader | PartitionFollower | None:
        return self.leader if self.leader is not None else self.follower

    @property
    def high_watermark(self) -> int:
        """As far as this node knows; -1 without a log."""
        role = self.role
        return -1 if role is None else role.high_watermark

    @property
    def leader_epoch(self) -> int:
        role = self.role
        return -1 if role is None else role.leader_epoch

    def check_epoch(self, current_leader_epoch: int) -> Errors:
        """KIP-320: whoever knows another epoch than we do must not read here."""
        known = self.leader_epoch
        if current_leader_epoch in (NOT_TOLD, known):
            return Errors.NONE
        return Errors.FENCED_LEADER_EPOCH if current_leader_epoch < known else Errors.UNKNOWN_LEADER_EPOCH

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        assert self.log is not None
        return end_of_epoch(self.log, self.leader_epoch, epoch)

    def last_stable_offset(self) -> int:
        """Everything below is decided: the high watermark, or the first record of the oldest transaction that is open,
        or whose marker the high watermark has not passed."""
        assert self.log is not None
        return self.log.last_stable_offset(self.high_watermark)


class TopicPartitions:
    """The partitions of one topic that live on this node."""

    __slots__ = ("counts", "id", "name", "partitions")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.id = topic_id
        self.counts = TopicCounts()
        self.partitions: dict[int, Partition] = {}
