"""The topics that mirroring keeps for itself: compacted, one partition."""

import logging

from ottla.client.admin import NewTopic, create_topics
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors

logger = logging.getLogger(__name__)


def ensure_compacted(cluster: Cluster, topic: str, replication_factor: int) -> None:
    """One that cannot be made is told and left: it may be there, or made by somebody who may."""
    wanted = NewTopic(topic, 1, replication_factor, {"cleanup.policy": "compact"})
    made = create_topics(cluster, [wanted])[topic]
    if isinstance(made, KafkaError) and made.error != Errors.TOPIC_ALREADY_EXISTS:
        if made.error == Errors.INVALID_REPLICATION_FACTOR:
            # Fewer brokers than MirrorMaker's default asks for: as many as there are is better than none.
            made = create_topics(cluster, [wanted._replace(replication_factor=-1)])[topic]
        if isinstance(made, KafkaError) and made.error != Errors.TOPIC_ALREADY_EXISTS:
            logger.warning("%s could not be made: %s", topic, made)
