"""DeleteRecords: moves the log start; whole segments below it go away."""

from typing import TypeAlias

from ottla.broker.internal_topics import INTERNAL_TOPICS
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.model.errors import Errors
from ottla.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse

NEEDS = (Operation.DELETE, Resource.TOPIC)

PartitionResult: TypeAlias = DeleteRecordsResponse.DeleteRecordsPartitionResult

TO_HIGH_WATERMARK = -1


def handle(services: Services, session: Session, request: DeleteRecordsRequest, version: int) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        allowed = services.authorizer.allows(session.principal, session.host, *NEEDS, topic.name)
        results = [
            _delete(services, topic.name, asked.partition_index, asked.offset)
            if allowed
            else _error(asked.partition_index, Errors.TOPIC_AUTHORIZATION_FAILED)
            for asked in topic.partitions
        ]
        topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _delete(services: Services, topic: str, index: int, offset: int) -> PartitionResult:
    if topic in INTERNAL_TOPICS:
        return _error(index, Errors.INVALID_TOPIC_EXCEPTION)
    partition = services.replicas.find(topic, index)
    if partition is None:
        return _error(index, Errors.UNKNOWN_TOPIC_OR_PARTITION)
    log, leader = partition.log, partition.leader
    if log is None or leader is None:
        return _error(index, partition.unavailable_error())
    if "delete" not in log.config.cleanup_policy:
        return _error(index, Errors.POLICY_VIOLATION)
    until = leader.high_watermark if offset == TO_HIGH_WATERMARK else offset
    if until < 0 or until > leader.high_watermark:
        return _error(index, Errors.OFFSET_OUT_OF_RANGE)
    error = services.replicas.delete_records_before(partition, until)
    if error:
        return _error(index, error)
    return PartitionResult(partition_index=index, low_watermark=log.log_start_offset, error_code=Errors.NONE)


def _error(index: int, error: Errors) -> PartitionResult:
    return PartitionResult(partition_index=index, low_watermark=-1, error_code=error)
