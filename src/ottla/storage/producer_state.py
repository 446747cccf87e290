"""What a log remembers of its producers: the last five batches of each for deduplication, epochs, open transactions.

Kafka's ProducerStateManager and ProducerAppendInfo. Everything is learnt from batch headers, so it can be rebuilt from
the log; a snapshot next to each segment saves reading it all. A snapshot keeps one batch for each producer, so after a
restart the window of five fills up again.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.model.errors import Errors
from ottla.storage.marker import Marker

WINDOW: Final = 5
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
MAX_EPOCH: Final = 32767
MAX_PRODUCERS: Final = 100_000
"""Of one log. Beyond it the producer known longest without an open transaction is forgotten (reliability.md 3)."""
SEQUENCE_MASK: Final = 0x7FFFFFFF

_SNAPSHOT_HEAD = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_CRC_END: Final = 6


class CorruptSnapshot(ValueError):
    """A producer snapshot that is not to be believed: deleted, and rebuilt from an older one and the log."""


class CachedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Refusal(NamedTuple):
    error: Errors
    message: str


class Completed(NamedTuple):
    """A transaction that its marker at `last_offset` has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class Verification:
    """Taken before the coordinator is asked whether a partition is in a transaction; the object itself is the proof.

    It is dropped by the first batch of the transaction and by a marker. An answer that was on its way while the
    transaction ended therefore finds another object in its place, and nothing is appended that nobody would ever end
    (KAFKA-14884).
    """

    __slots__ = ("epoch", "epoch_bump", "lowest_sequence", "timestamp")

    def __init__(self, epoch: int, sequence: int, epoch_bump: bool, timestamp: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        """KAFKA-14920: what follows it may not go first while it is being retried."""
        self.epoch_bump = epoch_bump
        self.timestamp = timestamp


UNCHECKED: Final = Verification(-1, -1, False, -1)
"""In place of a proof where none is asked for: transaction.partition.verification.enable is off."""


class Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "txn_first_offset")

    def __init__(
        self, epoch: int, coordinator_epoch: int = -1, last_timestamp: int = -1, txn_first_offset: int = NO_OFFSET
    ) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        self.batches: list[CachedBatch] = []

    def remember(self, batch: CachedBatch) -> None:
        batches = self.batches
        if len(batches) == WINDOW:
            del batches[0]
        batches.append(batch)
        self.last_timestamp = batch.timestamp

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def _fields(self) -> tuple[object, ...]:
        return self.epoch, self.coordinator_epoch, self.last_timestamp, self.txn_first_offset, self.batches

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Producer) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Producer{self._fields()!r}"


