"""Fetch: look up file slices, wait until there are enough bytes, and let sendfile carry them."""

from asyncio import Future
from typing import Any, TypeAlias

from ottla.broker.fetch_sessions import FetchContext, SessionPartition, sent_with_data
from ottla.broker.partition import Partition
from ottla.broker.purgatory import FetchWait, StableFetchWait
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.broker.session import Session
from ottla.model.errors import Errors
from ottla.protocol.messages import FetchRequest, FetchResponse
from ottla.storage.fs import StorageError

NEEDS = (Operation.READ, Resource.TOPIC)

TopicResponse: TypeAlias = FetchResponse.FetchableTopicResponse
PartitionData: TypeAlias = FetchResponse.PartitionData

BY_TOPIC_ID = 13
READ_COMMITTED = 1
NO_RECORDS = b""


class Attempt:
    """One pass over the asked partitions: what it found, how much, and whether it must be answered at once."""

    __slots__ = ("found_bytes", "results", "urgent")

    def __init__(self) -> None:
        self.results: list[tuple[SessionPartition, PartitionData]] = []
        self.found_bytes = 0
        self.urgent = False


def handle(
    services: Services, session: Session, request: FetchRequest, version: int
) -> FetchResponse | Future[FetchResponse]:
    by_id = version >= BY_TOPIC_ID
    asked = [
        SessionPartition(
            topic.topic_id if by_id else topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    context = services.fetch_sessions.begin(
        request.session_id,
        request.session_epoch,
        asked,
        (
            (topic.topic_id if by_id else topic.topic, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        ),
        uses_topic_ids=by_id,
        privileged=False,
        new_session_id=services.new_fetch_session_id(),
        now=services.clock.monotonic(),
    )
    if context.error:
        return FetchResponse(error_code=context.error, session_id=0)
    attempt = _read(services, session, request, context, by_id)
    missing = request.min_bytes - attempt.found_bytes
    if missing <= 0 or attempt.urgent or request.max_wait_ms <= 0 or not context.partitions:
        return _response(context, attempt, by_id)
    return _wait(services, session, request, context, missing, by_id)


def _wait(
    services: Services, session: Session, request: FetchRequest, context: FetchContext, missing: int, by_id: bool
) -> Future[FetchResponse]:
    future: Future[FetchResponse] = services.waiting.loop.create_future()
    deadline = services.waiting.deadline(request.max_wait_ms)
    committed_only = request.isolation_level == READ_COMMITTED

    def resume(*_: Any) -> None:
        if future.done():
            return
        attempt = _read(services, session, request, context, by_id)
        still_missing = request.min_bytes - attempt.found_bytes
        if committed_only and still_missing > 0 and not attempt.urgent and services.clock.monotonic() < deadline:
            park(still_missing)
        else:
            future.set_result(_response(context, attempt, by_id))

    def park(missing_bytes: int) -> None:
        keys = [p for p in (_find(services, asked, by_id) for asked in context.partitions) if p is not None]
        if committed_only:
            wait: FetchWait = StableFetchWait(deadline, missing_bytes, resume, keys, _stable_offset)
        else:
            wait = FetchWait(deadline, missing_bytes, resume)
        services.waiting.park_fetch(wait, keys, future)

    park(missing)
    return future


def _stable_offset(partition: Partition) -> int:
    return partition.last_stable_offset() if partition.log is not None and partition.leader is not None else -1


def _find(services: Services, asked: SessionPartition, by_id: bool) -> Partition | None:
    topics: dict[Any, Any] = services.replicas.by_id if by_id else services.replicas.by_name
    topic = topics.get(asked.topic)
    return topic.partitions.get(asked.partition) if topic is not None else None


def _read(services: Services, session: Session, request: FetchRequest, context: FetchContext, by_id: bool) -> Attempt:
    attempt = Attempt()
    left = min(request.max_bytes, services.limits.fetch_max_bytes)
    for asked in context.partitions:
        partition = _find(services, asked, by_id)
        if partition is None:
            error = Errors.UNKNOWN_TOPIC_ID if by_id and asked.topic not in services.replicas.by_id else None
            data = _error(asked.partition, error or Errors.UNKNOWN_TOPIC_OR_PARTITION)
        elif not services.authorizer.allows(session.principal, session.host, *NEEDS, partition.topic):
            data = _error(asked.partition, Errors.TOPIC_AUTHORIZATION_FAILED)
        else:
            try:
                data = _read_partition(partition, asked, request.isolation_level == READ_COMMITTED, left, attempt)
            except StorageError as failure:
                services.replicas.read_failed(partition, failure)
                data = _error(asked.partition, Errors.KAFKA_STORAGE_ERROR)
        size = len(data.records) if data.records else 0
        attempt.found_bytes += size
        left = max(0, left - size)
        if data.error_code:
            attempt.urgent = True
        attempt.results.append((asked, data))
    return attempt


def _read_partition(
    partition: Partition, asked: SessionPartition, committed_only: bool, left: int, attempt: Attempt
) -> PartitionData:
    log, leader = partition.log, partition.leader
    if log is None or leader is None:
        return _error(asked.partition, partition.unavailable_error())
    standing = leader.check_epoch(asked.current_leader_epoch)
    if standing:
        return _error(asked.partition, Errors.FENCED_LEADER_EPOCH if standing < 0 else Errors.UNKNOWN_LEADER_EPOCH)
    high_watermark = leader.high_watermark
    last_stable_offset = partition.last_stable_offset()
    data = PartitionData(
        asked.partition,
        0,
        high_watermark,
        last_stable_offset,
        log.log_start_offset,
        aborted_transactions=[] if committed_only else None,
        records=NO_RECORDS,
    )
    if asked.last_fetched_epoch >= 0:
        epoch, end_offset = log.offset_for_leader_epoch(asked.last_fetched_epoch)
        if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
            data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
            attempt.urgent = True
            return data
    upper = last_stable_offset if committed_only else high_watermark
    first = not attempt.found_bytes
    if left <= 0 and not first:
        return data
    found = log.read(asked.fetch_offset, min(left, asked.partition_max_bytes), upper_bound=upper, min_one_message=first)
    if found is None:
        return data
    if isinstance(found, Errors):
        data = _error(asked.partition, found)
        data.aborted_transactions = None  # as Kafka, whose clients tell null from nothing
        return data
    data.records = found
    if committed_only:
        data.aborted_transactions = [
            FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in log.aborted_transactions(
                asked.fetch_offset, min(upper, log.upper_offset(found))
            )
        ]
    return data


def _error(index: int, error: Errors) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=[],
        records=NO_RECORDS,
    )


def _response(context: FetchContext, attempt: Attempt, by_id: bool) -> FetchResponse:
    session = context.session
    responses: list[TopicResponse] = []
    current: TopicResponse | None = None
    current_topic: str | bytes | None = None
    with_data: list[tuple[str | bytes, int]] = []
    for asked, data in attempt.results:
        if session is not None:
            news = asked.told(data.high_watermark, data.log_start_offset)
            if context.incremental and not (news or data.records or data.error_code or data.diverging_epoch.epoch >= 0):
                continue
            if data.error_code:
                asked.sent_high_watermark = -1  # an error is repeated until it is gone
            elif data.records:
                with_data.append(asked.key)
        if current is None or asked.topic != current_topic:
            current_topic = asked.topic
            current = TopicResponse(partitions=[])
            if isinstance(current_topic, bytes):
                current.topic_id = current_topic
            else:
                current.topic = current_topic
            responses.append(current)
        current.partitions.append(data)
    if session is not None:
        sent_with_data(session, with_data)
    return FetchResponse(session_id=context.session_id, responses=responses)
