"""One task of a sink: fetches its partitions, converts, transforms and writes, and tells what became of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.client.blocking.cluster import Cluster
from ottla.connect.data.record import ConnectRecord
from ottla.connect.dead_letters import Letter
from ottla.connect.jobs.chain import Chain, RawIn, raw_records
from ottla.connect.jobs.fence import Fence
from ottla.connect.jobs.reports import Calls, Counts, Failed, SinkReport
from ottla.connect.jobs.retrying import Retrying
from ottla.connect.jobs.spec import JobSpec, opened_sink
from ottla.connect.spi import Batch, Columns, OneByOne, Refused, Sink, Span
from ottla.pipelines.sink.encoding import Sender
from ottla.pipelines.sink.transaction import Transaction

MOST_TOLERATED: Final = 50_000
"""Records of one micro-batch, if each may become a letter: all letters go to the driver, in one answer to Spark."""
WHOLE_TRACES: Final = 1_000
"""Letters of one task and micro-batch; behind these a trace is only its end."""
SHORT_TRACE: Final = 1_000
"""Characters."""
ASKING_S: Final = 60.0
"""How long a coordinator that is away is waited for."""


class Refusal(Exception):
    """A record that is no good, where none is tolerated."""


class SinkTask:
    """Stays open from one micro-batch to the next."""

    def __init__(self, spec: JobSpec, sink: Sink[Any] | None = None) -> None:
        """Raises ConfigRefused."""
        self.spec = spec
        self._policy = spec.policy
        self._chain = Chain(spec)
        self._sink: Sink[Any] = opened_sink(spec) if sink is None else sink
        self.by_columns = self._chain.is_raw and self._sink.takes_columns
        """Whether its records need not be converted."""
        self._by_json = self._chain.reads_json and self._sink.takes_json
        self._asking: Cluster | None = None
        self._fence: Fence | None = None

    @property
    def first_records(self) -> int:
        return self._sink.first_records

    @property
    def most_records(self) -> int | None:
        """Of a micro-batch; None: it is for the time to say."""
        return MOST_TOLERATED if self._policy.tolerates_all and not self.by_columns else None

    def gather_ms(self) -> int:
        return self._sink.gather_ms()

    def gather_records(self) -> int:
        return self._sink.gather_records()

    def belongs_to(self, sender: Sender | None) -> None:
        """What is written next will be committed under this identity, or is not to be written any more."""
        if sender is None:
            return
        if self._fence is None:
            self._asking = self.spec.cluster(self.spec.committing, ASKING_S)
            self._fence = Fence(Transaction(self._asking, self.spec.transactional_id(0), timeout_ms=0))
            self.asks(self._fence)
        self._fence.begin(sender)

    def asks(self, fence: Fence) -> None:
        """Before whatever its target would see."""
        self._sink.require_ours = fence.check

    def close(self) -> None:
        if self._asking is not None:
            self._asking.close()
        self._sink.close()

    def prepare(self, spans: Sequence[Span]) -> None:
        """For all tasks of a micro-batch. Raises what the connector raises."""
        if type(self._sink).prepare is not Sink.prepare:  # else nobody need be asked for it
            Retrying(self._policy).run(lambda: self._prepared(spans))

    def _prepared(self, spans: Sequence[Span]) -> None:
        self._sink.require_ours()
        self._sink.prepare(spans)

    def run(self, number: int, spans: Sequence[Span], columns: Iterator[Columns], *, alone: bool = False) -> SinkReport:
        """`columns` of all spans, in their order. `alone`: no other task has a part of this micro-batch. What fails is
        told, not raised."""
        run = _Run(self._chain, self._sink, Retrying(self._policy), spans, self._policy.tolerates_all)
        try:
            if alone:
                self.prepare(spans)
            run.begin()
            for each in columns:
                if self.by_columns:
                    run.write_columns(each)
                elif not (self._by_json and self._chain.is_json(each) and run.write_json(each)):
                    run.write_records(each)
            run.finish()
        except Exception as error:  # noqa: BLE001  a connector may raise anything at all
            return SinkReport(number, run.counts(), (), Failed.of(error, self.spec.secrets, run.where(error)))
        return SinkReport(number, run.counts(), run.letters, calls=run.calls)


class _Told(NamedTuple):
    read: int = 0
    skipped: int = 0


class _Run:
    """One micro-batch."""

    def __init__(
        self, chain: Chain, sink: Sink[Any], retrying: Retrying, spans: Sequence[Span], tolerates_all: bool
    ) -> None:
        self._chain = chain
        self._sink = sink
        self._retrying = retrying
        self._spans = spans
        self._tolerates_all = tolerates_all
        self._given: list[Sequence[ConnectRecord] | Columns] = []
        """All records of this micro-batch: the sink may speak of them at its end."""
        self._told = _Told()
        self.letters: list[Letter] = []
        self.calls = Calls()
        self._at = ""

    def counts(self) -> Counts:
        read, skipped = self._told
        failed = len(self.letters)
        return Counts(read, read - skipped - failed, skipped, failed, self._retrying.retries, failed)

    def where(self, error: BaseException) -> str:
        return f"while writing {self._at}: " if self._at and not isinstance(error, Refusal) else ""

    def begin(self) -> None:
        self._retrying.run(lambda: self._sink.begin(self._spans))

    def write_columns(self, columns: Columns) -> None:
        count = len(columns.offsets)
        self._told = self._told._replace(read=self._told.read + count)
        self._at = f"{columns.topic}-{columns.partition} from offset {int(columns.offsets[0])} on"
        refused = self._put(Batch((), self._spans, (columns,)))
        if refused:
            raws = raw_records(columns)
            for at, error in refused:
                self._refuse(self._chain.refused(raws[at], error))

    def write_json(self, columns: Columns) -> bool:
        """False: not this way, and nothing of it was."""
        self._at = f"{columns.topic}-{columns.partition} from offset {int(columns.offsets[0])} on"
        try:
            refused = self._put(Batch((), self._spans, (columns,)))
        except OneByOne:
            return False
        self._told = self._told._replace(read=self._told.read + len(columns.offsets))
        for at, error in refused:
            self._refuse(self._chain.refused(_raw_at(columns, at), error))
        self._given.append(columns)
        return True

    def _put(self, batch: Batch) -> list[Refused]:
        began_s = time.monotonic()
        refused = self._retrying.run(lambda: self._written(batch))
        self.calls = self.calls.plus((time.monotonic() - began_s) * 1000)
        return refused

    def write_records(self, columns: Columns) -> None:
        found = self._chain.inbound(columns)
        self._told = _Told(self._told.read + len(columns.offsets), self._told.skipped + found.skipped)
        for letter in found.letters:
            self._refuse(letter)
        most = self._sink.batch_records
        for start in range(0, len(found.records), most):
            self._write(found.records[start : start + most])

    def _write(self, records: list[ConnectRecord]) -> None:
        self._at = _at(records[0])
        refused = self._put(Batch(records, self._spans))
        for at, error in refused:
            self._refuse(self._chain.refused(records[at].origin, error))
        self._given.append(records)

    def finish(self) -> None:
        self._at = ""
        for at, error in self._retrying.run(self._ended):
            self._refuse(self._chain.refused(self._origin(at), error))

    def _origin(self, at: int) -> object:
        for part in self._given:
            count = len(part.offsets) if isinstance(part, Columns) else len(part)
            if at < count:
                return _raw_at(part, at) if isinstance(part, Columns) else part[at].origin
            at -= count
        raise IndexError(f"the sink speaks of record {at} behind the last one")

    def _written(self, batch: Batch) -> list[Refused]:
        self._sink.require_ours()
        return list(self._sink.write(batch))  # one that yields them does its work only now

    def _ended(self) -> list[Refused]:
        self._sink.require_ours()
        return list(self._sink.end())

    def _refuse(self, letter: Letter) -> None:
        if not self._tolerates_all:
            failure = letter.failure
            raise Refusal(
                f"{letter.where} failed in {failure.stage} ({failure.class_name}): "
                f"{failure.error_class}: {failure.message}. errors.tolerance is none, so nothing behind it is written. "
                "Mend the record or the config, or set errors.tolerance=all and errors.deadletterqueue.topic.name"
                f"\n{failure.trace}"
            )
        if len(self.letters) >= WHOLE_TRACES:
            failure = letter.failure
            letter = letter._replace(failure=failure._replace(trace=failure.trace[-SHORT_TRACE:]))
        self.letters.append(letter)


def _raw_at(columns: Columns, at: int) -> RawIn:
    """One record alone."""
    headers = None if columns.headers is None else columns.headers.slice(at, 1)
    offsets, timestamps = columns.offsets[at : at + 1], columns.timestamps[at : at + 1]
    keys, values = columns.keys.slice(at, 1), columns.values.slice(at, 1)
    (raw,) = raw_records(
        columns._replace(keys=keys, values=values, offsets=offsets, timestamps=timestamps, headers=headers)
    )
    return raw


def _at(record: ConnectRecord) -> str:
    raw = record.origin
    assert isinstance(raw, RawIn)
    return f"{raw.topic}-{raw.partition} from offset {raw.offset} on"


def spi_columns(topic: str, partition: int, found: Any) -> Columns:
    """Of what the source's decoder gives."""
    keys: pa.Array = found.keys
    return Columns(topic, partition, keys, found.values, found.offsets, found.timestamps, found.headers)
