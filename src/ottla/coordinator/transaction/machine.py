"""One transactional id: its producer id and epoch, its open transaction, and what each request makes of them.

A `Transaction` is a value: every rule looks at one and gives a `Step` with the next one, which the log will hold before
anybody acts on it. The rules of KIP-98, KIP-360 and KIP-890; which of the two ways a transaction ends is chosen by the
version of the request, never by the cluster's feature level alone.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.coordinator.transaction.states import PREVIOUS, TransactionState
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol.messages import TransactionLogValue

NONE: Final = -1
MAX_EPOCH: Final = 32767
LAST_USABLE_EPOCH: Final = MAX_EPOCH - 1
"""A client never holds 32767: the coordinator keeps it, so that it can fence whoever holds 32766."""
TV0: Final = 0
TV2: Final = 2

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

Partitions = Mapping[TopicPartition, None]
"""An ordered set: records and answers come out the same on every run."""
_NO_PARTITIONS: Final[Partitions] = {}


class Producer(NamedTuple):
    id: int
    epoch: int


class Step(NamedTuple):
    """What a request leads to. `next` is None where nothing changes."""

    error: Errors
    next: "Transaction | None" = None
    last_epoch: int = NONE
    """The epoch the producer held before: an InitProducerId that names it is a retry (KIP-360)."""
    wants_producer_id: bool = False
    """The epochs of this producer id are used up (or it is new): ask again with a fresh id."""


_WANTS_PRODUCER_ID: Final = Step(Errors.NONE, wants_producer_id=True)


class Transaction(NamedTuple):
    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState = EMPTY
    partitions: Partitions = _NO_PARTITIONS
    started: int = NONE
    updated: int = NONE
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    """The id this transactional id goes on with once the markers of the last epoch are written."""
    client_version: int = TV0

    # ---- the log's form

    @classmethod
    def of(cls, value: TransactionLogValue) -> "Transaction":
        partitions = {
            TopicPartition(topic.topic, index): None
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        }
        return cls(
            producer_id=value.producer_id,
            epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=TransactionState(value.transaction_status),
            partitions=partitions,
            started=value.transaction_start_timestamp_ms,
            updated=value.transaction_last_update_timestamp_ms,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            client_version=value.client_transaction_version,
        )

    def value(self) -> TransactionLogValue:
        schema = TransactionLogValue.PartitionsSchema
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None
            if self.state is EMPTY
            else [schema(topic, indexes) for topic, indexes in by_topic(self.partitions).items()],
            transaction_last_update_timestamp_ms=self.updated,
            transaction_start_timestamp_ms=self.started,
            client_transaction_version=self.client_version,
        )

    # ---- what it tells

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= LAST_USABLE_EPOCH

    def after_markers(self) -> Producer:
        """What the client goes on with: known as soon as the end is decided."""
        if self.client_version >= TV2 and self.next_producer_id != NONE:
            return Producer(self.next_producer_id, 0)
        return self.producer

    def _moved(self, state: TransactionState, now: int, **changes: object) -> "Transaction":
        assert self.state in PREVIOUS[state], f"{self.state.title} does not lead to {state.title}"
        return self._replace(state=state, updated=now, previous_producer_id=self.producer_id, **changes)  # type: ignore[arg-type]

    # ---- InitProducerId

    def init(
        self, expected: Producer | None, last_epoch: int, timeout_ms: int, fresh_id: int, server_version: int, now: int
    ) -> Step:
        if expected is not None and not self._may_be(expected):
            return Step(Errors.PRODUCER_FENCED)
        if self.state.is_prepared:
            return Step(Errors.CONCURRENT_TRANSACTIONS)
        if self.state is ONGOING:
            # The client has to come again: then it gets an epoch after the one its predecessor was fenced with.
            return self.fence(fresh_id, server_version, now)._replace(error=Errors.CONCURRENT_TRANSACTIONS)
        return self._next_epoch(expected, last_epoch, timeout_ms, fresh_id, now)

    def _may_be(self, expected: Producer) -> bool:
        """KIP-360: the id is ours, or was until its epochs ran out and the answer that said so got lost."""
        return (
            self.epoch == NONE
            or expected.id == self.producer_id
            or (expected.id == self.previous_producer_id and expected.epoch >= LAST_USABLE_EPOCH)
        )

    def _next_epoch(self, expected: Producer | None, last_epoch: int, timeout_ms: int, fresh_id: int, now: int) -> Step:
        fresh = {"timeout_ms": timeout_ms, "partitions": _NO_PARTITIONS, "started": NONE}
        current = expected is None or self.epoch in (NONE, expected.epoch)
        if current and self.is_exhausted:
            if fresh_id == NONE:
                return _WANTS_PRODUCER_ID
            rotated = self._moved(EMPTY, now, producer_id=fresh_id, epoch=0, **fresh)
            return Step(Errors.NONE, rotated, self.epoch if expected is not None else NONE)
        if current:
            bumped = self._moved(EMPTY, now, epoch=self.epoch + 1, **fresh)
            return Step(Errors.NONE, bumped, self.epoch if expected is not None else NONE)
        assert expected is not None
        if expected.epoch == last_epoch:
            return Step(Errors.NONE, self._moved(EMPTY, now, **fresh), last_epoch)
        return Step(Errors.PRODUCER_FENCED)

    # ---- AddPartitionsToTxn, AddOffsetsToTxn, and what Produce and TxnOffsetCommit add by themselves

    def add(self, producer: Producer, partitions: Sequence[TopicPartition], client_version: int, now: int) -> Step:
        if self.state.is_prepared:
            # Before all else: with TV2 the client may already hold the producer id that the markers lead to.
            return Step(Errors.CONCURRENT_TRANSACTIONS)
        refused = self._stranger(producer)
        if refused is not None:
            return Step(refused)
        if self.state is ONGOING and all(partition in self.partitions for partition in partitions):
            return Step(Errors.NONE)
        added = {**self.partitions, **dict.fromkeys(partitions)}
        started = self.started if self.state is ONGOING else now
        return Step(
            Errors.NONE,
            self._moved(ONGOING, now, partitions=added, started=started, client_version=client_version),
        )

    def verify(self, producer: Producer, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Errors]:
        """KIP-890: is each of the partitions part of the open transaction?"""
        refused = self._stranger(producer)
        if refused is None and self.state.is_prepared:
            refused = Errors.CONCURRENT_TRANSACTIONS
        if refused is not None:
            return dict.fromkeys(partitions, refused)
        return {
            partition: Errors.NONE if partition in self.partitions else Errors.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def _stranger(self, producer: Producer) -> Errors | None:
        if producer.id != self.producer_id:
            return Errors.INVALID_PRODUCER_ID_MAPPING
        if producer.epoch != self.epoch:
            return Errors.PRODUCER_FENCED
        return None

    # ---- EndTxn

    def end_v1(self, producer: Producer, committed: bool, now: int) -> Step:
        """EndTxn up to v4: the epoch stays, so a retry cannot be told from the end of the next transaction."""
        refused = self._stranger(producer)
        if refused is not None:
            return Step(refused)
        if self.state.is_prepared:
            return Step(Errors.CONCURRENT_TRANSACTIONS)
        if self.state is ONGOING:
            state = PREPARE_COMMIT if committed else PREPARE_ABORT
            return Step(Errors.NONE, self._moved(state, now, next_producer_id=NONE, client_version=TV0))
        done = COMPLETE_COMMIT if committed else COMPLETE_ABORT
        return Step(Errors.NONE if self.state is done else Errors.INVALID_TXN_STATE)

    def end_v2(self, producer: Producer, committed: bool, fresh_id: int, now: int) -> Step:
        """EndTxn from v5 on (KIP-890): every end bumps the epoch, so a late request meets an epoch of the past."""
        if self.state.is_prepared:
            # Before all else, for the reason given in `add`.
            return Step(Errors.CONCURRENT_TRANSACTIONS)
        rotated = producer.id == self.previous_producer_id and producer.epoch == LAST_USABLE_EPOCH and self.epoch == 0
        if producer.id != self.producer_id and not rotated:
            return Step(Errors.INVALID_PRODUCER_ID_MAPPING)
        retry = rotated or self.epoch == producer.epoch + 1
        if retry:
            return Step(self._retried_end(committed))
        if producer.epoch != self.epoch:
            return Step(Errors.PRODUCER_FENCED)
        if committed and self.state is not ONGOING:
            return Step(Errors.INVALID_TXN_STATE)
        # A client whose first produce failed does not know whether anything was begun: it may abort nothing.
        return self._end_bumped(PREPARE_COMMIT if committed else PREPARE_ABORT, fresh_id, now)

    def _retried_end(self, committed: bool) -> Errors:
        if self.state is COMPLETE_COMMIT:
            return Errors.NONE if committed else Errors.INVALID_TXN_STATE
        if self.state is COMPLETE_ABORT and not committed:
            return Errors.NONE
        # KAFKA-20785: a commit that comes after the abort of its transaction was fenced, whatever 4.3.1 calls it.
        return Errors.PRODUCER_FENCED

    def _end_bumped(self, state: TransactionState, fresh_id: int, now: int) -> Step:
        if self.is_exhausted and fresh_id == NONE:
            return _WANTS_PRODUCER_ID
        ended = self._moved(
            state,
            now,
            epoch=min(self.epoch + 1, MAX_EPOCH),
            next_producer_id=fresh_id if self.is_exhausted else NONE,
            started=self.started if self.state is ONGOING else now,
            client_version=TV2,
        )
        return Step(Errors.NONE, ended, self.epoch)

    # ---- what nobody asked for

    def fence(self, fresh_id: int, server_version: int, now: int) -> Step:
        """Aborts what is open under the next epoch: the transaction's owner finds itself fenced, never half heard."""
        assert self.state is ONGOING
        if server_version >= TV2:
            return self._end_bumped(PREPARE_ABORT, fresh_id, now)
        epoch = min(self.epoch + 1, MAX_EPOCH)
        return Step(
            Errors.NONE, self._moved(PREPARE_ABORT, now, epoch=epoch, next_producer_id=NONE, client_version=TV0)
        )

    def complete(self, now: int) -> "Transaction":
        """All markers are written."""
        producer = self.after_markers()
        return self._moved(
            COMPLETE_COMMIT if self.state is PREPARE_COMMIT else COMPLETE_ABORT,
            now,
            producer_id=producer.id,
            epoch=producer.epoch,
            next_producer_id=NONE,
            partitions=_NO_PARTITIONS,
        )


def newborn(producer_id: int, timeout_ms: int, now: int) -> Transaction:
    """A transactional id nobody has used before. It is in no log until its first epoch is."""
    return Transaction(producer_id, NONE, timeout_ms, updated=now)


def by_topic(partitions: Partitions) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
