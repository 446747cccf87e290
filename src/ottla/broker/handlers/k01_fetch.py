"""Fetch: look up file slices, wait until there are enough bytes, and let sendfile carry them.

A client sees a leader's log, or a follower's, up to the high watermark. A follower sees its leader's whole log, and
what it asks for tells the leader how far it has come.

Versions 4 to 18. 4 knows the isolation level; 5 tells where the log starts; 7 fetches in sessions (KIP-227); 9 fences
by leader epoch (KIP-320); 10 may be answered with zstd (KIP-110); 11 names the reader's rack and may be sent to a
follower (KIP-392); 12 is flexible and truncates by the epoch last fetched (KIP-595); 13 names topics by id (KIP-516);
14 knows OFFSET_MOVED_TO_TIERED_STORAGE, which is never said here; 15 tells a follower's broker epoch (KIP-903); 16
hints at the leader (KIP-951); 17 and 18 add what only the quorum uses (KIP-853, KIP-1166).
"""

from asyncio import Future
from typing import Any, Final, TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.partition import Partition
from ottla.broker.replicas.fetch_sessions import FetchContext, PartitionKey, SessionPartition, sent_with_data
from ottla.broker.services import Services
from ottla.broker.waiting.purgatory import FetchWait, StableFetchWait
from ottla.metrics.counts import TopicCounts
from ottla.model.errors import Errors
from ottla.model.permissions import CLUSTER_ACTION, CLUSTER_NAME, READ_TOPIC
from ottla.protocol.messages import FetchRequest, FetchResponse
from ottla.replication.leader import Diverging, PartitionLeader, check_position
from ottla.storage.fs import StorageError
from ottla.storage.log import Log
from ottla.storage.reading import aborted_transactions, read, upper_offset

TopicResponse: TypeAlias = FetchResponse.FetchableTopicResponse
PartitionData: TypeAlias = FetchResponse.PartitionData

READ, TOPIC = READ_TOPIC
BY_TOPIC_ID: Final = 13
KNOWS_REPLICAS: Final = 11
"""KIP-392: from here on a client may read from a follower."""
REPLICA_STATE: Final = 15
LEADER_HINTS: Final = 16
READ_COMMITTED: Final = 1
NO_RECORDS: Final = b""
_HEAD_BYTES, _TOPIC_BYTES, _PARTITION_BYTES = 16, 18, 37
"""Of an answer, besides its records: what counts for a quota. As in version 13; a name in place of an id, or a length
that takes more than a byte to tell, makes no difference to a rate."""


class Reader:
    """Who asks, and what that lets it see."""

    __slots__ = (
        "broker_epoch",
        "by_id",
        "committed_only",
        "from_followers",
        "max_bytes",
        "min_bytes",
        "rack",
        "replica_id",
        "version",
    )

    def __init__(self, request: FetchRequest, version: int, limit: int) -> None:
        self.version = version
        self.by_id = version >= BY_TOPIC_ID
        state = request.replica_state
        self.replica_id, self.broker_epoch = (
            (state.replica_id, state.replica_epoch) if version >= REPLICA_STATE else (request.replica_id, -1)
        )
        """The id of a broker that copies, negative for clients."""
        self.committed_only = self.replica_id < 0 and request.isolation_level == READ_COMMITTED
        self.from_followers = self.replica_id < 0 and version >= KNOWS_REPLICAS
        self.rack = request.rack_id if self.from_followers else ""
        self.max_bytes = request.max_bytes if self.replica_id >= 0 else min(request.max_bytes, limit)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        """Nobody waits for more than may be sent."""


class Attempt:
    """One pass over the asked partitions: what it found, how much, and whether it must be answered at once."""

    __slots__ = ("found_bytes", "is_first", "results", "sent", "settled", "urgent")

    def __init__(self, is_first: bool) -> None:
        self.results: list[tuple[SessionPartition, PartitionData]] = []
        self.sent: list[tuple[TopicCounts, int]] = []
        """The bytes it found, and where they are counted if they are sent."""
        self.found_bytes = 0
        self.urgent = False
        self.settled: list[PartitionKey] = []
        """Partitions of which a replica in sync has everything: not worth a look before something happens to them."""
        self.is_first = is_first
        """What a follower asks for is news only once, however often its fetch is looked at again."""


