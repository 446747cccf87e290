"""The source: what the sink wrote, or any other files of these formats, back into topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesSourceConfig
from ottla.connect.connectors.files.contents import Contents, contents_of, reading_of
from ottla.connect.connectors.files.places import UNFINISHED, File, Place, origin_of, unread
from ottla.connect.connectors.files.stores import Listed, Store, store_of
from ottla.connect.data.record import SchemaAndValue
from ottla.connect.transforms.patterns import compiled

READ_BYTES: Final = 64 << 20
"""Of files, about, in one read."""
STORE_POLL_MS: Final = 60_000
FOLDER_POLL_MS: Final = 1_000


class _Opened(NamedTuple):
    """A file that may be read on by the next read."""

    listed: Listed
    settled: bool
    size: int
    contents: Contents


@dataclass(slots=True)
class _Taken:
    """By one read."""

    place: Place
    most: int
    """Records."""
    rows: list[spi.Row] = field(default_factory=list)
    size: int = 0
    """Of the files, in bytes."""
    is_held: bool = False

    @property
    def is_enough(self) -> bool:
        return self.is_held or len(self.rows) >= self.most or self.size >= READ_BYTES


class FilesSource(spi.Source[FilesSourceConfig]):
    """A source partition is a partition of a topic that the sink wrote; with mode=GENERIC, a topic."""

    def __init__(self, config: FilesSourceConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006  never changed
        super().__init__(config, name, partition)
        self._reading = reading_of(config)
        self._topics_dir = config.topics_dir.strip("/")
        self._rules = _rules(config)
        self._store: Store | None = None
        self._files: list[File] | None = None
        self._listed_at = 0.0
        self._opened: _Opened | None = None

    def validate(self) -> None:
        store_of(self.config)
        if not self.config.file_delim:
            raise spi.ConfigRefused("file.delim", "is empty: it stands between the parts of a file's name")
        if self.config.mode == "GENERIC" and not self._rules:
            raise spi.ConfigRefused("topic.regex.list", "is missing: topic:regex, for the topics of mode=GENERIC")

    def poll_interval_ms(self) -> int:
        usual = FOLDER_POLL_MS if self.config.directory else STORE_POLL_MS
        return self.config.s3_poll_interval_ms or usual

    @classmethod
    def check_offset(cls, partition: spi.Partition, offset: spi.Offset | None) -> None:
        spi.text_of(partition, "files", "topic")
        try:
            Place.of(offset)
        except spi.ConnectorFailed as error:
            raise ValueError(str(error)) from None

    def partitions(self) -> Sequence[spi.Partition]:
        root = self.config.directory or f"s3://{self.config.s3_bucket_name}"
        files = f"{root.rstrip('/')}/{self._topics_dir}"
        if self.config.mode == "GENERIC":
            return [{"files": files, "topic": topic} for topic in dict.fromkeys(topic for topic, _ in self._rules)]
        origins = (
            origin_of(each.path, self._topics_dir, self.config.file_delim) for each in self._listing(self._topics_dir)
        )
        found = {(origin.topic, origin.partition) for origin in origins if origin is not None}
        return [{"files": files, "topic": topic, "partition": partition} for topic, partition in sorted(found)]

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        begin = Place.of(start)
        taken = _Taken(begin, min(limit, self.config.record_batch_max_size or limit))
        for file, record in self._unread(begin)[: self.config.task_batch_size]:
            opened = self._open(file.listed)
            if opened is None:
                continue  # it vanished: the next one
            self._take(taken, file, opened, record)
            if taken.is_enough:
                break
        end = None if taken.place == begin else taken.place.as_offset()
        return spi.Read(taken.rows, end, more=bool(self._files and unread(self._files, taken.place)))

    def _take(self, taken: _Taken, file: File, opened: _Opened, record: int) -> None:
        contents = opened.contents
        stop = max(record, min(len(contents), record + taken.most - len(taken.rows)))
        taken.rows += self._rows(file, contents, record, stop)
        taken.size += opened.size
        if stop < len(contents):
            taken.place = taken.place.behind(file, stop, UNFINISHED)
            return
        if contents.held and not opened.settled:
            # Nothing behind it before it is whole: there will be another listing.
            taken.is_held, self._files = True, None
            taken.place = taken.place.behind(file, stop, UNFINISHED) if stop else taken.place
            return
        if contents.held:
            taken.rows.append(self._row(file, spi.Unreadable(contents.rest, contents.held), "behind record", stop))
        taken.place = taken.place.behind(file, stop, opened.size)
        self._opened = None

    # Files.

    def _unread(self, place: Place) -> list[tuple[File, int]]:
        """A listing is looked through to its end before there is another one, unless it is old."""
        age_ms = (time.monotonic() - self._listed_at) * 1000
        if self._files is not None and age_ms < self.poll_interval_ms():
            found = unread(self._files, place)
            if found:
                return found
        self._listed_at = time.monotonic()
        self._files = self._mine()
        return unread(self._files, place)

    def _mine(self) -> list[File]:
        topic = str(self.partition["topic"])
        if self.config.mode == "GENERIC":
            return [File(each, 0) for each in self._listing(self._topics_dir) if self._topic_of(each.path) == topic]
        found: list[File] = []
        for each in self._listing("/".join(part for part in (self._topics_dir, topic) if part)):
            origin = origin_of(each.path, self._topics_dir, self.config.file_delim)
            if origin is not None and (origin.topic, origin.partition) == (topic, self.partition["partition"]):
                found.append(File(each, origin.offset))
        return found

    def _topic_of(self, path: str) -> str | None:
        return next((topic for topic, matches in self._rules if matches(path)), None)

    def _listing(self, under: str) -> list[Listed]:
        since_ms = self.config.file_discovery_starting_timestamp
        return [
            each
            for each in self._stored().files(under)
            if each.path.endswith(self._reading.extensions) and each.written_ms >= since_ms
        ]

    def _stored(self) -> Store:
        if self._store is None:
            self._store = store_of(self.config)
        return self._store

    # What they hold.

    def _open(self, listed: Listed) -> _Opened | None:
        shown_whole = not self._stored().shows_halves
        settled = shown_whole or time.time() * 1000 - listed.written_ms >= self.config.file_settle_ms
        kept = self._opened
        if kept is not None and kept.listed == listed and kept.settled == settled:
            return kept
        most = self.config.file_max_bytes
        data = self._stored().get(listed.path, most + 1)
        if data is None:
            return None
        settled = shown_whole or (settled and len(data) == min(listed.size, most + 1))  # else it was written since
        contents = contents_of(self._reading, listed.path, data, settled=settled, most=most)
        size = len(data) if len(data) <= most else listed.size
        self._opened = _Opened(listed, settled, size, contents)
        return self._opened

    def _rows(self, file: File, contents: Contents, start: int, stop: int) -> list[spi.Row]:
        rows: list[spi.Row] = []
        for at, item in enumerate(contents.items(start, stop), start):
            if isinstance(item, SchemaAndValue):
                rows.append(self._made(item))
            elif item is not None:
                rows.append(self._row(file, item, "record", at + 1))
        return rows

    def _made(self, item: SchemaAndValue) -> spi.Row:
        return spi.Row(
            self.partition["topic"], item.value, partition=self.partition.get("partition"), value_schema=item.schema
        )

    def _row(self, file: File, found: spi.Unreadable, where: str, number: int) -> spi.Row:
        told = found._replace(reason=f"{file.listed.path}, {where} {number}: {found.reason}")
        return spi.Row(self.partition["topic"], told, partition=self.partition.get("partition"))


def _rules(config: FilesSourceConfig) -> list[tuple[str, Callable[[str], object]]]:
    """Raises ConfigRefused."""
    rules: list[tuple[str, Callable[[str], object]]] = []
    for each in config.topic_regex_list:
        topic, colon, pattern = each.partition(":")
        if not topic or not colon:
            raise spi.ConfigRefused("topic.regex.list", f"{each} is no topic:regex")
        try:
            rules.append((topic, compiled(pattern).fullmatch))
        except ValueError as error:
            raise spi.ConfigRefused("topic.regex.list", f"{pattern} is no regular expression: {error}") from error
    return rules
