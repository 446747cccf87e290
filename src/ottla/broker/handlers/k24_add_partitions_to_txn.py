"""AddPartitionsToTxn: up to v3 a client's one transaction, from v4 on a broker's batch of them, to add or to verify.

Versions 0 to 5. 2 knows PRODUCER_FENCED (KIP-588); 3 is flexible; 4 is for brokers and 5 knows TRANSACTION_ABORTABLE
(KIP-890).
"""

from asyncio import Future
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from ottla.broker.coordination.transactions import answered
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS
from ottla.coordinator.transaction.machine import TV2, Producer
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.model.permissions import CLUSTER_ACTION, CLUSTER_NAME, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from ottla.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

Asked: TypeAlias = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Result: TypeAlias = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult: TypeAlias = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult: TypeAlias = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
Outcome: TypeAlias = Mapping[TopicPartition, Errors]

KNOWS_FENCED = 2
BATCHED = 4


def handle(
    services: Services, session: Session, request: AddPartitionsToTxnRequest, version: int
) -> AddPartitionsToTxnResponse | Coroutine[Any, Any, AddPartitionsToTxnResponse]:
    if version >= BATCHED:
        if not session.client.may(*CLUSTER_ACTION, CLUSTER_NAME):
            return AddPartitionsToTxnResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
        return _batch(services, session, request, version)
    asked = Asked(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    outcome = _one(services, session, asked, version)
    return answered(outcome, lambda found: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(found)))


async def _batch(
    services: Services, session: Session, request: AddPartitionsToTxnRequest, version: int
) -> AddPartitionsToTxnResponse:
    results = []
    for asked in request.transactions:
        outcome = _one(services, session, asked, version)
        found = await outcome if isinstance(outcome, Future) else outcome
        results.append(Result(asked.transactional_id, _topics(found)))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _one(services: Services, session: Session, asked: Asked, version: int) -> "Outcome | Future[Outcome]":
    partitions = [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]
    refused = _refused(services, session, asked, partitions, version)
    if refused is not None:
        return refused
    producer = Producer(asked.producer_id, asked.producer_epoch)
    transactions = services.coordination.transactions
    if asked.verify_only:
        return transactions.verify_partitions(asked.transactional_id, producer, partitions)
    if version >= BATCHED:  # where others stand in the same request: the broker that sent it asks again
        added = transactions.add_partitions(asked.transactional_id, producer, partitions, TV2)
    else:
        added = transactions.add_once_ended(asked.transactional_id, producer, partitions)

    def outcome(error: Errors) -> Outcome:
        if error == Errors.PRODUCER_FENCED and version < KNOWS_FENCED:
            error = Errors.INVALID_PRODUCER_EPOCH
        return dict.fromkeys(partitions, error)

    if isinstance(added, Errors):
        return outcome(added)
    return services.waiting.loop.create_task(_later(added, outcome))


async def _later(added: "Future[Errors]", outcome: Callable[[Errors], Outcome]) -> Outcome:
    return outcome(await added)


def _refused(
    services: Services, session: Session, asked: Asked, partitions: list[TopicPartition], version: int
) -> Outcome | None:
    """One partition that cannot be added keeps out the others: they are not attempted."""
    if version < BATCHED:
        if not session.client.may(*WRITE_TRANSACTIONAL_ID, asked.transactional_id):
            return dict.fromkeys(partitions, Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        forbidden = {topic.name: None for topic in asked.topics if not _may_write(session, topic.name)}
    else:
        forbidden = {}
    image = services.control_plane.image
    errors = {
        partition: Errors.TOPIC_AUTHORIZATION_FAILED
        if partition.topic in forbidden
        else Errors.UNKNOWN_TOPIC_OR_PARTITION
        if image.partition(*partition) is None
        else Errors.OPERATION_NOT_ATTEMPTED
        for partition in partitions
    }
    return errors if any(error != Errors.OPERATION_NOT_ATTEMPTED for error in errors.values()) else None


def _may_write(session: Session, topic: str) -> bool:
    return topic not in INTERNAL_TOPICS and session.client.may(*WRITE_TOPIC, topic)


def _topics(outcome: Outcome) -> list[TopicResult]:
    topics: dict[str, list[PartitionResult]] = {}
    for partition, error in outcome.items():
        topics.setdefault(partition.topic, []).append(PartitionResult(partition.partition, error))
    return [TopicResult(name, results) for name, results in topics.items()]
