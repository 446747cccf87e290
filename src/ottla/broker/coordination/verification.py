"""Before the first batch of a transaction reaches a partition, its coordinator is asked (KIP-890).

A batch that was delayed past the end of its transaction would otherwise open one that nobody ever ends. Up to Produce
v11 and TxnOffsetCommit v4 the coordinator confirms that the client has added the partition; above, it adds it itself.
"""

from asyncio import AbstractEventLoop, Future, sleep
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.broker.coordination.courier import Courier, Neighbours
from ottla.broker.partition import Partition
from ottla.coordinator.transaction.machine import Producer
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.model.ports import Clock
from ottla.net.peer import Outcome
from ottla.protocol import messages
from ottla.storage.producer_state import Refusal, Verification

Answer = Mapping[TopicPartition, Errors]


class Asker(Protocol):
    """The transaction coordinator, wherever it is."""

    def add_or_verify(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], *, add: bool
    ) -> "Answer | Future[Answer]": ...


class LocalAsker(Asker, Protocol):
    def leader_for(self, transactional_id: str) -> int | None:
        """The broker that coordinates it; None if there is none now."""


class _Question(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: Sequence[TopicPartition]
    add: bool
    answer: "Future[Answer]"


class Askers:
    """Asks the coordinator of each transaction: this node, or another broker by AddPartitionsToTxn."""

    __slots__ = ("_courier", "_here", "_local", "_loop")

    def __init__(self, local: LocalAsker, neighbours: Neighbours) -> None:
        self._local = local
        self._here = neighbours.replicas.broker_id
        self._loop = neighbours.loop
        self._courier: Courier[_Question] = Courier(neighbours, "transactions", _request, _delivered)

    def add_or_verify(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], *, add: bool
    ) -> "Answer | Future[Answer]":
        coordinator = self._local.leader_for(transactional_id)
        if coordinator == self._here:
            return self._local.add_or_verify(transactional_id, producer, partitions, add=add)
        if coordinator is None:
            return dict.fromkeys(partitions, Errors.COORDINATOR_NOT_AVAILABLE)
        answer: Future[Answer] = self._loop.create_future()
        self._courier.post(coordinator, _Question(transactional_id, producer, partitions, add, answer))
        return answer

    def on_metadata(self) -> None:
        self._courier.on_metadata()


