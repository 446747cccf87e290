"""Converters and transforms of one connector, with a verdict for each record: a record, nothing, or a letter.

Made anew in each process from the config. `is_raw` says that bytes pass as they are, so whoever can deals in columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ottla.connect.data.record import ConnectRecord
from ottla.connect.dead_letters import Failure, Letter, RawHeader, Stage, as_bytes
from ottla.connect.jobs.outgoing import RawRecord
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.jobs.stages import StageFailed, Stages
from ottla.connect.spi import Columns, Partition, Row

_RAW: Final = ("StringConverter", "ByteArrayConverter")


class RawIn(NamedTuple):
    """A record as it lies in its topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[RawHeader] = ()

    def letter(self, failure: Failure) -> Letter:
        return Letter(
            self.key, self.value, self.headers, self.timestamp, self.topic, self.partition, self.offset, failure
        )


class Inbound(NamedTuple):
    """Records of a topic on their way to a sink. `origin` of each is its RawIn."""

    records: list[ConnectRecord]
    letters: list[Letter]
    skipped: int


class Outbound(NamedTuple):
    """Rows of a source on their way to topics."""

    records: list[RawRecord]
    letters: list[Letter]
    skipped: int


class Chain:
    """Of one connector."""

    __slots__ = ("_class_name", "_stages", "is_raw")

    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self._class_name = spec.config.get("connector.class") or ""
        self._stages = Stages(spec)
        self.is_raw = not spec.config.get("transforms") and all(_is_raw(spec, side) for side in ("key", "value"))
        """Bytes pass as they are."""

    def inbound(self, columns: Columns) -> Inbound:
        """One record after the other. A letter has the bytes as they were."""
        records: list[ConnectRecord] = []
        letters: list[Letter] = []
        skipped = 0
        for raw in raw_records(columns):
            try:
                record = self._stages.inbound(raw)
            except StageFailed as failed:
                letters.append(raw.letter(failed.failure))
                continue
            if record is None:
                skipped += 1
            else:
                records.append(record)
        return Inbound(records, letters, skipped)

    def refused(self, record: ConnectRecord, error: Exception | str) -> Letter:
        """Of a record that the sink did not take."""
        raw = record.origin
        assert isinstance(raw, RawIn)
        return raw.letter(Failure.of(Stage.TASK_PUT, self._class_name, error))

    def outbound(self, rows: Sequence[Row], partition: Partition) -> Outbound:
        records: list[RawRecord] = []
        letters: list[Letter] = []
        skipped = 0
        now_ms = time.time_ns() // 1_000_000
        for row in rows:
            try:
                record = self._stages.outbound(row, now_ms)
            except StageFailed as failed:
                letters.append(_source_letter(row, partition, failed.failure))
                continue
            if record is None:
                skipped += 1
            else:
                records.append(record)
        return Outbound(records, letters, skipped)


def raw_records(columns: Columns) -> Iterator[RawIn]:
    headers: Any = [None] * len(columns.offsets) if columns.headers is None else columns.headers.to_pylist()
    for key, value, offset, timestamp, told in zip(
        columns.keys.to_pylist(),
        columns.values.to_pylist(),
        columns.offsets.tolist(),
        columns.timestamps.tolist(),
        headers,
        strict=True,
    ):
        pairs = [(each["key"], each["value"]) for each in told] if told else ()
        yield RawIn(columns.topic, columns.partition, offset, key, value, timestamp, pairs)


def _source_letter(row: Row, partition: Partition, failure: Failure) -> Letter:
    told = msgspec.json.encode(dict(partition)).decode()
    headers = [(name, as_bytes(value)) for name, value in row.headers]
    return Letter(
        as_bytes(row.key), as_bytes(row.value), headers, row.timestamp, row.topic, row.partition, None, failure, told
    )


def _is_raw(spec: JobSpec, side: str) -> bool:
    name = (spec.setting(f"{side}.converter") or "").rpartition(".")[2]
    encoding = spec.with_prefix(f"{side}.converter.").get("converter.encoding", "UTF-8")
    return name in _RAW and encoding.upper().replace("-", "") == "UTF8"