class ProducerStates:
    __slots__ = ("end_offset", "ongoing", "producers", "unreplicated", "verifications")

    def __init__(self, end_offset: int = 0) -> None:
        self.producers: dict[int, Producer] = {}
        self.ongoing: dict[int, int] = {}
        """First offset -> producer id of each open transaction, oldest first."""
        self.unreplicated: dict[int, int] = {}
        """First offset -> marker offset of completed transactions whose marker the high watermark has not passed."""
        self.end_offset = end_offset
        """All batches below it are reflected here."""
        self.verifications: dict[int, Verification] = {}
        """Producer id -> what its first batch in a transaction has to show. In memory only."""

    # -- verification: KIP-890 -----------------------------------------------------------------------------------

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, epoch_bump: bool, now: int
    ) -> Verification | Refusal | None:
        """None: the transaction is open here already, so the coordinator knows of it."""
        producer = self.producers.get(producer_id)
        if producer is not None:
            if epoch < producer.epoch:
                return self._fenced(producer_id, epoch, producer.epoch, "<")
            if producer.txn_first_offset >= 0 and epoch == producer.epoch:
                return None
        found = self.verifications.get(producer_id)
        if found is None:
            if len(self.verifications) >= MAX_PRODUCERS:
                del self.verifications[next(iter(self.verifications))]  # so many at once were made up
            found = self.verifications[producer_id] = Verification(epoch, sequence, epoch_bump, now)
        elif epoch > found.epoch:
            found.epoch, found.lowest_sequence = epoch, sequence
        elif epoch == found.epoch:
            found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def check_verified(self, producer_id: int, epoch: int, sequence: int, shown: Verification | None) -> Refusal | None:
        """Of a transactional batch that is not a marker: it belongs to an open transaction, or shows its proof."""
        producer = self.producers.get(producer_id)
        if producer is not None:
            # The epoch first: INVALID_TXN_STATE would be fatal to a client that only has to begin again (KAFKA-19690).
            if epoch < producer.epoch:
                return self._fenced(producer_id, epoch, producer.epoch, "<")
            if producer.txn_first_offset >= 0 and epoch == producer.epoch:
                return None
        if shown is UNCHECKED:
            return None
        kept = self.verifications.get(producer_id)
        if kept is None or kept is not shown:
            return Refusal(Errors.INVALID_TXN_STATE, f"producer {producer_id} has no open transaction here")
        if kept.epoch_bump and sequence > 0 and (producer is None or not producer.batches):
            return self._out_of_order(producer_id, sequence, NO_SEQUENCE)
        if sequence > kept.lowest_sequence:
            return Refusal(
                Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {sequence} while {kept.lowest_sequence} is being verified",
            )
        return None

    # -- checks before an append ---------------------------------------------------------------------------------

    def in_order(self, producer_id: int, epoch: int, first: int) -> Producer | None:
        """The common case in one look: a known producer, no transaction open, exactly the next sequence.

        Whoever appends the batch tells the producer by `Producer.remember`.
        """
        producer = self.producers.get(producer_id)
        if producer is None or producer.epoch != epoch or producer.txn_first_offset >= 0:
            return None
        window = producer.batches
        if window and first == (window[-1][1] + 1) & SEQUENCE_MASK:  # by its place: names cost a call each
            return producer
        return None

    def check_client(
        self, producer_id: int, epoch: int, first: int, last: int, transactional: bool
    ) -> CachedBatch | Refusal | None:
        """None: append it. A CachedBatch: it is there already, answer with its offsets."""
        producer = self.producers.get(producer_id)
        if producer is None:
            return None  # retention may have removed what we knew, so any sequence is accepted
        if epoch == producer.epoch:
            batches = producer.batches
            if batches:
                if first != (batches[-1].last_sequence + 1) & SEQUENCE_MASK:
                    return self._duplicate(producer, producer_id, first, last)
            elif first != 0:
                return self._out_of_order(producer_id, first, NO_SEQUENCE)
        elif epoch < producer.epoch:
            return self._fenced(producer_id, epoch, producer.epoch, "<")
        elif first != 0:
            return Refusal(
                Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} starts its epoch {epoch} with sequence {first}, expected 0",
            )
        if producer.txn_first_offset >= 0 and not transactional:
            return self._not_transactional(producer_id)
        return None

    def _duplicate(self, producer: Producer, producer_id: int, first: int, last: int) -> CachedBatch | Refusal:
        for batch in producer.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return self._out_of_order(producer_id, first, producer.last_sequence)

    def check_coordinator(
        self, producer_id: int, epoch: int, transactional: bool, marker: Marker | None, transaction_version: int
    ) -> Refusal | None:
        """Batches of coordinators carry no sequence; markers are fenced by producer and coordinator epoch."""
        producer = self.producers.get(producer_id)
        if producer is None:
            return None
        if marker is None:
            if epoch < producer.epoch:
                return self._fenced(producer_id, epoch, producer.epoch, "<")
            if producer.txn_first_offset >= 0 and not transactional:
                return self._not_transactional(producer_id)
            return None
        if not self._marker_epoch_holds(producer, epoch, transaction_version):
            return self._fenced(producer_id, epoch, producer.epoch, "<=" if transaction_version >= 2 else "<")
        if producer.coordinator_epoch > marker.coordinator_epoch:
            return Refusal(
                Errors.TRANSACTION_COORDINATOR_FENCED,
                f"producer {producer_id}: coordinator epoch {marker.coordinator_epoch} is older than "
                f"{producer.coordinator_epoch}",
            )
        return None

    @staticmethod
    def _marker_epoch_holds(producer: Producer, epoch: int, transaction_version: int) -> bool:
        if transaction_version < 2 or epoch > producer.epoch:
            return epoch >= producer.epoch
        # KAFKA-19999: the same marker written again after its transaction ended is a coordinator's retry.
        return epoch == producer.epoch and (producer.txn_first_offset < 0 or epoch == MAX_EPOCH)

    def _out_of_order(self, producer_id: int, first: int, last_seen: int) -> Refusal:
        return Refusal(
            Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sent sequence {first} after {last_seen}",
        )

    def _fenced(self, producer_id: int, epoch: int, current: int, how: str) -> Refusal:
        return Refusal(
            Errors.INVALID_PRODUCER_EPOCH, f"producer {producer_id}: epoch {epoch} {how} the last seen {current}"
        )

    def _not_transactional(self, producer_id: int) -> Refusal:
        return Refusal(
            Errors.INVALID_TXN_STATE, f"producer {producer_id} has an open transaction: its batch is outside"
        )

    # -- changes after an append ---------------------------------------------------------------------------------

    def record_batch(
        self,
        producer_id: int,
        epoch: int,
        first: int,
        last: int,
        base_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self._introduce(producer_id, epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.remember(CachedBatch(first, last, base_offset, last_offset, timestamp))
        if transactional and producer.txn_first_offset < 0:
            producer.txn_first_offset = base_offset
            self.ongoing[base_offset] = producer_id
            if self.verifications:
                self.verifications.pop(producer_id, None)

    def record_marker(
        self, producer_id: int, epoch: int, marker: Marker, offset: int, timestamp: int
    ) -> Completed | None:
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self._introduce(producer_id, epoch)
        elif producer.epoch != epoch:
            # A marker of the same epoch (TV1) must keep the window: the sequences run on.
            producer.epoch = epoch
            producer.batches.clear()
        if self.verifications:
            self._drop_verification(producer_id, epoch)
        first = producer.txn_first_offset
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        producer.txn_first_offset = NO_OFFSET
        return None if first < 0 else Completed(producer_id, first, offset, not marker.committed)

    def _drop_verification(self, producer_id: int, marker_epoch: int) -> None:
        kept = self.verifications.get(producer_id)
        # With TV2 a proof of the marker's own epoch belongs to the transaction after it: that one stays.
        if kept is not None and not (kept.epoch_bump and kept.epoch == marker_epoch):
            del self.verifications[producer_id]

    def complete(self, completed: Completed) -> None:
        self.ongoing.pop(completed.first_offset, None)
        self.unreplicated[completed.first_offset] = completed.last_offset

    def last_stable_offset_after(self, completed: Completed) -> int:
        """What the transaction index notes: where the log is stable once this transaction is over."""
        for first_offset, producer_id in self.ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def _introduce(self, producer_id: int, epoch: int) -> Producer:
        if len(self.producers) >= MAX_PRODUCERS:
            for known, producer in self.producers.items():
                if producer.txn_first_offset < 0:
                    del self.producers[known]
                    break
        producer = self.producers[producer_id] = Producer(epoch)
        return producer

    # -- what the log asks ---------------------------------------------------------------------------------------

    @property
    def first_ongoing(self) -> int | None:
        return next(iter(self.ongoing)) if self.ongoing else None

    def first_unstable(self, high_watermark: int) -> int | None:
        """First offset of a transaction that is open, or whose end is not replicated yet."""
        if self.unreplicated:
            for first, marker in list(self.unreplicated.items()):
                if marker < high_watermark:
                    del self.unreplicated[first]
        first_offsets = [*self.unreplicated, *(list(self.ongoing)[:1])]
        return min(first_offsets) if first_offsets else None

    def expire(self, now: int, expiration_ms: int) -> None:
        """Never while a transaction is open."""
        for producer_id, producer in list(self.producers.items()):
            if producer.txn_first_offset < 0 and now - producer.last_timestamp >= expiration_ms:
                del self.producers[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now - verification.timestamp >= expiration_ms:
                del self.verifications[producer_id]

    def idle_since(self) -> list[tuple[int, int]]:
        """Last timestamp and id of every producer that has no transaction open."""
        return [
            (one.last_timestamp, producer_id) for producer_id, one in self.producers.items() if one.txn_first_offset < 0
        ]

    def forget(self, producer_id: int) -> None:
        """Its next batch is taken as that of a producer never seen before."""
        self.producers.pop(producer_id, None)

    def clear(self, end_offset: int) -> None:
        self.producers.clear()
        self.ongoing.clear()
        self.unreplicated.clear()
        self.verifications.clear()
        self.end_offset = end_offset

    # -- snapshots -----------------------------------------------------------------------------------------------

    def encode_snapshot(self) -> bytes:
        body = bytearray(_SNAPSHOT_HEAD.pack(1, 0, len(self.producers)))
        for producer_id, producer in self.producers.items():
            last = producer.batches[-1] if producer.batches else None
            body += _SNAPSHOT_ENTRY.pack(
                producer_id,
                producer.epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.txn_first_offset,
            )
        _SNAPSHOT_HEAD.pack_into(body, 0, 1, crc32c(memoryview(body)[_CRC_END:]), len(self.producers))
        return bytes(body)

    def load_snapshot(self, data: bytes, end_offset: int, now: int, expiration_ms: int) -> None:
        """Raises CorruptSnapshot and leaves this state untouched."""
        entries = list(_read_snapshot(data))
        self.clear(end_offset)
        for producer_id, producer in entries:
            if producer.txn_first_offset >= 0 or now - producer.last_timestamp < expiration_ms:
                self.producers[producer_id] = producer
        open_txns = ((p.txn_first_offset, producer_id) for producer_id, p in self.producers.items())
        self.ongoing = dict(sorted(txn for txn in open_txns if txn[0] >= 0))


def _read_snapshot(data: bytes) -> Iterator[tuple[int, Producer]]:
    try:
        version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    except StructError as error:
        raise CorruptSnapshot("the snapshot is too short") from error
    if version != 1:
        raise CorruptSnapshot(f"unknown version {version}")
    if crc != crc32c(memoryview(data)[_CRC_END:]):
        raise CorruptSnapshot("the CRC does not match")
    if len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshot(f"{len(data)} bytes do not hold {count} producers")
    entries: Iterable[tuple[int, ...]] = _SNAPSHOT_ENTRY.iter_unpack(memoryview(data)[_SNAPSHOT_HEAD.size :])
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first_offset in entries:
        producer = Producer(epoch, coordinator_epoch, timestamp, max(txn_first_offset, NO_OFFSET))
        if offset >= 0:
            first = (sequence - delta) & SEQUENCE_MASK if sequence >= 0 else NO_SEQUENCE
            producer.batches.append(CachedBatch(first, sequence, offset - delta, offset, timestamp))
        yield producer_id, producer
