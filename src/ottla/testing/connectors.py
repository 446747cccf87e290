"""A connector tried out without a broker and without Spark: `connect(MyConnector, config, records)`.

Converters, transforms, verdicts and retries are those that run in a worker; only the topics are lists.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.connect.catalogue import ANY_MODULE
from ottla.connect.dead_letters import Letter
from ottla.connect.jobs.chain import Chain
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns, Offset, Row, Sink, Source, Span, parse
from ottla.pipelines.source.columns import HEADERS_TYPE

MOST_READS: Final = 100
"""Of a source that never comes to an end."""
LIMIT: Final = 500
_CONVERTERS: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class Tried(NamedTuple):
    """What became of it."""

    records: Sequence[RawRecord]
    """What a source wrote, as bytes; of a sink, none."""
    letters: Sequence[Letter]
    """Records that failed, where `errors.tolerance` is all."""
    offset: Offset | None = None
    """Where a source would go on."""

    @property
    def values(self) -> list[Any]:
        """Of the records, as JSON has them; else as text."""
        return [_read(record.value) for record in self.records]


def connect(
    connector: type[Source[Any]] | type[Sink[Any]],
    config: Mapping[str, object],
    records: Iterable[Any] = (),
    *,
    start: Offset | None = None,
    topic: str = "test",
) -> Tried:
    """A source is read from `start` until it has no more; a sink is given `records`: values, or `Row`s with key, topic
    and headers. Raises ConfigRefused for a config that is no good, AssertionError with the trace when it fails."""
    texts = {name: value if value is None else str(value) for name, value in config.items()}
    texts.setdefault("connector.class", f"{connector.__module__}:{connector.__qualname__}")
    spec = JobSpec("test", texts, "", "test", "test-offsets", "", _CONVERTERS, modules=ANY_MODULE)
    if issubclass(connector, Source):
        return _read_source(spec, connector, start)
    return _write_sink(spec, connector, list(records), topic)


def _read_source(spec: JobSpec, kind: type[Source[Any]], start: Offset | None) -> Tried:
    chain = Chain(spec)
    model = parse(kind.model, spec.config)
    asked = kind(model, spec.name)
    asked.validate()
    found: list[RawRecord] = []
    letters: list[Letter] = []
    offset = start
    for partition in asked.partitions():
        source = kind(model, spec.name, partition)
        offset = start
        for _ in range(MOST_READS):
            if source.is_done(offset):
                break
            read = source.read(offset, LIMIT)
            rows = read.as_rows()
            out = chain.outbound(rows, partition)
            found += out.records
            letters += out.letters
            assert not out.letters or spec.policy.tolerates_all, out.letters[0].failure.trace
            moved = read.end is not None and read.end != offset
            offset = offset if read.end is None else read.end
            if not rows or not moved:
                break
        source.close()
    return Tried(found, letters, offset)


def _write_sink(spec: JobSpec, kind: type[Sink[Any]], given: Sequence[Any], topic: str) -> Tried:
    sink = kind(parse(kind.model, spec.config), spec.name)
    sink.validate()
    rows = [each if isinstance(each, Row) else Row(topic, each) for each in given]
    columns: list[Columns] = []
    spans: list[Span] = []
    for name in dict.fromkeys(row.topic for row in rows):
        these = [row for row in rows if row.topic == name]
        columns.append(_columns(name, these))
        spans.append(Span(name, 0, 0, len(these)))
    task = SinkTask(spec, sink)
    report = task.run(0, spans, iter(columns), alone=True)
    task.close()
    assert report.failed is None, f"{report.failed.text}\n{report.failed.trace}"
    return Tried((), report.letters)


def _columns(topic: str, rows: Sequence[Row]) -> Columns:
    now_ms = time.time_ns() // 1_000_000
    headers = [[{"key": name, "value": _bytes(value)} for name, value in row.headers] or None for row in rows]
    return Columns(
        topic,
        0,
        pa.array([row.key if row.key is None else _plain(row.key) for row in rows], pa.binary()),
        pa.array([None if row.value is None else _bytes(row.value) for row in rows], pa.binary()),
        np.arange(len(rows)),
        np.array([now_ms if row.timestamp is None else row.timestamp for row in rows], np.int64),
        pa.array(headers, HEADERS_TYPE),
    )


def _bytes(value: Any) -> bytes:
    """As JSON; bytes are what lies in the topic."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def _plain(key: Any) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()


def _read(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
