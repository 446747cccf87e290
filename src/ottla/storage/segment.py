"""One segment of a log: a `.log` file with its indexes, and the files all logs of a node keep open.

A segment knows where its batches lie, not what they mean. Opening one costs nothing: its descriptor and its indexes are
fetched on first use and given back by `OpenFiles`, so ten thousand idle partitions hold no descriptor at all.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from ottla.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, read_frame, read_header
from ottla.storage import names
from ottla.storage.config import LogConfig
from ottla.storage.fs import NO_DESCRIPTOR, Buffer, CorruptLog, File, Filesystem
from ottla.storage.index import (
    MAX_RELATIVE,
    NO_TIMESTAMP,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TXN_ENTRY,
    AbortedTxn,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    pack_aborted,
    read_aborted,
)

UNKNOWN: Final = -2
"""A maximum timestamp that nobody has looked up yet."""
TAIL_LIMIT: Final = 1024
"""Batches at the end of a segment whose position is remembered: a consumer at the tail needs no system call."""
CHUNK: Final = 4096
SCAN_CHUNK: Final = 1 << 20
INDEX_BUDGET: Final = 64 << 20
"""Bytes of indexes that may stay in memory for reading, over all logs of a node."""


class Tail:
    """Positions of the batches appended last, without a gap up to the end of the segment."""

    __slots__ = ("last_offsets", "positions", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.last_offsets = array("q")
        self.positions = array("i")

    def add(self, base_offset: int, last_offset: int, position: int) -> None:
        positions = self.positions
        if not positions:
            self.start = base_offset
        self.last_offsets.append(last_offset)
        positions.append(position)
        if len(positions) >= TAIL_LIMIT:
            half = TAIL_LIMIT // 2
            self.start = self.last_offsets[half - 1] + 1
            del self.last_offsets[:half]
            del positions[:half]

    def reset(self, start: int) -> None:
        self.start = start
        del self.last_offsets[:]
        del self.positions[:]


class Room:
    """Up to this size, timestamp and offset `Segment.is_full` is known to be False and the indexes to be loaded. Who
    appends asks this first, as it is so for all but a few batches."""

    __slots__ = ("offset", "size", "timestamp")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.size = 0
        """0: not known."""
        self.timestamp = 0


class Segment:
    __slots__ = (
        "aborted",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "file",
        "files",
        "first_timestamp",
        "hot",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "prefix",
        "room",
        "size",
        "tail",
        "times",
    )

    def __init__(self, files: "OpenFiles", directory: str, base_offset: int, size: int, created_ms: int) -> None:
        self.files = files
        self.base_offset = base_offset
        self.prefix = names.segment_prefix(directory, base_offset)
        self.size = size
        self.file: File | None = None
        self.hot = False
        self.offsets: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.aborted: list[AbortedTxn] | None = None
        self.max_timestamp = UNKNOWN
        self.max_timestamp_offset = base_offset
        self.first_timestamp: int | None = None
        """Maximum timestamp of the first batch: time-based rolling counts from it."""
        self.created_ms = created_ms
        self.bytes_since_index = 0
        self.tail = Tail(base_offset)
        self.room = Room(base_offset + MAX_RELATIVE)

    @classmethod
    def create(cls, files: "OpenFiles", directory: str, base_offset: int, now: int) -> "Segment":
        """New and empty files, whatever lay there under their names before."""
        segment = cls(files, directory, base_offset, 0, now)
        segment.offsets = OffsetIndex(base_offset)
        segment.times = TimeIndex(base_offset)
        segment.aborted = []
        segment.max_timestamp = NO_TIMESTAMP
        files.fs.remove(segment.prefix + names.TXN_INDEX)
        for suffix in (names.INDEX, names.TIME_INDEX):
            files.fs.open(segment.prefix + suffix, create=True).truncate(0)
        file = files.open(segment, create=True)
        file.truncate(0)
        return segment

    # -- appending -----------------------------------------------------------------------------------------------

    def append(self, data: Buffer, base_offset: int, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """One batch at the end. On an OSError nothing but the file may have changed; `rollback` mends it."""
        if self.offsets is None:
            self.load_indexes()
        (self.file or self.files.open(self)).pwrite(data, self.size)
        self.written(len(data), base_offset, last_offset, max_timestamp, index_interval)

    def written(self, size: int, base_offset: int, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """One batch more lies at the end of the file: it is part of the segment from now on."""
        offsets, times = self.offsets, self.times
        if offsets is None or times is None:
            offsets, times = self.load_indexes()
        position = self.size
        self.hot = True
        self.size = position + size
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if not position:
            self.first_timestamp = max_timestamp
        if self.bytes_since_index > index_interval:
            offsets.relative.append(last_offset - self.base_offset)
            offsets.positions.append(position)
            timestamps = times.timestamps
            if not timestamps or self.max_timestamp > timestamps[-1]:
                times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index = size
        else:
            self.bytes_since_index += size
        tail = self.tail
        positions = tail.positions
        if positions and len(positions) < TAIL_LIMIT - 1:
            tail.last_offsets.append(last_offset)
            positions.append(position)
        else:
            tail.add(base_offset, last_offset, position)

    def append_run(self, data: memoryview, headers: Sequence[BatchHeader], index_interval: int) -> None:
        """Several batches that follow each other, in one write: what a follower gets from its leader."""
        offsets, times = self.offsets, self.times
        if offsets is None or times is None:
            offsets, times = self.load_indexes()
        position = self.size
        (self.file or self.files.open(self)).pwrite(data, position)
        self.hot = True
        if position == 0:
            self.first_timestamp = headers[0].max_timestamp
        for header in headers:
            last_offset = header.last_offset
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, last_offset
            if self.bytes_since_index > index_interval:
                offsets.append(last_offset, position)
                times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
                self.bytes_since_index = 0
            self.tail.add(header.base_offset, last_offset, position)
            self.bytes_since_index += header.size
            position += header.size
        self.size = position

    def rollback(self) -> None:
        """Cuts off what a failed append may have left behind: nothing, if the file could not even be opened."""
        if self.file is not None:
            self.file.truncate(self.size)

    def is_full(self, size: int, last_offset: int, max_timestamp: int, config: LogConfig, now: int) -> bool:
        """Kafka's LogSegment.shouldRoll for a batch of `size` bytes."""
        mine = self.size
        if mine + size > config.segment_bytes or last_offset - self.base_offset > MAX_RELATIVE:
            return True
        offsets, times = self.offsets, self.times
        if offsets is None or times is None:
            offsets, times = self.load_indexes()
        limit = config.segment_index_bytes
        if len(offsets.relative) >= limit // OFFSET_ENTRY or len(times.relative) >= limit // TIME_ENTRY - 1:
            return True
        if not mine:
            return False
        first = self.first_timestamp
        if first is None or first < 0:
            return self._waited(max_timestamp, now) > config.segment_ms - config.segment_jitter_ms
        if max_timestamp - first > config.segment_ms - config.segment_jitter_ms:
            return True
        entries = min(limit // OFFSET_ENTRY - len(offsets.relative), limit // TIME_ENTRY - 1 - len(times.relative))
        # An entry comes with a batch, and not before so many bytes; the next batch may bring one at once.
        indexable = mine + (entries - 1) * max(config.index_interval_bytes, HEADER_SIZE)
        self.room.size = min(config.segment_bytes, indexable)
        self.room.timestamp = first + config.segment_ms - config.segment_jitter_ms
        return False

    def doubt_room(self) -> None:
        """What decides whether the segment is full has changed."""
        self.room.size = 0

    def _waited(self, max_timestamp: int, now: int) -> int:
        first = self.first_timestamp
        if first is None:
            first = self.first_batch_timestamp()
        return max_timestamp - first if first >= 0 else now - self.created_ms

    def first_batch_timestamp(self) -> int:
        """The greatest in the first batch. The segment is not empty."""
        if self.first_timestamp is None:
            self.first_timestamp = next(self.headers())[1].max_timestamp
        return self.first_timestamp

    def append_aborted(self, txn: AbortedTxn) -> None:
        """Written through: it is rare, and a lost entry would show aborted records until the next recovery."""
        aborted = self.aborted_txns()
        file = self.files.fs.open(self.prefix + names.TXN_INDEX, create=True)
        file.pwrite(pack_aborted(txn), len(aborted) * TXN_ENTRY)
        aborted.append(txn)

    # -- finding -------------------------------------------------------------------------------------------------

    def find(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is >= `offset`."""
        tail = self.tail
        if offset >= tail.start:
            positions = tail.positions
            slot = bisect_left(tail.last_offsets, offset)
            if slot < len(positions):
                position = positions[slot]
                end = positions[slot + 1] if slot + 1 < len(positions) else self.size
                return position, end - position
            if positions:
                return None
        offsets = self.offsets or self.load_indexes()[0]
        for position, header in self.headers(offsets.lookup(offset)):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header.size
        return None

    def cut(self, start: int, limit: int) -> int:
        """Length to read from `start` if at most `limit` bytes are wanted: whole batches where that is known."""
        end = start + limit
        positions = self.tail.positions
        if positions and positions[0] <= end:
            boundary = positions[bisect_right(positions, end) - 1]
        else:
            boundary = (self.offsets or self.load_indexes()[0]).boundary_before(end)
        return boundary - start if boundary > start else limit

    def headers(self, position: int = 0, file: File | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch from `position` (where one starts) to the end."""
        file = file or self.file or self.files.open(self)
        end = self.size
        chunk, chunk_start = b"", position
        while position < end:
            at = position - chunk_start
            if at + HEADER_SIZE > len(chunk):
                chunk, chunk_start, at = file.pread(CHUNK, position), position, 0
                if len(chunk) < HEADER_SIZE:
                    raise self.corrupt(position, "the file is shorter than the log")
            header = read_header(chunk, at)
            size = header.batch_length + LOG_OVERHEAD
            if size < HEADER_SIZE or position + size > end:
                raise self.corrupt(position, f"a batch claims {size} bytes where {end - position} are left")
            yield position, header
            position += size

    def batches(self, position: int = 0) -> Iterator[tuple[int, memoryview]]:
        """Position and bytes of every batch from `position` on, read in big chunks."""
        file = self.file or self.files.open(self)
        end = self.size
        chunk, chunk_start = memoryview(b""), position
        while position < end:
            at = position - chunk_start
            if at + LOG_OVERHEAD > len(chunk):
                chunk, chunk_start, at = memoryview(file.pread(min(SCAN_CHUNK, end - position), position)), position, 0
            size = read_frame(chunk, at)[1] if at + LOG_OVERHEAD <= len(chunk) else 0
            if size < HEADER_SIZE or position + size > end:
                raise self.corrupt(position, f"a batch claims {size} bytes where {end - position} are left")
            if at + size > len(chunk):
                wanted = min(max(SCAN_CHUNK, size), end - position)
                chunk, chunk_start, at = memoryview(file.pread(wanted, position)), position, 0
                if size > len(chunk):
                    raise self.corrupt(position, "the file is shorter than the log")
            yield position, chunk[at : at + size]
            position += size

    def corrupt(self, position: int, reason: str) -> CorruptLog:
        return CorruptLog(self.path(), f"at byte {position}: {reason}")

    # -- indexes -------------------------------------------------------------------------------------------------

    def load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Reads both indexes; a missing or insane one is rebuilt from the log, as Kafka's LogLoader does."""
        fs = self.files.fs
        try:
            offsets = OffsetIndex(self.base_offset, fs.read(self.prefix + names.INDEX))
            times = TimeIndex(self.base_offset, fs.read(self.prefix + names.TIME_INDEX))
            offsets.check(self.size)
            times.check()
        except (FileNotFoundError, CorruptIndex):
            return self.rebuild_indexes()
        self.offsets, self.times = offsets, times
        self.max_timestamp, self.max_timestamp_offset = times.last()
        self.files.indexed(self)
        return offsets, times

    def rebuild_indexes(self, index_interval: int = CHUNK) -> tuple[OffsetIndex, TimeIndex]:
        offsets, times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        since = 0
        max_timestamp, max_offset = NO_TIMESTAMP, self.base_offset
        for position, header in self.headers():
            if header.max_timestamp > max_timestamp:
                max_timestamp, max_offset = header.max_timestamp, header.last_offset
            if since > index_interval:
                offsets.append(header.last_offset, position)
                times.maybe_append(max_timestamp, max_offset)
                since = 0
            since += header.size
        times.maybe_append(max_timestamp, max_offset)
        self.offsets, self.times = offsets, times
        self.max_timestamp, self.max_timestamp_offset = max_timestamp, max_offset
        self.bytes_since_index = since
        self.write_indexes()
        return offsets, times

    def write_indexes(self) -> None:
        """Brings both index files up to date with memory; the file ends where the entries end."""
        if self.offsets is None or self.times is None:
            return
        self.write_index(names.INDEX, self.offsets)
        self.write_index(names.TIME_INDEX, self.times)

    def write_index(self, suffix: str, index: OffsetIndex | TimeIndex) -> None:
        data, position = index.pending()
        if data or index.written == 0:
            file = self.files.fs.open(self.prefix + suffix, create=True)
            file.pwrite(data, position)
            file.truncate(position + len(data))
            index.mark_written()

    def finish(self) -> None:
        """The segment takes no more batches: its greatest timestamp closes the time index."""
        if self.offsets is not None and self.times is not None:
            self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.write_indexes()
            self.files.indexed(self)

    def forget_indexes(self) -> bool:
        """Gives the memory back; False while entries are not in the files yet."""
        if self.offsets is None or self.times is None:
            return True
        if self.offsets.written < self.offsets.count or self.times.written < self.times.count:
            return False
        self.offsets = self.times = None
        self.doubt_room()
        return True

    def largest_timestamp(self) -> int:
        """Of its records, else when it was last written."""
        if self.max_timestamp == UNKNOWN:
            self._read_last_time_entry()
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    def _read_last_time_entry(self) -> None:
        """Retention asks every segment of every log: twelve bytes answer it, where loading would cost megabytes."""
        try:
            file = self.files.fs.open(self.prefix + names.TIME_INDEX)
            size = file.size()
            times = TimeIndex(self.base_offset, file.pread(TIME_ENTRY, max(size - TIME_ENTRY, 0)))
            if size % TIME_ENTRY:
                raise CorruptIndex(f"{size} bytes are no multiple of {TIME_ENTRY}")
            times.check()
        except (FileNotFoundError, CorruptIndex):
            self.rebuild_indexes()
            return
        self.max_timestamp, self.max_timestamp_offset = times.last()

    def aborted_txns(self) -> list[AbortedTxn]:
        if self.aborted is None:
            try:
                self.aborted = read_aborted(self.files.fs.read(self.prefix + names.TXN_INDEX), self.base_offset)
            except FileNotFoundError:
                self.aborted = []
        return self.aborted

    # -- shrinking and leaving -----------------------------------------------------------------------------------

    def truncate(self, offset: int) -> None:
        """Drops every batch that holds `offset` or a later one."""
        found = self.find(offset)
        offsets, times = self.offsets, self.times
        if offsets is None or times is None:
            offsets, times = self.load_indexes()
        offsets.truncate(offset)
        times.truncate(offset)
        kept = [txn for txn in self.aborted_txns() if txn.last_offset < offset]
        if len(kept) != len(self.aborted_txns()):
            self.files.fs.open(self.prefix + names.TXN_INDEX, create=True).truncate(len(kept) * TXN_ENTRY)
            self.aborted = kept
        if found is not None:
            self.size = found[0]
            file = self.file or self.files.open(self)
            file.truncate(self.size)
            # At once: were the old batches to come back after the log has rolled, nothing would look at them again.
            file.sync()
            if self.size == 0:
                self.first_timestamp = None
        for suffix, written in (
            (names.INDEX, offsets.written * OFFSET_ENTRY),
            (names.TIME_INDEX, times.written * TIME_ENTRY),
        ):
            self.files.fs.open(self.prefix + suffix, create=True).truncate(written)
        self.bytes_since_index = 0
        self.doubt_room()
        self.tail.reset(offset)
        self._recount_timestamps(offsets, times)

    def _recount_timestamps(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        timestamp, at = times.last()
        for _, header in self.headers(offsets.lookup(at)):
            if header.max_timestamp > timestamp:
                timestamp, at = header.max_timestamp, header.last_offset
        self.max_timestamp, self.max_timestamp_offset = timestamp, at

    def mark_deleted(self) -> list[str]:
        """Renames the files so that a crash cannot bring them back; returns what is to be removed later."""
        self.files.forget(self)
        renamed = []
        for suffix in names.SEGMENT_SUFFIXES:
            source = self.prefix + suffix
            target = source + names.DELETED
            try:
                self.files.fs.rename(source, target)
            except FileNotFoundError:
                continue
            renamed.append(target)
        return renamed

    def path(self, suffix: str = names.LOG) -> str:
        return self.prefix + suffix


class OpenFiles:
    """Log files kept open, at most `limit` of them over all logs of a node; a clock hand picks who has to go.

    Giving a file up only drops a reference: a slice still being sent keeps the descriptor until it is done.
    """

    __slots__ = ("_indexed", "_indexed_bytes", "_ring", "fs", "limit")

    def __init__(self, fs: Filesystem, limit: int = 1000) -> None:
        self.fs = fs
        self.limit = max(limit, 1)
        self._ring: dict[Segment, None] = {}
        self._indexed: dict[Segment, int] = {}
        self._indexed_bytes = 0

    def __len__(self) -> int:
        return len(self._ring)

    def open(self, segment: Segment, *, create: bool = False) -> File:
        file = self._open(segment, create=create)
        segment.file = file
        segment.hot = True
        self._ring[segment] = None
        while len(self._ring) > self.limit:
            self._give_up_one(segment)
        return file

    def _open(self, segment: Segment, *, create: bool) -> File:
        """When all descriptors of the process are taken, logs live on those that they have."""
        while True:
            try:
                return self.fs.open(segment.path(), create=create)
            except OSError as error:
                if error.errno not in NO_DESCRIPTOR or not self._ring:
                    raise
                self._give_up_one(segment)

    def _give_up_one(self, wanted: Segment) -> None:
        """Second chance: whoever was used since the hand last passed goes to the back of the queue."""
        while True:
            oldest = next(iter(self._ring))
            del self._ring[oldest]
            if oldest is wanted or (oldest.hot and len(self._ring) > 1):
                oldest.hot = False
                self._ring[oldest] = None
            else:
                oldest.file = None
                return

    def indexed(self, segment: Segment) -> None:
        """Counts a loaded index against the budget and drops the ones loaded longest ago."""
        assert segment.offsets is not None and segment.times is not None
        size = segment.offsets.count * OFFSET_ENTRY + segment.times.count * TIME_ENTRY
        self._indexed_bytes += size - self._indexed.pop(segment, 0)
        self._indexed[segment] = size
        for old in list(self._indexed):
            if self._indexed_bytes <= INDEX_BUDGET or old is segment:
                break
            if old.forget_indexes():
                self._indexed_bytes -= self._indexed.pop(old)

    def forget(self, segment: Segment) -> None:
        self._ring.pop(segment, None)
        segment.file = None
        self._indexed_bytes -= self._indexed.pop(segment, 0)
