"""FileStreamSource: each line of a file is a record, and what is appended later as well.

The position is a byte of a file that is known by its inode and its first bytes. A file that was renamed and made anew
is read to its end first, wherever in its folder it lies now; one that was cut off or written anew is read from its
beginning. A last line without an end is held until it has one.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ottla.connect import spi
from ottla.connect.definitions import HIGH, INT, LOW, REQUIRED, STRING, ConfigDef, ConfigKey, NonEmpty

READ_BYTES: Final = 8 << 20
"""In one go."""
LARGEST_LINE: Final = 64 << 20
HEAD_BYTES: Final = 256
"""So many bytes of its beginning tell a file from another one."""
_ENDS: Final = re.compile(rb"\r\n|\n|\r")


class FileSourceConfig(spi.Config, kw_only=True):
    file: str = ""
    topic: Annotated[str, msgspec.Meta(min_length=1)]
    batch_size: Annotated[int, msgspec.Meta(ge=1)] | None = None


class _Place(NamedTuple):
    """A position in a file."""

    position: int = 0
    inode: int | None = None
    head: int | None = None
    """Checksum of its first bytes, up to HEAD_BYTES and never beyond the position."""

    @classmethod
    def of(cls, offset: spi.Offset | None) -> _Place:
        """Also of Java's, who knows the position only."""
        given = offset or {}
        return cls(int(given.get("position", 0)), given.get("inode"), given.get("head"))

    def as_offset(self) -> dict[str, Any]:
        return {"position": self.position, "inode": self.inode, "head": self.head}


class FileStreamSource(spi.Source[FileSourceConfig]):
    CONFIG = ConfigDef(
        ConfigKey(
            "file", STRING, None, HIGH, "The file to read, which may come later. Standard input is not read here."
        ),
        ConfigKey("topic", STRING, REQUIRED, HIGH, "Where its lines go.", NonEmpty()),
        ConfigKey(
            "batch.size", INT, 2000, LOW, "At most so many lines in one batch; unless it is set, as many as go quickly."
        ),
    )
    """The definitions of Java's."""

    def validate(self) -> None:
        if not self.config.file:
            raise spi.ConfigRefused("file", "is missing: a worker has no standard input to read")

    def partitions(self) -> Sequence[spi.Partition]:
        return [{"filename": self.config.file}]

    @classmethod
    def check_offset(cls, partition: spi.Partition, offset: spi.Offset | None) -> None:
        spi.text_of(partition, "filename")
        if offset is not None:
            spi.number_of(offset, "position")

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        place = _Place.of(start)
        try:
            with open(self.config.file, "rb") as file:
                old = self._renamed(place, file)
                if old is not None:
                    return self._rest(old, place, limit)
                return self._read(file, self._begin(place, file), limit)
        except FileNotFoundError:
            return spi.Read((), None)  # not there yet, or being rotated just now

    def poll_interval_ms(self) -> int:
        return 100

    # Which file.

    def _renamed(self, place: _Place, file: BinaryIO) -> Path | None:
        """Where the file lies now that was read up to here, if it is not this one."""
        if place.inode is None or os.fstat(file.fileno()).st_ino == place.inode:
            return None
        with os.scandir(Path(self.config.file).absolute().parent) as entries:
            for entry in entries:
                if entry.inode() == place.inode and entry.is_file(follow_symlinks=False):
                    return Path(entry.path) if _same_head(Path(entry.path), place) else None
        return None

    def _begin(self, place: _Place, file: BinaryIO) -> _Place:
        """The same position, or the beginning of a file that is another one."""
        found = os.fstat(file.fileno())
        other = place.inode is not None and place.inode != found.st_ino
        if other or found.st_size < place.position or not _head_is(file, place):
            return _Place()
        return place

    def _rest(self, old: Path, place: _Place, limit: int) -> spi.Read:
        """Of a file that nobody will append to any more: its last line needs no end. Behind it the new one begins."""
        with open(old, "rb") as file:
            if os.fstat(file.fileno()).st_size < place.position:
                return spi.Read((), {})
            read = self._read(file, place, limit)
            if len(read.rows.values if isinstance(read.rows, spi.Lines) else read.rows):
                return read
            file.seek(place.position)
            last = file.read(LARGEST_LINE)
        rows = self._lines(pa.array([last.rstrip(b"\r\n")], pa.binary())) if last else ()
        return spi.Read(rows, {})

    # Lines.

    def _read(self, file: BinaryIO, place: _Place, limit: int) -> spi.Read:
        most = min(limit, self.config.batch_size or limit)
        size = READ_BYTES
        while True:
            file.seek(place.position)
            data = file.read(size)
            values, used = cut_lines(data, most)
            if len(values) or len(data) < size:
                break
            if size >= LARGEST_LINE:
                raise spi.ConnectorFailed(
                    f"a line of {self.config.file} at byte {place.position} is longer than {LARGEST_LINE:,} bytes"
                )
            size *= 4
        if not used:
            return spi.Read((), None)
        end = place.position + used
        found = os.fstat(file.fileno())
        placed = _Place(end, found.st_ino, _head(file, end))
        return spi.Read(self._lines(values), placed.as_offset(), more=len(data) == size or len(values) == most)

    def _lines(self, values: pa.Array) -> spi.Lines:
        try:
            return spi.Lines(self.config.topic, values.cast(pa.string()))
        except pa.ArrowInvalid:  # Java puts a mark in place of what is no UTF-8
            texts = [value.decode(errors="replace") for value in values.to_pylist()]
            return spi.Lines(self.config.topic, pa.array(texts, pa.string()))


def cut_lines(data: bytes, most: int) -> tuple[pa.Array, int]:
    """At most so many whole lines, without their ends, and how many bytes they take."""
    if b"\r" in data:
        return _cut_slowly(data, most)
    view = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(view == 10)[:most]
    if not len(ends):
        return pa.array([], pa.binary()), 0
    # Lines and their ends as pieces on end; no byte is copied until the lines are taken.
    cuts = np.empty(2 * len(ends) + 1, np.int32)
    cuts[0] = 0
    cuts[1::2] = ends
    cuts[2::2] = ends + 1
    pieces = pa.Array.from_buffers(pa.binary(), 2 * len(ends), [None, pa.py_buffer(cuts), pa.py_buffer(data)])
    return pieces.take(pa.array(np.arange(0, 2 * len(ends), 2))), int(ends[-1]) + 1


def _cut_slowly(data: bytes, most: int) -> tuple[pa.Array, int]:
    """With ends of other systems. A carriage return at the very end may be half of one."""
    lines: list[bytes] = []
    used = 0
    for found in _ENDS.finditer(data):
        if len(lines) == most or (found[0] == b"\r" and found.end() == len(data)):
            break
        lines.append(data[used : found.start()])
        used = found.end()
    return pa.array(lines, pa.binary()), used


def _head(file: BinaryIO, position: int) -> int:
    file.seek(0)
    return zlib.crc32(file.read(min(position, HEAD_BYTES)))


def _head_is(file: BinaryIO, place: _Place) -> bool:
    return place.head is None or _head(file, place.position) == place.head


def _same_head(path: Path, place: _Place) -> bool:
    with open(path, "rb") as file:
        return _head_is(file, place)