def handle(
    services: Services, session: Session, request: FetchRequest, version: int
) -> FetchResponse | Future[FetchResponse]:
    limit = services.limits.fetch_max_bytes
    if session.share.applies:
        limit = min(limit, session.share.most_fetched)
    reader = Reader(request, version, limit)
    by_id = reader.by_id
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
        privileged=reader.replica_id >= 0,
        new_session_id=services.new_fetch_session_id(),
        now=services.clock.monotonic(),
    )
    if context.error:
        return FetchResponse(error_code=context.error, session_id=0)
    if reader.replica_id >= 0 and by_id and context.session is not None and not context.incremental:
        services.replicas.attend(reader.replica_id, context.session)
    attempt = _read(services, session, reader, context, is_first=True)
    missing = reader.min_bytes - attempt.found_bytes
    if missing <= 0 or attempt.urgent or request.max_wait_ms <= 0 or (not asked and context.session is None):
        return _response(services, session, reader, context, attempt)
    parked = Parked(services, session, request, reader, context)
    parked.wait_for(missing)
    return parked.future


class Parked:
    """A fetch that found too little: it looks again when there is more, until its time is up.

    An object, as two functions that know each other would be left to the garbage collector, for every fetch at a log's
    end: such pauses were most of what one in a hundred waited longer.
    """

    __slots__ = ("_context", "_deadline", "_reader", "_services", "_session", "future")

    def __init__(
        self, services: Services, session: Session, request: FetchRequest, reader: Reader, context: FetchContext
    ) -> None:
        self._services = services
        self._session = session
        self._reader = reader
        self._context = context
        self._deadline = services.waiting.deadline(request.max_wait_ms)
        self.future: Future[FetchResponse] = services.waiting.loop.create_future()

    def wait_for(self, missing_bytes: int) -> None:
        services, reader, deadline = self._services, self._reader, self._deadline
        if reader.replica_id >= 0:
            copy = FetchWait(deadline, missing_bytes, self._look_again)
            services.waiting.park_copy(copy, reader.replica_id, self.future)
            return
        found = (_find(services, asked, reader.by_id) for asked in self._context.partitions)
        keys = [partition for partition in found if partition is not None]
        if reader.committed_only:
            wait: FetchWait = StableFetchWait(deadline, missing_bytes, self._look_again, keys, _stable_offset)
        else:
            wait = FetchWait(deadline, missing_bytes, self._look_again)
        services.waiting.park_fetch(wait, keys, self.future)

    def _look_again(self) -> None:
        if self.future.done():
            return
        services, session, reader, context = self._services, self._session, self._reader, self._context
        if not session.share.timed:
            self._read(services, session, reader, context)
        else:
            session.share.step()
            self._read(services, session, reader, context)
            session.share.end()

    def _read(self, services: Services, session: Session, reader: Reader, context: FetchContext) -> None:
        attempt = _read(services, session, reader, context, is_first=False)
        missing = reader.min_bytes - attempt.found_bytes
        if missing > 0 and not attempt.urgent and services.clock.monotonic() < self._deadline:
            self.wait_for(missing)
        else:
            self.future.set_result(_response(services, session, reader, context, attempt))


def _stable_offset(partition: Partition) -> int:
    return partition.last_stable_offset() if partition.log is not None else -1


def _find(services: Services, asked: SessionPartition, by_id: bool) -> Partition | None:
    topics: dict[Any, Any] = services.replicas.by_id if by_id else services.replicas.by_name
    topic = topics.get(asked.topic)
    return topic.partitions.get(asked.partition) if topic is not None else None


def _read(services: Services, session: Session, reader: Reader, context: FetchContext, *, is_first: bool) -> Attempt:
    attempt = Attempt(is_first)
    left = reader.max_bytes
    may = session.client.may
    is_copy = reader.replica_id >= 0
    may_copy = is_copy and may(*CLUSTER_ACTION, CLUSTER_NAME)
    for asked in context.partitions if is_first else context.to_read_again():
        partition = _find(services, asked, reader.by_id)
        if partition is None:
            data = _absent(services, session, reader, asked)
        elif not (may_copy if is_copy else may(READ, TOPIC, partition.topic)):
            data = _error(asked.partition, Errors.TOPIC_AUTHORIZATION_FAILED)
        else:
            try:
                data = _read_partition(services, partition, asked, reader, left, attempt)
            except StorageError as failure:
                services.replicas.read_failed(partition, failure)
                partition.counts.failed_fetches += 1
                data = _error(asked.partition, Errors.KAFKA_STORAGE_ERROR)
        size = len(data.records) if data.records else 0
        if partition is not None:
            partition.counts.fetches += 1
            if size:
                attempt.sent.append((partition.counts, size))
        attempt.found_bytes += size
        left = max(0, left - size)
        if data.error_code or (may_copy and not is_first and data.log_start_offset != asked.sent_log_start_offset):
            # Records that were deleted on request are gone only when they are gone from every replica.
            attempt.urgent = True
        attempt.results.append((asked, data))
    return attempt


