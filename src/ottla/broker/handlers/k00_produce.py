"""Produce: check a header and a CRC, append, and answer when the high watermark has passed.

Versions 3 to 13. 3 has transactional ids and batches of format 2; 5 tells where the log starts; 7 may carry zstd
(KIP-110); 8 says which record was at fault (KIP-467); 9 is flexible; 10 hints at the leader (KIP-951); 11 knows
TRANSACTION_ABORTABLE and 12 adds its partitions to the transaction by itself (KIP-890); 13 names topics by id
(KIP-516). 0 to 2 are advertised for librdkafka's sake (KAFKA-18659) and refused.
"""

from asyncio import Future
from collections.abc import Awaitable, Coroutine
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.hints import absent_error, leader_hint, topic_in_image
from ottla.broker.partition import Partition, TopicPartitions
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS
from ottla.broker.waiting.purgatory import ProduceWait
from ottla.model.errors import Errors
from ottla.model.ids import Millis
from ottla.model.permissions import WRITE_TOPIC
from ottla.protocol import ordinary_produce
from ottla.protocol.batch import CODEC_MASK, CRC_START, TRANSACTIONAL
from ottla.protocol.compression import ZSTD
from ottla.protocol.messages import ProduceRequest, ProduceResponse
from ottla.protocol.ordinary_produce import Batch, OrdinaryProduce, ProduceAck, Topic, read_row
from ottla.storage.answers import CLIENT, SIEVED, Rejected

if TYPE_CHECKING:
    from ottla.broker.coordination.verification import Proofs
    from ottla.broker.handlers.validated_produce import Judged

DECODERS = ordinary_produce.DECODERS

TopicResponse: TypeAlias = ProduceResponse.TopicProduceResponse
PartitionResponse: TypeAlias = ProduceResponse.PartitionProduceResponse
TopicData: TypeAlias = ProduceRequest.TopicProduceData
PartitionData: TypeAlias = ProduceRequest.PartitionProduceData
Answer: TypeAlias = ProduceResponse | ProduceAck

WRITE, TOPIC = WRITE_TOPIC
ACKS_ALL = -1
ATTRIBUTES = CRC_START + 1
"""The low byte of a batch's attributes."""
KNOWS_ZSTD = 7
LEADER_HINTS = 10
BY_TOPIC_ID = 13
_WITHOUT_LOG_START = (
    Errors.CORRUPT_MESSAGE,
    Errors.MESSAGE_TOO_LARGE,
    Errors.RECORD_LIST_TOO_LARGE,
    Errors.KAFKA_STORAGE_ERROR,
)
"""Refusals that do not tell where the log starts: Kafka's choice."""
_LOOKS_ELSEWHERE = (Errors.NOT_LEADER_OR_FOLLOWER, Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.UNKNOWN_TOPIC_ID)
"""A client that looks for the leader is no failed request."""
ADMIN_CLIENT = "__admin_client"
"""By this name, and only by it, Kafka lets a client write to the coordinators' topics."""


def handle(
    services: Services, session: Session, request: OrdinaryProduce | ProduceRequest, version: int
) -> Answer | Future[Answer] | Coroutine[Any, Any, Answer | None] | None:
    if not isinstance(request, OrdinaryProduce):
        return _in_detail(services, session, request, version)
    acks, timeout_ms, asked, _, _ = request
    uncommitted: dict[object, int] = {}
    rows = _append_ordinary(services, session, asked, version, acks, uncommitted)
    if rows is None:
        return _in_detail(services, session, request.in_full(version), version)
    if not acks:
        _not_answered(session, failed=any(read_row(one)[1] for one in rows))
        return None
    answer = ProduceAck([(asked[0][0], rows)] if len(asked) == 1 else _by_topic(asked, rows))
    if uncommitted and acks == ACKS_ALL:
        return _wait(services, session, answer, uncommitted, timeout_ms, version)
    return answer


def _append_ordinary(
    services: Services,
    session: Session,
    asked: list[Topic],
    version: int,
    acks: int,
    uncommitted: dict[object, int],
) -> list[bytes] | None:
    """None, and nothing has happened: it takes a closer look."""
    replicas = services.replicas
    known: dict[Any, TopicPartitions] = replicas.by_id if version >= BY_TOPIC_ID else replicas.by_name
    topics: list[tuple[TopicPartitions, list[Batch]]] = []
    for name_or_id, batches in asked:
        topic = known.get(name_or_id)
        if topic is None or _topic_error(services, session, topic.name):
            return None
        topics.append((topic, batches))
    if acks not in (-1, 0, 1):
        return None
    return replicas.append_ordinary(topics, services.clock.wall(), uncommitted, by_all=acks == ACKS_ALL)


