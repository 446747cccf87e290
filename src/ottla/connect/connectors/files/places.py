"""Which files there are, in which order they are read, and how far they were: no I/O here.

A file that the sink has named says where its records lay, `orders+0+0000000042.json`, and such files are read in the
order of their offsets, whatever folders they are in. Any other file comes in the order of its path.

The position is the last file read in each folder. So a file that comes late into a folder which nobody has read yet is
found, and one that has grown since (the sink writes a batch that comes again over, perhaps longer) is read on. Of many
folders the oldest are forgotten: what comes into them afterwards counts as read unless it lies behind all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from ottla.connect import spi
from ottla.connect.connectors.files.stores import Listed

MOST_FOLDERS: Final = 256
"""In a position."""
UNFINISHED: Final = -1

Order: TypeAlias = tuple[int, str]
"""Offset and path."""


class Origin(NamedTuple):
    """What the name of a file tells."""

    topic: str
    partition: int
    offset: int


def origin_of(path: str, topics_dir: str, delim: str) -> Origin | None:
    """None: the sink has not named it."""
    inside = path.removeprefix(f"{topics_dir}/") if topics_dir else path
    topic, slash, _ = inside.partition("/")
    parts = path.rpartition("/")[2].rsplit(delim, 2)
    if not slash or len(parts) != 3:
        return None
    partition, offset = parts[1], parts[2].partition(".")[0]
    if not all(each.isascii() and each.isdigit() and len(each) <= 20 for each in (partition, offset)):
        return None
    return Origin(topic, int(partition), int(offset))


class File(NamedTuple):
    """One to be read."""

    listed: Listed
    offset: int
    """Of its first record; 0 where names tell nothing."""

    @property
    def order(self) -> Order:
        return self.offset, self.listed.path

    @property
    def folder(self) -> str:
        return self.listed.path.rpartition("/")[0]


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """The last file read in a folder."""

    name: str
    offset: int
    record: int
    """So many of its records were read."""
    size: int
    """In bytes, when all of them were; else UNFINISHED."""


class Place(msgspec.Struct, frozen=True):
    """A position."""

    folders: dict[str, Seen] = {}
    floor: tuple[int, str] = (-1, "")
    """Up to here everything counts as read in folders that are not named."""

    @classmethod
    def of(cls, offset: spi.Offset | None) -> Place:
        try:
            return msgspec.convert(dict(offset or {}), cls)
        except msgspec.ValidationError as error:
            raise spi.ConnectorFailed(
                f"its position cannot be understood: {error}. Set it as it was read, or remove it to read all again"
            ) from error

    def as_offset(self) -> dict[str, Any]:
        return {"folders": msgspec.to_builtins(self.folders), "floor": list(self.floor)}

    def begin(self, file: File) -> int | None:
        """From which record on it is to be read; None: it was read."""
        seen = self.folders.get(file.folder)
        if seen is None:
            return 0 if file.order > self.floor else None
        name = file.listed.path.rpartition("/")[2]
        if name == seen.name:
            return seen.record if file.listed.size != seen.size else None
        return 0 if file.order > (seen.offset, _path(file.folder, seen.name)) else None

    def behind(self, file: File, record: int, size: int) -> Place:
        seen = Seen(file.listed.path.rpartition("/")[2], file.offset, record, size)
        folders = {name: each for name, each in self.folders.items() if name != file.folder}
        folders[file.folder] = seen  # the one that was read last stands last
        floor = self.floor
        while len(folders) > MOST_FOLDERS:
            folder = next(iter(folders))
            gone = folders.pop(folder)
            floor = max(floor, (gone.offset, _path(folder, gone.name)))
        return Place(folders, floor)


def unread(files: Iterable[File], place: Place) -> list[tuple[File, int]]:
    """In their order, each with the record to begin at."""
    found = [(file, begin) for file in files if (begin := place.begin(file)) is not None]
    return sorted(found, key=lambda each: each[0].order)


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
