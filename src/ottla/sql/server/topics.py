"""Topics of sources: there before a statement is true."""

from typing import Final

from ottla.client import admin
from ottla.client.aio.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.sql.analysis.keeping import CLEANUP, COMPACT, RETENTION
from ottla.sql.catalog import PersistentQuery
from ottla.sql.errors import BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.model import DataSource
from ottla.sql.server.askers import ANYBODY, Asker

AS_THE_BROKER_HAS_IT: Final = -1
_OF_THE_TOPIC: Final = 1
"""DYNAMIC_TOPIC_CONFIG of DescribeConfigs: said for this very topic."""
Topic = messages.MetadataResponse.MetadataResponseTopic


async def make(cluster: Cluster, topic: str) -> None:
    """As the broker makes topics, if it is not there. Raises ClientError."""
    new = admin.NewTopic(topic, AS_THE_BROKER_HAS_IT, AS_THE_BROKER_HAS_IT)
    outcome = (await admin.create_topics(cluster, [new]))[topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        raise outcome


async def prepare(cluster: Cluster, source: DataSource, query: PersistentQuery | None, asker: Asker = ANYBODY) -> None:
    """Made if it is not there: as many partitions and replicas, and kept as long, as WITH says, else as what its query
    reads first, else (but for partitions) as the broker has it. Raises SqlError, ClientError."""
    (found,) = (await cluster.metadata([source.topic])).topics
    if found.error_code != Errors.UNKNOWN_TOPIC_OR_PARTITION:
        _check(source, found, made_by_query=query is not None)
        return
    partitions, replicas, settings = source.partitions, source.replicas, dict(source.topic_settings)
    if query is not None:
        first = query.query.reads()[0]
        (read,) = (await cluster.metadata([first.topic])).topics
        if read.partitions:
            partitions = partitions or len(read.partitions)
            replicas = replicas or len(read.partitions[0].replica_nodes)
            if RETENTION not in settings and settings.get(CLEANUP) != COMPACT:
                settings |= await _kept(cluster, first.topic)
    if partitions is None:
        raise SqlError(
            BAD_STATEMENT,
            f"topic {source.topic} does not exist: create it, or say how many PARTITIONS a new one has: "
            f"WITH (KAFKA_TOPIC='{source.topic}', PARTITIONS=1, ...)",
        )
    asker.check_create(source.topic)
    new = admin.NewTopic(source.topic, partitions, replicas or AS_THE_BROKER_HAS_IT, configs=settings)
    outcome = (await admin.create_topics(cluster, [new]))[source.topic]
    if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
        wrong = outcome.error in (Errors.INVALID_REPLICATION_FACTOR, Errors.INVALID_PARTITIONS)
        code = BAD_STATEMENT if wrong else SERVER_ERROR
        raise SqlError(code, f"topic {source.topic} cannot be created: {outcome}")


def _check(source: DataSource, found: Topic, *, made_by_query: bool) -> None:
    """What a statement says of a topic that is there has to be true of it. Raises SqlError."""
    said = {"PARTITIONS": (source.partitions, len(found.partitions))}
    if not made_by_query:  # that has what its input says of replicas
        said["REPLICAS"] = (source.replicas, len(found.partitions[0].replica_nodes))
    for name, (wanted, there) in said.items():
        if wanted is not None and wanted != there:
            raise SqlError(
                BAD_STATEMENT,
                f"topic {source.topic} has {there} {name.lower()}, not {wanted}: leave {name} out, or name another "
                "KAFKA_TOPIC",
            )


async def _kept(cluster: Cluster, topic: str) -> dict[str, str]:
    """How long a topic keeps its records, if that is its own and not the broker's. Raises ClientError."""
    found = (await admin.describe_configs(cluster, admin.TOPIC, [topic]))[topic]
    if isinstance(found, KafkaError):
        raise found
    return {
        each.name: each.value
        for each in found
        if each.name == RETENTION and each.value is not None and each.config_source == _OF_THE_TOPIC
    }