def _by_topic(asked: list[Topic], rows: list[bytes]) -> list[tuple[str | bytes, list[bytes]]]:
    """The rows came in the order of the request."""
    left = iter(rows)
    return [(name_or_id, list(islice(left, len(batches)))) for name_or_id, batches in asked]


def _not_answered(session: Session, *, failed: bool) -> None:
    """Nobody waits for an answer: a closed connection is how the client learns to look for the leader again."""
    if failed:
        session.connection.close()


def _in_detail(
    services: Services, session: Session, request: ProduceRequest, version: int
) -> Answer | Future[Answer] | Coroutine[Any, Any, Answer | None] | None:
    if services.validation is not None and _asks_for_schemas(services, request, version):
        from ottla.broker.handlers.validated_produce import validated  # noqa: PLC0415  hardly any topic asks for it

        judged = validated(services, request, version, lambda name: _topic_error(services, session, name))
        return _produce_judged(services, session, request, version, judged)
    return _in_transaction_or_not(services, session, request, version, None)


def _asks_for_schemas(services: Services, request: ProduceRequest, version: int) -> bool:
    replicas = services.replicas
    for topic in request.topic_data:
        known = replicas.by_id.get(topic.topic_id) if version >= BY_TOPIC_ID else replicas.by_name.get(topic.name)
        if known is not None:
            for partition in known.partitions.values():
                if partition.log is not None:
                    if partition.log.config.validation is not None:
                        return True
                    break  # all partitions of a topic have the same configuration
    return False


async def _produce_judged(
    services: Services,
    session: Session,
    request: ProduceRequest,
    version: int,
    judged: Coroutine[Any, Any, "Judged"],
) -> Answer | None:
    """The connection's next request waits for this one: batches of one producer stay in order."""
    produced = _in_transaction_or_not(services, session, request, version, await judged)
    return await produced if isinstance(produced, Awaitable) else produced


def _in_transaction_or_not(
    services: Services, session: Session, request: ProduceRequest, version: int, judged: "Judged | None"
) -> Answer | Future[Answer] | Coroutine[Any, Any, Answer | None] | None:
    if request.transactional_id is None:
        # CVE-2018-17196: what the batches say counts, and this request names no transactional id.
        refusal = Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if _has_transactional(request) else None
        return _produce(services, session, request, version, None, refusal, judged)
    from ottla.broker.handlers.transactional_produce import proofs_for  # noqa: PLC0415  most producers have no transactions

    proofs = proofs_for(services, session, request, version)
    if isinstance(proofs, Errors):
        return _produce(services, session, request, version, None, proofs, judged)
    if not isinstance(proofs, Future):
        return _produce(services, session, request, version, proofs, None, judged)
    for topic in request.topic_data:  # a view of the socket's buffer does not outlive this call
        for data in topic.partition_data:
            data.records = memoryview(bytearray(data.records)) if data.records is not None else None
    return _produce_later(services, session, request, version, proofs, judged)


async def _produce_later(
    services: Services,
    session: Session,
    request: ProduceRequest,
    version: int,
    asked: "Future[Proofs]",
    judged: "Judged | None",
) -> Answer | None:
    """The connection's next request waits for this one: batches of one producer stay in order."""
    produced = _produce(services, session, request, version, await asked, None, judged)
    return await produced if isinstance(produced, Future) else produced


