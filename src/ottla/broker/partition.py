"""One partition on this node: its log, and its leader when this node leads it."""

from ottla.model.errors import Errors
from ottla.replication.leader import PartitionLeader
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log


class Partition:
    """Compared by identity: a topic created again under the same name is another partition."""

    __slots__ = ("directory", "index", "leader", "log", "offline", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log: Log | None = None
        self.directory: LogDirectory | None = None
        self.leader: PartitionLeader | None = None
        self.offline = False
        """Its directory has failed: nothing is read from it or written to it until a restart."""

    def unavailable_error(self) -> Errors:
        return Errors.KAFKA_STORAGE_ERROR if self.offline else Errors.NOT_LEADER_OR_FOLLOWER

    def last_stable_offset(self) -> int:
        """Everything below is decided: the high watermark, or the first record of the oldest transaction that is open,
        or whose marker the high watermark has not passed."""
        assert self.log is not None and self.leader is not None
        return self.log.last_stable_offset(self.leader.high_watermark)


class TopicPartitions:
    """The partitions of one topic that live on this node."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.id = topic_id
        self.partitions: dict[int, Partition] = {}
