"""One round over one log: learn the latest record of every key, then write each group of segments without the rest.

It works on segments that do not change any more and shares nothing with the log they belong to: facts come in when the
round begins, finished files go out. So it can run anywhere; `runtime.rounds` gives it a process of its own.

What stays (Kafka's Cleaner and MemoryRecords.filterTo): the latest record of each key; what lies beyond the key map;
tombstones and markers until their delete horizon (KIP-534); the last batch of each active producer and of the round,
emptied if need be, so that sequences and the end of the log are not forgotten.
"""

from collections.abc import Callable, Iterator
from typing import Final

from crc32c import crc32c

from ottla.protocol import batch as b
from ottla.protocol import compression
from ottla.protocol.records import CorruptBatch, read_records
from ottla.protocol.varint import Truncated
from ottla.storage import names
from ottla.storage.cleaner import plan
from ottla.storage.cleaner.cleaned_segment import CleanedSegment
from ottla.storage.cleaner.facts import Facts, LastRecords, Mapped, Replacement, Source, Stats
from ottla.storage.cleaner.key_map import CLEANED_BEFORE, DROP, KEEP, TOMBSTONE, UNMAPPED, KeyMap, name_of
from ottla.storage.cleaner.records import Picked, pick, pick_rebased, scan
from ottla.storage.cleaner.transactions import Transactions
from ottla.storage.fs import CorruptLog, Filesystem
from ottla.storage.index import CorruptIndex, OffsetIndex, read_aborted

Breathe = Callable[[int], None]
"""Called after each piece that was read or written, with its size: it may wait, or raise to end the round."""

FLAG_SHARE: Final = 10
"""One part in ten of the memory is for the flags, a byte for each dirty record."""
MIN_READ: Final = 64 << 10


