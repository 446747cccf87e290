"""What sinks into tables have in common: rows are held for a micro-batch and committed at its end, once."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from ottla.connect import spi
from ottla.connect.connectors.tables.buffer import Pending, insert, insert_json, upserts
from ottla.connect.connectors.tables.config import TableConfig
from ottla.connect.connectors.tables.names import ANY, Names

T = TypeVar("T", bound=TableConfig)


class TableSink(spi.Sink[T]):
    """A kind of table says how far it is written, what its columns are, and commits."""

    exactly_once: ClassVar[bool] = True
    names: ClassVar[Names] = ANY
    first_records: ClassVar[int] = 20_000

    def __init__(self, config: T, name: str) -> None:
        super().__init__(config, name)
        self._spans: Sequence[spi.Span] = ()
        self._pending: dict[tuple[str, bool], Pending] = {}
        """By topic, and whether its records were written before: those are only judged once more, as their dead letters
        may have been lost with what died."""
        self._written: dict[tuple[str, int | None], int] = {}
        self._seen = 0
        self._refused: list[spi.Refused] = []

    def validate(self) -> None:
        self.config.check()

    def begin(self, spans: Sequence[spi.Span]) -> None:
        self._spans = spans
        self._pending = {}
        self._refused = []
        self._seen = 0
        self._written = {(span.topic, span.partition): self.written_until(span) for span in spans}

    @property
    def takes_json(self) -> bool:
        return self.config.insert_mode == "insert"

    def write(self, batch: spi.Batch) -> spi.Verdicts:
        for columns in batch.columns:
            self._write_json(columns)
        refused: list[spi.Refused] = []
        by_table: dict[tuple[str, bool], list[int]] = {}
        for at, record in enumerate(batch.records):
            written = (record.offset or 0) < self._written.get((record.topic, record.partition), 0)
            by_table.setdefault((record.topic, written), []).append(at)
        for table, places in by_table.items():
            pending = self._pending.setdefault(table, Pending())
            records = [batch.records[at] for at in places]
            if self.config.insert_mode == "upsert":
                pending.places += [self._seen + at for at in places]
                pending.records += records
            else:
                refused += insert(pending, places, records, self.columns(table[0]), names=self.names)
        self._seen += len(batch.records)
        return refused

    def _write_json(self, columns: spi.Columns) -> None:
        if columns.offsets[0] < self._written.get((columns.topic, columns.partition), 0):
            raise spi.OneByOne
        pending = self._pending.setdefault((columns.topic, False), Pending())
        insert_json(pending, columns.values, self.columns(columns.topic), names=self.names)
        self._seen += len(columns.values)

    def end(self) -> spi.Verdicts:
        """May be called again after it raised TryAgain: what was committed is not there any more then."""
        for table in list(self._pending):
            self._refused += self._commit(*table, self._pending[table])
            del self._pending[table]
        return self._refused

    def _commit(self, topic: str, written: bool, pending: Pending) -> list[spi.Refused]:
        spans = [span for span in self._spans if span.topic == topic]
        if self.config.insert_mode == "upsert":
            made = upserts(pending, self.config, self.columns(topic), names=self.names)
            if not written and (made.rows is not None or made.deleted):
                self.upsert(topic, made.rows, made.deleted, made.keys, spans)
            return made.refused
        rows = pending.table()
        if rows is not None and not written:
            self.append(topic, rows, spans)
        return []

    def application(self, span: spi.Span) -> str:
        """What the offsets of a partition are filed under in the table."""
        return f"{self.name}/{span.log}/{span.partition}"

    def require_unwritten(self, spans: Sequence[spi.Span]) -> None:
        """Before each attempt to commit, by the table that the commit is based on: an attempt whose answer was lost may
        have been made, and so may that of another life of this task. Raises ConnectorFailed."""
        for span in spans:
            if self.written_until(span) != self._written[span.topic, span.partition]:
                raise spi.ConnectorFailed(
                    f"The offsets of {span.topic}-{span.partition} in its table are others than when this batch began: "
                    "an attempt to commit it has succeeded, or another worker writes here. It goes on from what is "
                    "there when the connector is started again"
                )

    @abstractmethod
    def written_until(self, span: spi.Span) -> int:
        """The offset behind the last record of the partition that is in the table."""

    @abstractmethod
    def columns(self, topic: str) -> pa.Schema | None:
        """None: the table is not there yet."""

    @abstractmethod
    def append(self, topic: str, rows: pa.Table, spans: Sequence[spi.Span]) -> None:
        """In one commit with the ends of `spans`. Raises TryAgain."""

    @abstractmethod
    def upsert(
        self,
        topic: str,
        rows: pa.Table | None,
        deleted: Sequence[dict[str, Any]],
        keys: Sequence[str],
        spans: Sequence[spi.Span],
    ) -> None:
        """The same, with rows that replace those of the same key and keys whose rows go."""
