"""DeleteRecords: moves the log start; whole segments below it go away. Answered when every living replica has moved.

Versions 0 to 2. All say the same; 2 is flexible.
"""

from asyncio import Future
from typing import Any, TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.hints import absent_error
from ottla.broker.partition import Partition
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS
from ottla.broker.waiting.purgatory import ProduceWait
from ottla.model.errors import Errors
from ottla.model.permissions import DELETE_TOPIC
from ottla.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse

PartitionResult: TypeAlias = DeleteRecordsResponse.DeleteRecordsPartitionResult

TO_HIGH_WATERMARK = -1

Behind = dict[object, int]
"""Partitions some follower of which still keeps records below the offset given."""


def handle(
    services: Services, session: Session, request: DeleteRecordsRequest, version: int
) -> "DeleteRecordsResponse | Future[DeleteRecordsResponse]":
    topics = []
    behind: Behind = {}
    for topic in request.topics:
        allowed = session.client.may(*DELETE_TOPIC, topic.name)
        results = [
            _delete(services, topic.name, asked.partition_index, asked.offset, behind)
            if allowed
            else _error(asked.partition_index, Errors.TOPIC_AUTHORIZATION_FAILED)
            for asked in topic.partitions
        ]
        topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=results))
    response = DeleteRecordsResponse(topics=topics)
    return _wait(services, response, behind, request.timeout_ms) if behind else response


def _delete(services: Services, topic: str, index: int, offset: int, behind: Behind) -> PartitionResult:
    if topic in INTERNAL_TOPICS:
        return _error(index, Errors.INVALID_TOPIC_EXCEPTION)
    partition = services.replicas.find(topic, index)
    if partition is None:
        return _error(index, absent_error(services, topic, index))
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
    low_watermark = leader.low_watermark(log.log_start_offset)
    if low_watermark < until:
        behind[partition] = until
    return PartitionResult(partition_index=index, low_watermark=low_watermark, error_code=Errors.NONE)


def _wait(
    services: Services, response: DeleteRecordsResponse, behind: Behind, timeout_ms: int
) -> "Future[DeleteRecordsResponse]":
    future: Future[DeleteRecordsResponse] = services.waiting.loop.create_future()
    waited = list(behind)
    wait = ProduceWait(services.waiting.deadline(timeout_ms), behind, None)

    def resume(*_: Any) -> None:
        if not future.done():
            _complete(response, {partition: partition not in wait.required for partition in waited})
            future.set_result(response)

    wait.resume = resume
    services.waiting.park_delete(wait, future)
    services.waiting.followers_changed(_followers(waited))  # their next fetch brings them the new log start
    return future


def _followers(partitions: list[object]) -> list[int]:
    ids: dict[int, None] = {}
    for partition in partitions:
        assert isinstance(partition, Partition)
        if partition.leader is not None:
            ids.update(dict.fromkeys(partition.leader.followers))
    return list(ids)


def _complete(response: DeleteRecordsResponse, waited: dict[object, bool]) -> None:
    """By partition: whether its followers have come as far."""
    told: dict[tuple[str, int], tuple[int, Errors]] = {}
    for partition, is_done in waited.items():
        assert isinstance(partition, Partition)
        told[partition.topic, partition.index] = _outcome(partition, is_done=is_done)
    for topic in response.topics:
        for result in topic.partitions:
            outcome = told.get((topic.name, result.partition_index))
            if outcome is not None:
                result.low_watermark, result.error_code = outcome


def _outcome(partition: Partition, *, is_done: bool) -> tuple[int, Errors]:
    if partition.log is None or partition.leader is None:
        return -1, partition.unavailable_error()
    low_watermark = partition.leader.low_watermark(partition.log.log_start_offset)
    return low_watermark, Errors.NONE if is_done else Errors.REQUEST_TIMED_OUT


def _error(index: int, error: Errors) -> PartitionResult:
    return PartitionResult(partition_index=index, low_watermark=-1, error_code=error)
