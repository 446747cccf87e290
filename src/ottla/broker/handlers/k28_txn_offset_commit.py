"""TxnOffsetCommit: offsets that count once the transaction commits (KIP-447). From v5 on they join it by themselves.

Versions 0 to 5. 2 keeps leader epochs (KIP-320); 3 is flexible and says which member commits (KIP-447); 4 knows
TRANSACTION_ABORTABLE and 5 adds the group's partition to the transaction by itself (KIP-890).
"""

from asyncio import Future
from collections.abc import Coroutine
from typing import Any, TypeAlias

from ottla.broker.coordination.verification import Opening, Proofs, offset_commit_rules
from ottla.broker.front.session import Session
from ottla.broker.partition import Partition
from ottla.broker.services import Services
from ottla.coordinator.group.offsets import txn_commit_error
from ottla.coordinator.transaction.machine import Producer
from ottla.model.errors import Errors
from ottla.model.permissions import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from ottla.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ottla.runtime.coordinator import CoordinatorError, Transaction
from ottla.storage.producer_state import UNCHECKED

Topic: TypeAlias = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
TopicResponse: TypeAlias = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionResponse: TypeAlias = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition

KNOWS_LOADING = 2
NO_SEQUENCE = -1

_AS_CLIENTS_KNOW_IT = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_ENOUGH_REPLICAS: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_LEADER_OR_FOLLOWER: Errors.NOT_COORDINATOR,
    Errors.KAFKA_STORAGE_ERROR: Errors.NOT_COORDINATOR,
}


def handle(
    services: Services, session: Session, request: TxnOffsetCommitRequest, version: int
) -> TxnOffsetCommitResponse | Coroutine[Any, Any, TxnOffsetCommitResponse]:
    may = session.client.may
    if not may(*WRITE_TRANSACTIONAL_ID, request.transactional_id):
        return txn_commit_error(request, Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not may(*READ_GROUP, request.group_id):
        return txn_commit_error(request, Errors.GROUP_AUTHORIZATION_FAILED)
    refused = _take_out_unknown(services, session, request)
    if refused and not request.topics:
        return TxnOffsetCommitResponse(topics=refused)
    if not request.group_id:
        return _told(txn_commit_error(request, Errors.INVALID_GROUP_ID), refused, version)
    asked = _proofs(services, request, version)
    if isinstance(asked, Errors):
        return _told(txn_commit_error(request, asked), refused, version)
    outcome = _commit(services, request, version, asked) if isinstance(asked, Proofs) else None
    if isinstance(outcome, TxnOffsetCommitResponse):
        return _told(outcome, refused, version)
    return _later(services, request, version, outcome or asked, refused)


async def _later(
    services: Services,
    request: TxnOffsetCommitRequest,
    version: int,
    waiting: Any,
    refused: list[TopicResponse],
) -> TxnOffsetCommitResponse:
    try:
        found = await waiting
        if isinstance(found, Proofs):
            outcome = _commit(services, request, version, found)
            found = await outcome if isinstance(outcome, Future) else outcome
    except CoordinatorError as error:
        found = txn_commit_error(request, error.error)
    return _told(found, refused, version)


def _proofs(services: Services, request: TxnOffsetCommitRequest, version: int) -> "Proofs | Errors | Future[Proofs]":
    partition = _partition(services, request.group_id)
    if partition is None:
        return Errors.NOT_COORDINATOR
    rules = offset_commit_rules(version)
    if not rules.adds and not services.configs.settings.get_bool("transaction.partition.verification.enable"):
        proofs = Proofs()
        proofs.otherwise = UNCHECKED
        return proofs
    producer = Producer(request.producer_id, request.producer_epoch)
    verifier = services.coordination.verifier
    proofs = verifier.begin(producer, [Opening(partition, NO_SEQUENCE)], rules)
    return verifier.ask(request.transactional_id, producer, proofs, rules) if proofs.shown else proofs


def _partition(services: Services, group_id: str) -> Partition | None:
    index = services.coordination.groups.partition_for(group_id)
    return None if index is None else services.replicas.find(services.coordination.groups.topic.name, index)


def _commit(
    services: Services, request: TxnOffsetCommitRequest, version: int, proofs: Proofs
) -> "TxnOffsetCommitResponse | Future[TxnOffsetCommitResponse]":
    partition = _partition(services, request.group_id)
    if partition is None or partition.log is None:
        return txn_commit_error(request, Errors.NOT_COORDINATOR)
    if partition in proofs.errors:
        return txn_commit_error(request, _AS_CLIENTS_KNOW_IT.get(proofs.errors[partition], proofs.errors[partition]))
    # In the same turn of the loop as the append, so that no marker can come between the two.
    unproven = partition.log.producers.check_verified(
        request.producer_id, request.producer_epoch, NO_SEQUENCE, proofs.shown.get(partition, proofs.otherwise)
    )
    if unproven is not None:
        return txn_commit_error(request, unproven.error)
    try:
        return services.coordination.groups.runner_for(request.group_id).submit(
            lambda shard, now: shard.txn_offset_commit(request, version, now),
            Transaction(request.producer_id, request.producer_epoch),
        )
    except CoordinatorError as refused:
        return txn_commit_error(request, refused.error)


def _take_out_unknown(services: Services, session: Session, request: TxnOffsetCommitRequest) -> list[TopicResponse]:
    """Leaves in the request what can be committed; the rest comes back with its error."""
    image = services.control_plane.image
    refused: list[TopicResponse] = []
    good: list[Topic] = []
    for topic in request.topics:
        if not session.client.may(*READ_TOPIC, topic.name):
            refused.append(_refused(topic.name, topic, Errors.TOPIC_AUTHORIZATION_FAILED))
            continue
        known = image.topics.get(topic.name)
        partitions = {} if known is None else known.partitions
        missing = [asked for asked in topic.partitions if asked.partition_index not in partitions]
        if missing:
            topic.partitions = [asked for asked in topic.partitions if asked.partition_index in partitions]
            refused.append(_refused(topic.name, Topic(topic.name, missing), Errors.UNKNOWN_TOPIC_OR_PARTITION))
        if topic.partitions:
            good.append(topic)
    request.topics = good
    return refused


def _refused(name: str, topic: Topic, error: Errors) -> TopicResponse:
    return TopicResponse(name, [PartitionResponse(asked.partition_index, error) for asked in topic.partitions])


def _told(response: TxnOffsetCommitResponse, refused: list[TopicResponse], version: int) -> TxnOffsetCommitResponse:
    """A topic is named once in a response, with all of its partitions."""
    known = {topic.name: topic for topic in response.topics}
    for topic in refused:
        if topic.name in known:
            known[topic.name].partitions += topic.partitions
        else:
            response.topics.append(topic)
    if version < KNOWS_LOADING:  # KAFKA-7296: clients of that age crash on it
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == Errors.COORDINATOR_LOAD_IN_PROGRESS:
                    partition.error_code = Errors.COORDINATOR_NOT_AVAILABLE
    return response
