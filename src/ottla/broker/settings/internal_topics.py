"""The topics that the platform keeps its own state in (decision 8: real topics, Kafka's record formats)."""

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.model.properties import Settings
from ottla.protocol.messages import CreateTopicsRequest

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"


class InternalTopic(NamedTuple):
    """How an internal topic is made on first use, whoever uses it first."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]

    def creatable(self, *, is_whole_cluster: bool) -> CreateTopicsRequest.CreatableTopic:
        # A node that is its whole cluster works with Kafka's default of three copies too. With others to come, asking
        # for fewer copies than configured would lose offsets with one disk.
        kind = CreateTopicsRequest
        return kind.CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=1 if is_whole_cluster else self.replication_factor,
            configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in self.configs],
        )


def offsets_topic(settings: Settings) -> InternalTopic:
    return InternalTopic(
        OFFSETS_TOPIC,
        settings.get_int("offsets.topic.num.partitions"),
        settings.get_int("offsets.topic.replication.factor"),
        (
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(settings.get_int("offsets.topic.segment.bytes"))),
        ),
    )


def transaction_topic(settings: Settings) -> InternalTopic:
    return InternalTopic(
        TRANSACTION_TOPIC,
        settings.get_int("transaction.state.log.num.partitions"),
        settings.get_int("transaction.state.log.replication.factor"),
        (
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(settings.get_int("transaction.state.log.min.isr"))),
            ("segment.bytes", str(settings.get_int("transaction.state.log.segment.bytes"))),
            ("unclean.leader.election.enable", "false"),
        ),
    )


def share_state_topic(settings: Settings) -> InternalTopic:
    """Nobody here writes it yet, but a Kafka that takes over the directory would (KIP-932)."""
    return InternalTopic(
        SHARE_STATE_TOPIC,
        settings.get_int("share.coordinator.state.topic.num.partitions"),
        settings.get_int("share.coordinator.state.topic.replication.factor"),
        (
            ("cleanup.policy", "delete"),
            ("compression.type", "producer"),
            ("min.insync.replicas", str(settings.get_int("share.coordinator.state.topic.min.isr"))),
            ("retention.ms", "-1"),
            ("segment.bytes", str(settings.get_int("share.coordinator.state.topic.segment.bytes"))),
        ),
    )


_MADE_BY: Final[dict[str, Callable[[Settings], InternalTopic]]] = {
    OFFSETS_TOPIC: offsets_topic,
    TRANSACTION_TOPIC: transaction_topic,
    SHARE_STATE_TOPIC: share_state_topic,
}
INTERNAL_TOPICS: Final = frozenset(_MADE_BY)


def internal_topic(name: str, settings: Settings) -> InternalTopic | None:
    made_by = _MADE_BY.get(name)
    return None if made_by is None else made_by(settings)
