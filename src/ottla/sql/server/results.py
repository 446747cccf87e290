"""Queries of clients, computed in this process: records in, rows out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Protocol

from ottla.model.ids import TopicPartition
from ottla.protocol.records import Record
from ottla.registry.lookup import Registry
from ottla.serdes.base import SerdeError, Where, placed
from ottla.sql import tree as t
from ottla.sql.analysis.queries import Vocabulary, analysed
from ottla.sql.analysis.scope import record_types
from ottla.sql.analysis.typed import Joining, Read, TypedQuery
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.formats.format import Format
from ottla.sql.model import Columns, DataSource
from ottla.sql.plain import TEXTS, shown
from ottla.sql.records import Formats, event_column, event_ms
from ottla.sql.server.merging import Placed
from ottla.sql.server.writing import asks_registry
from ottla.streams.errors import CONTINUE, DESERIALIZATION, ErrorContext
from ottla.streams.expressions import Inputs
from ottla.streams.record import Raw
from ottla.streams.windows import Windowed

RESULT: Final = "result"
_CHECK_EVERY: Final = 1_000
"""Records between two looks at how much state there is."""
_LOOKS: Final = 8
"""Looks that there are at least while as many bytes come as state may have."""
_BYTES_AT_ONCE: Final = 4 << 20
"""Of rows, before the next look."""

Row = list[Any]


class Computing(Protocol):
    columns: Columns

    @property
    def unread(self) -> int:
        """Records so far that could not be read, or had no time."""

    def rows(self, records: Sequence[Placed], now: int) -> list[Row]:
        """What records of sources make, in their order. `now`: what time it is."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Client:
    """A query of a client, understood."""

    query: TypedQuery
    names: tuple[str, ...]
    """Of the result, in the order of the SELECT list."""
    is_quick: bool = True
    """Whether a few records may be computed on the loop: nobody has to ask the registry, or to run what may take its
    time, such as code of users."""

    @property
    def columns(self) -> Columns:
        kinds = dict((*self.query.keys, *self.query.columns))
        return tuple((name, kinds[name]) for name in self.names)

    @property
    def keys(self) -> tuple[str, ...]:
        """Which columns of the result are key columns."""
        return (*(name for name, _ in self.query.keys), *self.query.kept_keys)

    @property
    def is_plain(self) -> bool:
        """Whether each record makes its row by itself."""
        return isinstance(self.query.source, Read) and self.query.grouping is None and self.query.exploded is None

    def sources(self) -> list[DataSource]:
        return self.query.reads()


def understood(query: t.Query, around: Vocabulary) -> Client:
    """Raises SqlError."""
    found = analysed(query, around, stored=False)
    known = [name for name, _ in (*found.keys, *found.columns)]
    quick = not (asks_registry(*found.reads()) or _takes_time(found))
    return Client(found, tuple(_in_order(query, known)), quick)


_LOOPS: Final = frozenset(("python_call", "lambda", "generate_series", "ksql_cube"))
"""What may take long for one record."""


def _takes_time(query: TypedQuery) -> bool:
    written = [argument.expression for _, argument in (*query.key, *query.values)]
    written += [] if query.where is None else [query.where]
    return any(part.function in _LOOPS for each in written for part in each.walk())


def _in_order(query: t.Query, known: Sequence[str]) -> list[str]:
    """As the SELECT list has them, where it names them; keys first otherwise."""
    written = [
        item.alias or (item.expression.name if isinstance(item.expression, t.Column) else None)
        for item in query.items
        if isinstance(item, t.Item)
    ]
    if len(written) != len(known) or len(query.items) != len(written):
        return list(known)
    named, there = set(written), set(known)
    left = iter([name for name in known if name not in named])
    return [name if name is not None and name in there else next(left) for name in written]


def result_sink(client: Client) -> DataSource:
    """Where the rows of a query go that writes no topic: one that the driver of tests has for itself."""
    query = client.query
    return DataSource(
        RESULT,
        "TABLE" if query.is_table else "STREAM",
        RESULT,
        query.keys,
        query.columns,
        Format("JSON" if query.keys else "NONE"),
        Format("JSON"),
        window=query.window if query.grouping is not None else None,
    )


class Plain:
    """Record by record: a filter and a projection."""

    def __init__(self, client: Client, registry: Registry | None) -> None:
        assert isinstance(client.query.source, Read)
        source = client.query.source.source
        types = record_types(source.keys, source.values, source.window is not None)
        formats = Formats(registry)
        self.columns = client.columns
        self.unread = 0
        self._where = Where(source.topic)
        self._key = placed(formats.key(source), self._where)
        self._value = placed(formats.value(source), self._where)
        self._keep = None if client.query.where is None else client.query.where.compile(types)
        cells = dict(client.query.values)
        self._cells = [(cells[name].expression.compile(types), cells[name].type) for name in client.names]
        at = source.event_time
        self._time = None if at is None else event_ms(event_column(source, at), at).compile(types)

    def rows(self, records: Sequence[Placed], now: int) -> list[Row]:
        made = (self._row(place.topic, place.partition, record, now) for place, record in records)
        return [row for row in made if row is not None]

    def _row(self, topic: str, partition: int, record: Record, now: int) -> Row | None:
        """Nothing for what cannot be read, and for tombstones."""
        self._where.headers = list(record.headers)
        try:
            key, value = self._key.deserialize(record.key), self._value.deserialize(record.value)
        except SerdeError:
            self.unread += 1
            return None
        if value is None:
            return None
        inputs = Inputs(key, value, record.timestamp, record.headers, topic, partition, record.offset, now=now)
        if self._time is not None:
            moment = self._time(inputs)
            if moment is None:
                self.unread += 1
                return None
            inputs = inputs._replace(timestamp=moment)
        if self._keep is not None and self._keep(inputs) is not True:
            return None
        return [shown(cell(inputs), kind, TEXTS) for cell, kind in self._cells]

    def close(self) -> None:
        """It keeps nothing."""


