"""The topic `_schemas`: made when it is missing, refused when it would lose schemas."""

from typing import Final

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors

_TOPIC: Final = 2
"""The type of resource, in DescribeConfigs."""


class WrongTopic(Exception):
    """The registry cannot live in this topic. The text says why, and what to do."""


async def prepare(cluster: Cluster, topic: str, replication_factor: int) -> None:
    """Raises WrongTopic, KafkaError."""
    response = await cluster.metadata([topic])
    (found,) = response.topics
    if found.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
        await _create(cluster, topic, min(replication_factor, len(response.brokers)))
    elif len(found.partitions) > 1:
        raise WrongTopic(
            f"the topic {topic} should have only 1 partition but has {len(found.partitions)}: records would lose their "
            "order. Name another topic with kafkastore.topic"
        )
    policy = await _cleanup_policy(cluster, topic)
    if policy != "compact":
        raise WrongTopic(
            f"the topic {topic} has cleanup.policy={policy}, and Kafka would delete schemas after a while: set it to "
            f"compact (ottla configs --alter --entity-type topics --entity-name {topic} "
            "--add-config cleanup.policy=compact)"
        )


async def _create(cluster: Cluster, topic: str, replication_factor: int) -> None:
    new = admin.NewTopic(topic, 1, max(replication_factor, 1), configs={"cleanup.policy": "compact"})
    outcome = (await admin.create_topics(cluster, [new]))[topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        raise outcome


async def _cleanup_policy(cluster: Cluster, topic: str) -> str:
    found = (await admin.describe_configs(cluster, _TOPIC, [topic]))[topic]
    if isinstance(found, KafkaError):
        raise found
    return next((entry.value or "" for entry in found if entry.name == "cleanup.policy"), "")
