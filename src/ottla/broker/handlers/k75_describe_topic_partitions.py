"""DescribeTopicPartitions: metadata in pages, with the eligible leader replicas (KIP-966).

Version 0 only.
"""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.k03_metadata import NOT_ASKED
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS
from ottla.metadata.image import MetadataImage, TopicImage, offline_replicas
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID
from ottla.model.permissions import DESCRIBE_TOPIC, Resource
from ottla.model.topic_names import why_invalid
from ottla.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

TopicResponse: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PartitionResponse: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor: TypeAlias = DescribeTopicPartitionsResponse.Cursor


def handle(
    services: Services, session: Session, request: DescribeTopicPartitionsRequest, version: int
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    asked = sorted({topic.name for topic in request.topics})
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        # The page to go on with must be one that this very request could have been given.
        return DescribeTopicPartitionsResponse(
            topics=[_refused(topic.name, Errors.INVALID_REQUEST) for topic in request.topics]
        )
    image = services.control_plane.image
    start = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    names = [name for name in asked or sorted(image.topics) if name >= start[0]]
    asks = session.client.may if asked else session.client.sees
    allowed = {name: None for name in names if asks(*DESCRIBE_TOPIC, name)}
    limit = max(1, min(request.response_partition_limit, services.limits.partitions_per_response))
    response = _page(image, list(allowed), start, limit)
    for topic in response.topics:
        topic.topic_authorized_operations = session.client.operations(Resource.TOPIC, topic.name or "")
    if asked:
        response.topics += [_refused(name, Errors.TOPIC_AUTHORIZATION_FAILED) for name in names if name not in allowed]
    return response


def _page(
    image: MetadataImage, names: list[str], start: tuple[str, int], limit: int
) -> DescribeTopicPartitionsResponse:
    """The topics of `names` until `limit` partitions are told, and a cursor if any are left."""
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if limit <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            error = Errors.INVALID_TOPIC_EXCEPTION if why_invalid(name) else Errors.UNKNOWN_TOPIC_OR_PARTITION
            response.topics.append(_refused(name, error))
            continue
        indexes = sorted(index for index in topic.partitions if name != start[0] or index >= start[1])
        response.topics.append(_described(image, topic, indexes[:limit]))
        if len(indexes) > limit:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[limit])
            break
        limit -= len(indexes)
    return response


def _refused(name: str, error: Errors) -> TopicResponse:
    return TopicResponse(
        error_code=error,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=NOT_ASKED,
    )


def _described(image: MetadataImage, topic: TopicImage, indexes: list[int]) -> TopicResponse:
    return TopicResponse(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, topic, index) for index in indexes],
    )


def _partition(image: MetadataImage, topic: TopicImage, index: int) -> PartitionResponse:
    partition = topic.partitions[index]
    return PartitionResponse(
        error_code=Errors.LEADER_NOT_AVAILABLE if partition.leader < 0 else Errors.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, partition),
    )
