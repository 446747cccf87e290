"""Opening a log: finish what a crash interrupted, find the end, rebuild what the files do not tell.

After a clean shutdown only directory entries and the last few batches are looked at. Otherwise every batch from the
segment of the recovery point on is checked: a torn or zeroed tail is cut at the first bad byte, as Kafka does. Unlike
Kafka, bad bytes below the recovery point, or with a valid batch behind them, are no torn tail but damage to committed
data: the log is refused with CorruptLog and left as it is (reliability.md 2.1).
"""

import re
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.protocol import batch as b
from ottla.storage import names
from ottla.storage.config import LogConfig
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.fs import CorruptLog, Entry, Filesystem, replace_file
from ottla.storage.index import MAX_RELATIVE, NO_TIMESTAMP, OFFSET_ENTRY, AbortedTxn, OffsetIndex, TimeIndex
from ottla.storage.marker import marker_of
from ottla.storage.producer_state import (
    WINDOW,
    CachedBatch,
    CorruptSnapshot,
    ProducerStates,
)
from ottla.storage.segment import SCAN_CHUNK, OpenFiles, Segment

REFILL_BYTES: Final = 16 << 20
_SEARCH_OVERLAP: Final = b.HEADER_SIZE
"""So that a header across the border of two chunks is seen."""


class Listing(NamedTuple):
    """The files of a log directory, sorted out."""

    segments: list[Segment]
    snapshots: list[int]
    last_index_size: int
    """Of the offset index of the last segment: an empty one need not be opened."""


class Loaded(NamedTuple):
    segments: list[Segment]
    snapshots: list[int]
    epochs: LeaderEpochs
    producers: ProducerStates | None
    """None after a clean shutdown: read from the snapshot when first needed."""
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


def load(
    files: OpenFiles,
    path: str,
    config: LogConfig,
    *,
    now: int,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
) -> Loaded:
    listing = _list(files, path)
    segments, snapshots, last_index_size = listing
    epochs = LeaderEpochs(files.fs, path)
    known = epochs.load()
    producers: ProducerStates | None = None
    if not segments:
        segments.append(Segment.create(files, path, log_start_offset, now))
    if clean:
        end_offset = _end_of(segments[-1], last_index_size)
        if end_offset < recovery_point:
            raise CorruptLog(path, f"it ends at {end_offset}, though all below {recovery_point} was on the disk")
    else:
        recovery = _Recovery(files, path, config, segments=segments, snapshots=snapshots, epochs=epochs, now=now)
        end_offset = recovery.run(recovery_point, log_start_offset)
        producers = recovery.producers
    if end_offset < log_start_offset:
        # DeleteRecords went further than what survived: all of it was below the log start anyway.
        _drop(files.fs, segments, snapshots, path)
        segments.append(Segment.create(files, path, log_start_offset, now))
        end_offset, producers = log_start_offset, ProducerStates(log_start_offset)
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    if not known and end_offset > segments[0].base_offset:
        _rebuild_epochs(segments, epochs)
    changed = epochs.truncate_from_end(end_offset)
    if epochs.truncate_from_start(log_start_offset) or changed:
        epochs.write()
    _remove_stray_snapshots(files.fs, path, segments, snapshots)
    recovery_point = end_offset if clean else max(min(recovery_point, end_offset), segments[0].base_offset)
    return Loaded(segments, snapshots, epochs, producers, log_start_offset, end_offset, recovery_point)


# -- files -------------------------------------------------------------------------------------------------------


