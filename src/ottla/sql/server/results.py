"""Queries of clients, computed in this process: records in, rows out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ottla.protocol.records import Record
from ottla.registry.lookup import Registry
from ottla.serdes.base import SerdeError, Where, placed
from ottla.sql import tree as t
from ottla.sql.analysis.queries import Surroundings, analysed
from ottla.sql.analysis.scope import record_types
from ottla.sql.analysis.typed import Joining, Read, TypedQuery
from ottla.sql.compile import Formats, event_ms, topology
from ottla.sql.formats.format import Format
from ottla.sql.model import Columns, DataSource
from ottla.sql.plain import shown
from ottla.streams import expressions as e
from ottla.streams.expressions import Inputs
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.windows import Windowed

_RESULT: Final = "result"

Row = list[Any]


class Computing(Protocol):
    columns: Columns

    def rows(self, topic: str, partition: int, record: Record) -> list[Row]:
        """What one record of a source makes."""


@dataclass(frozen=True, slots=True)
class Client:
    """A query of a client, understood."""

    query: TypedQuery
    names: tuple[str, ...]
    """Of the result, in the order of the SELECT list."""

    @property
    def columns(self) -> Columns:
        kinds = dict((*self.query.keys, *self.query.columns))
        return tuple((name, kinds[name]) for name in self.names)

    @property
    def is_plain(self) -> bool:
        """Whether each record makes its row by itself."""
        return isinstance(self.query.source, Read) and self.query.grouping is None and self.query.exploded is None

    def sources(self) -> list[DataSource]:
        return self.query.reads()


def understood(query: t.Query, around: Surroundings) -> Client:
    """Raises SqlError."""
    found = analysed(query, around, stored=False)
    known = [name for name, _ in (*found.keys, *found.columns)]
    return Client(found, tuple(_in_order(query, known)))


def _in_order(query: t.Query, known: Sequence[str]) -> list[str]:
    """As the SELECT list has them, where it names them; keys first otherwise."""
    written = [
        item.alias or (item.expression.name if isinstance(item.expression, t.Column) else None)
        for item in query.items
        if isinstance(item, t.Item)
    ]
    if len(written) != len(known) or len(query.items) != len(written):
        return list(known)
    left = [name for name in known if name not in written]
    return [name if name is not None and name in known else left.pop(0) for name in written]


def computing(client: Client, registry: Registry | None) -> Computing:
    return Plain(client, registry) if client.is_plain else Driven(client, registry)


class Plain:
    """Record by record: a filter and a projection."""

    def __init__(self, client: Client, registry: Registry | None) -> None:
        assert isinstance(client.query.source, Read)
        source = client.query.source.source
        types = record_types(source.keys, source.values, source.window is not None)
        formats = Formats(registry)
        self.columns = client.columns
        self._where = Where(source.topic)
        self._key = placed(formats.key(source), self._where)
        self._value = placed(formats.value(source), self._where)
        self._keep = None if client.query.where is None else client.query.where.compile(types)
        cells = dict(client.query.values)
        self._cells = [(cells[name].expression.compile(types), cells[name].type) for name in client.names]
        at = source.event_time
        self._time = None if at is None else event_ms(_column(source, at.column), at).compile(types)

    def rows(self, topic: str, partition: int, record: Record) -> list[Row]:
        """Nothing for what cannot be read, and for tombstones."""
        self._where.headers = list(record.headers)
        try:
            key, value = self._key.deserialize(record.key), self._value.deserialize(record.value)
        except SerdeError:
            return []
        if value is None:
            return []
        inputs = Inputs(key, value, record.timestamp, record.headers, topic, partition, record.offset)
        if self._time is not None:
            moment = self._time(inputs)
            if moment is None:
                return []
            inputs = inputs._replace(timestamp=moment)
        if self._keep is not None and self._keep(inputs) is not True:
            return []
        return [[shown(cell(inputs), kind) for cell, kind in self._cells]]


def _column(source: DataSource, name: str) -> Any:
    from ottla.sql.arguments import Argument  # noqa: PLC0415

    kind = source.column(name)
    assert kind is not None
    own = e.key["key"] if source.window else e.key
    place = (own if len(source.keys) == 1 else own[name]) if name in dict(source.keys) else e.value[name]
    return Argument(place, kind)


class Driven:
    """By the driver of tests, which has all that a topology may hold. Its state ends with the query."""

    def __init__(self, client: Client, registry: Registry | None) -> None:
        query = client.query
        self.columns = client.columns
        self._names = client.names
        self._sink = DataSource(
            _RESULT,
            "TABLE" if query.is_table else "STREAM",
            _RESULT,
            query.keys,
            query.columns,
            Format("JSON" if query.keys else "NONE"),
            Format("JSON"),
            window=query.window if query.grouping is not None else None,
        )
        formats = Formats(registry)
        self._key, self._value = formats.key(self._sink), formats.value(self._sink)
        self._driver = TopologyTestDriver(topology(query, self._sink, registry), "push")

    def rows(self, topic: str, partition: int, record: Record) -> list[Row]:
        self._driver.pipe_raw(topic, record.key, record.value, record.timestamp, tuple(record.headers))
        output = self._driver.output(_RESULT)
        made = []
        while output:
            row = self._row(output.popleft())
            if row is not None:
                made.append(row)
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
        return [shown(cells.get(name), kind) for name, kind in self.columns]


def as_stream(client: Client) -> Client:
    """A table read row by row: what is asked of its newest rows, or of each change."""
    read = client.query.source
    assert isinstance(read, Read) and not isinstance(read, Joining)
    stream = replace(read, source=replace(read.source, kind="STREAM"))
    return replace(client, query=replace(client.query, source=stream, is_table=False))
