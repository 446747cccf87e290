"""The connector: records of a micro-batch into files, named after the first offset in each.

Files of a batch that was never committed are written over by the one that comes in its place, or deleted (`notes`).
"""

import time
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesConfig
from ottla.connect.connectors.files.formats import Written, format_of
from ottla.connect.connectors.files.gathered import GatheredFile
from ottla.connect.connectors.files.notes import Notes
from ottla.connect.connectors.files.partitioners import by_partition, goes_by_clock, partitioner_of
from ottla.connect.connectors.files.stores import Store, store_of
from ottla.connect.connectors.tables.quick_rows import quick_rows
from ottla.connect.data.record import ConnectRecord

Place = tuple[str, int, str]
"""Topic, partition and folder: what a file is of."""


class FilesSink(spi.Sink[FilesConfig]):
    exactly_once: ClassVar[bool] = True
    first_records: ClassVar[int] = 20_000

    def __init__(self, config: FilesConfig, name: str) -> None:
        super().__init__(config, name)
        self._format = format_of(config)
        self._folder = partitioner_of(config)
        self._by_clock = goes_by_clock(config)
        self._store: Store | None = None
        self._open: dict[Place, GatheredFile] = {}
        self._files: deque[tuple[Place, GatheredFile]] = deque()
        self._seen = 0
        self._refused: list[spi.Refused] = []
        self._spans: Sequence[spi.Span] = ()
        self._notes = Notes(config.topics_dir.strip("/"), name)
        self._is_noted = False

    @property
    def takes_json(self) -> bool:
        """Where a file is a table, and all records of a partition lie in one folder."""
        return self._format.render is not None and self._folder is by_partition

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
        for columns in batch.columns:
            self._gather_json(columns)
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
        if file is None or self._is_full(file):
            file = self._begun(place, record.offset or 0, _origin(record))
        file.add(record, at)

    def _gather_json(self, columns: spi.Columns) -> None:
        """All of it, or none."""
        if columns.values.nbytes > self.config.flush_size_bytes:
            raise spi.OneByOne
        origin = columns.topic, columns.partition
        place = (*origin, by_partition(columns, 0))
        file = self._open.get(place)
        room = 0 if file is None or self._is_full(file) else self.config.flush_size - file.count
        cuts = [0, *range(room or self.config.flush_size, len(columns.values), self.config.flush_size)]
        parts = [columns.values[start:end] for start, end in pairwise([*cuts, len(columns.values)])]
        rows = [quick_rows(part, None) for part in parts]
        if any(table is None for table in rows):
            raise spi.OneByOne
        for part, start, table in zip(parts, cuts, rows, strict=True):
            if file is None or self._is_full(file):
                file = self._begun(place, int(columns.offsets[start]), origin)
            file.add_rows(table, range(self._seen + start, self._seen + start + len(part)), part.nbytes)
        self._seen += len(columns.values)

    def _is_full(self, file: GatheredFile) -> bool:
        return file.count >= self.config.flush_size or file.size >= self.config.flush_size_bytes

    def _begun(self, place: Place, offset: int, origin: tuple[str, int]) -> GatheredFile:
        file = GatheredFile(offset, origin, is_first=place not in self._open)
        self._open[place] = file
        self._files.append((place, file))
        return file

    def _note(self) -> None:
        named: dict[tuple[str, int], list[str]] = {}
        for place, file in self._files:
            if not file.is_first or self._by_clock:
                named.setdefault(file.origin, []).append(self._path(place, file))
        if named and self._spans:
            self._notes.write(self._reached(), self._spans, named, self.require_ours)

    def _put(self, place: Place, file: GatheredFile) -> None:
        written = self._written(place, file)
        if len(written.refused) < file.count:
            self._reached().put(self._path(place, file), written.data, self.require_ours)
        places = file.places() if written.refused else []
        self._refused += [spi.Refused(places[at], reason) for at, reason in written.refused]

    def _written(self, place: Place, file: GatheredFile) -> Written:
        rows = file.rows()
        if rows is not None and self._format.render is not None:
            return Written(self._format.render(rows, place[0]), [])
        return self._format.write(file.records(*place[:2]))

    def _path(self, place: Place, file: GatheredFile) -> str:
        topic, partition, folder = place
        width = self.config.filename_offset_zero_pad_width
        delim = self.config.file_delim
        name = f"{topic}{delim}{partition}{delim}{file.offset:0{width}d}{self._format.extension}"
        return "/".join(part for part in (self.config.topics_dir.strip("/"), topic, folder, name) if part)

    def _reached(self) -> Store:
        if self._store is None:
            self._store = store_of(self.config)
        return self._store


def _origin(record: ConnectRecord) -> tuple[str, int]:
    """Where it was read: a transform may have changed its topic."""
    read: Any = record if record.origin is None else record.origin
    return read.topic, read.partition or 0
