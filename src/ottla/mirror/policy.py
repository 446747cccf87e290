"""How a topic is called on the other cluster, and what its name tells. Kafka's ReplicationPolicy.

The default policy puts the alias of the source before the name (`us.orders`), so that chains of clusters can be told
and cycles are seen. The identity policy keeps names: one direction only, as nothing tells where a topic came from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_HEARTBEATS: Final = "heartbeats"


@dataclass(frozen=True, slots=True)
class Policy:
    separator: str = "."
    internal_separator: str = "."
    """Between the parts of the names of mirroring's own topics; `.` for all where the switch says so."""

    def remote_topic(self, source: str, topic: str) -> str:
        return f"{source}{self.separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """The alias of the cluster that the topic came from, None for one that was made here."""
        source, separator, rest = topic.partition(self.separator)
        # As Java's split does: what has nothing behind its last separator has no part there.
        return source if separator and rest.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """Its name on the cluster that it came from."""
        source = self.source_of(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Its name where it was made, through however many clusters it came."""
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def is_cycle(self, topic: str, target: str) -> bool:
        """Whether the target is one of the clusters that the topic came through."""
        source = self.source_of(topic)
        while source is not None:
            if source == target:
                return True
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic, source = upstream, self.source_of(upstream)
        return False

    def heartbeats_topic(self) -> str:
        return _HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self._internal_suffix}"

    def checkpoints_topic(self, alias: str) -> str:
        return f"{alias}{self._checkpoints_suffix}"

    def is_heartbeats(self, topic: str) -> bool:
        return self.original_topic(topic) == _HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Kafka's own topics, and those of mirroring itself: never copied."""
        return (
            topic.startswith(("__", "."))
            or (topic.startswith("mm2") and topic.endswith(self._internal_suffix))
            or topic.endswith(self._checkpoints_suffix)
        )

    @property
    def _internal_suffix(self) -> str:
        return f"{self.internal_separator}internal"

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self.internal_separator}checkpoints{self._internal_suffix}"


@dataclass(frozen=True, slots=True)
class IdentityPolicy(Policy):
    source_alias: str | None = None

    def remote_topic(self, source: str, topic: str) -> str:
        return Policy.remote_topic(self, source, topic) if topic.endswith(_HEARTBEATS) else topic

    def source_of(self, topic: str) -> str | None:
        return Policy.source_of(self, topic) if topic.endswith(_HEARTBEATS) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        if not topic.endswith(_HEARTBEATS):
            return topic
        source = Policy.source_of(self, topic)
        return None if source is None else topic[len(source) + len(self.separator) :]


def policy_of(config: Mapping[str, str]) -> Policy:
    """The policy that a connector's configuration names. Raises ValueError for one that is not known here."""
    separator = config.get("replication.policy.separator", ".")
    everywhere = config.get("replication.policy.internal.topic.separator.enabled", "true").lower() == "true"
    internal = separator if everywhere else "."
    name = config.get("replication.policy.class", DEFAULT)
    if name == DEFAULT:
        return Policy(separator, internal)
    if name == IDENTITY:
        return IdentityPolicy(separator, internal, config.get("source.cluster.alias"))
    raise ValueError(f"replication.policy.class: {name} is not known; there are {DEFAULT} and {IDENTITY}")