def _list(files: OpenFiles, path: str) -> Listing:
    entries = files.fs.list(path)
    parsed: dict[tuple[int, str], Entry] = {}
    leftovers = False
    for entry in entries:
        name = names.parse_file(entry.name)
        if name is None or entry.is_dir:
            if entry.name.endswith(".tmp"):
                files.fs.remove(f"{path}/{entry.name}")
            continue
        parsed[name] = entry
        leftovers = leftovers or name[1].endswith((names.DELETED, names.CLEANED, names.SWAP))
    if leftovers:
        _finish_interrupted_swap(files, path, parsed)
    segments = []
    for (offset, suffix), entry in parsed.items():
        if suffix == names.LOG:
            segments.append(Segment(files, path, offset, entry.size, entry.modified_ms))
        elif suffix in names.SEGMENT_SUFFIXES and (offset, names.LOG) not in parsed:
            files.fs.remove(f"{path}/{entry.name}")  # an index whose log is gone
    segments.sort(key=lambda segment: segment.base_offset)
    index = parsed.get((segments[-1].base_offset, names.INDEX)) if segments else None
    snapshots = sorted(offset for offset, suffix in parsed if suffix == names.SNAPSHOT)
    return Listing(segments, snapshots, index.size if index is not None else 0)


def _finish_interrupted_swap(files: OpenFiles, path: str, parsed: dict[tuple[int, str], Entry]) -> None:
    """The three passes of Kafka's LogLoader.load; see KAFKA-6264 for the rule about `.cleaned`."""

    def remove(key: tuple[int, str]) -> None:
        files.fs.remove(f"{path}/{parsed.pop(key).name}")

    cleaned = [offset for offset, suffix in parsed if suffix.endswith(names.CLEANED)]
    first_cleaned = min(cleaned, default=None)
    for offset, suffix in list(parsed):
        unfinished_split = suffix.endswith(names.SWAP) and first_cleaned is not None and offset >= first_cleaned
        if suffix.endswith((names.DELETED, names.CLEANED)) or unfinished_split:
            remove((offset, suffix))
    swapped = [offset for offset, suffix in parsed if suffix == names.LOG + names.SWAP]
    if swapped:
        first, end = min(swapped), max(_swap_end(files, path, parsed, offset) for offset in swapped)
        for offset, suffix in list(parsed):
            if not suffix.endswith(names.SWAP) and first <= offset < end:
                remove((offset, suffix))
    for offset, suffix in list(parsed):
        if suffix.endswith(names.SWAP):
            entry = parsed.pop((offset, suffix))
            target = entry.name.removesuffix(names.SWAP)
            files.fs.rename(f"{path}/{entry.name}", f"{path}/{target}")
            parsed[offset, suffix.removesuffix(names.SWAP)] = entry._replace(name=target)
    files.fs.sync_dir(path)


def _swap_end(files: OpenFiles, path: str, parsed: dict[tuple[int, str], Entry], offset: int) -> int:
    entry = parsed[offset, names.LOG + names.SWAP]
    file = files.fs.open(f"{path}/{entry.name}")
    end, position = offset, 0
    while position + b.HEADER_SIZE <= entry.size:
        header = b.read_header(file.pread(b.HEADER_SIZE, position))
        if header.size < b.HEADER_SIZE:
            break
        end, position = header.last_offset + 1, position + header.size
    return end


def _drop(fs: Filesystem, segments: list[Segment], snapshots: list[int], path: str) -> None:
    for segment in segments:
        for renamed in segment.mark_deleted():
            fs.remove(renamed)
    for offset in snapshots:
        fs.remove(names.segment_prefix(path, offset) + names.SNAPSHOT)
    segments.clear()
    snapshots.clear()


def _remove_stray_snapshots(fs: Filesystem, path: str, segments: list[Segment], snapshots: list[int]) -> None:
    """A snapshot lives as long as its segment; one beyond the last segment, from a shutdown, is kept."""
    bases = {segment.base_offset for segment in segments}
    newest = segments[-1].base_offset
    beyond = max((offset for offset in snapshots if offset > newest), default=None)
    for offset in list(snapshots):
        if offset not in bases and offset != beyond:
            fs.remove(names.segment_prefix(path, offset) + names.SNAPSHOT)
            snapshots.remove(offset)


# -- the end of a log that was closed properly --------------------------------------------------------------------


