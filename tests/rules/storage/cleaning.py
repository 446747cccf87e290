"""A compacted log, rounds of the cleaner over it, and what is left, for the tests of the cleaner."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.protocol import batch as b
from ottla.protocol.records import NewRecord, Record, build_batch, read_records
from ottla.storage.answers import COORDINATOR
from ottla.storage.cleaner import plan
from ottla.storage.cleaner.cleaned_segment import discard
from ottla.storage.cleaner.facts import Limits
from ottla.storage.cleaner.rewrite import Round
from ottla.storage.config import LogConfig
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.reading import aborted_transactions, batches_of
from tests.rules.storage.scene import NOW, a_marker, accepted

ROOMY = Limits(memory=1 << 20)
COMPACT = LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000)
Pair = tuple[bytes | None, bytes | None]


def put(
    log: Log,
    *pairs: Pair,
    at: int = NOW,
    codec: int = 0,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> int:
    """One batch of keys and values; returns its base offset."""
    records = [NewRecord(key, value, at + index) for index, (key, value) in enumerate(pairs)]
    batch = build_batch(
        records,
        codec=codec,
        attributes=attributes,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )
    return accepted(append_as_leader(log, batch, 0, max(at, NOW))).base_offset


def put_in_transaction(log: Log, producer: tuple[int, int, int], *pairs: Pair) -> int:
    return put(log, *pairs, attributes=b.TRANSACTIONAL, producer=producer)


def end(log: Log, producer_id: int, epoch: int, *, commit: bool, at: int = NOW) -> int:
    marker = a_marker(producer_id, epoch, commit=commit, at=at)
    return accepted(append_as_leader(log, marker, 0, max(at, NOW), origin=COORDINATOR)).base_offset


class Cleaned(NamedTuple):
    end_offset: int
    round: Round


def clean(
    log: Log,
    cleaned_to: int | None = None,
    *,
    now: int = NOW,
    limits: Limits = ROOMY,
    high_watermark: int | None = None,
) -> Cleaned:
    """A whole round in this thread; as soon as it has ended what it replaced is gone."""
    hw = log.log_end_offset if high_watermark is None else high_watermark
    candidate = plan.weigh(log, cleaned_to, high_watermark=hw, now=now)
    work = Round(candidate.facts(limits, now=now), log.filesystem, lambda _: None)
    segments = {segment.base_offset: segment for segment in log.segments}
    mapped = work.map_keys()
    for number, group in enumerate(mapped.groups):
        new = work.rewrite(number, log.last_records(below=group[-1].next_base))
        deletion = log.replace_segments([(segments[source.base_offset], source.size) for source in group], new)
        if deletion is None:
            discard(log.filesystem, log.path, new.base_offset)
            break
        log.filesystem.sync_dir(log.path)
        for path in deletion.paths:
            log.filesystem.remove(path)
    return Cleaned(mapped.end_offset, work)


def rolled_and_cleaned(log: Log, cleaned_to: int | None = None, *, now: int = NOW, limits: Limits = ROOMY) -> Cleaned:
    log.roll(now)
    return clean(log, cleaned_to, now=now, limits=limits)


def records(log: Log) -> list[Record]:
    """All that a read_uncommitted reader is given."""
    return [
        record for batch in batches_of(log, 0) if not b.read_header(batch).is_control for record in read_records(batch)
    ]


def committed(log: Log) -> list[Record]:
    """All that a read_committed reader is given, by the transaction index and the markers."""
    stable = log.last_stable_offset(log.log_end_offset)
    ahead = sorted(aborted_transactions(log, 0, stable), key=lambda txn: txn[1], reverse=True)
    open_aborted: set[int] = set()
    found: list[Record] = []
    for batch in batches_of(log, 0, stable):
        header = b.read_header(batch)
        while ahead and ahead[-1][1] <= header.last_offset:
            open_aborted.add(ahead.pop()[0])
        if header.is_control:
            for marker in read_records(batch):
                if marker.key is not None and marker.key[3] == 0:
                    open_aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_aborted):
            found += read_records(batch)
    return found


def latest(found: Iterable[Record]) -> dict[bytes, bytes]:
    """The table a reader builds."""
    table: dict[bytes, bytes] = {}
    for record in found:
        assert record.key is not None
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records(log)]


def headers(log: Log) -> list[b.BatchHeader]:
    return [b.read_header(batch) for batch in batches_of(log, 0)]


def shape(log: Log) -> list[tuple[int, int, int]]:
    """Base offset, last offset and number of records of each batch."""
    return [(header.base_offset, header.last_offset, header.record_count) for header in headers(log)]
