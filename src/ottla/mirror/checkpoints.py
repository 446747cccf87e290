"""What of a group's progress on the source is told on the target: checkpoints, and offsets of groups that are idle."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ottla.mirror.formats import Checkpoint
from ottla.mirror.policy import Policy
from ottla.mirror.selection import Names
from ottla.mirror.syncs import SyncStore

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    metadata: str = ""


@dataclass(slots=True)
class Checkpoints:
    """The last checkpoint of every group and partition, and what is news beside it."""

    policy: Policy
    topics: Names
    source: str
    target: str
    _last: dict[str, dict[Partition, Checkpoint]] = field(default_factory=dict)

    def replay(self, checkpoint: Checkpoint) -> None:
        self._last.setdefault(checkpoint.group, {})[checkpoint.topic, checkpoint.partition] = checkpoint

    def news(self, group: str, committed: Mapping[Partition, Committed], syncs: SyncStore) -> list[Checkpoint]:
        """Checkpoints worth writing: translated, and further than the last one, or behind it because the group went
        back on the source. They are known here once they were written (`replay`)."""
        found = (
            self._translated(group, partition, at, syncs)
            for partition, at in sorted(committed.items())
            if partition[0] in self.topics
        )
        return [checkpoint for checkpoint in found if checkpoint is not None and self._is_news(checkpoint)]

    def to_commit(self, group: str, there: Mapping[Partition, Committed]) -> dict[Partition, Committed]:
        """Offsets to write for a group that is idle on the target and has committed `there`. Never backwards: where its
        readers on the target were further, that counts."""
        return {
            partition: Committed(checkpoint.downstream_offset, checkpoint.metadata)
            for partition, checkpoint in self._last.get(group, {}).items()
            if partition not in there or there[partition].offset < checkpoint.downstream_offset
        }

    def groups(self) -> Iterable[str]:
        return sorted(self._last)

    def of(self, group: str) -> list[Checkpoint]:
        return [checkpoint for _, checkpoint in sorted(self._last.get(group, {}).items())]

    def _translated(self, group: str, partition: Partition, at: Committed, syncs: SyncStore) -> Checkpoint | None:
        topic, number = partition
        offset = syncs.translate(topic, number, at.offset)
        if offset is None or offset < 0:
            return None
        return Checkpoint(group, self._renamed(topic), number, at.offset, offset, at.metadata)

    def _renamed(self, topic: str) -> str:
        """A topic that came from the target is called there as it was before it came."""
        if self.policy.source_of(topic) == self.target:
            return self.policy.original_topic(topic)
        return self.policy.remote_topic(self.source, topic)

    def _is_news(self, checkpoint: Checkpoint) -> bool:
        last = self._last.get(checkpoint.group, {}).get((checkpoint.topic, checkpoint.partition))
        return (
            last is None
            or checkpoint.upstream_offset < last.upstream_offset
            or checkpoint.downstream_offset > last.downstream_offset
        )