def _end_of(segment: Segment, index_size: int) -> int:
    """Keeps no descriptor: ten thousand partitions are opened this way, and most of them stay idle."""
    if segment.size == 0:
        return segment.base_offset
    try:
        position, last = _last_index_entry(segment) if index_size else (0, None)
        end = segment.base_offset
        for at, header in segment.headers(position, segment.files.fs.open(segment.path())):
            if at == position and last is not None and header.last_offset != last:
                raise segment.corrupt(position, "the index does not fit the log")
            end = header.last_offset + 1
        return end
    except CorruptLog:
        segment.rebuild_indexes()
        return max(header.last_offset for _, header in segment.headers()) + 1


def _ends_properly(segment: Segment, next_base: int) -> bool:
    """Whether the last batches of a flushed segment are whole: junk may follow them where a truncation was lost."""
    try:
        position, _ = _last_index_entry(segment)
        file = segment.files.fs.open(segment.path())
        return all(header.last_offset < next_base for _, header in segment.headers(position, file))
    except CorruptLog:
        return False


def _last_index_entry(segment: Segment) -> tuple[int, int | None]:
    """Position and last offset of the batch indexed last: from the end of the file, without loading it."""
    try:
        file = segment.files.fs.open(segment.path(names.INDEX))
    except FileNotFoundError:
        return 0, None
    size = file.size()
    if size == 0 or size % OFFSET_ENTRY:
        return 0, None
    index = OffsetIndex(segment.base_offset, file.pread(OFFSET_ENTRY, size - OFFSET_ENTRY))
    if not 0 <= index.positions[0] < segment.size:
        return 0, None
    return index.positions[0], segment.base_offset + index.relative[0]


def _rebuild_epochs(segments: list[Segment], epochs: LeaderEpochs) -> None:
    for segment in segments:
        for _, header in segment.headers():
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)


# -- producers ---------------------------------------------------------------------------------------------------


def load_producers(
    fs: Filesystem,
    path: str,
    segments: list[Segment],
    snapshots: list[int],
    config: LogConfig,
    *,
    log_start_offset: int,
    end_offset: int,
    now: int,
) -> ProducerStates:
    """From the newest snapshot that can be believed, then from the log."""
    states = ProducerStates(log_start_offset)
    for offset in sorted(snapshots, reverse=True):
        if offset > end_offset:
            continue
        snapshot = names.segment_prefix(path, offset) + names.SNAPSHOT
        try:
            states.load_snapshot(fs.read(snapshot), offset, now, config.producer_id_expiration_ms)
            break
        except FileNotFoundError:
            snapshots.remove(offset)
        except CorruptSnapshot:
            fs.remove(snapshot)
            snapshots.remove(offset)
    _refill_windows(states, segments)
    states.end_offset = max(states.end_offset, log_start_offset)
    for batch in _batches_between(segments, states.end_offset, end_offset):
        replay(states, batch)
    states.end_offset = end_offset
    return states


def _refill_windows(states: ProducerStates, segments: list[Segment]) -> None:
    """A snapshot keeps one batch of each producer, but any of its last five may be sent again: the log has the others.

    Only the last REFILL_BYTES are looked at: a client retries what it sent a moment ago, not an hour ago.
    """
    earlier: dict[int, deque[CachedBatch]] = {
        producer_id: deque(maxlen=WINDOW - 1) for producer_id, one in states.producers.items() if one.batches
    }
    if not earlier:
        return
    for header in _last_headers(segments, states.end_offset, REFILL_BYTES):
        window = earlier.get(header.producer_id)
        if window is None or header.is_control or header.base_sequence < 0:
            continue
        producer = states.producers[header.producer_id]
        if header.producer_epoch == producer.epoch and header.last_offset < producer.batches[0].first_offset:
            window.append(
                CachedBatch(
                    header.base_sequence,
                    header.last_sequence,
                    header.base_offset,
                    header.last_offset,
                    header.max_timestamp,
                )
            )
    for producer_id, window in earlier.items():
        states.producers[producer_id].batches[:0] = window


