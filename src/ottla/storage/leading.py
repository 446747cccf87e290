"""What a leader makes of a batch: the general way, which knows every case.

A batch is examined (`admission`), compared with what is known of its producer (`producer_state`), placed at the end of
the log, and remembered: a sequence, the end of a transaction. Most batches are ordinary and take a shorter way
(`ordinary`).
"""

from typing import Final

from ottla.protocol import batch as b
from ottla.storage import admission
from ottla.storage.answers import CLIENT, SIEVED, Appended, Origin, Rejected
from ottla.storage.fs import StorageError
from ottla.storage.index import AbortedTxn
from ottla.storage.log import Log
from ottla.storage.marker import Marker, marker_of
from ottla.storage.producer_state import UNCHECKED, CachedBatch, Completed, ProducerStates, Refusal, Verification

_HEADER_SIZE: Final = b.HEADER_SIZE
_OVERHEAD: Final = b.LOG_OVERHEAD


def append_as_leader(
    log: Log,
    batch: b.Buffer,
    leader_epoch: int,
    now: int,
    *,
    origin: Origin = CLIENT,
    transaction_version: int = 0,
    verification: Verification | None = UNCHECKED,
) -> Appended | Rejected:
    """Checks one batch, patches offset and epoch into it and writes it. Internal callers may pass several batches.

    `batch` is written to if it can be. `verification` is what `begin_verification` gave; None if it said that none
    was needed. Raises StorageError if the disk refuses.
    """
    log.latch.check()
    if type(batch) is not memoryview or batch.readonly:
        batch = memoryview(batch if type(batch) is bytearray else bytearray(batch))
    if origin != CLIENT and admission.holds_several(batch):
        return _append_several(log, batch, leader_epoch, now, origin, transaction_version)
    taken = admission.examine(batch, log.config, origin, now)
    if isinstance(taken, Rejected):
        return taken
    header = b.read_header(taken)
    marker = marker_of(taken) if header.is_control and header.producer_id >= 0 else None
    if header.producer_id >= 0:
        verdict = _verdict(log, header, marker, origin, transaction_version, verification)
        if verdict is not None:
            return _not_appended(log, verdict)
    base_offset = log.place(taken, header.last_offset_delta, header.max_timestamp, leader_epoch, now)
    if header.producer_id >= 0:
        _remember(log, header, marker, base_offset)
    append_time = header.max_timestamp if header.attributes & b.LOG_APPEND_TIME else -1
    return Appended(base_offset, log.log_end_offset - 1, append_time, log.log_start_offset)


def append_end(
    log: Log, batch: bytearray, producer_id: int, epoch: int, marker: Marker, leader_epoch: int, now: int, version: int
) -> Appended | Rejected:
    """The batch that ends a transaction, made by this node with the time `now`, so that nothing in it needs to be
    looked at. `version` is that of the transaction."""
    log.latch.check()
    producers = log.producers
    verdict = producers.check_coordinator(producer_id, epoch, True, marker, version)
    if verdict is not None:
        return _not_appended(log, verdict)
    base_offset = log.place(memoryview(batch), 0, now, leader_epoch, now)
    _remember_end(log, producer_id, epoch, marker, base_offset, now)
    return Appended(base_offset, base_offset, -1, log.log_start_offset)


def _verdict(
    log: Log,
    header: b.BatchHeader,
    marker: Marker | None,
    origin: Origin,
    transaction_version: int,
    verification: Verification | None,
) -> CachedBatch | Refusal | None:
    """None if the batch is what its producer may send next; a CachedBatch if it is in the log already."""
    producers = log.producers
    producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
    verdict: CachedBatch | Refusal | None
    if origin in (CLIENT, SIEVED):
        verdict = producers.check_client(producer_id, epoch, sequence, header.last_sequence, header.is_transactional)
    else:
        verdict = producers.check_coordinator(producer_id, epoch, header.is_transactional, marker, transaction_version)
    if header.is_transactional and marker is None and not isinstance(verdict, CachedBatch):
        return producers.check_verified(producer_id, epoch, sequence, verification) or verdict
    return verdict


def _remember(log: Log, header: b.BatchHeader, marker: Marker | None, base_offset: int) -> None:
    """Tells the producers of a batch that has been written."""
    producers = log.producers
    producer_id, epoch, timestamp = header.producer_id, header.producer_epoch, header.max_timestamp
    if marker is None:
        producers.record_batch(
            producer_id, epoch, header.base_sequence, header.last_sequence, base_offset,
            base_offset + header.last_offset_delta, timestamp, header.is_transactional,
        )  # fmt: skip
        return
    _remember_end(log, producer_id, epoch, marker, base_offset, timestamp)


def _remember_end(log: Log, producer_id: int, epoch: int, marker: Marker, base_offset: int, timestamp: int) -> None:
    producers = log.producers
    completed = producers.record_marker(producer_id, epoch, marker, base_offset, timestamp)
    if completed is not None:
        _end_transaction(log, producers, completed)


def _append_several(
    log: Log, batches: memoryview, leader_epoch: int, now: int, origin: Origin, transaction_version: int
) -> Appended | Rejected:
    """All of them or none: what was written of a run that fails is cut off again."""
    start = log.log_end_offset
    position, last = 0, start - 1
    try:
        while position < len(batches):
            size = b.read_frame(batches, position)[1] if len(batches) - position >= _OVERHEAD else 0
            one = batches[position : position + size] if size >= _HEADER_SIZE else batches[position:]
            outcome = append_as_leader(
                log, one, leader_epoch, now, origin=origin, transaction_version=transaction_version
            )
            if isinstance(outcome, Rejected):
                if last >= start:
                    log.truncate_to(start, now)
                return outcome
            position, last = position + len(one), outcome.last_offset
    except StorageError:
        if log.is_online and last >= start:
            log.truncate_to(start, now)
        raise
    return Appended(start, last, now if log.config.log_append_time else -1, log.log_start_offset)


def _not_appended(log: Log, verdict: CachedBatch | Refusal) -> Appended | Rejected:
    if isinstance(verdict, Refusal):
        return Rejected(verdict.error, f"{log.topic_partition}: {verdict.message}")
    append_time = verdict.timestamp if log.config.log_append_time else -1
    return Appended(verdict.first_offset, verdict.last_offset, append_time, log.log_start_offset, True)


def _end_transaction(log: Log, producers: ProducerStates, completed: Completed) -> None:
    if completed.aborted:
        stable = producers.last_stable_offset_after(completed)
        txn = AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
        log.note_aborted(txn)
    producers.complete(completed)
