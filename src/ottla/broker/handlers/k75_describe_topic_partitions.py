"""DescribeTopicPartitions: metadata in pages, with the eligible leader replicas (KIP-966)."""

from typing import TypeAlias

from ottla.broker.handlers.k03_metadata import NOT_ASKED
from ottla.broker.internal_topics import INTERNAL_TOPICS
from ottla.broker.security.authorizer import Operation, Resource, allowed_operations
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.metadata.image import MetadataImage, TopicImage
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID
from ottla.model.topic_names import why_invalid
from ottla.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

NEEDS = (Operation.DESCRIBE, Resource.TOPIC)

TopicResponse: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PartitionResponse: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


def handle(
    services: Services, session: Session, request: DescribeTopicPartitionsRequest, version: int
) -> DescribeTopicPartitionsResponse:
    image = services.control_plane.image
    limit = max(1, min(request.response_partition_limit, services.limits.partitions_per_response))
    cursor = request.cursor
    names = sorted({topic.name for topic in request.topics} or set(image.topics))
    lists_all = not request.topics
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        allowed = services.authorizer.allows(session.principal, session.host, *NEEDS, name)
        if not allowed:
            if not lists_all:
                response.topics.append(_refused(name, Errors.TOPIC_AUTHORIZATION_FAILED))
            continue
        if limit <= 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            error = Errors.INVALID_TOPIC_EXCEPTION if why_invalid(name) else Errors.UNKNOWN_TOPIC_OR_PARTITION
            response.topics.append(_refused(name, error))
            continue
        start = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        described, next_index = _describe(services, session, image, topic, max(0, start), limit)
        response.topics.append(described)
        limit -= len(described.partitions)
        if next_index is not None:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=next_index)
            break
    return response


def _refused(name: str, error: Errors) -> TopicResponse:
    return TopicResponse(error_code=error, name=name, topic_id=ZERO_UUID, is_internal=name in INTERNAL_TOPICS)


def _describe(
    services: Services, session: Session, image: MetadataImage, topic: TopicImage, start: int, limit: int
) -> tuple[TopicResponse, int | None]:
    """The topic's partitions from `start` on, at most `limit`, and the index that the next page starts with."""
    indexes = sorted(index for index in topic.partitions if index >= start)
    page = indexes[:limit]
    response = TopicResponse(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, topic, index) for index in page],
        topic_authorized_operations=allowed_operations(
            services.authorizer, session.principal, session.host, Resource.TOPIC, topic.name
        )
        if topic.partitions
        else NOT_ASKED,
    )
    return response, indexes[limit] if len(indexes) > limit else None


def _partition(image: MetadataImage, topic: TopicImage, index: int) -> PartitionResponse:
    partition = topic.partitions[index]
    brokers = image.brokers
    return PartitionResponse(
        error_code=Errors.LEADER_NOT_AVAILABLE if partition.leader < 0 else Errors.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[r for r in partition.replicas if r not in brokers or brokers[r].fenced],
    )
