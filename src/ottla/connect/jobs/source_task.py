"""One task of a source: reads its partitions, converts, transforms, and writes into the transaction that it is given.

Records, dead letters and source offsets go into it; the driver ends it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from ottla.client.blocking.cluster import Cluster
from ottla.connect.dead_letters import Letter
from ottla.connect.jobs.boundary import Boundary
from ottla.connect.jobs.chain import Chain, Outbound
from ottla.connect.jobs.letters import fitted, letter_record
from ottla.connect.jobs.outgoing import Outgoing
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.reports import Calls, Counts, Failed, SourceReport
from ottla.connect.jobs.retrying import Retrying
from ottla.connect.jobs.sink_task import Refusal
from ottla.connect.jobs.sizes import DEFAULT, Sizes
from ottla.connect.jobs.spec import JobSpec, opened_source
from ottla.connect.offsets import value_of
from ottla.connect.spi import (
    ConfigRefused,
    Copies,
    Lines,
    Observed,
    Offset,
    Partition,
    Prepared,
    Read,
    Source,
    Table,
    Texts,
)
from ottla.connect.topic_creation import creation_rules
from ottla.pipelines.sink.writer import Errand

LIMIT: Final = 50_000
"""Records of one read."""


PORTION_BYTES: Final = 64_000_000
"""Of a table in Arrow's columns, converted at a time."""
PEEK: Final = 500
"""At most so many records go along with a plan."""


class Part(NamedTuple):
    """One source partition of a task."""

    partition: Partition
    start: Offset | None
    key: bytes
    """Under which its position is filed."""
    peeked: Read | None = None
    """Read already, when it was found out whether there is something."""


