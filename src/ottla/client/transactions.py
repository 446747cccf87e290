"""What an administrator asks about transactions: which are open, which hang, and to end them (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.client.errors import KafkaError, check, known
from ottla.client.routing import (
    TRANSACTION,
    Outcomes,
    Routing,
    Work,
    asking,
    at_coordinator,
    at_leaders,
    call,
    metadata,
)
from ottla.client.routing import coordinator as coordinator_of
from ottla.client.steps import Steps, begin, operation
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages

_FENCING_TIMEOUT_MS: Final = 60_000
INIT_PRODUCER_ID_STABLE: Final = 5
"""InitProducerId v6 (KIP-939) is not stable in Kafka 4.3."""


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


@operation
def list_transactions(
    routing: Routing,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> Steps[list[ListedTransaction]]:
    """Of every broker, by name. What a broker is too old to filter by is refused by the codec, not ignored."""
    yield from metadata.steps(routing, [])
    request = messages.ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=pattern,
    )
    found: list[ListedTransaction] = []
    for broker in sorted(routing.brokers):
        response = yield from _listed(routing, broker, request)
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


def _listed(
    routing: Routing, broker: int, request: messages.ListTransactionsRequest
) -> Steps[messages.ListTransactionsResponse]:
    attempts = yield from begin("listing transactions", routing.timeout_s)
    while True:
        response = yield from call(routing, request, messages.ListTransactionsResponse, broker=broker)
        error = known(response.error_code)
        if not error.retriable:
            check(response.error_code, "the list of transactions")
            return response
        yield from attempts.again(KafkaError(error, f"broker {broker}"))


@operation
def coordinator(routing: Routing, transactional_id: str) -> Steps[int]:
    return coordinator_of.steps(routing, TRANSACTION, transactional_id)


@operation
def describe(routing: Routing, transactional_id: str) -> Steps[Transaction]:
    """Raises KafkaError with TRANSACTIONAL_ID_NOT_FOUND for a name nobody keeps."""
    kind = messages.DescribeTransactionsResponse
    broker, answer = yield from at_coordinator(
        routing,
        (TRANSACTION, transactional_id),
        asking(messages.DescribeTransactionsRequest(transactional_ids=[transactional_id]), kind),
        kind,
        lambda answer: answer.transaction_states[0].error_code,
    )
    (state,) = answer.transaction_states
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


@operation
def open_transactions(routing: Routing, partitions: Iterable[TopicPartition]) -> Steps[Outcomes[list[OpenTransaction]]]:
    """As the leaders of these partitions see them."""
    work = Work(messages.DescribeProducersRequest, messages.DescribeProducersResponse, _producers_of, _open)
    return at_leaders(routing, list(partitions), work, "asking for producers")


def _producers_of(places: Sequence[TopicPartition], _: int) -> messages.DescribeProducersRequest:
    kind = messages.DescribeProducersRequest
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    return kind(topics=[kind.TopicRequest(name=name, partition_indexes=found) for name, found in topics.items()])


def _open(response: messages.DescribeProducersResponse, _: object) -> Outcomes[list[OpenTransaction]]:
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


@operation
def hanging(routing: Routing, candidates: Sequence[OpenTransaction]) -> Steps[list[OpenTransaction]]:
    """Those whose coordinator does not know that the partition waits for it: no marker will ever come."""
    if not candidates:
        return []
    listed = yield from list_transactions.steps(routing, producer_ids=sorted({each.producer_id for each in candidates}))
    names = {each.producer_id: each.transactional_id for each in listed}
    expected: dict[str, tuple[TopicPartition, ...]] = {}
    for name in names.values():
        try:
            expected[name] = (yield from describe.steps(routing, name)).partitions
        except KafkaError as error:
            if error.error != Errors.TRANSACTIONAL_ID_NOT_FOUND:
                raise
    return [each for each in candidates if each.partition not in expected.get(names.get(each.producer_id, ""), ())]


@operation
def abort(routing: Routing, transaction: OpenTransaction) -> Steps[None]:
    """Writes an ABORT marker behind the coordinator's back: for transactions that it does not know."""
    kind = messages.WriteTxnMarkersRequest

    def make(places: Sequence[TopicPartition], _: int) -> messages.WriteTxnMarkersRequest:
        marker = kind.WritableTxnMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_result=False,
            topics=[kind.WritableTxnMarkerTopic(place.topic, [place.partition]) for place in places],
            # A producer in its first transaction has seen no coordinator yet.
            coordinator_epoch=max(transaction.coordinator_epoch, 0),
        )
        return kind(markers=[marker])

    work = Work(kind, messages.WriteTxnMarkersResponse, make, _marked)
    outcomes = yield from at_leaders(routing, [transaction.partition], work, "aborting")
    outcome = outcomes[transaction.partition]
    if isinstance(outcome, KafkaError):
        raise outcome


def _marked(response: messages.WriteTxnMarkersResponse, _: object) -> Outcomes[None]:
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


@operation
def fence(routing: Routing, transactional_id: str) -> Steps[tuple[int, int]]:
    """Takes the name over: whoever used it is fenced and its open transaction aborted. Gives producer id and epoch."""
    kind = messages.InitProducerIdResponse
    request = messages.InitProducerIdRequest(transactional_id, _FENCING_TIMEOUT_MS)
    _, answer = yield from at_coordinator(
        routing,
        (TRANSACTION, transactional_id),
        asking(request, kind, at_most=INIT_PRODUCER_ID_STABLE),
        kind,
        lambda answer: answer.error_code,
    )
    return answer.producer_id, answer.producer_epoch