class Round:
    """`map_keys`, then `rewrite` for each of the groups it has found."""

    __slots__ = (
        "_aborted",
        "_bounds",
        "_breathe",
        "_bytes_read",
        "_bytes_written",
        "_end_offset",
        "_facts",
        "_flags",
        "_fs",
        "_groups",
        "_keys",
        "_ordinal",
        "_records",
        "_transactions",
    )

    def __init__(self, facts: Facts, fs: Filesystem, breathe: Breathe) -> None:
        self._facts = facts
        self._fs = fs
        self._breathe = breathe
        self._bounds = facts.config.unpacking._replace(max_ratio=None)
        """A batch that is in the log has to be read, and nobody waits here: memory alone is bounded."""
        self._aborted = list(facts.aborted)
        self._transactions = Transactions(())
        self._keys = KeyMap(0)
        self._flags = bytearray()
        self._ordinal = 0
        """Of the next record at or above the first dirty offset: its flag's place."""
        self._end_offset = facts.first_dirty
        self._groups: tuple[tuple[Source, ...], ...] = ()
        self._records = self._bytes_read = self._bytes_written = 0

    @property
    def stats(self) -> Stats:
        return Stats(self._records, self._bytes_read, self._bytes_written)

    # -- first pass ----------------------------------------------------------------------------------------------

    def map_keys(self) -> Mapped:
        """Raises CorruptLog for a log that cannot be cleaned, OSError if the disk fails."""
        first_dirty, memory = self._facts.first_dirty, self._facts.limits.memory
        self._read_aborted()
        self._keys = KeyMap(memory - memory // FLAG_SHARE, self._facts.limits.load)
        met = Transactions(txn for txn in self._aborted if txn.last_offset >= first_dirty)
        for source in self._facts.sources:
            if source.next_base > first_dirty and not self._map_source(source, met):
                break
        self._keys.settle(self._flags)
        self._groups = self._grouped()
        return Mapped(self._groups, self._end_offset)

    def _read_aborted(self) -> None:
        for path in self._facts.aborted_paths:
            try:
                self._aborted += read_aborted(self._fs.read(path), 0)
            except FileNotFoundError:
                continue
            except CorruptIndex as error:
                raise CorruptLog(path, str(error)) from error
        self._transactions = Transactions(self._aborted)

    def _map_source(self, source: Source, met: Transactions) -> bool:
        """False when the map is full."""
        first_dirty = self._facts.first_dirty
        start = self._position_of(source, first_dirty) if source.base_offset < first_dirty else 0
        for data, at, header in self._batches(source, start):
            last_offset = header.base_offset + header.last_offset_delta
            if last_offset < first_dirty:
                continue
            if header.attributes & b.CONTROL:
                met.is_spent(header, data[at : at + header.size])
            elif header.attributes & b.TRANSACTIONAL and met.is_aborted(header):
                self._flags += bytes(header.record_count)
            elif not self._map_batch(source, data, at, header):
                return False
            self._end_offset = last_offset + 1
        self._end_offset = source.next_base
        return True

    def _map_batch(self, source: Source, data: bytes, at: int, header: b.BatchHeader) -> bool:
        count = header.record_count
        room = min(self._keys.room, self._facts.limits.memory // FLAG_SHARE - len(self._flags))
        fits = count <= room
        if not fits and self._flags:
            return False
        try:
            if header.base_offset < self._facts.first_dirty or not fits:
                self._map_in_part(data[at : at + header.size], room)
                return fits
            body, pos = self._body(source, data, at, header)
            names, flags = scan(body, pos, count)
            first = len(self._flags)
            self._flags += flags
            self._keys.learn(names, self._flags, first)
        except (IndexError, Truncated, CorruptBatch) as error:
            raise _damaged(source, header, error) from error
        return True

    def _map_in_part(self, batch: bytes, room: int) -> None:
        """Rare: a batch that an earlier round ended in, or one with more records than the map takes."""
        first_dirty = self._facts.first_dirty
        for record in read_records(batch, self._bounds):
            if record.offset < first_dirty:
                self._flags.append(CLEANED_BEFORE)
            elif room <= 0:
                self._flags.append(UNMAPPED)
            elif record.key is None:
                self._flags.append(DROP)
            else:
                self._flags.append(TOMBSTONE if record.value is None else KEEP)
                self._keys.learn([name_of(record.key)], self._flags, len(self._flags) - 1)
                room -= 1
            if self._flags[-1] != UNMAPPED:
                self._end_offset = max(self._end_offset, record.offset + 1)

    def _position_of(self, source: Source, offset: int) -> int:
        try:
            index = OffsetIndex(source.base_offset, self._fs.read(source.prefix + names.INDEX))
            index.check(source.size)
        except (FileNotFoundError, CorruptIndex):
            return 0
        return index.lookup(offset)

    # -- second pass ---------------------------------------------------------------------------------------------

    def _grouped(self) -> tuple[tuple[Source, ...], ...]:
        sources = [source for source in self._facts.sources if source.base_offset < self._end_offset]
        sizes = [
            plan.SegmentSizes(
                source.base_offset,
                source.size,
                self._size_of(source.prefix + names.INDEX),
                self._size_of(source.prefix + names.TIME_INDEX),
            )
            for source in sources
        ]
        grouped = plan.groups(
            sizes,
            self._facts.first_uncleanable,
            segment_bytes=self._facts.config.segment_bytes,
            index_bytes=self._facts.config.segment_index_bytes,
        )
        return tuple(tuple(sources[index] for index in group) for group in grouped)

    def _size_of(self, path: str) -> int:
        try:
            return self._fs.open(path).size()
        except FileNotFoundError:
            return 0

    def rewrite(self, number: int, last_records: LastRecords) -> Replacement:
        """Writes the replacement of a group. `last_records` are those of the producers active now."""
        group = self._groups[number]
        directory = group[0].prefix.rpartition("/")[0]
        cleaned = CleanedSegment(self._fs, directory, group[0].base_offset, self._facts.config.index_interval_bytes)
        for source in group:
            for data, at, header in self._batches(source, 0):
                try:
                    self._copy(source, data, at, header, last_records, cleaned)
                except OverflowError as error:  # delete horizons make batches longer
                    raise _damaged(source, header, "the cleaned segment would exceed 2 GiB") from error
        self._breathe(0)  # a last look around before files get their names
        replacement = cleaned.finish(self._transactions.take_kept())
        self._bytes_written += replacement.size
        return replacement

    def _copy(
        self,
        source: Source,
        data: bytes,
        at: int,
        header: b.BatchHeader,
        last_records: LastRecords,
        cleaned: CleanedSegment,
    ) -> None:
        self._records += header.record_count
        flags = self._take_flags(header)
        kept = self._filtered(source, data, at, header, flags)
        if kept is not None:
            batch, max_timestamp = kept
        elif self._must_stay(header, last_records):
            batch, max_timestamp = _emptied(header), header.max_timestamp
        else:
            return
        written = cleaned.add(batch, header.last_offset, max_timestamp)
        if written:
            self._breathe(written)

    def _take_flags(self, header: b.BatchHeader) -> bytes | bytearray | None:
        """Of the records of a batch that the first pass has seen; None for one it has not."""
        if header.base_offset + header.last_offset_delta < self._facts.first_dirty or header.attributes & b.CONTROL:
            return None
        start = self._ordinal
        self._ordinal = start + header.record_count
        flags = self._flags[start : self._ordinal]
        return flags if len(flags) == header.record_count else bytes([UNMAPPED]) * header.record_count

    def _filtered(
        self, source: Source, data: bytes, at: int, header: b.BatchHeader, flags: bytes | bytearray | None
    ) -> tuple[b.Buffer, int] | None:
        """What stays of a batch and its greatest timestamp; None if no record does."""
        attributes = header.attributes
        stamped = bool(attributes & b.DELETE_HORIZON)
        expired = stamped and header.base_timestamp <= self._facts.now
        spent = False
        if attributes & b.CONTROL:
            spent = self._transactions.is_spent(header, data[at : at + header.size])
            if spent and (expired or not header.record_count):
                return None
            flags = bytes([KEEP]) * header.record_count
        elif attributes & b.TRANSACTIONAL and self._transactions.is_aborted(header):
            return None
        elif flags is None or CLEANED_BEFORE in flags:
            flags = self._judged(source, data, at, header, flags)
        if expired and TOMBSTONE in flags:
            flags = flags.replace(bytes([TOMBSTONE]), bytes([DROP]))
        dropped = flags.count(DROP)
        if dropped == len(flags):
            return None
        horizon = None
        if not stamped and (spent or TOMBSTONE in flags):
            horizon = self._facts.now + self._facts.config.delete_retention_ms
        if not dropped and horizon is None:
            return memoryview(data)[at : at + header.size], header.max_timestamp
        return self._rebuilt(source, data, at, header, flags, horizon)

    def _judged(
        self, source: Source, data: bytes, at: int, header: b.BatchHeader, known: bytes | bytearray | None
    ) -> bytearray:
        body, pos = self._body(source, data, at, header)
        try:
            names, flags = scan(body, pos, header.record_count)
        except (IndexError, Truncated) as error:
            raise _damaged(source, header, error) from error
        self._keys.forget_known(names, flags)
        if known is not None:
            flags = bytearray(
                mine if given == CLEANED_BEFORE else given for mine, given in zip(flags, known, strict=True)
            )
        return flags

    def _rebuilt(
        self,
        source: Source,
        data: bytes,
        at: int,
        header: b.BatchHeader,
        flags: bytes | bytearray,
        horizon: int | None,
    ) -> tuple[bytearray, int]:
        """The flagged records under a header that spans the same offsets: the last one holds the last sequence."""
        body, pos = self._body(source, data, at, header)
        append_time = header.max_timestamp if header.attributes & b.LOG_APPEND_TIME else None
        try:
            if horizon is None:
                picked = pick(body, pos, flags, header.base_timestamp)
            else:
                picked = pick_rebased(body, pos, flags, header.base_timestamp, horizon, append_time)
        except (IndexError, Truncated) as error:
            raise _damaged(source, header, error) from error
        max_timestamp = picked.max_timestamp if append_time is None else append_time
        return _assembled(data, at, header, picked, horizon, max_timestamp), max_timestamp

    def _must_stay(self, header: b.BatchHeader, last_records: LastRecords) -> bool:
        """Even without a record: for the sequence and epoch of a producer, or for the end of the round."""
        if header.producer_id >= 0:
            last = last_records.get(header.producer_id)
            if last is not None:
                if last.offset >= 0:
                    mine = header.last_offset == last.offset
                else:
                    mine = header.is_control and header.producer_epoch == last.epoch
                if mine:
                    return True
        # Without it the log would seem to end earlier, and a consumer waiting for the last offset would hang.
        return header.last_offset + 1 == self._facts.first_uncleanable

    # -- reading -------------------------------------------------------------------------------------------------

    def _batches(self, source: Source, position: int) -> Iterator[tuple[bytes, int, b.BatchHeader]]:
        """Each batch as its header and a place in a chunk of the file."""
        file = self._fs.open(source.prefix + names.LOG)
        end, want = source.size, max(self._facts.limits.read_bytes, MIN_READ)
        data, start = b"", position
        while position < end:
            at = position - start
            if at + b.HEADER_SIZE > len(data):
                data, start, at = self._read(file.pread, min(want, end - position), position), position, 0
                if len(data) < b.HEADER_SIZE:
                    raise source.corrupt(position, "the file is shorter than the log")
            header = b.read_header(data, at)
            size = header.batch_length + b.LOG_OVERHEAD
            if size < b.HEADER_SIZE or position + size > end or header.magic != b.MAGIC_V2:
                raise source.corrupt(position, "no batch that the cleaner knows begins here")
            if at + size > len(data):
                data, start, at = self._read(file.pread, min(max(want, size), end - position), position), position, 0
                if size > len(data):
                    raise source.corrupt(position, "the file is shorter than the log")
            yield data, at, header
            position += size

    def _read(self, pread: Callable[[int, int], bytes], size: int, position: int) -> bytes:
        data = pread(size, position)
        self._bytes_read += len(data)
        self._breathe(len(data))
        return data

    def _body(self, source: Source, data: bytes, at: int, header: b.BatchHeader) -> tuple[bytes, int]:
        """Bytes and position of the records. A damaged batch must not get a fresh CRC that hides the damage."""
        view = memoryview(data)
        end = at + b.LOG_OVERHEAD + header.batch_length
        if crc32c(view[at + b.CRC_START : end]) != header.crc:
            raise _damaged(source, header, "its CRC does not match")
        codec = header.attributes & b.CODEC_MASK
        if not codec:
            return data, at + b.HEADER_SIZE
        try:
            return compression.decompress(codec, view[at + b.HEADER_SIZE : end], self._bounds), 0
        except compression.DecompressionError as error:
            raise _damaged(source, header, error) from error


def _assembled(
    data: bytes, at: int, header: b.BatchHeader, picked: Picked, horizon: int | None, max_timestamp: int
) -> bytearray:
    batch = bytearray(data[at : at + b.HEADER_SIZE])
    b.put_kept(batch, max_timestamp, picked.number)
    if horizon is not None:
        b.put_delete_horizon(batch, header.attributes, horizon)
    codec = header.attributes & b.CODEC_MASK
    batch += compression.compress(codec, picked.records) if codec else picked.records
    b.seal(batch)
    return batch


_EMPTIED_KEEPS: Final = b.LOG_APPEND_TIME | b.TRANSACTIONAL | b.CONTROL


def _emptied(header: b.BatchHeader) -> bytearray:
    """As Kafka's writeEmptyHeader: no record, no codec, no base timestamp, everything a producer is known by."""
    fresh = header._replace(attributes=header.attributes & _EMPTIED_KEEPS, base_timestamp=-1, record_count=0)
    batch = bytearray(b.build_header(fresh))
    b.seal(batch)
    return batch


def _damaged(source: Source, header: b.BatchHeader, reason: object) -> CorruptLog:
    return CorruptLog(source.prefix + names.LOG, f"the batch at offset {header.base_offset}: {reason}")
