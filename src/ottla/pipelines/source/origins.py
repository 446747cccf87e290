"""Which record a result of Spark's own aggregate comes of, and that record's headers.

Kafka Streams sends a result with the headers of the record that changed it; of several changes in a batch the last one
counts. Carrying headers through an aggregate would cost every record, and hardly any has headers. So each record has a
number that grows from batch to batch, whose lowest bit tells whether it has headers. The aggregate keeps the largest.
Where the bit is set the sink reads the record again; where no record has headers nothing more happens.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.partition_reader import PartitionReader
from ottla.model.ids import TopicPartition
from ottla.pipelines.rows import have_no_headers
from ottla.pipelines.source.columns import read_columns
from ottla.serdes.schema_ids import SCHEMA_HEADERS

MARK: Final = "\x00ottla.origin"
"""The name of a header that stands for those of a record, its value for the number. It never reaches a topic."""
NEAR: Final = 2_000
"""Records no further apart than this are read in one go, with those between them."""

Header = Mapping[str, Any]


class Range(NamedTuple):
    """What a micro-batch reads of one partition."""

    place: TopicPartition
    start: int
    end: int


class Origins(NamedTuple):
    """Numbers of the records of one micro-batch: first those of the first partition, in order, then the next."""

    ranges: tuple[Range, ...]
    base: int = 0
    """Offsets that were reached in partitions that are not read any more."""

    @classmethod
    def between(cls, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], base: int = 0) -> Origins:
        """A partition that appears in `end` alone is new, and read from its first offset."""
        return cls(tuple(Range(place, start.get(place, 0), last) for place, last in sorted(end.items())), base)

    def bases(self) -> list[int]:
        """For each range: what an offset in it is to be added to. All offsets that batches before this one reached come
        first, so that its numbers are larger than theirs."""
        first = self.base + sum(each.start for each in self.ranges)
        lengths = [0, *accumulate(max(each.end - each.start, 0) for each in self.ranges)]
        return [first + length - each.start for length, each in zip(lengths, self.ranges, strict=False)]

    def records(self, numbers: Iterable[int]) -> dict[TopicPartition, dict[int, int]]:
        """For each partition: the offsets that are meant, each with its number."""
        bases = self.bases()
        firsts = [base + each.start for base, each in zip(bases, self.ranges, strict=True)]
        found: dict[TopicPartition, dict[int, int]] = {}
        for number in numbers:
            nth = bisect_right(firsts, number) - 1
            assert nth >= 0, f"{number} is the number of a record before this batch"
            offset = number - bases[nth]
            assert offset < self.ranges[nth].end, f"{number} is the number of a record behind this batch"
            found.setdefault(self.ranges[nth].place, {})[offset] = number
        return found


def numbered(base: int, offset: int, *, headers: bool) -> int:
    """As the column `origin` has it."""
    return (base + offset) << 1 | headers


def resolved(
    batches: Iterable[pa.RecordBatch], origins: Origins, cluster: Callable[[], Cluster]
) -> Iterator[pa.RecordBatch]:
    """Rows for the sink, with headers in place of marks. Those before the first mark pass as they come."""
    marked: list[pa.RecordBatch] = []
    for batch in batches:
        if marked or _has_marks(batch):
            marked.append(batch)
        else:
            yield batch
    if not marked:
        return
    columns = [batch.column("headers").to_pylist() for batch in marked]
    numbers = {_number(header) for column in columns for headers in column for header in headers or () if _mark(header)}
    known = headers_of(cluster(), origins, numbers)
    for batch, column in zip(marked, columns, strict=True):
        place = batch.schema.get_field_index("headers")
        told = [None if headers is None else _told(headers, known) for headers in column]
        yield batch.set_column(place, batch.schema.field(place), pa.array(told, batch.schema.field(place).type))


def _has_marks(batch: pa.RecordBatch) -> bool:
    headers = batch.column("headers")
    if have_no_headers(headers):
        return False
    return MARK in headers.flatten().field("key").to_pylist()


def _mark(header: Header) -> bool:
    return bool(header["key"] == MARK)


def _number(header: Header) -> int:
    origin: int = struct.unpack(">q", header["value"])[0]
    return origin >> 1


def _told(headers: Sequence[Header], known: Mapping[int, Sequence[Header]]) -> list[Header] | None:
    found = [each for header in headers for each in (_passed_on(header, known) if _mark(header) else (header,))]
    return found or None


def _passed_on(mark: Header, known: Mapping[int, Sequence[Header]]) -> list[Header]:
    """Those of the record, but for what names the schema of its own bytes."""
    return [each for each in known.get(_number(mark), ()) if each["key"] not in SCHEMA_HEADERS]


def headers_of(cluster: Cluster, origins: Origins, numbers: Iterable[int]) -> dict[int, list[Header]]:
    """By number. A record that compaction took in the meantime has none. Raises DataLost for what retention took."""
    found: dict[int, list[Header]] = {}
    for place, records in origins.records(numbers).items():
        for first, last in _runs(sorted(records)):
            for low, batches in PartitionReader(cluster, place, first, last + 1):
                for columns in read_columns(
                    str(place), batches, low, last + 1, with_headers=True, omitted=frozenset({"key", "value"})
                ):
                    wanted = [(nth, offset) for nth, offset in enumerate(columns.offsets.tolist()) if offset in records]
                    assert columns.headers is not None
                    found.update((records[offset], columns.headers[nth].as_py() or []) for nth, offset in wanted)
    return found


def _runs(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset - last > NEAR:
            yield first, last
            first = offset
        last = offset
    yield first, last
