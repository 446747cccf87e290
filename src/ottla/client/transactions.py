"""What an administrator asks about transactions: which are open, which hang, and to end them (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.client.cluster import ANY, Cluster, Outcomes
from ottla.client.deadline import Deadline
from ottla.client.errors import KafkaError, check, known
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages

TRANSACTION: Final = 1
_BATCHED_FIND: Final = 4
_FENCING_TIMEOUT_MS: Final = 60_000
_PASSING: Final = (
    Errors.NOT_COORDINATOR,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.CONCURRENT_TRANSACTIONS,
)


class ListedTransaction(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class Transaction(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int
    partitions: tuple[TopicPartition, ...]


class OpenTransaction(NamedTuple):
    """One partition's view of a transaction that has not ended there."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int


def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """Of every broker, by name. What a broker is too old to filter by is refused by the codec, not ignored."""
    cluster.metadata([])
    found: list[ListedTransaction] = []
    for broker in sorted(cluster.brokers):
        request = messages.ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=pattern,
        )
        deadline = cluster.deadline()
        while True:
            response = cluster.call(request, messages.ListTransactionsResponse, broker=broker)
            if response.error_code not in _PASSING:
                break
            deadline.pause("listing transactions", KafkaError(known(response.error_code), f"broker {broker}"))
        check(response.error_code, "the list of transactions")
        if response.unknown_state_filters:
            raise KafkaError(
                Errors.INVALID_REQUEST,
                "--state",
                f"broker {broker} knows no state {', '.join(response.unknown_state_filters)}",
            )
        found += [
            ListedTransaction(each.transactional_id, broker, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ]
    return sorted(found)


def coordinator(cluster: Cluster, transactional_id: str) -> int:
    deadline = cluster.deadline()
    cluster.metadata([])
    while True:
        request = messages.FindCoordinatorRequest(key_type=TRANSACTION)
        if cluster.connection(ANY, deadline).version_for(messages.FindCoordinatorRequest) < _BATCHED_FIND:
            request.key = transactional_id
        else:
            request.coordinator_keys = [transactional_id]
        response = cluster.call(request, messages.FindCoordinatorResponse)
        found = response.coordinators[0] if response.coordinators else response
        if not found.error_code:
            return found.node_id
        error = KafkaError(known(found.error_code), transactional_id)
        if error.error not in _PASSING:
            raise error
        deadline.pause(f"finding the coordinator of {transactional_id}", error)


def describe(cluster: Cluster, transactional_id: str) -> Transaction:
    """Raises KafkaError with TRANSACTIONAL_ID_NOT_FOUND for a name nobody keeps."""
    deadline = cluster.deadline()
    while True:
        broker = coordinator(cluster, transactional_id)
        request = messages.DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (state,) = cluster.call(request, messages.DescribeTransactionsResponse, broker=broker).transaction_states
        if state.error_code not in _PASSING:
            break
        deadline.pause(f"describing {transactional_id}", KafkaError(known(state.error_code), transactional_id))
    check(state.error_code, transactional_id)
    return Transaction(
        transactional_id,
        broker,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms,
        tuple(TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions),
    )


def open_transactions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Outcomes[list[OpenTransaction]]:
    """As the leaders of these partitions see them."""
    return cluster.at_leaders(list(partitions), partial(_open_at, cluster), "asking for producers")


def _open_at(
    cluster: Cluster, leader: int, places: Sequence[TopicPartition], deadline: Deadline
) -> Outcomes[list[OpenTransaction]]:
    kind = messages.DescribeProducersRequest
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    request = kind(topics=[kind.TopicRequest(name=name, partition_indexes=found) for name, found in topics.items()])
    response = cluster.call_once(request, messages.DescribeProducersResponse, deadline, broker=leader)
    outcomes: Outcomes[list[OpenTransaction]] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            place = TopicPartition(topic.name, answer.partition_index)
            if answer.error_code:
                outcomes[place] = KafkaError(known(answer.error_code), str(place), answer.error_message)
                continue
            outcomes[place] = [
                OpenTransaction(
                    place,
                    each.producer_id,
                    each.producer_epoch,
                    each.coordinator_epoch,
                    each.current_txn_start_offset,
                    each.last_timestamp,
                )
                for each in answer.active_producers
                if each.current_txn_start_offset >= 0
            ]
    return outcomes


def hanging(cluster: Cluster, candidates: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    """Those whose coordinator does not know that the partition waits for it: no marker will ever come."""
    if not candidates:
        return []
    names = {
        listed.producer_id: listed.transactional_id
        for listed in list_transactions(cluster, producer_ids=sorted({each.producer_id for each in candidates}))
    }
    expected: dict[str, tuple[TopicPartition, ...]] = {}
    for name in names.values():
        try:
            expected[name] = describe(cluster, name).partitions
        except KafkaError as error:
            if error.error != Errors.TRANSACTIONAL_ID_NOT_FOUND:
                raise
    return [each for each in candidates if each.partition not in expected.get(names.get(each.producer_id, ""), ())]


def abort(cluster: Cluster, transaction: OpenTransaction) -> None:
    """Writes an ABORT marker behind the coordinator's back: for transactions that it does not know."""
    place = transaction.partition
    outcome = cluster.at_leaders([place], partial(_abort_at, cluster, transaction), "aborting")[place]
    if isinstance(outcome, KafkaError):
        raise outcome


def _abort_at(
    cluster: Cluster,
    transaction: OpenTransaction,
    leader: int,
    places: Sequence[TopicPartition],
    deadline: Deadline,
) -> Outcomes[None]:
    kind = messages.WriteTxnMarkersRequest
    marker = kind.WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=False,
        topics=[kind.WritableTxnMarkerTopic(place.topic, [place.partition]) for place in places],
        # A producer in its first transaction has seen no coordinator yet.
        coordinator_epoch=max(transaction.coordinator_epoch, 0),
    )
    response = cluster.call_once(kind(markers=[marker]), messages.WriteTxnMarkersResponse, deadline, broker=leader)
    return {
        TopicPartition(topic.name, answer.partition_index): KafkaError(
            known(answer.error_code), f"{topic.name}-{answer.partition_index}"
        )
        if answer.error_code
        else None
        for result in response.markers
        for topic in result.topics
        for answer in topic.partitions
    }


def fence(cluster: Cluster, transactional_id: str) -> tuple[int, int]:
    """Takes the name over: whoever used it is fenced and its open transaction aborted. Gives producer id and epoch."""
    deadline = cluster.deadline()
    while True:
        broker = coordinator(cluster, transactional_id)
        request = messages.InitProducerIdRequest(transactional_id, _FENCING_TIMEOUT_MS)
        response = cluster.call(request, messages.InitProducerIdResponse, broker=broker)
        if response.error_code not in _PASSING:
            check(response.error_code, transactional_id)
            return response.producer_id, response.producer_epoch
        deadline.pause(f"fencing {transactional_id}", KafkaError(known(response.error_code), transactional_id))
