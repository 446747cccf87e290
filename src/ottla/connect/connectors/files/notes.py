"""Which files a batch may leave behind that is never committed: no I/O here but for what stores do.

A file is named after its first offset. If a batch comes again its portions may end elsewhere, and where a folder gets
several files, because they are full, all but the first would begin at other records: files of the batch that died would
stay beside those of the one that lives. So a task notes such files before it writes any. Whoever begins a partition at
the same offset once more deletes what is noted for it first; a batch that was committed is followed by one that begins
behind it. The first file of a folder needs no note: it begins at the same record whenever it is written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote

import msgspec

from ottla.connect import spi
from ottla.connect.connectors.files.stores import Store

Log: TypeAlias = tuple[str, int]
"""Topic, with its id, and partition."""
MOST_BYTES = 64 << 20


class _Note(msgspec.Struct, frozen=True):
    """Of one partition in one batch of a task."""

    log: Log
    start: int
    files: list[str]


class Notes:
    """Of one connector."""

    __slots__ = ("_folder", "_noted")

    def __init__(self, topics_dir: str, connector: str) -> None:
        hidden = f".{quote(connector, safe='')[:150]}.written"
        self._folder = f"{topics_dir}/{hidden}" if topics_dir else hidden
        self._noted: dict[Log, list[_Note]] | None = None

    def write(
        self,
        store: Store,
        spans: Sequence[spi.Span],
        files: Mapping[tuple[str, int], Sequence[str]],
        allowed: Callable[[], None],
    ) -> None:
        """By topic and partition: files of a batch that is about to be written. Raises TryAgain."""
        notes = [
            _Note((span.log, span.partition), span.start, list(files[span.topic, span.partition]))
            for span in spans
            if (span.topic, span.partition) in files
        ]
        # Another task of this batch has other partitions.
        first = min(spans)
        store.put(f"{self._folder}/.{first.topic}-{first.partition}", msgspec.json.encode(notes), allowed)

    def stale(self, store: Store, spans: Iterable[spi.Span]) -> list[str]:
        """Files of batches that begin as these do, of a former life: until they are `forgotten`. Raises TryAgain."""
        if self._noted is None:
            self._noted = _read(store, self._folder)
        found: dict[str, None] = {}
        for span in spans:
            for note in self._noted.get((span.log, span.partition), ()):
                if note.start == span.start:
                    found |= dict.fromkeys(note.files)
        return sorted(found)

    def forgotten(self, spans: Iterable[spi.Span]) -> None:
        """They are deleted: what is there from now on is of this life."""
        for span in spans:
            if self._noted is not None:
                self._noted.pop((span.log, span.partition), None)


def _read(store: Store, folder: str) -> dict[Log, list[_Note]]:
    found: dict[Log, list[_Note]] = {}
    for path in store.notes(folder):
        try:
            notes = msgspec.json.decode(store.get(path, MOST_BYTES) or b"[]", type=list[_Note])
        except msgspec.DecodeError:
            continue  # somebody else's
        for note in notes:
            found.setdefault(note.log, []).append(note)
    return found