class Driven:
    """By the driver of tests, which has all that a topology may hold. Its state ends with it, and has a limit."""

    def __init__(self, client: Client, registry: Registry | None, most_rows: int, most_bytes: int = 256 << 20) -> None:
        """`most_bytes`: of its state, and of the rows that it makes at once."""
        self.columns = client.columns
        self.unread = 0
        self._sink = result_sink(client)
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._longest = 1
        """Bytes of a row so far."""
        self._unchecked = self._unchecked_bytes = 0
        self._now = 0
        formats = Formats(registry)
        self._key, self._value = formats.key(self._sink), formats.value(self._sink)
        # For queries with state alone: to import them takes longer than a server does to start.
        from ottla.sql.compile import topology  # noqa: PLC0415
        from ottla.streams.test_driver import TopologyTestDriver  # noqa: PLC0415

        made = topology(client.query, self._sink, registry).without_logs().in_one_task()
        config = {DESERIALIZATION: self._left_out, "statestore.cache.max.bytes": 0}
        self._driver = TopologyTestDriver(made, "push", config)
        # Sides of a join have to meet in the order of time, also behind a topic between them.
        is_cut = bool(made.declared.repartition_topics)
        self._most_at_once = 1 if is_cut and isinstance(client.query.source, Joining) else _CHECK_EVERY

    def _left_out(self, _: ErrorContext, __: BaseException) -> str:
        self.unread += 1
        return CONTINUE

    def close(self) -> None:
        self._driver.close()

    def _check_size(self) -> None:
        if self._unchecked < _CHECK_EVERY and self._unchecked_bytes * _LOOKS < self._most_bytes:
            return
        self._unchecked = self._unchecked_bytes = 0
        for internal in self._driver.produced_topic_names():
            self._driver.output(internal).clear()  # what was repartitioned
        if self._driver.entries() > self._most_rows:
            raise SqlError(
                BAD_STATEMENT,
                f"the state of this query has more than {self._most_rows:,} rows, which is as many as a push query may "
                "have (sql.push.state.max.rows): make a stream or table of the query, which runs on Spark, and read it",
            )

        self._check_bytes("the state of this query has", self._driver.stored_bytes())

    def _check_bytes(self, what: str, size: int) -> None:
        if size > self._most_bytes:
            raise SqlError(
                BAD_STATEMENT,
                f"{what} more than {self._most_bytes:,} bytes, "
                "which is as many as a push query may have (sql.push.state.max.bytes): make a stream or table of the "
                "query, which runs on Spark, and read it",
            )

    def rows(self, records: Sequence[Placed], now: int) -> list[Row]:
        """One for each change. Raises SqlError when there is no room."""
        if now > self._now:
            self._driver.advance_wall_clock_time(now - self._now)
            self._now = now
        raws = [raw_of(*each) for each in records]
        begin = produced = 0
        output = self._driver.output(RESULT)
        while begin < len(raws):
            # Rows that grow with each record (COLLECT_LIST) are not made by the thousand.
            end = begin + max(1, min(self._most_at_once, _BYTES_AT_ONCE // self._longest))
            before = len(output)
            self._driver.pipe_batch(raws[begin:end])
            lengths = [len(each.value or b"") for each in islice(output, before, None)]
            self._longest = max(self._longest, *lengths) if lengths else self._longest
            produced += sum(lengths)
            self._check_bytes("the rows of this query have", produced)
            begin = end
        self._unchecked += len(raws)
        self._unchecked_bytes += sum(len(each.value or b"") for each in raws)
        made = [row for row in map(self._row, output) if row is not None]
        output.clear()
        self._check_size()
        return made

    def _row(self, raw: Any) -> Row | None:
        value = self._value.deserialize(raw.value)
        if value is None:
            return None
        key: Any = self._key.deserialize(raw.key) if self._sink.keys else None
        inner = key.key if isinstance(key, Windowed) else key
        keys = self._sink.keys
        found = {} if not keys else {keys[0][0]: inner} if len(keys) == 1 else dict(inner or {})
        cells = {**value, **found}
        return [shown(cells.get(name), kind, TEXTS) for name, kind in self.columns]


def raw_of(place: TopicPartition, record: Record) -> Raw:
    headers = tuple(record.headers)
    return Raw(place.topic, place.partition, record.offset, record.key, record.value, record.timestamp, headers)


def as_stream(client: Client) -> Client:
    """A table read row by row: what is asked of its newest rows, or of each change."""
    read = client.query.source
    assert isinstance(read, Read) and not isinstance(read, Joining)
    stream = replace(read, source=replace(read.source, kind="STREAM"))
    return replace(client, query=replace(client.query, source=stream, is_table=False))
