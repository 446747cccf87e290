"""The connector: records of a micro-batch into files, named after the first offset in each.

Files of a batch that was never committed are written over by the one that comes in its place, or deleted (`notes`).
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesConfig
from ottla.connect.connectors.files.formats import format_of, size_of
from ottla.connect.connectors.files.notes import Notes
from ottla.connect.connectors.files.partitioners import goes_by_clock, partitioner_of
from ottla.connect.connectors.files.stores import Store, store_of
from ottla.connect.data.record import ConnectRecord

Place = tuple[str, int, str]
"""Topic, partition and folder: what a file is of."""


@dataclass(slots=True)
class _File:
    """To be written at the end of the micro-batch: `end` may be called again where a store was away, `write` is not
    the place to find that out."""

    records: list[ConnectRecord] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Among the records of the micro-batch."""
    size: int = 0
    is_first: bool = True
    """Of its folder in this micro-batch."""


class FilesSink(spi.Sink[FilesConfig]):
    exactly_once: ClassVar[bool] = True
    first_records: ClassVar[int] = 20_000

    def __init__(self, config: FilesConfig, name: str) -> None:
        super().__init__(config, name)
        self._format = format_of(config)
        self._folder = partitioner_of(config)
        self._by_clock = goes_by_clock(config)
        self._store: Store | None = None
        self._open: dict[Place, _File] = {}
        self._files: deque[tuple[Place, _File]] = deque()
        self._seen = 0
        self._refused: list[spi.Refused] = []
        self._spans: Sequence[spi.Span] = ()
        self._notes = Notes(config.topics_dir.strip("/"), name)
        self._is_noted = False

    def validate(self) -> None:
        store_of(self.config)

    def gather_ms(self) -> int:
        return max(self.config.rotate_interval_ms, self.config.rotate_schedule_interval_ms, 0)

    def gather_records(self) -> int:
        return self.config.flush_size

    def prepare(self, spans: Sequence[spi.Span]) -> None:
        store = self._reached()
        for path in self._notes.stale(store, spans):
            self.require_ours()
            store.delete(path)
        self._notes.forgotten(spans)

    def begin(self, spans: Sequence[spi.Span]) -> None:
        self._spans = spans
        self._is_noted = False
        self._open = {}
        self._files.clear()
        self._refused = []
        self._seen = 0

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        refused: list[spi.Refused] = []
        now_ms = int(time.time() * 1000)
        for at, record in enumerate(batch.records):
            if record.value is None:
                if self.config.behavior_on_null_values == "fail":
                    refused.append(spi.Refused(at, "it has no value: behavior.on.null.values=ignore passes such over"))
                continue
            try:
                place = (record.topic, record.partition or 0, self._folder(record, now_ms))
            except spi.BadRecord as error:
                refused.append(spi.Refused(at, error))
                continue
            self._gather(place, record, self._seen + at)
        self._seen += len(batch.records)
        return refused

    def end(self) -> spi.Verdicts:
        if not self._is_noted:
            self._note()
            self._is_noted = True
        while self._files:
            self._put(*self._files[0])  # in the order of offsets: who reads them meanwhile misses none
            self._files.popleft()
        return self._refused

    def _gather(self, place: Place, record: ConnectRecord, at: int) -> None:
        file = self._open.get(place)
        if file is None or len(file.records) >= self.config.flush_size or file.size >= self.config.flush_size_bytes:
            file = self._open[place] = _File(is_first=file is None)
            self._files.append((place, file))
        file.records.append(record)
        file.places.append(at)
        file.size += size_of(record.value)

    def _note(self) -> None:
        named: dict[tuple[str, int], list[str]] = {}
        for place, file in self._files:
            if not file.is_first or self._by_clock:
                named.setdefault(_origin(file.records[0]), []).append(self._path(place, file))
        if named and self._spans:
            self._notes.write(self._reached(), self._spans, named, self.require_ours)

    def _put(self, place: Place, file: _File) -> None:
        written = self._format.write(file.records)
        if len(written.refused) < len(file.records):
            self._reached().put(self._path(place, file), written.data, self.require_ours)
        self._refused += [spi.Refused(file.places[at], reason) for at, reason in written.refused]

    def _path(self, place: Place, file: _File) -> str:
        topic, partition, folder = place
        width = self.config.filename_offset_zero_pad_width
        delim = self.config.file_delim
        name = f"{topic}{delim}{partition}{delim}{file.records[0].offset or 0:0{width}d}{self._format.extension}"
        return "/".join(part for part in (self.config.topics_dir.strip("/"), topic, folder, name) if part)

    def _reached(self) -> Store:
        if self._store is None:
            self._store = store_of(self.config)
        return self._store


def _origin(record: ConnectRecord) -> tuple[str, int]:
    """Where it was read: a transform may have changed its topic."""
    read: Any = record if record.origin is None else record.origin
    return read.topic, read.partition or 0
