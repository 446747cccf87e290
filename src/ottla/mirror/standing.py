"""How a flow stands, told by its topics alone: what is copied and what is not, how old the last heartbeat is, which
groups could move over now, and what they would find.

Nothing of the mirror has to run for it: that is the hour in which somebody asks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.offsets import LATEST, list_offsets, offset_of
from ottla.connect.offsets import Offsets, decode
from ottla.mirror.checkpoints import Checkpoints, Committed, Partition
from ottla.mirror.following import Follower, committed_of, is_at_work
from ottla.mirror.formats import Checkpoint, Heartbeat
from ottla.mirror.policy import Policy
from ottla.mirror.selection import Names, Selection
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicStanding:
    """One partition of a topic that is copied. `copied` is the offset behind the last record that was."""

    topic: str
    partition: int
    remote: str
    copied: int
    end: int

    @property
    def lag(self) -> int:
        return max(self.end - self.copied, 0)


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group's place in one partition, and where it would go on on the target."""

    checkpoint: Checkpoint
    committed_upstream: int | None
    """None: the group has nothing there now."""
    committed_target: int | None

    @property
    def in_step(self) -> bool:
        """Whether its last commit on the source is what the checkpoint translates."""
        return self.committed_upstream == self.checkpoint.upstream_offset


@dataclass(frozen=True, slots=True)
class FlowTopics:
    """The names of a flow's own topics on the target."""

    offsets: str
    checkpoints: str
    heartbeats: str


@dataclass(slots=True)
class Standing:
    policy: Policy
    selection: Selection
    alias: str
    """Of the source."""
    source: Cluster
    target: Cluster
    topics: FlowTopics

    def of_topics(self, connector: str) -> list[TopicStanding]:
        """Of every partition that the source has and the flow copies."""
        offsets = Offsets()
        _read(self.target, self.topics.offsets, lambda key, value: offsets.replay(decode(key, value)))
        copied = {
            (str(put.partition.get("topic")), int(put.partition.get("partition", -1))): int(put.offset["offset"]) + 1
            for put in offsets.of(connector)
            if put.offset is not None and "offset" in put.offset and put.partition.get("cluster") == self.alias
        }
        names = [topic.name for topic in self.source.metadata().topics if topic.name and not topic.error_code]
        places = [
            TopicPartition(topic, partition)
            for topic in self.selection.of(names)
            for partition in self.source.partitions(topic)
        ]
        ends = list_offsets(self.source, dict.fromkeys(places, LATEST)) if places else {}
        return [
            TopicStanding(
                place.topic,
                place.partition,
                self.policy.remote_topic(self.alias, place.topic),
                copied.get((place.topic, place.partition), 0),
                offset_of(ends[place]),
            )
            for place in places
        ]

    def of_groups(self, target_alias: str) -> list[GroupStanding]:
        """Of every group that has checkpoints."""
        checkpoints = self._checkpoints(target_alias)
        found = []
        for group in checkpoints.groups():
            upstream = committed_of(self.source, group)
            here = committed_of(self.target, group)
            for checkpoint in checkpoints.of(group):
                there = self.policy.upstream_topic(checkpoint.topic) or checkpoint.topic
                found.append(
                    GroupStanding(
                        checkpoint,
                        _offset(upstream, (there, checkpoint.partition)),
                        _offset(here, (checkpoint.topic, checkpoint.partition)),
                    )
                )
        return found

    def heartbeat_age_ms(self, now_ms: int) -> int | None:
        """Since the newest heartbeat that came over the flow; None if none ever did."""
        newest: list[int] = []

        def replay(key: bytes, value: bytes) -> None:
            heartbeat = Heartbeat.read(key, value)
            newest[:] = [max(heartbeat.timestamp_ms, *newest)] if newest else [heartbeat.timestamp_ms]

        _read(self.target, self.topics.heartbeats, replay)
        return now_ms - newest[0] if newest else None

    def failover(self, group: str, target_alias: str) -> dict[Partition, Committed]:
        """What would have to be committed on the target for the group to go on there. Raises GroupAtWork."""
        if is_at_work(self.target, group):
            raise GroupAtWork(f"group {group} has members on the target: they say themselves where they are")
        return self._checkpoints(target_alias).to_commit(group, committed_of(self.target, group))

    def _checkpoints(self, target_alias: str) -> Checkpoints:
        checkpoints = Checkpoints(self.policy, Names(".*", ""), self.alias, target_alias)
        _read(
            self.target,
            self.topics.checkpoints,
            lambda key, value: checkpoints.replay(Checkpoint.read(key, value)),
        )
        return checkpoints


class GroupAtWork(Exception):
    """Its offsets on the target are not ours to set."""


def _read(cluster: Cluster, topic: str, replay: Callable[[bytes, bytes], None]) -> None:
    """Nothing where the topic is not there: the flow has not begun."""
    try:
        Follower(cluster, topic, replay).catch_up()
    except KafkaError as error:
        if error.error != Errors.UNKNOWN_TOPIC_OR_PARTITION:
            raise


def _offset(committed: Mapping[Partition, Committed], partition: Partition) -> int | None:
    at = committed.get(partition)
    return None if at is None else at.offset
