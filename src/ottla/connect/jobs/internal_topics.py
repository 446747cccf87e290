"""Topics that a connector needs, made if they are not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client import admin
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.connect.dead_letters import LetterPolicy
from ottla.model.errors import Errors

OFFSETS_PARTITIONS: Final = 25
"""`offset.storage.partitions`."""


def ensure_offsets(cluster: Cluster, topic: str) -> None:
    """Workers make it with the settings they were given; this is for who runs a connector without one."""
    ensure(cluster, topic, OFFSETS_PARTITIONS, -1, {"cleanup.policy": "compact"})


def ensure_letters(cluster: Cluster, policy: LetterPolicy) -> None:
    if policy.topic:
        ensure(cluster, policy.topic, 1, policy.replication, {})


def ensure(cluster: Cluster, topic: str, partitions: int, replication: int, configs: Mapping[str, str]) -> None:
    (found,) = cluster.metadata([topic]).topics
    if not found.error_code:
        return
    outcome = admin.create_topics(cluster, [admin.NewTopic(topic, partitions, replication, configs)])[topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        if outcome.error == Errors.INVALID_REPLICATION_FACTOR:
            raise KafkaError(
                outcome.error,
                topic,
                f"the topic cannot have {replication} replicas here: "
                "set errors.deadletterqueue.topic.replication.factor "
                "or topic.creation.default.replication.factor to the number of brokers, or to -1",
            )
        raise outcome
    deadline = cluster.deadline()
    while True:
        (found,) = cluster.metadata([topic]).topics
        if not found.error_code and all(not each.error_code for each in found.partitions):
            return
        deadline.pause(f"waiting for {topic}", KafkaError(Errors.LEADER_NOT_AVAILABLE, topic))
