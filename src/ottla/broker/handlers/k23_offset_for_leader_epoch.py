"""OffsetForLeaderEpoch: where an epoch ended, so that a client or follower finds out what it must drop (KIP-320).

Versions 2 to 4. 2 fences by leader epoch; 3 tells who asks; 4 is flexible.
"""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.hints import absent_error
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import CLUSTER_ACTION, CLUSTER_NAME, DESCRIBE_TOPIC
from ottla.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

EndOffset: TypeAlias = OffsetForLeaderEpochResponse.EpochEndOffset
Asked: TypeAlias = OffsetForLeaderEpochRequest.OffsetForLeaderPartition


def handle(
    services: Services, session: Session, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    may_copy = session.client.sees(*CLUSTER_ACTION, CLUSTER_NAME)
    topics = []
    for topic in request.topics:
        allowed = may_copy or session.client.may(*DESCRIBE_TOPIC, topic.topic)
        results = [
            _end_offset(services, topic.topic, asked)
            if allowed
            else EndOffset(error_code=Errors.TOPIC_AUTHORIZATION_FAILED, partition=asked.partition)
            for asked in topic.partitions
        ]
        topics.append(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    return OffsetForLeaderEpochResponse(topics=topics)


def _end_offset(services: Services, topic: str, asked: Asked) -> EndOffset:
    partition = services.replicas.find(topic, asked.partition)
    if partition is None:
        return EndOffset(error_code=absent_error(services, topic, asked.partition), partition=asked.partition)
    if partition.log is None or partition.leader is None:
        return EndOffset(error_code=partition.unavailable_error(), partition=asked.partition)
    error = partition.check_epoch(asked.current_leader_epoch)
    if error:
        return EndOffset(error_code=error, partition=asked.partition)
    epoch, end_offset = partition.end_of_epoch(asked.leader_epoch)
    return EndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
