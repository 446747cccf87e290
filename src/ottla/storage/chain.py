"""The files of one log: its segments in order, the producer snapshots between them, what of all this is not synced yet.

Knows how files come, go and change places so that a crash at any point leaves what `recovery` can finish or undo. It
does not know what the log promises: offsets, epochs and producers are the log's, and so is the answer to an OSError.
"""

from collections.abc import Callable, Sequence

from ottla.storage import names
from ottla.storage.checkpoints import encode_partition_metadata
from ottla.storage.cleaner.facts import Replacement
from ottla.storage.flush import Flush
from ottla.storage.fs import Filesystem, parent, replace_file
from ottla.storage.lookup import segment_index
from ottla.storage.segment import OpenFiles, Segment


class Chain:
    __slots__ = ("files", "path", "segments", "snapshots", "unsynced")

    def __init__(self, files: OpenFiles, path: str, segments: list[Segment], snapshots: list[int]) -> None:
        self.files = files
        self.path = path
        self.segments = segments
        """Never empty, and always the same list: the log looks into it directly."""
        self.snapshots = snapshots
        """Offsets of which there is a snapshot."""
        self.unsynced: list[str] = []
        """Files and directories written since the last flush, in the order they must be synced."""

    @property
    def fs(self) -> Filesystem:
        return self.files.fs

    # -- at the end ----------------------------------------------------------------------------------------------

    def begin(self, base_offset: int, now: int) -> Segment:
        """A new segment behind the others."""
        segment = Segment.create(self.files, self.path, base_offset, now)
        self.unsynced.append(self.path)
        self.segments.append(segment)
        return segment

    def move_empty(self, base_offset: int, now: int) -> Segment:
        """A follower skips ahead further than relative offsets reach: the empty segment moves to the new base."""
        old = self.segments[-1]
        segment = Segment.create(self.files, self.path, base_offset, now)
        self.segments[-1] = segment
        for path in old.mark_deleted():
            self.fs.remove(path)
        self.unsynced.append(self.path)
        return segment

    def cut(self, offset: int) -> list[str]:
        """Nothing at or above `offset` stays. Gives the files to remove later."""
        keep = segment_index(self.segments, offset) + 1
        gone, self.segments[keep:] = self.segments[keep:], []
        paths = self._mark_deleted(gone)
        if gone:
            self.fs.sync_dir(self.path)  # or they come back in the way of what is appended next
        self.segments[-1].truncate(offset)
        return paths

    def restart(self, offset: int, now: int) -> list[str]:
        """One empty segment at `offset` in the place of all. Gives the files to remove later."""
        gone, self.segments[:] = list(self.segments), []
        paths = self._mark_deleted(gone)
        self.segments.append(Segment.create(self.files, self.path, offset, now))
        self.remove_snapshots(lambda _: True)
        self.fs.sync_dir(self.path)
        return paths

    # -- at the beginning and in the middle ----------------------------------------------------------------------

    def drop_oldest(self, count: int) -> list[str]:
        """Gives the files to remove later."""
        gone, self.segments[:count] = self.segments[:count], []
        return self._mark_deleted(gone)

    def place_of(self, old: Sequence[tuple[Segment, int]]) -> int | None:
        """Where these closed segments stand in a row; None if they do not, or one has not the size it is given with."""
        start = next((i for i, segment in enumerate(self.segments) if segment is old[0][0]), -1)
        stop = start + len(old)
        current = self.segments[start:stop] if start >= 0 and stop < len(self.segments) else []
        if [(id(segment), segment.size) for segment in current] != [(id(segment), size) for segment, size in old]:
            return None
        return start

    def swap(self, start: int, stop: int, new: Replacement) -> list[str]:
        """Kafka's replaceSegments: `.cleaned` becomes `.swap`, the old becomes `.deleted`, `.swap` becomes the segment.

        A crash before the last `.swap` undoes it, one after that completes it: `recovery` knows both. Gives the files
        to remove later.
        """
        fs, prefix = self.fs, names.segment_prefix(self.path, new.base_offset)
        for suffix in new.suffixes:
            fs.rename(prefix + suffix + names.CLEANED, prefix + suffix + names.SWAP)
        replaced = self.segments[start:stop]
        # The snapshot at the first base offset belongs to the new segment as well.
        paths = [*replaced[0].mark_deleted(), *self._mark_deleted(replaced[1:])]
        for suffix in new.suffixes:
            fs.rename(prefix + suffix + names.SWAP, prefix + suffix)
        segment = Segment(self.files, self.path, new.base_offset, new.size, replaced[-1].created_ms)
        segment.max_timestamp, segment.max_timestamp_offset = new.max_timestamp, new.max_timestamp_offset
        self.segments[start:stop] = [segment]
        self.unsynced.append(self.path)
        return paths

    def _mark_deleted(self, segments: list[Segment]) -> list[str]:
        paths = []
        for segment in segments:
            paths += segment.mark_deleted()
            if segment.base_offset in self.snapshots:
                self.snapshots.remove(segment.base_offset)
                snapshot = segment.path(names.SNAPSHOT)
                try:
                    self.fs.rename(snapshot, snapshot + names.DELETED)
                except FileNotFoundError:
                    continue
                paths.append(snapshot + names.DELETED)
        return paths

    # -- snapshots of producers ----------------------------------------------------------------------------------

    def lacks_snapshot(self, offset: int) -> bool:
        """Kafka writes none for a log that never held a batch."""
        return offset > max(self.snapshots, default=self.segments[0].base_offset)

    def write_snapshot(self, offset: int, data: bytes) -> None:
        path = names.segment_prefix(self.path, offset) + names.SNAPSHOT
        replace_file(self.fs, path, data, sync=False)
        self.snapshots.append(offset)
        self.unsynced += [path, self.path]

    def remove_snapshots(self, unwanted: Callable[[int], bool]) -> None:
        for offset in [offset for offset in self.snapshots if unwanted(offset)]:
            self.fs.remove(names.segment_prefix(self.path, offset) + names.SNAPSHOT)
            self.snapshots.remove(offset)

    # -- the topic's id ------------------------------------------------------------------------------------------

    def write_topic_id(self, topic_id: bytes) -> None:
        path = f"{self.path}/{names.PARTITION_METADATA}"
        # Not synced here: it is durable before the recovery point moves, and a lost one is written again on open.
        replace_file(self.fs, path, encode_partition_metadata(topic_id), sync=False)
        self.unsynced += [path, self.path]

    # -- making durable ------------------------------------------------------------------------------------------

    def plan_segments(self, flush: Flush, recovery_point: int) -> None:
        """Adds to `flush` what was written at and above the recovery point."""
        for segment in self.segments[segment_index(self.segments, recovery_point) :]:
            flush.files.append(segment.file or self.files.open(segment))
            if segment is not self.segments[-1]:  # the active one's indexes are rebuilt after a crash anyway
                segment.write_indexes()
                flush.paths += self._indexes_of(segment)

    def plan_rest(self, flush: Flush) -> None:
        """Adds to `flush` all else that is not synced yet."""
        directories = {self.path, parent(self.path)}
        for path in dict.fromkeys(self.unsynced):
            (flush.dirs if path in directories else flush.paths).append(path)
        self.unsynced.clear()

    def finish(self) -> None:
        """Exact indexes of the active segment, as a clean close leaves them."""
        active = self.segments[-1]
        if active.offsets is not None:
            active.finish()
            self.unsynced += self._indexes_of(active)

    def _indexes_of(self, segment: Segment) -> list[str]:
        return [segment.path(suffix) for suffix in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX)]

    def close(self) -> None:
        for segment in self.segments:
            self.files.forget(segment)

    def rename(self, target: str) -> None:
        """Whoever is still reading goes on: open files stay open, and others are found under their new name."""
        source = self.path
        self.fs.rename(source, target)
        self.path = target
        for segment in self.segments:
            segment.prefix = names.segment_prefix(target, segment.base_offset)
        self.unsynced = [target + path[len(source) :] if path.startswith(source) else path for path in self.unsynced]