def _last_headers(segments: list[Segment], end: int, size: int) -> Iterator[b.BatchHeader]:
    """Headers of the batches below offset `end` in about the last `size` bytes, oldest first."""
    parts: list[tuple[Segment, int]] = []
    for segment in reversed(segments):
        if segment.size and segment.base_offset < end:
            offsets = segment.offsets or segment.load_indexes()[0]
            parts.append((segment, offsets.boundary_before(max(0, segment.size - size))))
            size -= segment.size
            if size <= 0:
                break
    try:
        for segment, start in reversed(parts):
            for _, header in segment.headers(start):
                if header.base_offset >= end:
                    return
                yield header
    except CorruptLog:
        return  # whoever reads the records there is told; a producer's next batch must not depend on it


def _batches_between(segments: list[Segment], start: int, end: int) -> Iterator[memoryview]:
    for index, segment in enumerate(segments):
        next_base = segments[index + 1].base_offset if index + 1 < len(segments) else end
        if next_base <= start or segment.base_offset >= end or segment.size == 0:
            continue
        found = segment.find(max(start, segment.base_offset))
        if found is None:
            continue
        for _, batch in segment.batches(found[0]):
            if b.read_frame(batch)[0] >= end:
                return
            yield batch


def replay(states: ProducerStates, batch: b.Buffer, header: b.BatchHeader | None = None) -> AbortedTxn | None:
    """What a batch in the log means to its producer, as a follower sees it: no check, the leader made them."""
    header = header or b.read_header(batch)
    aborted = None
    if header.producer_id >= 0:
        if header.is_control:
            aborted = _replay_marker(states, batch, header)
        else:
            states.record_batch(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
                header.is_transactional,
            )
    states.end_offset = header.last_offset + 1
    return aborted


def _replay_marker(states: ProducerStates, batch: b.Buffer, header: b.BatchHeader) -> AbortedTxn | None:
    marker = marker_of(batch)
    if marker is None:
        return None
    completed = states.record_marker(
        header.producer_id, header.producer_epoch, marker, header.base_offset, header.max_timestamp
    )
    if completed is None:
        return None
    stable = states.last_stable_offset_after(completed)
    states.complete(completed)
    if not completed.aborted:
        return None
    return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)


def rebuild_aborted(segment: Segment, producers: ProducerStates) -> list[AbortedTxn]:
    """A new transaction index, from the batches and what the producers were at the start of the segment."""
    aborted = [txn for _, batch in segment.batches() if (txn := replay(producers, batch)) is not None]
    write_aborted(segment, aborted)
    return aborted


def write_aborted(segment: Segment, aborted: list[AbortedTxn]) -> None:
    segment.aborted = []
    path = segment.path(names.TXN_INDEX)
    if segment.files.fs.exists(path):
        segment.files.fs.open(path).truncate(0)
    for txn in aborted:
        segment.append_aborted(txn)


# -- after a crash -----------------------------------------------------------------------------------------------