def _absent(services: Services, session: Session, reader: Reader, asked: SessionPartition) -> PartitionData:
    """Its leader is elsewhere, or it is nowhere. Who may not read a topic does not learn which."""
    from ottla.broker.handlers.hints import absent_error, topic_in_image  # noqa: PLC0415  not on the way of those who ask right

    known = topic_in_image(services, asked.topic)
    name = known.name if known is not None else asked.topic if isinstance(asked.topic, str) else None
    may = session.client.may
    is_copy = reader.replica_id >= 0
    if not (may(*CLUSTER_ACTION, CLUSTER_NAME) if is_copy else name is None or may(READ, TOPIC, name)):
        return _error(asked.partition, Errors.TOPIC_AUTHORIZATION_FAILED)
    return _error(asked.partition, absent_error(services, asked.topic, asked.partition))


def _read_partition(
    services: Services, partition: Partition, asked: SessionPartition, reader: Reader, left: int, attempt: Attempt
) -> PartitionData:
    log, leader = partition.log, partition.leader
    role = leader if leader is not None or not reader.from_followers else partition.follower
    if log is None or role is None:
        return _error(asked.partition, partition.unavailable_error())
    if 0 <= asked.current_leader_epoch != role.leader_epoch:
        return _error(asked.partition, partition.check_epoch(asked.current_leader_epoch))
    if leader is not None and reader.replica_id >= 0:
        refused = leader.refuses(reader.replica_id, reader.broker_epoch, asked.current_leader_epoch)
        if refused:
            return _error(asked.partition, refused)
    position: Diverging | Errors | None = None
    if asked.last_fetched_epoch >= 0:
        position = check_position(log, role.leader_epoch, asked.fetch_offset, asked.last_fetched_epoch)
        if isinstance(position, Errors):
            return _error(asked.partition, position)
    if leader is not None and reader.replica_id >= 0 and attempt.is_first and position is None:
        _note_progress(services, partition, log, asked, reader)
    high_watermark = role.high_watermark
    data = PartitionData(
        asked.partition,
        0,
        high_watermark,
        log.last_stable_offset(high_watermark),
        log.log_start_offset,
        aborted_transactions=[] if reader.committed_only else None,
        records=NO_RECORDS,
    )
    if isinstance(position, Diverging):
        attempt.urgent = True
        data.diverging_epoch = FetchResponse.EpochEndOffset(*position)
        return data
    if reader.rack and leader is not None:
        data.preferred_read_replica = _preferred(services, leader, asked, reader)
        if data.preferred_read_replica >= 0:
            attempt.urgent = True
            return data
    if leader is not None and reader.replica_id >= 0 and reader.replica_id not in leader.isr:
        now = services.clock.monotonic()
        if services.throttle.holds_back(partition, now):
            return data
        data = _add_records(log, data, asked, reader, left, attempt)
        services.throttle.record(partition, len(data.records or b""), now)
        return data
    data = _add_records(log, data, asked, reader, left, attempt)
    if leader is not None and asked.fetch_offset == log.log_end_offset and reader.replica_id in leader.isr:
        attempt.settled.append(asked.key)
    return data


def _note_progress(services: Services, partition: Partition, log: Log, asked: SessionPartition, reader: Reader) -> None:
    """A follower that asks for an offset has everything below."""
    offset = asked.fetch_offset
    if log.log_start_offset <= offset <= log.log_end_offset:
        services.replicas.fetched_by(
            partition,
            reader.replica_id,
            offset,
            asked.log_start_offset,
            reader.broker_epoch,
            takes_records=asked.partition_max_bytes > 0,
        )


def _add_records(
    log: Log, data: PartitionData, asked: SessionPartition, reader: Reader, left: int, attempt: Attempt
) -> PartitionData:
    first = not attempt.found_bytes
    if left <= 0 and not first:
        return data
    if reader.replica_id >= 0 and not asked.partition_max_bytes:
        return data  # a follower without room, see PartitionLeader.fetched; consumers get one batch whatever they say
    if reader.replica_id >= 0:
        upper = log.log_end_offset
    else:
        upper = data.last_stable_offset if reader.committed_only else data.high_watermark
    found = read(
        log, asked.fetch_offset, min(left, asked.partition_max_bytes), upper_bound=upper, min_one_message=first
    )
    if found is None:
        return data
    if isinstance(found, Errors):
        data = _error(asked.partition, found)
        data.aborted_transactions = None  # as Kafka, whose clients tell null from nothing
        return data
    data.records = found
    if reader.committed_only:
        data.aborted_transactions = [
            FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in aborted_transactions(
                log, asked.fetch_offset, min(upper, upper_offset(log, found))
            )
        ]
    return data