def _produce(
    services: Services,
    session: Session,
    request: ProduceRequest,
    version: int,
    proofs: "Proofs | None",
    refusal: Errors | None,
    judged: "Judged | None",
) -> Answer | Future[Answer] | None:
    """`proofs` are those of the request's transaction; None if it has none."""
    acks = request.acks
    if acks not in (-1, 0, 1):
        refusal = refusal or Errors.INVALID_REQUIRED_ACKS
    replicas = services.replicas
    now = services.clock.wall()
    uncommitted: dict[object, int] = {}
    answer = ProduceResponse()
    failed = False
    for topic in request.topic_data:
        known = replicas.by_id.get(topic.topic_id) if version >= BY_TOPIC_ID else replicas.by_name.get(topic.name)
        error = refusal or _known_topic_error(services, session, topic, known, version)
        results: list[PartitionResponse] = []
        for data in {data.index: data for data in topic.partition_data}.values():  # of two for one, the last: as Kafka
            partition = known.partitions.get(data.index) if known is not None else None
            why = error or _obstacle(services, topic, data, partition, version)
            if why is not None or partition is None:
                result = _error(data.index, why or Errors.UNKNOWN_TOPIC_OR_PARTITION)
                if why == Errors.TOPIC_AUTHORIZATION_FAILED:
                    result.error_message = _missing(session, topic, known)
            else:
                result = _append(replicas, partition, data.records, acks, now, uncommitted, proofs, judged)
            results.append(result)
            if known is not None:
                known.counts.produces += 1
            if result.error_code != Errors.NONE:
                failed = True
                if known is not None and result.error_code not in _LOOKS_ELSEWHERE:
                    known.counts.failed_produces += 1
        answer.responses.append(TopicResponse(topic.name, topic.topic_id, results))
    if acks == 0:
        _not_answered(session, failed=failed)
        return None
    if failed and version >= LEADER_HINTS:
        _add_hints(services, session, answer)
    if acks == ACKS_ALL and uncommitted:
        return _wait(services, session, answer, uncommitted, request.timeout_ms, version)
    return answer


def _key(topic: TopicData, version: int) -> str | bytes:
    return topic.topic_id if version >= BY_TOPIC_ID else topic.name


def _known_topic_error(
    services: Services, session: Session, topic: TopicData, known: TopicPartitions | None, version: int
) -> Errors | None:
    name = topic.name if known is None else known.name
    if version >= BY_TOPIC_ID and known is None:
        elsewhere = topic_in_image(services, topic.topic_id)
        if elsewhere is None:
            return Errors.UNKNOWN_TOPIC_ID
        name = elsewhere.name
    return _topic_error(services, session, name)


def _topic_error(services: Services, session: Session, name: str) -> Errors | None:
    if not session.client.may(WRITE, TOPIC, name):
        return Errors.TOPIC_AUTHORIZATION_FAILED
    if name in INTERNAL_TOPICS and session.client_id != ADMIN_CLIENT:
        return Errors.INVALID_TOPIC_EXCEPTION
    return None


def _missing(session: Session, topic: TopicData, known: TopicPartitions | None) -> str | None:
    """Who named the topic by its id is told its name only if he may see it."""
    from ottla.broker.security.missing import missing, missing_if_seen  # noqa: PLC0415  not on the way of those who may

    client = session.client
    if topic.name:
        return missing(client.principal, (WRITE_TOPIC,), topic.name)
    return None if known is None else missing_if_seen(client.principal, client.sees, WRITE_TOPIC, known.name)


def _obstacle(
    services: Services, topic: TopicData, data: PartitionData, partition: Partition | None, version: int
) -> Errors | None:
    if partition is None:
        return absent_error(services, _key(topic, version), data.index)
    return Errors.UNSUPPORTED_COMPRESSION_TYPE if version < KNOWS_ZSTD and _is_zstd(data.records) else None


def _has_transactional(request: ProduceRequest) -> bool:
    return any(
        data.records is not None and len(data.records) > ATTRIBUTES and data.records[ATTRIBUTES] & TRANSACTIONAL
        for topic in request.topic_data
        for data in topic.partition_data
    )


def _is_zstd(records: memoryview | None) -> bool:
    """Such batches are never among the ordinary ones, which are not asked."""
    return records is not None and len(records) > ATTRIBUTES and records[ATTRIBUTES] & CODEC_MASK == ZSTD


def _append(
    replicas: Replicas,
    partition: Partition,
    records: memoryview | None,
    acks: int,
    now: Millis,
    uncommitted: dict[object, int],
    proofs: "Proofs | None",
    judged: "Judged | None",
) -> PartitionResponse:
    log, leader = partition.log, partition.leader
    if log is None or leader is None:
        return _error(partition.index, partition.unavailable_error())
    if records is None:
        return _error(partition.index, Errors.INVALID_RECORD)
    if acks == ACKS_ALL and leader.refusal:
        return _error(partition.index, leader.refusal)
    origin = CLIENT
    if judged is not None:
        if partition in judged.refused:
            return _rejected(partition, judged.refused[partition])
        origin = SIEVED if partition in judged.sieved else CLIENT
    if proofs is None:
        outcome = replicas.append(partition, records, now, origin=origin)
    elif partition in proofs.errors:
        return _unproven(partition, proofs.errors[partition])
    else:
        shown = proofs.shown.get(partition, proofs.otherwise)
        outcome = replicas.append(partition, records, now, origin=origin, verification=shown)
    if isinstance(outcome, Rejected):
        return _rejected(partition, outcome)
    if acks == ACKS_ALL and leader.high_watermark <= outcome.last_offset:
        uncommitted[partition] = outcome.last_offset + 1
    return PartitionResponse(partition.index, 0, outcome.base_offset, outcome.append_time, log.log_start_offset)


