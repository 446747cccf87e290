"""What clients send nearly always: a batch with nothing remarkable about it, appended in three steps.

Each step is done for all batches of a request before the next one begins: `admit` checks a batch and gives it its
offset, `write_each` writes them (or `withdraw_each` leaves them as they came), `settle` makes each a part of its log.
Whatever is out of the ordinary is left to `leading`, which knows all cases; this here knows one, and that one well.
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeVar

from crc32c import crc32c

from ottla.protocol import batch as b
from ottla.protocol.ordinary_produce import Header
from ottla.storage.fs import File
from ottla.storage.log import Log
from ottla.storage.producer_state import SEQUENCE_MASK, CachedBatch, Producer
from ottla.storage.segment import Segment

_ASSIGN = Struct(">qii")
_assign: Final = _ASSIGN.pack_into
_OVERHEAD: Final = b.LOG_OVERHEAD
_CRC_START: Final = b.CRC_START
_LAST_CODEC: Final = 4
"""Zstd. Of an ordinary batch the codec is all that its attributes say."""
_new_tuple: Final = tuple.__new__
"""Makes a NamedTuple for a third of what its constructor costs."""

T = TypeVar("T")

Placed = tuple[int, int, int, int, int]
"""The fields of a CachedBatch."""
Admitted = tuple[File, memoryview, Segment, Placed, Producer | None]
"""A batch between its check and its place in the log: the file it goes to, its bytes, the segment, what the log is to
remember of it, and its producer if it has one. Plain tuples: they are taken apart at once, and nothing is cheaper."""


def admit(log: Log, batch: memoryview, header: Header, leader_epoch: int, now: int) -> Admitted | None:
    """The first of three steps that append an ordinary batch of a client; `write_each` or `withdraw_each`, and
    `settle` follow. The header is that of the batch, which can be written to.

    None if anything about it is out of the ordinary, be it wrong or merely rare (the first batch of a producer, a
    full segment, a transaction). Nothing has changed then, and `append_as_leader` knows what to make of it.
    """
    (
        _, offset, length, magic, crc, attributes, delta, timestamp, producer_id, producer_epoch, sequence, count,
    ) = header  # fmt: skip
    size = length + _OVERHEAD
    config = log.config
    segment = log.segments[-1]
    room = segment.room
    base_offset = log.log_end_offset
    last_offset = base_offset + delta
    file = segment.file
    if (
        size != len(batch)
        or magic != 2
        or offset
        or not 0 <= attributes <= _LAST_CODEC
        or count != delta + 1
        or delta < 0
        or size > config.max_message_bytes
        or not log.is_plain
        or timestamp - now > config.message_timestamp_after_max_ms
        or leader_epoch != log.epochs.latest
        or segment.size + size > room.size
        or timestamp > room.timestamp
        or last_offset > room.offset
        or file is None
        or log.latch.error is not None
        or crc != crc32c(batch[_CRC_START:])
    ):
        return None
    producer: Producer | None = None
    if producer_id >= 0:
        producers = log.known_producers
        if producers is None:
            return None
        producer = producers.in_order(producer_id, producer_epoch, sequence)
        if producer is None:
            return None
    _assign(batch, 0, base_offset, length, leader_epoch)
    placed = (sequence, (sequence + delta) & SEQUENCE_MASK, base_offset, last_offset, timestamp)
    return file, batch, segment, placed, producer


def write_each(admitted: Mapping[T, Admitted]) -> tuple[T, OSError] | None:
    """The second step, for batches of different logs. Ends at the first that the disk refuses, and tells which: that
    one and those behind it are not to be settled, and its log has to hear of it by `append_failed`."""
    try:
        for key, (file, batch, segment, _, _) in admitted.items():  # noqa: B007 - used when a write fails
            file.pwrite(batch, segment.size)
    except OSError as error:
        return key, error
    return None


def withdraw_each(admitted: Mapping[T, Admitted]) -> None:
    """Instead of the second step: the batches are as they came, and may be appended by the long way."""
    for _, batch, _, _, _ in admitted.values():
        _assign(batch, 0, 0, len(batch) - _OVERHEAD, -1)


def settle(log: Log, admitted: Admitted) -> int:
    """The last step: an admitted batch has been written, and is part of the log. Returns its base offset."""
    _, batch, segment, placed, producer = admitted
    _, _, base_offset, last_offset, timestamp = placed
    assert base_offset == log.log_end_offset, "another batch came between"
    segment.written(len(batch), base_offset, last_offset, timestamp, log.config.index_interval_bytes)
    log.log_end_offset = last_offset + 1
    if producer is not None:
        producer.remember(_new_tuple(CachedBatch, placed))
    return base_offset