def _request(questions: list[_Question]) -> "messages.AddPartitionsToTxnRequest":
    kind = messages.AddPartitionsToTxnRequest
    transactions = []
    for transactional_id, producer, partitions, add, _ in questions:
        topics: dict[str, list[int]] = {}
        for name in partitions:
            topics.setdefault(name.topic, []).append(name.partition)
        transactions.append(
            kind.AddPartitionsToTxnTransaction(
                transactional_id,
                producer.id,
                producer.epoch,
                verify_only=not add,
                topics=[kind.AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
            )
        )
    return kind(transactions=transactions)


def _delivered(questions: list[_Question], outcome: Outcome) -> None:
    """Answers stand in the order of the questions: one transactional id may have asked more than once."""
    results: list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = []
    otherwise = Errors.COORDINATOR_NOT_AVAILABLE
    if isinstance(outcome, messages.AddPartitionsToTxnResponse):
        results = outcome.results_by_transaction
        otherwise = Errors(outcome.error_code) or otherwise
    for at, question in enumerate(questions):
        answer: dict[TopicPartition, Errors] = dict.fromkeys(question.partitions, otherwise)
        if len(results) == len(questions) and results[at].transactional_id == question.transactional_id:
            for topic in results[at].topic_results:
                for found in topic.results_by_partition:
                    answer[TopicPartition(topic.name, found.partition_index)] = Errors(found.partition_error_code)
        if not question.answer.done():
            question.answer.set_result(answer)


class Rules(NamedTuple):
    """What the version of the request decides."""

    adds: bool
    """TV2: the partition joins the transaction with its first batch."""
    knows_abortable: bool
    """The client understands TRANSACTION_ABORTABLE."""
    knows_coordinators: bool
    """The client understands errors of a coordinator."""


def produce_rules(version: int) -> Rules:
    return Rules(adds=version >= 12, knows_abortable=version >= 11, knows_coordinators=False)


def offset_commit_rules(version: int) -> Rules:
    return Rules(adds=version >= 5, knows_abortable=version >= 4, knows_coordinators=True)


class Opening(NamedTuple):
    """A batch that may be the first of its transaction on a partition."""

    partition: Partition
    sequence: int


class Proofs:
    """What may be appended, and with which proof; what may not, and why."""

    __slots__ = ("errors", "otherwise", "shown")

    def __init__(self) -> None:
        self.errors: dict[Partition, Errors] = {}
        self.shown: dict[Partition, Verification] = {}
        self.otherwise: Verification | None = None
        """For a partition in neither table: nothing to show, the transaction is open there already."""


class Backoff(NamedTuple):
    """The markers of the transaction before may still be on their way: the node itself asks again, not the client."""

    pause_ms: int
    limit_ms: int


_COORDINATOR_ERRORS: Final = (
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
)


class Verifier:
    __slots__ = ("_asker", "_backoff", "_clock", "_loop")

    def __init__(self, asker: Asker, clock: Clock, loop: AbstractEventLoop, backoff: Backoff) -> None:
        self._asker = asker
        self._clock = clock
        self._loop = loop
        self._backoff = backoff

    def begin(self, producer: Producer, openings: Sequence[Opening], rules: Rules) -> Proofs:
        proofs = Proofs()
        now = self._clock.wall()
        for partition, sequence in openings:
            log = partition.log
            if log is None or partition.leader is None:
                proofs.errors[partition] = partition.unavailable_error()
                continue
            begun = log.producers.begin_verification(
                producer.id, producer.epoch, sequence, epoch_bump=rules.adds, now=now
            )
            if isinstance(begun, Refusal):
                proofs.errors[partition] = begun.error
            elif begun is not None:
                proofs.shown[partition] = begun
        return proofs

    def ask(self, transactional_id: str, producer: Producer, proofs: Proofs, rules: Rules) -> "Proofs | Future[Proofs]":
        """Completes `proofs` with the coordinator's answer: at once if it is here and quick, else later."""
        answer = self._ask_once(transactional_id, producer, proofs, rules)
        if isinstance(answer, Future) or (rules.adds and _is_busy(answer)):
            return self._loop.create_task(self._ask_again(transactional_id, producer, proofs, rules, answer))
        return _completed(proofs, answer, rules)

    def _ask_once(
        self, transactional_id: str, producer: Producer, proofs: Proofs, rules: Rules
    ) -> "Answer | Future[Answer]":
        partitions = [TopicPartition(each.topic, each.index) for each in proofs.shown]
        return self._asker.add_or_verify(transactional_id, producer, partitions, add=rules.adds)

    async def _ask_again(
        self,
        transactional_id: str,
        producer: Producer,
        proofs: Proofs,
        rules: Rules,
        answer: "Answer | Future[Answer]",
    ) -> Proofs:
        deadline = self._clock.monotonic() + self._backoff.limit_ms
        while True:
            found = await answer if isinstance(answer, Future) else answer
            if not (rules.adds and _is_busy(found)) or self._clock.monotonic() >= deadline:
                return _completed(proofs, found, rules)
            await sleep(self._backoff.pause_ms / 1000)
            answer = self._ask_once(transactional_id, producer, proofs, rules)


def _is_busy(answer: Answer) -> bool:
    return Errors.CONCURRENT_TRANSACTIONS in answer.values()


def _completed(proofs: Proofs, answer: Answer, rules: Rules) -> Proofs:
    for partition in proofs.shown:
        error = answer.get(TopicPartition(partition.topic, partition.index), Errors.NONE)
        if error:
            proofs.errors[partition] = _as_producers_know_it(error, rules)
    return proofs


def _as_producers_know_it(error: Errors, rules: Rules) -> Errors:
    if error == Errors.PRODUCER_FENCED:
        return Errors.INVALID_PRODUCER_EPOCH
    if error == Errors.TRANSACTION_ABORTABLE and not rules.knows_abortable:
        return Errors.INVALID_TXN_STATE
    if rules.knows_coordinators:
        return error
    if error in _COORDINATOR_ERRORS or (error == Errors.CONCURRENT_TRANSACTIONS and not rules.adds):
        # Producers repeat this one, and do not ask for metadata first.
        return Errors.NOT_ENOUGH_REPLICAS
    return error
