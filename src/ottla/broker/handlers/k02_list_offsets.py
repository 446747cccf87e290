"""ListOffsets: the offset of a moment, a special moment among them.

Versions 1 to 11. 2 knows the isolation level; 4 fences by leader epoch and tells it (KIP-320); 5 may say
OFFSET_NOT_AVAILABLE (KIP-207); 6 is flexible; 7 finds the greatest timestamp (KIP-734); 8 the start of the local log
(KIP-405); 9 the last tiered offset (KIP-1005); 10 has a timeout for remote storage (KIP-1075), which is not needed
here; 11 finds the first offset not uploaded yet (KIP-1023).
"""

import logging
from typing import Final, TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.hints import absent_error
from ottla.broker.partition import Partition
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import DESCRIBE_TOPIC
from ottla.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from ottla.storage.answers import FoundOffset
from ottla.storage.fs import StorageError
from ottla.storage.reading import max_timestamp_offset, offset_for_timestamp

logger = logging.getLogger(__name__)

PartitionResponse: TypeAlias = ListOffsetsResponse.ListOffsetsPartitionResponse
Asked: TypeAlias = ListOffsetsRequest.ListOffsetsPartition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_SINCE_VERSION = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9} | {
    EARLIEST_PENDING_UPLOAD: 11
}
READ_COMMITTED = 1
TELLS_EPOCH = 4
KNOWS_NOT_AVAILABLE = 5
CONSUMER = -1
DEBUGGER = -2
"""May ask a follower."""


def handle(services: Services, session: Session, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    seen: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            seen[key] = seen.get(key, 0) + 1
    topics = []
    for topic in request.topics:
        allowed = session.client.may(*DESCRIBE_TOPIC, topic.name)
        results = []
        for asked in topic.partitions:
            if not allowed:
                result = _error(asked.partition_index, Errors.TOPIC_AUTHORIZATION_FAILED)
            elif seen[topic.name, asked.partition_index] > 1:
                result = _error(asked.partition_index, Errors.INVALID_REQUEST)
            else:
                result = _offset(services, topic.name, asked, request, version)
            results.append(result)
        topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=results))
    return ListOffsetsResponse(topics=topics)


def _offset(
    services: Services, topic: str, asked: Asked, request: ListOffsetsRequest, version: int
) -> PartitionResponse:
    index = asked.partition_index
    if asked.timestamp < 0 and version < _SINCE_VERSION.get(asked.timestamp, 1 << 15):
        return _error(index, Errors.UNSUPPORTED_VERSION)
    partition = services.replicas.find(topic, index)
    if partition is None:
        return _error(index, absent_error(services, topic, index))
    if partition.log is None or (partition.leader is None and request.replica_id != DEBUGGER):
        return _error(index, partition.unavailable_error())
    refused = partition.check_epoch(asked.current_leader_epoch)
    if refused:
        return _error(index, refused)
    try:
        found = _look_up(partition, asked.timestamp, request)
    except StorageError as error:
        services.replicas.read_failed(partition, error)
        return _error(index, Errors.KAFKA_STORAGE_ERROR)
    if found is None:
        known = version >= KNOWS_NOT_AVAILABLE
        return _error(index, Errors.OFFSET_NOT_AVAILABLE if known else Errors.LEADER_NOT_AVAILABLE)
    if found.doubt:
        # The broker took the batch without looking inside; a search by time is the first to see that it unfolds badly.
        logger.warning("%s-%d: what a producer wrote cannot be searched by time: %s", topic, index, found.doubt)
    return PartitionResponse(
        partition_index=index,
        error_code=Errors.NONE,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if version >= TELLS_EPOCH else -1,
    )


_NOWHERE: Final = FoundOffset(-1, -1, -1)


def _look_up(partition: Partition, timestamp: int, request: ListOffsetsRequest) -> FoundOffset | None:
    """Timestamp, offset and leader epoch of what was found. None while it is beyond what may be told: a leader just
    elected does not know yet that all the last one committed is committed, and its end would seem to go back."""
    log, leader = partition.log, partition.leader
    assert log is not None
    from_client = request.replica_id < 0
    if not from_client:
        last_fetchable = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        last_fetchable = partition.last_stable_offset()
    else:
        last_fetchable = partition.high_watermark
    is_settled = not from_client or leader is None or leader.is_settled
    if timestamp == LATEST:
        return FoundOffset(-1, last_fetchable, partition.leader_epoch) if is_settled else None
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        # What is written next is written in the leader's epoch.
        epoch = partition.leader_epoch if start >= log.log_end_offset else log.epochs.epoch_for(start)
        return FoundOffset(-1, start, epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NOWHERE  # nothing is tiered
    found = max_timestamp_offset(log) if timestamp == MAX_TIMESTAMP else offset_for_timestamp(log, timestamp)
    if found is not None and found.offset < last_fetchable:
        return found
    return _NOWHERE if is_settled else None


def _error(index: int, error: Errors) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error)