class SourceTask:
    """Stays open from one micro-batch to the next."""

    def __init__(self, spec: JobSpec) -> None:
        """Raises ConfigRefused."""
        self.spec = spec
        self._chain = Chain(spec)
        try:
            self._rules = creation_rules(spec.config) if spec.topic_creation else ()
        except ValueError as error:
            raise ConfigRefused("topic.creation", str(error)) from error
        self._boundary = Boundary.of(spec.config)
        self._sources: dict[bytes, Source[Any]] = {}
        self._sizes: tuple[Cluster, Sizes] | None = None

    def close(self) -> None:
        for source in self._sources.values():
            source.close()
        self._sources.clear()

    def run(self, number: int, parts: Sequence[Part], limit: int, cluster: Cluster, errand: Errand) -> SourceReport:
        """What fails is told, not raised."""
        sizes = self._sizes_in(cluster)
        run = _Run(self.spec, self._chain, Outgoing(cluster, errand, self._rules, sizes), sizes, number)
        try:
            for part in parts:
                self._drain(run, part, limit, len(parts))
            run.settle()
            return run.finish()
        except Exception as error:  # noqa: BLE001  a connector may raise anything at all
            return SourceReport(number, run.counts, failed=Failed.of(error, self.spec.secrets))

    def _drain(self, run: _Run, part: Part, limit: int, parts: int) -> None:
        """Reads on while there is more and it belongs to the same transaction; `parts` share its time."""
        start, began_s = part.start, time.monotonic()
        read, more = part.peeked, True
        asked = PEEK
        taken = 0
        while more:
            if read is None:
                asked = limit
                asked_s = time.monotonic()
                read = run.retrying.run(lambda at=start: self._source(part).read(at, limit))  # type: ignore[misc]
                run.calls = run.calls.plus((time.monotonic() - asked_s) * 1000)
            run.take(part, read)
            run.remember(self._source(part), read)
            more = read.has_more(asked)
            start = start if read.end is None else read.end
            taken += read.size
            reading_s = (time.monotonic() - began_s) * parts
            if more and not self._boundary.may_read_on(reading_s, few=taken < limit // 2):
                run.full = True
                break
            read = None
        run.reached(part, start)

    def _sizes_in(self, cluster: Cluster) -> Sizes:
        if self._sizes is None or self._sizes[0] is not cluster:
            self._sizes = cluster, Sizes(cluster)
        return self._sizes[1]

    def _source(self, part: Part) -> Source[Any]:
        if part.key not in self._sources:
            self._sources[part.key] = opened_source(self.spec, part.partition)
        return self._sources[part.key]


class _Run:
    """One micro-batch."""

    def __init__(self, spec: JobSpec, chain: Chain, out: Outgoing, sizes: Sizes, number: int) -> None:
        self._spec = spec
        self._policy = spec.policy
        self._chain = chain
        self._out = out
        self._sizes = sizes
        self._number = number
        self._ends: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = []
        self.full = False
        """There is more than was read."""
        self._letters: list[Letter] = []
        self._asking: dict[int, tuple[Source[Any], list[Read]]] = {}
        self._observed: list[Observed] = []
        self.counts = Counts()
        self.calls = Calls()
        self.retrying = Retrying(self._policy)

    def take(self, part: Part, read: Read) -> None:
        rows = read.rows
        if isinstance(rows, Lines):
            self._take_lines(rows, part.partition)
        elif isinstance(rows, Copies):
            self._take_copies(rows, part.partition)
        elif isinstance(rows, Prepared):
            self._take_prepared(rows, part.partition)
        elif isinstance(rows, Table):
            self._take_table(rows, part.partition)
        else:
            self._take_rows(rows, part.partition)

    def reached(self, part: Part, end: Offset | None) -> None:
        """Where the next batch begins."""
        if end is not None and end != part.start:
            self._out.send([RawRecord(part.key, value_of(end), self._spec.offsets_topic)])
            self._ends.append((part.partition, end))

    def _take_lines(self, lines: Lines, partition: Partition) -> None:
        if not self._chain.is_raw or not self._out.take_all(lines.topic, lines.values):
            self._take_rows(lines.as_rows(), partition)
            return
        count = len(lines.values)
        now_ms = time.time_ns() // 1_000_000
        self._out.send_values(lines.topic, lines.values, now_ms if lines.timestamp is None else lines.timestamp)
        self.counts = self.counts.plus(Counts(count, count))

    def _take_table(self, table: Table, partition: Partition) -> None:
        now_ms = time.time_ns() // 1_000_000
        for part in _portions(table):
            values = self._chain.column(part)
            if values is None or not self._out.take_all(part.topic, values):
                self._take_rows(part.as_rows(), partition)
                continue
            for chunk in values.chunks:
                self._out.send_values(part.topic, chunk, now_ms if part.timestamp is None else part.timestamp)
            count = len(values)
            self.counts = self.counts.plus(Counts(count, count))

    def _take_copies(self, copies: Copies, partition: Partition) -> None:
        if not self._chain.is_raw or not self._out.take_all(copies.topic, copies.keys, copies.values):
            self._take_rows(copies.as_rows(), partition)
            return
        count = len(copies.values)
        self._out.send_copies(copies)
        self.counts = self.counts.plus(Counts(count, count))

    def _take_prepared(self, prepared: Prepared, partition: Partition) -> None:
        form = self._chain.json_form
        if form is None:
            self._take_rows(prepared.as_rows(), partition)
            return
        for found in prepared.as_json(form):
            if isinstance(found, Texts):
                self._take_texts(found, partition)
            else:
                self._take_rows(found, partition)

    def _take_texts(self, texts: Texts, partition: Partition) -> None:
        count, now_ms = len(texts.values), time.time_ns() // 1_000_000
        columns = (pa.array(column, pa.binary()) for column in (texts.keys, texts.values))
        if self._out.take_all(texts.topic, *columns):
            self._out.send_texts(texts, now_ms)
            self.counts = self.counts.plus(Counts(count, count))
            return
        records = [
            RawRecord(key, value, texts.topic, None, now_ms)
            for key, value in zip(texts.keys, texts.values, strict=True)
        ]
        found = self._chain.judged(records, partition, self._out.too_large)
        self._take_found(found, count)

    def remember(self, source: Source[Any], read: Read) -> None:
        """For those who want to know where their records came to lie."""
        kind = type(source)
        if kind.delivered is not Source.delivered or kind.observed is not Source.observed:
            # Bytes that are sent already are let go: the next read finds their memory warm.
            self._asking.setdefault(id(source), (source, []))[1].append(_without_bytes(read))

    def settle(self) -> None:
        if not self._asking:
            return
        self._out.flush()
        now_ms = time.time_ns() // 1_000_000
        for source, reads in self._asking.values():
            self._observed += source.observed(reads, now_ms)
            more = source.delivered(reads, self._out.first_offsets)
            self._out.send(self._chain.outbound(more, source.partition).records)

    def _take_rows(self, rows: Sequence[Any], partition: Partition) -> None:
        self._take_found(self._chain.outbound(rows, partition, self._out.too_large), len(rows))

    def _take_found(self, found: Outbound, count: int) -> None:
        for letter in found.letters:
            self._refuse(letter)
        self._out.send(found.records)
        failed = len(found.letters)
        letters = failed if self._policy.topic else 0
        self.counts = self.counts.plus(Counts(count, len(found.records), found.skipped, failed, 0, letters))

    def _refuse(self, letter: Letter) -> None:
        failure = letter.failure
        if not self._policy.tolerates_all:
            raise Refusal(
                f"{letter.where} failed in {failure.stage} ({failure.class_name}): {failure.error_class}: "
                f"{failure.message}. errors.tolerance is none, so nothing from it on is written. Mend what is read or "
                f"the config, or set errors.tolerance=all and errors.deadletterqueue.topic.name\n{failure.trace}"
            )
        self._letters.append(letter)
        if self._policy.topic:
            record = letter_record(letter, self._policy, self._spec.name, self._number, letter.timestamp)
            if self._out.too_large(record):
                record = fitted(record, len(letter.headers), self._sizes.most(self._policy.topic) or DEFAULT)
            self._out.send([record])

    def finish(self) -> SourceReport:
        self._out.flush()
        counts = self.counts._replace(retries=self.retrying.retries)
        own = {self._spec.offsets_topic, self._policy.topic}
        topics = [topic for topic in self._out.topics if topic not in own]
        letters = self._letters[:10]
        return SourceReport(
            self._number, counts, self._ends, self._out.written, topics, self.full, letters, self._observed,
            calls=self.calls,
        )  # fmt: skip


def _without_bytes(read: Read) -> Read:
    if isinstance(read.rows, Copies):
        return read._replace(rows=read.rows.without_bytes())
    return read._replace(rows=()) if isinstance(read.rows, Prepared) else read


def _portions(table: Table) -> Iterator[Table]:
    """A column of texts has to stay below 2 GB."""
    rows = len(table.values)
    step = max(1, rows * PORTION_BYTES // max(table.values.nbytes, 1))
    for start in range(0, rows, step):
        yield table._replace(values=table.values.slice(start, step))


def partition_text(partition: Partition) -> str:
    return msgspec.json.encode(dict(partition), order="sorted").decode()