class _Recovery:
    """One pass over the segments that may not have reached the disk."""

    __slots__ = ("config", "epochs", "files", "next_offset", "now", "path", "producers", "segments", "snapshots")

    def __init__(
        self,
        files: OpenFiles,
        path: str,
        config: LogConfig,
        *,
        segments: list[Segment],
        snapshots: list[int],
        epochs: LeaderEpochs,
        now: int,
    ) -> None:
        self.files = files
        self.path = path
        self.config = config
        self.segments = segments
        self.snapshots = snapshots
        self.epochs = epochs
        self.now = now
        self.producers = ProducerStates()
        self.next_offset = 0

    def run(self, recovery_point: int, log_start_offset: int) -> int:
        first = max(
            (index for index, segment in enumerate(self.segments) if segment.base_offset <= recovery_point), default=0
        )
        if first > 0 and not _ends_properly(self.segments[first - 1], self.segments[first].base_offset):
            first -= 1
        base = self.segments[first].base_offset
        suspects = self._set_aside_snapshots_above(base)
        self.producers = load_producers(
            self.files.fs,
            self.path,
            self.segments,
            self.snapshots,
            self.config,
            log_start_offset=max(log_start_offset, self.segments[0].base_offset),
            end_offset=base,
            now=self.now,
        )
        self.next_offset = base
        index = first
        while index < len(self.segments):
            segment = self.segments[index]
            if segment.base_offset < self.next_offset:
                raise segment.corrupt(
                    0, f"the segment starts below offset {self.next_offset}, where the last one ended"
                )
            self.next_offset = segment.base_offset
            if index >= len(self.segments) - 2:
                self._snapshot(segment.base_offset)
            later = self.segments[index + 1 :]
            if self._recover(segment, later, recovery_point) and not self._is_complete(later):
                self._drop_after(index)
            index += 1
        self._snapshot(self.next_offset)
        for offset in suspects:
            if offset not in self.snapshots:
                self.files.fs.remove(names.segment_prefix(self.path, offset) + names.SNAPSHOT)
        return self.next_offset

    def _recover(self, segment: Segment, later: list[Segment], recovery_point: int) -> bool:
        """Rebuilds the segment's indexes from its batches; True if a bad tail was cut off."""
        offsets, times = OffsetIndex(segment.base_offset), TimeIndex(segment.base_offset)
        aborted: list[AbortedTxn] = []
        segment.max_timestamp, segment.max_timestamp_offset = NO_TIMESTAMP, segment.base_offset
        valid = since = 0
        for position, batch, header in _valid_batches(segment, self.next_offset):
            if header.max_timestamp > segment.max_timestamp:
                segment.max_timestamp, segment.max_timestamp_offset = header.max_timestamp, header.last_offset
            if since > self.config.index_interval_bytes:
                offsets.append(header.last_offset, position)
                times.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
                since = 0
            since += header.size
            valid = position + header.size
            self.next_offset = header.last_offset + 1
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, header.base_offset)
            txn = replay(self.producers, batch, header)
            if txn is not None:
                aborted.append(txn)
        cut = valid < segment.size
        if cut:
            self._refuse_damage(segment, valid, later, recovery_point)
            file = segment.file or self.files.open(segment)
            file.truncate(valid)
            # At once: were the torn bytes to come back after the log has rolled, nothing would look at them again.
            file.sync()
            segment.size = valid
        times.maybe_append(segment.max_timestamp, segment.max_timestamp_offset)
        segment.offsets, segment.times = offsets, times
        segment.bytes_since_index = since
        for suffix, index in ((names.INDEX, offsets), (names.TIME_INDEX, times)):
            if self._stored(segment.path(suffix)) == index.pending()[0]:
                index.mark_written()
            else:
                segment.write_index(suffix, index)
        write_aborted(segment, aborted)
        self.producers.end_offset = self.next_offset
        return cut

    def _refuse_damage(self, segment: Segment, position: int, later: list[Segment], recovery_point: int) -> None:
        if self.next_offset < recovery_point:
            raise segment.corrupt(
                position,
                f"offset {self.next_offset} cannot be read although everything below {recovery_point} was flushed: "
                "this is damage, not a torn tail; restore the replica from another one",
            )
        if self._is_complete(later):
            return  # left by an append that was rolled back, or by a torn one that an earlier recovery had cut off
        found = _find_valid_batch(segment, position)
        if found is None and any(next(_valid_batches(other, other.base_offset), None) for other in later):
            found = segment.size
        if found is not None:
            raise segment.corrupt(
                position,
                f"offset {self.next_offset} cannot be read but a valid batch follows (byte {found}): "
                "this is damage, not a torn tail; restore the replica from another one",
            )

    def _is_complete(self, later: list[Segment]) -> bool:
        """Nothing is missing before the next segment: bad bytes at the end of this one are no lost batch."""
        return bool(later) and later[0].base_offset == self.next_offset

    def _drop_after(self, index: int) -> None:
        if index + 1 == len(self.segments):
            return
        for segment in self.segments[index + 1 :]:
            for renamed in segment.mark_deleted():
                self.files.fs.remove(renamed)
        del self.segments[index + 1 :]
        self.files.fs.sync_dir(self.path)  # or they come back in the way of what is appended now

    def _set_aside_snapshots_above(self, base: int) -> list[int]:
        """They may describe batches that are not there any more: not believed, but kept where the scan agrees."""
        suspects = [offset for offset in self.snapshots if offset > base]
        self.snapshots[:] = [offset for offset in self.snapshots if offset <= base]
        return suspects

    def _snapshot(self, offset: int) -> None:
        if offset not in self.snapshots and offset > self.segments[0].base_offset:
            path = names.segment_prefix(self.path, offset) + names.SNAPSHOT
            data = self.producers.encode_snapshot()
            if self._stored(path) != data:
                replace_file(self.files.fs, path, data, sync=False)
            self.snapshots.append(offset)

    def _stored(self, path: str) -> bytes | None:
        """Reading is much cheaper than writing: after most crashes nearly every small file is right already."""
        try:
            return self.files.fs.read(path)
        except FileNotFoundError:
            return None