def _rejected(partition: Partition, outcome: Rejected) -> PartitionResponse:
    log_start_offset = partition.log.log_start_offset if partition.log is not None else -1
    return PartitionResponse(
        index=partition.index,
        error_code=outcome.error,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1 if outcome.error in _WITHOUT_LOG_START else log_start_offset,
        record_errors=[
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=text)
            for at, text in outcome.record_errors
        ],
        error_message=outcome.message,
    )


def _error(index: int, error: Errors) -> PartitionResponse:
    return PartitionResponse(index=index, error_code=error, base_offset=-1)


def _unproven(partition: Partition, error: Errors) -> PartitionResponse:
    result = _error(partition.index, error)
    if error == Errors.INVALID_TXN_STATE:
        result.error_message = "the partition was not added to the transaction"
    return result


def _wait(
    services: Services,
    session: Session,
    answer: Answer,
    uncommitted: dict[object, int],
    timeout_ms: int,
    version: int,
) -> Future[Answer]:
    future: Future[Answer] = services.waiting.loop.create_future()
    waited = list(uncommitted)
    wait = ProduceWait(services.waiting.deadline(timeout_ms), uncommitted, None)

    def resume(*_: Any) -> None:
        if future.done():
            return
        errors: dict[Partition, Errors] = {}
        for partition in waited:
            assert isinstance(partition, Partition)
            error = _outcome(partition, committed=partition not in wait.required)
            if error:
                errors[partition] = error
                partition.counts.failed_produces += 1
        future.set_result(_marked(services, session, answer, errors, version) if errors else answer)

    wait.resume = resume
    services.waiting.park_produce(wait, future)
    return future


def _outcome(partition: Partition, *, committed: bool) -> Errors:
    leader = partition.leader
    if committed:
        return Errors.NONE if leader is None else leader.refusal_after_append
    return partition.unavailable_error() if leader is None else Errors.REQUEST_TIMED_OUT


def _response(ack: ProduceAck) -> ProduceResponse:
    """The long form, in which errors can be told."""
    response = ProduceResponse(throttle_time_ms=ack.throttle_time_ms)
    for name_or_id, rows in ack.topics:
        topic = TopicResponse(partition_responses=[_result(one) for one in rows])
        if isinstance(name_or_id, str):
            topic.name = name_or_id
        else:
            topic.topic_id = name_or_id
        response.responses.append(topic)
    return response


def _result(row: bytes) -> PartitionResponse:
    index, error_code, base_offset, log_start_offset = read_row(row)
    return PartitionResponse(index, error_code, base_offset, log_start_offset=log_start_offset)


def _marked(
    services: Services, session: Session, answer: Answer, errors: dict[Partition, Errors], version: int
) -> ProduceResponse:
    response = _response(answer) if isinstance(answer, ProduceAck) else answer
    for partition, error in errors.items():
        for topic in response.responses:
            if partition.topic_id == topic.topic_id or partition.topic == topic.name:
                for result in topic.partition_responses:
                    if result.index == partition.index:
                        result.error_code = error
                        result.base_offset = -1
    if version >= LEADER_HINTS:
        _add_hints(services, session, response)
    return response


def _add_hints(services: Services, session: Session, response: ProduceResponse) -> None:
    nodes: dict[int, ProduceResponse.NodeEndpoint] = {}
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code != Errors.NOT_LEADER_OR_FOLLOWER:
                continue
            hint = leader_hint(services, session, topic.name or topic.topic_id, result.index)
            if hint is not None:
                result.current_leader = ProduceResponse.LeaderIdAndEpoch(hint.leader_id, hint.leader_epoch)
                if hint.has_endpoint:
                    nodes[hint.leader_id] = ProduceResponse.NodeEndpoint(
                        hint.leader_id, hint.host, hint.port, hint.rack
                    )
    response.node_endpoints = list(nodes.values())
