"""Topics of sources: there before a statement is true."""

from typing import Final

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors
from ottla.sql.catalog import PersistentQuery
from ottla.sql.errors import BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.model import DataSource
from ottla.sql.server.askers import ANYBODY, Asker

AS_THE_BROKER_HAS_IT: Final = -1


async def make(cluster: Cluster, topic: str) -> None:
    """As the broker makes topics, if it is not there. Raises ClientError."""
    new = admin.NewTopic(topic, AS_THE_BROKER_HAS_IT, AS_THE_BROKER_HAS_IT)
    outcome = (await admin.create_topics(cluster, [new]))[topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        raise outcome


async def prepare(cluster: Cluster, source: DataSource, query: PersistentQuery | None, asker: Asker = ANYBODY) -> None:
    """Made if it is not there: as many partitions and replicas as WITH says, else as what its query reads first has,
    else (replicas) as the broker has it. Raises SqlError, ClientError."""
    (found,) = (await cluster.metadata([source.topic])).topics
    if found.error_code != Errors.UNKNOWN_TOPIC_OR_PARTITION:
        there = len(found.partitions)
        if source.partitions is not None and there != source.partitions:
            raise SqlError(
                BAD_STATEMENT,
                f"topic {source.topic} has {there} partitions, not {source.partitions}: leave PARTITIONS out, or "
                "name another KAFKA_TOPIC",
            )
        return
    partitions, replicas = source.partitions, source.replicas
    if query is not None and (partitions is None or replicas is None):
        first = query.query.reads()[0].topic
        (read,) = (await cluster.metadata([first])).topics
        if read.partitions:
            partitions = partitions or len(read.partitions)
            replicas = replicas or len(read.partitions[0].replica_nodes)
    if partitions is None:
        raise SqlError(
            BAD_STATEMENT,
            f"topic {source.topic} does not exist: create it, or say how many PARTITIONS a new one has: "
            f"WITH (KAFKA_TOPIC='{source.topic}', PARTITIONS=1, ...)",
        )
    asker.check_create(source.topic)
    compact = {"cleanup.policy": "compact"} if source.is_table and source.window is None else {}
    new = admin.NewTopic(source.topic, partitions, replicas or AS_THE_BROKER_HAS_IT, configs=compact)
    outcome = (await admin.create_topics(cluster, [new]))[source.topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        wrong = outcome.error in (Errors.INVALID_REPLICATION_FACTOR, Errors.INVALID_PARTITIONS)
        code = BAD_STATEMENT if wrong else SERVER_ERROR
        raise SqlError(code, f"topic {source.topic} cannot be created: {outcome}")
