"""A transaction from the driver's side: who may write, which offsets go along, and how it ends.

Tasks write the records themselves, with the producer id and epoch of `Transaction.sender` (see `pipeline`). With
transaction.version 2 (KIP-890) a write adds its partition and every end bumps the epoch; older brokers want partitions
and groups announced, and keep the epoch, so that sequence numbers run on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from ottla.client import admin, groups, transactions
from ottla.client.cluster import Cluster
from ottla.client.deadline import Deadline
from ottla.client.errors import ClientError, ConnectionLost, KafkaError, TimedOut, Unreachable, known
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.encoding import Sender, next_sequence
from ottla.protocol import messages
from ottla.protocol.codec import Message

R = TypeVar("R", bound=Message)

ABORT_PATIENCE_S: Final = 5.0
"""Whoever comes next aborts what is left open: no reason to keep a failed batch waiting."""
FENCING: Final = (Errors.PRODUCER_FENCED, Errors.INVALID_PRODUCER_EPOCH)
_FEATURE: Final = "transaction.version"
_INIT_STABLE: Final = 5
"""InitProducerId v6 (KIP-939) is not stable in Kafka 4.3."""
_ADD_PARTITIONS: Final = 3
"""Later versions of AddPartitionsToTxn are for brokers."""


class Fenced(ClientError):
    """Somebody else writes under this transactional id now: this query has to stop, and must not be restarted."""

    def __init__(self, transactional_id: str, perhaps: str = "") -> None:
        self.transactional_id = transactional_id
        super().__init__(
            f"another instance writes as {transactional_id!r} now: this one is fenced and stops. "
            f"Run one instance of a query at a time{perhaps}"
        )


class TransactionTimedOut(ClientError):
    """The broker gave up on a transaction that was open for too long."""

    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        super().__init__(
            f"a batch of {transactional_id!r} took longer than transaction.timeout.ms ({timeout_ms} ms), so the broker "
            "aborted it: give it more time, or make batches smaller"
        )


class Transaction:
    """One transactional id. `initialise` first; then records, `commit_offsets`, and `commit` or `abort`, in turns."""

    __slots__ = ("_cluster", "_coordinator", "_group_coordinator", "_timeout_ms", "name", "second", "sender")

    def __init__(self, cluster: Cluster, transactional_id: str, *, timeout_ms: int) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._coordinator: int | None = None
        self._group_coordinator: int | None = None
        self.name = transactional_id
        self.sender = Sender(transactional=True)
        """Producer id and epoch of the transaction that is open, or comes next."""
        self.second = False
        """The cluster has KIP-890's second part (transaction.version 2)."""

    def initialise(self) -> None:
        """Fences whoever used the name before, and returns when its open transaction is aborted, so when all that was
        ever written under this name is decided."""
        _, features = admin.features(self._cluster)
        self.second = any(feature.name == _FEATURE and feature.finalized >= 2 for feature in features)
        answer = self._init(messages.InitProducerIdRequest(self.name, self._timeout_ms))
        self.sender = Sender(answer.producer_id, answer.producer_epoch, transactional=True)

    def _init(self, request: messages.InitProducerIdRequest) -> messages.InitProducerIdResponse:
        return self._ask(request, messages.InitProducerIdResponse, lambda a: a.error_code, at_most=_INIT_STABLE)

    def refused(self) -> ClientError:
        """Why the epoch is no longer good: a successor's, or the broker's for a transaction that took too long. A
        successor's epoch does not let itself be bumped by the old one (KIP-360)."""
        request = messages.InitProducerIdRequest(
            self.name, self._timeout_ms, self.sender.producer_id, self.sender.epoch
        )
        try:
            self._init(request)
        except Fenced as fenced:
            return fenced
        except ClientError as error:
            return error
        return TransactionTimedOut(self.name, self._timeout_ms)

    def _fenced(self) -> Fenced:
        # Before KIP-890 the broker's own epoch for a transaction it gave up looks like a successor's.
        perhaps = f" (or the batch took longer than transaction.timeout.ms, {self._timeout_ms} ms)"
        return Fenced(self.name, "" if self.second else perhaps)

    # What belongs to it.

    def add_partitions(self, places: Iterable[TopicPartition]) -> None:
        """Before the first write to each; needless where `second` is true."""
        if self.second:
            return
        kind = messages.AddPartitionsToTxnRequest
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(place.partition)
        if not topics:
            return
        request = kind(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.sender.producer_id,
            v3_and_below_producer_epoch=self.sender.epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name, found) for name, found in topics.items()],
        )
        self._ask(request, messages.AddPartitionsToTxnResponse, _added, at_most=_ADD_PARTITIONS)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """The group's offsets become these when the transaction commits."""
        if not offsets:
            return
        if not self.second:
            announced = messages.AddOffsetsToTxnRequest(self.name, self.sender.producer_id, self.sender.epoch, group)
            self._ask(announced, messages.AddOffsetsToTxnResponse, lambda answer: answer.error_code)
        kind = messages.TxnOffsetCommitRequest
        topics: dict[str, messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
        for place, offset in offsets.items():
            topic = topics.setdefault(place.topic, kind.TxnOffsetCommitRequestTopic(place.topic))
            topic.partitions.append(kind.TxnOffsetCommitRequestPartition(place.partition, offset))
        request = kind(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.sender.producer_id,
            producer_epoch=self.sender.epoch,
            topics=list(topics.values()),
        )
        at_most = 0x7FFF if self.second else 4
        self._ask(request, messages.TxnOffsetCommitResponse, _committed, at_most=at_most, group=group)

    # Its end.

    def commit(self) -> None:
        """Raises Fenced when a successor has taken over. Any other error leaves the outcome open: `initialise` waits
        until it is known."""
        self._end(committed=True, patience_s=self._cluster.timeout_s)

    def abort(self) -> None:
        """As far as it can be done now: `initialise` aborts what is left over."""
        try:
            self._end(committed=False, patience_s=ABORT_PATIENCE_S)
        except ClientError:
            return

    def _end(self, *, committed: bool, patience_s: float) -> None:
        request = messages.EndTxnRequest(self.name, self.sender.producer_id, self.sender.epoch, committed)
        at_most = 0x7FFF if self.second else 4
        answer = self._ask(
            request, messages.EndTxnResponse, lambda a: a.error_code, at_most=at_most, patience_s=patience_s
        )
        if self.second and answer.producer_id >= 0:
            # The epoch is used up: a new producer id comes when there is no next one.
            self.sender = Sender(answer.producer_id, answer.producer_epoch, transactional=True)

    # Coordinators.

    def _ask(
        self,
        request: Message,
        response: type[R],
        error_of: Callable[[R], int],
        *,
        at_most: int = 0x7FFF,
        group: str | None = None,
        patience_s: float | None = None,
    ) -> R:
        """Asks the coordinator, wherever it is by now, until it gives an answer that holds."""
        deadline = Deadline(self._cluster.timeout_s if patience_s is None else patience_s)
        what = f"{type(request).__name__} of {self.name}"
        while True:
            trouble: ClientError
            try:
                broker = self._find(group)
                answer = self._cluster.call_once(request, response, deadline, broker=broker, at_most=at_most)
                error = known(error_of(answer))
                if error == Errors.NONE:
                    return answer
                if error in FENCING:
                    raise self._fenced()
                trouble = KafkaError(error, group or self.name)
                if not error.retriable:
                    raise trouble
            except (ConnectionLost, Unreachable) as lost:
                trouble = lost
            if not (isinstance(trouble, KafkaError) and trouble.error == Errors.CONCURRENT_TRANSACTIONS):
                self._coordinator = self._group_coordinator = None
            deadline.pause(what, trouble)

    def _find(self, group: str | None) -> int:
        if group is not None:
            if self._group_coordinator is None:
                self._group_coordinator = groups.coordinator(self._cluster, group)
            return self._group_coordinator
        if self._coordinator is None:
            self._coordinator = transactions.coordinator(self._cluster, self.name)
        return self._coordinator


def _added(answer: messages.AddPartitionsToTxnResponse) -> int:
    codes = [
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    return _worst(codes)


def _committed(answer: messages.TxnOffsetCommitResponse) -> int:
    return _worst([each.error_code for topic in answer.topics for each in topic.partitions])


def _worst(codes: Iterable[int]) -> int:
    """One that will not pass by itself, if there is any: OPERATION_NOT_ATTEMPTED only stands beside the cause."""
    failed = [code for code in codes if code and code != Errors.OPERATION_NOT_ATTEMPTED]
    return next((code for code in failed if not known(code).retriable), failed[0] if failed else 0)


class Sequences:
    """Where the sequence numbers of each partition stand: from 0 in each epoch."""

    __slots__ = ("_epoch", "_next")

    def __init__(self) -> None:
        self._epoch: tuple[int, int] | None = None
        self._next: dict[TopicPartition, int] = {}

    def of(self, sender: Sender) -> dict[TopicPartition, int]:
        if self._epoch != (sender.producer_id, sender.epoch):
            self._epoch, self._next = (sender.producer_id, sender.epoch), {}
        return self._next

    def wrote(self, sender: Sender, place: TopicPartition, records: int) -> None:
        numbers = self.of(sender)
        numbers[place] = next_sequence(numbers.get(place, 0), records)


__all__ = ["FENCING", "Fenced", "Sequences", "TimedOut", "Transaction", "TransactionTimedOut"]
