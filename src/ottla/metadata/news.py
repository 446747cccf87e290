"""What changes of the metadata mean to whoever runs the cluster, in sentences. Many of a kind make one sentence: the
death of a broker with ten thousand partitions is three lines, not ten thousand."""

from typing import Final

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import BrokerRegistration, PartitionImage

_NAMED: Final = 3
"""So many are named, the others counted."""


class _Kind:
    """What happened to many, as a count and the first of them."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.first) < _NAMED:
            self.first.append(text)

    def is_named(self) -> bool:
        """Whether one more would be named: whoever adds many need not make sentences that nobody reads."""
        return len(self.first) < _NAMED

    def __str__(self) -> str:
        rest = self.count - len(self.first)
        return ", ".join(self.first) + (f" and {rest:,} more" if rest else "")


class News:
    """Takes deltas, gives sentences. The node's own coming and going is none: it tells that itself."""

    __slots__ = ("_brokers", "_created", "_deleted", "_in_sync", "_leaders", "_node_id", "_partitions")

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._clear()

    def _clear(self) -> None:
        self._brokers: list[str] = []
        self._created = _Kind()
        self._deleted = _Kind()
        self._leaders = _Kind()
        self._in_sync = _Kind()
        self._partitions = 0
        """Of the topics that were made."""

    def note(self, delta: MetadataDelta) -> None:
        for broker_id, broker in delta.changed_brokers.items():
            if broker_id != self._node_id:
                self._note_broker(broker_id, delta.base.brokers.get(broker_id), broker)
        for name, topic_id in delta.created_topics.items():
            self._created.add(name)
            self._partitions += len(delta.changed_partitions.get(topic_id, ()))
        for topic in delta.deleted_topics.values():
            self._deleted.add(topic.name)
        for topic_id, partitions in delta.changed_partitions.items():
            before = delta.base.topics_by_id.get(topic_id)
            if before is not None:
                for index, partition in partitions.items():
                    self._note_partition(before.name, index, before.partitions.get(index), partition)

    def _note_broker(self, broker_id: int, before: BrokerRegistration | None, now: BrokerRegistration | None) -> None:
        if now is None:
            self._brokers.append(f"broker {broker_id} is unregistered")
        elif now.fenced:
            if before is not None and not before.fenced:
                why = "has left" if before.in_controlled_shutdown else "is out of service"
                self._brokers.append(f"broker {broker_id} {why}")
        elif before is None or before.fenced:
            self._brokers.append(f"broker {broker_id} is in service")
        elif now.in_controlled_shutdown and not before.in_controlled_shutdown:
            self._brokers.append(f"broker {broker_id} is leaving")

    def _note_partition(self, topic: str, index: int, before: PartitionImage | None, now: PartitionImage) -> None:
        if before is None:
            return  # one that was added to its topic
        if before.leader != now.leader:
            named = self._leaders.is_named()
            self._leaders.add(f"{topic}-{index} from {_shown(before)} to {_shown(now)}" if named else "")
        if before.isr != now.isr and sorted(before.isr) != sorted(now.isr):
            named = self._in_sync.is_named()
            self._in_sync.add(f"{topic}-{index} from {list(before.isr)} to {list(now.isr)}" if named else "")

    def take(self) -> list[str]:
        """The sentences, and it begins anew."""
        said = [*self._brokers]
        if self._created.count:
            said.append(f"{_topics(self._created)} made, {_counted(self._partitions, 'partition')}: {self._created}")
        if self._deleted.count:
            said.append(f"{_topics(self._deleted)} deleted: {self._deleted}")
        if self._leaders.count:
            said.append(f"{_counted(self._leaders.count, 'partition')} with another leader: {self._leaders}")
        if self._in_sync.count:
            changed = _counted(self._in_sync.count, "partition")
            said.append(f"{changed} with other in-sync replicas: {self._in_sync}")
        self._clear()
        return said


def _shown(partition: PartitionImage) -> str:
    return "none" if partition.leader < 0 else str(partition.leader)


def _topics(kind: _Kind) -> str:
    return _counted(kind.count, "topic")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