def _preferred(services: Services, leader: PartitionLeader, asked: SessionPartition, reader: Reader) -> int:
    """KIP-392: a replica in the client's own rack, if the node's settings want that; -1 for this one."""
    if not services.configs.settings.find_str("replica.selector.class"):
        return -1
    from ottla.broker.replicas.read_replicas import preferred_replica  # noqa: PLC0415  few clusters use racks

    return preferred_replica(leader, services.replicas.brokers, reader.rack, asked.fetch_offset)


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


def _response(
    services: Services, session: Session, reader: Reader, context: FetchContext, attempt: Attempt
) -> FetchResponse:
    held_ms = 0
    if session.share.applies:
        held_ms, gets_nothing = _charged(session, reader, context, attempt)
        if gets_nothing:
            return _held_back(services, context, held_ms)
    _count(reader, attempt)
    kept = context.session
    responses: list[TopicResponse] = []
    current: TopicResponse | None = None
    current_topic: str | bytes | None = None
    with_data: list[tuple[str | bytes, int]] = []
    for asked, data in attempt.results:
        if kept is not None:
            news = asked.told(data.high_watermark, data.log_start_offset)
            news = news or data.preferred_read_replica >= 0 or data.diverging_epoch.epoch >= 0
            if context.incremental and not (news or data.records or data.error_code):
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
    if kept is not None:
        sent_with_data(kept, with_data)
        if kept.attention is not None:
            for key in attempt.settled:
                kept.attention.pop(key, None)
    response = FetchResponse(throttle_time_ms=held_ms, session_id=context.session_id, responses=responses)
    if attempt.urgent and reader.version >= LEADER_HINTS:
        _add_hints(services, session, response, attempt)
    return response


def _charged(session: Session, reader: Reader, context: FetchContext, attempt: Attempt) -> tuple[int, bool]:
    """How long the client is held by its quotas, and whether it gets nothing. A follower that may copy is exempt."""
    if reader.replica_id >= 0 and session.client.may(*CLUSTER_ACTION, CLUSTER_NAME):
        session.share.forgive()
        return 0, False
    return session.share.fetched(_answer_bytes(context, attempt))


def _answer_bytes(context: FetchContext, attempt: Attempt) -> int:
    size = _HEAD_BYTES
    topics: dict[str | bytes, None] = {}
    for asked, data in attempt.results:
        if context.incremental and not (
            data.records or data.error_code or asked.is_news(data.high_watermark, data.log_start_offset)
        ):
            continue
        topics[asked.topic] = None
        size += _PARTITION_BYTES + (len(data.records) if data.records else 0)
    return size + _TOPIC_BYTES * len(topics)


def _held_back(services: Services, context: FetchContext, held_ms: int) -> FetchResponse:
    """Nothing was told, so the session knows of nothing. One that would have begun with this answer does not begin: the
    client would take partitions that it does not hear of for partitions without news."""
    if context.session is not None and not context.incremental:
        services.fetch_sessions.end(context.session)
        return FetchResponse(throttle_time_ms=held_ms)
    return FetchResponse(throttle_time_ms=held_ms, session_id=context.session_id)


def _count(reader: Reader, attempt: Attempt) -> None:
    if reader.replica_id < 0:
        for counts, size in attempt.sent:
            counts.bytes_out += size
    else:
        for counts, size in attempt.sent:
            counts.replication_bytes_out += size


def _add_hints(services: Services, session: Session, response: FetchResponse, attempt: Attempt) -> None:
    nodes: dict[int, FetchResponse.NodeEndpoint] = {}
    for asked, data in attempt.results:
        if data.error_code in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH):
            from ottla.broker.handlers.hints import leader_hint  # noqa: PLC0415

            hint = leader_hint(services, session, asked.topic, asked.partition)
            if hint is not None:
                data.current_leader = FetchResponse.LeaderIdAndEpoch(hint.leader_id, hint.leader_epoch)
                if hint.has_endpoint:
                    nodes[hint.leader_id] = FetchResponse.NodeEndpoint(hint.leader_id, hint.host, hint.port, hint.rack)
    response.node_endpoints = list(nodes.values())
