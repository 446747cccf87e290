"""What replay has built of the committed offsets: those that count, and those that open transactions have staged.

Offsets of a transaction wait under its producer id until the marker comes; they become visible in the order of markers,
but never over a later plain commit (the place of a record in the log decides).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.coordinator.group.commits import Commits
from ottla.protocol.messages import OffsetCommitKey, OffsetCommitValue


class Committed(NamedTuple):
    record_offset: int
    """Where the record stands in __consumer_offsets."""
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes


_new_tuple: Final = tuple.__new__
"""Makes a NamedTuple for a third of what its constructor costs."""


ByPartition = dict[int, Committed]
ByTopic = dict[str, ByPartition]
Spot = tuple[str, str, int]
"""Group, topic, partition."""


class Offsets:
    """The durable part: what replay has built."""

    __slots__ = ("by_group", "open_producers", "pending")

    def __init__(self) -> None:
        self.by_group: dict[str, ByTopic] = {}
        self.pending: dict[int, dict[Spot, Committed]] = {}
        """By producer id: what its open transaction has staged."""
        self.open_producers: dict[str, dict[tuple[str, int], dict[int, None]]] = {}
        """By group: which partitions have staged offsets, and by which producers."""

    # ---- looking up

    def get(self, group: str, topic: str, partition: int) -> Committed | None:
        topics = self.by_group.get(group)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def is_unstable(self, group: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self.open_producers.get(group, ())

    def all_spots(self, group: str) -> Iterator[tuple[str, int]]:
        """Every partition with a committed or a staged offset, each once."""
        topics = self.by_group.get(group, {})
        for topic, partitions in topics.items():
            for partition in partitions:
                yield topic, partition
        for topic, partition in self.open_producers.get(group, {}):
            if partition not in topics.get(topic, ()):
                yield topic, partition

    # ---- replaying

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int) -> None:
        group, topic, partition = key.group, key.topic, key.partition
        if value is None:
            self._remove(group, topic, partition)
            self._forget_staged(group, topic, partition)
        elif producer_id < 0:
            self.by_group.setdefault(group, {}).setdefault(topic, {})[partition] = _committed(offset, value)
        else:
            self.pending.setdefault(producer_id, {})[group, topic, partition] = _committed(offset, value)
            spots = self.open_producers.setdefault(group, {})
            spots.setdefault((topic, partition), {})[producer_id] = None

    def replay_commits(self, commits: Commits, offset: int) -> None:
        topics = self.by_group.get(commits.group_id)
        if topics is None:
            topics = self.by_group[commits.group_id] = {}
        metadata, timestamp, expires = commits.metadata, commits.timestamp, commits.expires
        for name, topic_id, rows in commits.topics:
            partitions = topics.get(name)
            if partitions is None:
                partitions = topics[name] = {}
            for row in rows:
                index = row[0]
                said = metadata.get((name, index), "") if metadata else ""
                values = (offset, row[1], row[2], said, timestamp, expires, topic_id)
                partitions[index] = _new_tuple(Committed, values)
                offset += 1

    def complete_transaction(self, producer_id: int, *, committed: bool) -> None:
        for (group, topic, partition), staged in self.pending.pop(producer_id, {}).items():
            self._close(group, topic, partition, producer_id)
            if not committed:
                continue
            known = self.get(group, topic, partition)
            if known is None or staged.record_offset > known.record_offset:
                self.by_group.setdefault(group, {}).setdefault(topic, {})[partition] = staged

    def _remove(self, group: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group)
        if topics is None or topic not in topics:
            return
        topics[topic].pop(partition, None)
        if not topics[topic]:
            del topics[topic]
            if not topics:
                del self.by_group[group]

    def _forget_staged(self, group: str, topic: str, partition: int) -> None:
        for producer_id in list(self.open_producers.get(group, {}).get((topic, partition), {})):
            staged = self.pending.get(producer_id, {})
            staged.pop((group, topic, partition), None)
            if not staged:
                self.pending.pop(producer_id, None)
            self._close(group, topic, partition, producer_id)

    def _close(self, group: str, topic: str, partition: int, producer_id: int) -> None:
        spots = self.open_producers.get(group, {})
        producers = spots.get((topic, partition), {})
        producers.pop(producer_id, None)
        if not producers:
            spots.pop((topic, partition), None)
            if not spots:
                self.open_producers.pop(group, None)


def _committed(record_offset: int, value: OffsetCommitValue) -> Committed:
    return Committed(
        record_offset,
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )
