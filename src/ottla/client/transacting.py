"""A transaction from its owner's side: who may write, which offsets go along, and how it ends. No socket here.

With transaction.version 2 (KIP-890) a write adds its partition and every end bumps the epoch; older brokers want
partitions and groups announced, and keep the epoch, so that sequence numbers run on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from ottla.client.admin import features
from ottla.client.errors import ClientError, KafkaError, UnsupportedApi, known
from ottla.client.producing import Identity, Transactional
from ottla.client.routing import GROUP, TRANSACTION, Routing, asking, at_coordinator
from ottla.client.steps import NEWEST, Steps, begin
from ottla.client.transactions import INIT_PRODUCER_ID_STABLE, describe
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import Message

R = TypeVar("R", bound=Message)

ABORT_PATIENCE_S: Final = 5.0
"""Whoever comes next aborts what is left open: no reason to keep a failed batch waiting."""
FENCING: Final = (Errors.PRODUCER_FENCED, Errors.INVALID_PRODUCER_EPOCH)
_FEATURE: Final = "transaction.version"
_ADD_PARTITIONS: Final = 3
"""Later versions of AddPartitionsToTxn are for brokers."""
_BEFORE_SECOND: Final = 4
"""The last version of TxnOffsetCommit and of EndTxn for who announces what it adds."""


class Fenced(ClientError):
    """Somebody else writes under this transactional id now: this one has to stop, and must not be restarted."""

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


class Transacting:
    """One transactional id. `initialise` first; then records, `commit_offsets`, and `commit` or `abort`, in turns."""

    __slots__ = ("_timeout_ms", "identity", "name", "second")

    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self.name = transactional_id
        self.identity = Identity()
        """Producer id and epoch of the transaction that is open, or comes next."""
        self.second = False
        """The cluster has KIP-890's second part (transaction.version 2)."""

    @property
    def transactional(self) -> Transactional:
        return Transactional(self.name, self.identity, self.second)

    def initialise(self, routing: Routing) -> Steps[None]:
        """Fences whoever used the name before, and returns when its open transaction is aborted, so when all that was
        ever written under this name is decided."""
        _, found = yield from features.steps(routing)
        self.second = any(feature.name == _FEATURE and feature.finalized >= 2 for feature in found)
        answer = yield from self._init(routing, messages.InitProducerIdRequest(self.name, self._timeout_ms))
        self.identity = Identity(answer.producer_id, answer.producer_epoch)

    def _init(
        self, routing: Routing, request: messages.InitProducerIdRequest
    ) -> Steps[messages.InitProducerIdResponse]:
        return self._ask(
            routing, request, messages.InitProducerIdResponse, lambda a: a.error_code, at_most=INIT_PRODUCER_ID_STABLE
        )

    def refused(self, routing: Routing) -> Steps[ClientError]:
        """Why the epoch is no longer good: a successor's, or the broker's for a transaction that took too long. A
        successor's epoch does not let itself be bumped by the old one (KIP-360)."""
        request = messages.InitProducerIdRequest(
            self.name, self._timeout_ms, self.identity.producer_id, self.identity.epoch
        )
        try:
            yield from self._init(routing, request)
        except ClientError as error:
            return error
        return TransactionTimedOut(self.name, self._timeout_ms)

    def require_ours(self, routing: Routing) -> Steps[None]:
        """Between two transactions: raises Fenced if a successor has initialised. It changes nothing, so whoever has a
        copy of the identity may ask. Brokers before 3.0 cannot be asked."""
        attempts = yield from begin(f"asking who writes as {self.name}", routing.timeout_s)
        while True:
            try:
                found = yield from describe.steps(routing, self.name)
            except UnsupportedApi:
                return
            if (found.producer_id, found.producer_epoch) == self.identity:
                return
            # When epochs are used up, the next producer id is there only once the last commit is through.
            if not found.state.startswith("Prepare"):
                raise self._fenced()
            yield from attempts.again(KafkaError(Errors.CONCURRENT_TRANSACTIONS, self.name))

    def _fenced(self) -> Fenced:
        # Before KIP-890 the broker's own epoch for a transaction it gave up looks like a successor's.
        perhaps = f" (or the batch took longer than transaction.timeout.ms, {self._timeout_ms} ms)"
        return Fenced(self.name, "" if self.second else perhaps)

    # What belongs to it.

    def add_partitions(self, routing: Routing, places: Iterable[TopicPartition]) -> Steps[None]:
        """Before the first write to each; needless where `second` is true."""
        kind = messages.AddPartitionsToTxnRequest
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(place.partition)
        if self.second or not topics:
            return
        request = kind(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name, found) for name, found in topics.items()],
        )
        yield from self._ask(routing, request, messages.AddPartitionsToTxnResponse, _added, at_most=_ADD_PARTITIONS)

    def commit_offsets(
        self,
        routing: Routing,
        group: str,
        offsets: Mapping[TopicPartition, int],
        metadata: Mapping[TopicPartition, str] | None = None,
    ) -> Steps[None]:
        """The group's offsets become these when the transaction commits, each with its metadata, if there is some."""
        if not offsets:
            return
        if not self.second:
            added = messages.AddOffsetsToTxnRequest(self.name, *self.identity, group)
            yield from self._ask(routing, added, messages.AddOffsetsToTxnResponse, lambda answer: answer.error_code)
        kind = messages.TxnOffsetCommitRequest
        topics: dict[str, messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
        for place, offset in offsets.items():
            topic = topics.setdefault(place.topic, kind.TxnOffsetCommitRequestTopic(place.topic))
            said = (metadata or {}).get(place, "")
            topic.partitions.append(
                kind.TxnOffsetCommitRequestPartition(place.partition, offset, committed_metadata=said)
            )
        request = kind(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            topics=list(topics.values()),
        )
        at_most = NEWEST if self.second else _BEFORE_SECOND
        yield from self._ask(
            routing, request, messages.TxnOffsetCommitResponse, _committed, at_most=at_most, owner=(GROUP, group)
        )

    # Its end.

    def commit(self, routing: Routing) -> Steps[None]:
        """Raises Fenced when a successor has taken over. Any other error leaves the outcome open: `initialise` waits
        until it is known."""
        return self._end(routing, committed=True)

    def abort(self, routing: Routing) -> Steps[bool]:
        """As far as it can be done now: `initialise` aborts what is left over. Gives whether it was done."""
        try:
            yield from self._end(routing, committed=False, timeout_s=ABORT_PATIENCE_S)
        except ClientError:
            return False
        return True

    def _end(self, routing: Routing, *, committed: bool, timeout_s: float | None = None) -> Steps[None]:
        request = messages.EndTxnRequest(self.name, *self.identity, committed)
        at_most = NEWEST if self.second else _BEFORE_SECOND
        answer = yield from self._ask(
            routing, request, messages.EndTxnResponse, lambda a: a.error_code, at_most=at_most, timeout_s=timeout_s
        )
        if self.second and answer.producer_id >= 0:
            # The epoch is used up: a new producer id comes when there is no next one.
            self.identity = Identity(answer.producer_id, answer.producer_epoch)

    def _ask(
        self,
        routing: Routing,
        request: Message,
        response: type[R],
        error_of: Callable[[R], int],
        *,
        at_most: int = NEWEST,
        owner: tuple[int, str] | None = None,
        timeout_s: float | None = None,
    ) -> Steps[R]:
        ask = asking(request, response, at_most=at_most)
        owner = owner or (TRANSACTION, self.name)
        try:
            _, answer = yield from at_coordinator(routing, owner, ask, response, error_of, timeout_s=timeout_s)
            return answer
        except KafkaError as error:
            if error.error in FENCING:
                raise self._fenced() from error
            raise


def _added(answer: messages.AddPartitionsToTxnResponse) -> int:
    return _worst(
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    )


def _committed(answer: messages.TxnOffsetCommitResponse) -> int:
    return _worst(each.error_code for topic in answer.topics for each in topic.partitions)


def _worst(codes: Iterable[int]) -> int:
    """One that will not pass by itself, if there is any: OPERATION_NOT_ATTEMPTED only stands beside the cause."""
    failed = [code for code in codes if code and code != Errors.OPERATION_NOT_ATTEMPTED]
    return next((code for code in failed if not known(code).retriable), failed[0] if failed else 0)