def _valid_batches(segment: Segment, next_offset: int) -> Iterator[tuple[int, memoryview, b.BatchHeader]]:
    """Batches from the start of the segment until the first that is not whole, sound and in order.

    A node that was killed comes by here with every batch since the last flush: each header is read once.
    """
    file = segment.file or segment.files.open(segment)
    end = segment.size
    position, chunk, chunk_start = 0, memoryview(b""), 0
    while position + b.HEADER_SIZE <= end:
        at = position - chunk_start
        if at + b.LOG_OVERHEAD > len(chunk):
            chunk, chunk_start, at = memoryview(file.pread(min(SCAN_CHUNK, end - position), position)), position, 0
        size = b.read_frame(chunk, at)[1] if at + b.LOG_OVERHEAD <= len(chunk) else 0
        if size < b.HEADER_SIZE or position + size > end:
            return
        if at + size > len(chunk):
            wanted = min(max(SCAN_CHUNK, size), end - position)
            chunk, chunk_start, at = memoryview(file.pread(wanted, position)), position, 0
        batch = chunk[at : at + size]
        header = _sound_header(batch, size, next_offset)
        if header is None or header.last_offset - segment.base_offset >= 1 << 31:
            return
        yield position, batch, header
        next_offset = header.last_offset + 1
        position += size


def _sound_header(batch: memoryview, size: int, next_offset: int) -> b.BatchHeader | None:
    if len(batch) < size:
        return None
    header = b.read_header(batch)
    is_sound = (
        header.magic == b.MAGIC_V2
        and header.base_offset >= next_offset
        and header.last_offset_delta >= 0
        and header.crc == b.computed_crc(batch)
    )
    return header if is_sound else None


def _find_valid_batch(segment: Segment, position: int) -> int | None:
    """Any place from the damage on where a whole batch of this segment lies.

    Lengths and offsets are looked at with suspicion: a flipped length must not pass for the end of the log, and a
    flipped base offset, which no CRC covers, makes the sound batches behind it look out of order.
    """
    file = segment.file or segment.files.open(segment)
    low = segment.base_offset
    high_bytes = {offset.to_bytes(8, "big")[:3] for offset in (low, low + MAX_RELATIVE)}
    prefix = b"|".join(re.escape(three) for three in sorted(high_bytes))
    candidate = re.compile(b"(?=(?:" + prefix + b").{13}\x02)", re.DOTALL)
    while position + b.HEADER_SIZE <= segment.size:
        chunk = file.pread(SCAN_CHUNK + _SEARCH_OVERLAP, position)
        for match in candidate.finditer(chunk):
            at = position + match.start()
            size = b.read_frame(file.pread(b.LOG_OVERHEAD, at))[1]
            fits = b.HEADER_SIZE <= size <= segment.size - at
            if fits and _sound_header(memoryview(file.pread(size, at)), size, low) is not None:
                return at
        position += SCAN_CHUNK
    return None
