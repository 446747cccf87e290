"""Reading a log: slices for sendfile, batches one by one, offsets by time, the aborted transactions of a range.

Nothing here changes the log. A disk that fails is taken offline all the same, and a damaged log is unreadable alone.
"""

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import NoReturn

from ottla.model.errors import Errors
from ottla.protocol import batch as b
from ottla.storage import recovery, times
from ottla.storage.answers import FileSlice, FoundOffset
from ottla.storage.fs import CorruptLog, StorageError
from ottla.storage.index import AbortedTxn, CorruptIndex
from ottla.storage.log import Log
from ottla.storage.lookup import end_position, find, segment_index
from ottla.storage.segment import Segment

_last_offset = attrgetter("last_offset")
"""What a transaction index is ordered by: where its markers are."""


def read(
    log: Log, offset: int, max_bytes: int, *, upper_bound: int, min_one_message: bool = True
) -> FileSlice | Errors | None:
    """Bytes from the batch that holds `offset`, none at or beyond `upper_bound`; None when there is nothing yet.

    At the tail this needs no system call. The slice ends with a whole batch where an index knows one, else
    anywhere, as Kafka's does.
    """
    end_offset = log.log_end_offset
    if offset < log.log_start_offset or offset > end_offset:
        return Errors.OFFSET_OUT_OF_RANGE
    if offset >= upper_bound or offset == end_offset:
        return None
    try:
        found = find(log.segments, offset)
        if found is None:
            return None
        segment, index, position, size = found
        end = end_position(log.segments, index, upper_bound, end_offset)
        length = end - position
        if length <= 0:
            return None
        if length > max_bytes:
            if size > max_bytes:
                if not min_one_message:
                    return None
                length = size
            else:
                length = segment.cut(position, max_bytes)
        return FileSlice(segment.file or segment.files.open(segment), position, length, segment)
    except (OSError, CorruptLog) as error:
        _unreadable(log, error)


def batches_of(log: Log, offset: int, upper_bound: int | None = None) -> Iterator[memoryview]:
    """Every whole batch from the one that holds `offset` to the one before `upper_bound` (the log end)."""
    upper_bound = log.log_end_offset if upper_bound is None else upper_bound
    found = find(log.segments, offset) if offset < upper_bound else None
    if found is None:
        return
    while found is not None:
        segment, _, start, _ = found
        for _, batch in segment.batches(start):
            if b.read_frame(batch)[0] >= upper_bound:
                return
            yield batch
            offset = b.read_header(batch).last_offset + 1
        # Looked up anew: the cleaner may have swapped segments while the caller was busy with the last one.
        found = find(log.segments, offset) if offset < upper_bound else None


def upper_offset(log: Log, piece: FileSlice) -> int:
    """An offset no record of the slice reaches: the bound for its aborted transactions."""
    segment = piece.segment
    offsets = segment.offsets or segment.load_indexes()[0]
    found = offsets.offset_at_or_after(piece.position + piece.length)
    if found is not None:
        return found
    index = segment_index(log.segments, segment.base_offset)
    return log.segments[index + 1].base_offset if index + 1 < len(log.segments) else log.log_end_offset


def offset_for_timestamp(log: Log, timestamp: int) -> FoundOffset | None:
    """The first record at or after the log start whose timestamp is >= `timestamp`."""
    try:
        return times.first_at_or_after(log.segments, timestamp, log.log_start_offset, log.config.unpacking)
    except (OSError, CorruptLog) as error:
        _unreadable(log, error)


def max_timestamp_offset(log: Log) -> FoundOffset | None:
    """The first record that bears the log's greatest timestamp."""
    try:
        return times.greatest(log.segments, log.config.unpacking)
    except (OSError, CorruptLog) as error:
        _unreadable(log, error)


def aborted_transactions(log: Log, fetch_offset: int, upper_bound: int) -> list[tuple[int, int]]:
    """Producer id and first offset of each aborted transaction that touches [fetch_offset, upper_bound)."""
    aborted = []
    for segment in log.segments[segment_index(log.segments, fetch_offset) :]:
        txns = _aborted_of(log, segment)
        for txn in txns[bisect_left(txns, fetch_offset, key=_last_offset) :]:
            if txn.first_offset < upper_bound:
                aborted.append((txn.producer_id, txn.first_offset))
            if txn.last_stable_offset >= upper_bound:
                return aborted
    return aborted


def _aborted_of(log: Log, segment: Segment) -> list[AbortedTxn]:
    try:
        try:
            return segment.aborted_txns()
        except CorruptIndex:
            before = recovery.load_producers(
                log.chain.fs,
                log.path,
                log.segments,
                log.chain.snapshots,
                log.config,
                log_start_offset=log.segments[0].base_offset,
                end_offset=segment.base_offset,
                now=0,
            )
            return recovery.rebuild_aborted(segment, before)
    except (OSError, CorruptLog) as error:
        _unreadable(log, error)


def _unreadable(log: Log, error: OSError | CorruptLog) -> NoReturn:
    """A disk that fails goes offline; a damaged log is unreadable alone."""
    what = f"cannot read {log.topic_partition}"
    if isinstance(error, CorruptLog):
        raise StorageError(log.latch.directory, f"{what}: {error}") from error
    log.latch.fail(what, error)
