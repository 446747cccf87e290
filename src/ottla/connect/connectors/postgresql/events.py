"""Changes as records: Debezium's envelope, as Structs or at once as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import ottla
from ottla.connect import spi
from ottla.connect.connectors.postgresql.pgoutput import Columns, Text, Unchanged
from ottla.connect.connectors.postgresql.tables import BLOCK, SOURCE, Table
from ottla.connect.converters.json_schemas import schema_text
from ottla.connect.converters.json_texts import quoted
from ottla.connect.converters.json_writing import Writers
from ottla.connect.data.schema import INT64, OPTIONAL_INT64, STRING, Schema, array_schema, struct_schema
from ottla.connect.data.struct import Struct

CONNECTOR: Final = "postgresql"
OLD_KEY: Final = "__debezium.oldkey"
NEW_KEY: Final = "__debezium.newkey"
_WRITERS: Final = Writers(decimals_as_numbers=False, replace_null=True, cache_size=1000)

HEARTBEAT_KEY: Final = struct_schema(
    {"serverName": STRING}, name="io.debezium.connector.common.ServerNameKey", version=1
)
HEARTBEAT: Final = struct_schema({"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat", version=1)
TRANSACTION_KEY: Final = struct_schema(
    {"id": STRING}, name="io.debezium.connector.common.TransactionMetadataKey", version=1
)
_COUNT: Final = struct_schema(
    {"data_collection": STRING, "event_count": INT64}, name="event.collection", version=1, optional=True
)
TRANSACTION: Final = struct_schema(
    {
        "status": STRING,
        "id": STRING,
        "event_count": OPTIONAL_INT64,
        "data_collections": array_schema(_COUNT, optional=True),
        "ts_ms": INT64,
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)


class Origin(NamedTuple):
    """Of changes: their transaction, or the reading of a table."""

    micros: int
    """When it was committed, or read."""
    xid: int | None = None
    before: int | None = None
    """The end of the transaction before."""
    snapshot: str = "false"


class Event(NamedTuple):
    """One change."""

    table: Table
    op: str
    """c, u, d, r or t."""
    old: Columns | None
    new: Columns | None
    origin: Origin
    lsn: int | None
    order: tuple[int, int] | None = None
    """With transaction metadata: its place in the transaction, and among those of its table."""


class Writing(NamedTuple):
    """What all records of a connector have in common."""

    prefix: str
    database: str
    tombstones: bool


class Changes(spi.Prepared):
    """What was read, in order: changes, and a few records that are made already."""

    __slots__ = ("_events", "_now_micros", "_writing")

    def __init__(self, writing: Writing, events: list[Event | spi.Row], now_micros: int) -> None:
        self._writing = writing
        self._events = events
        self._now_micros = now_micros

    def __len__(self) -> int:
        return len(self._events)

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process goes as rows: tables have functions in them."""
        return list, (self.as_rows(),)

    # ---- as Structs

    def as_rows(self) -> list[spi.Row]:
        return [row for event in self._events for row in self._rows(event)]

    def _rows(self, event: Event | spi.Row) -> Iterator[spi.Row]:
        if isinstance(event, spi.Row):
            yield event
            return
        table, old, new = event.table, event.old, event.new
        if event.op == "u" and old is not None and new is not None and not table.is_same_key(old, new):
            old_key, new_key = table.key(old), table.key(new)
            yield self._row(event, "d", old_key, old, None, ((NEW_KEY, new_key),))
            yield from self._tombstone(table, old_key)
            yield self._row(_next_in_order(event), "c", new_key, None, new, ((OLD_KEY, old_key),))
            return
        keyed = new if new is not None else old
        key = None if keyed is None else table.key(keyed)
        yield self._row(event, event.op, key, old, new)
        if event.op == "d":
            yield from self._tombstone(table, key)

    def _tombstone(self, table: Table, key: Struct | None) -> Iterator[spi.Row]:
        if self._writing.tombstones and key is not None:
            yield spi.Row(table.topic, None, key, key_schema=table.key_schema)

    def _row(
        self,
        event: Event,
        op: str,
        key: Struct | None,
        old: Columns | None,
        new: Columns | None,
        headers: Sequence[tuple[str, Any]] = (),
    ) -> spi.Row:
        table = event.table
        now = self._now_micros
        block = None if event.order is None else Struct.of(BLOCK, [f"{event.origin.xid}:{event.lsn}", *event.order])
        envelope = Struct.of(
            table.envelope,
            [
                None if old is None else table.row(old),
                None if new is None else table.row(new),
                self._source(event),
                block,
                op,
                now // 1000,
                now,
                now * 1000,
            ],
        )
        return spi.Row(table.topic, envelope, key, headers, value_schema=table.envelope, key_schema=table.key_schema)

    def _source(self, event: Event) -> Struct:
        origin, table = event.origin, event.table
        return Struct.of(
            SOURCE,
            [
                ottla.__version__,
                CONNECTOR,
                self._writing.prefix,
                origin.micros // 1000,
                origin.snapshot,
                self._writing.database,
                _sequence(origin.before, event.lsn),
                origin.micros,
                origin.micros * 1000,
                table.schema,
                table.name,
                origin.xid,
                event.lsn,
                None,
            ],
        )

    # ---- as JSON

    def as_json(self, form: spi.JsonForm) -> Iterator[spi.Texts | list[spi.Row]]:
        run = _Run(self._writing, form, self._now_micros)
        for event in self._events:
            if isinstance(event, spi.Row):
                plain = [event]
            elif event.op == "u" and event.old is not None and not event.table.is_same_key(event.old, event.new or []):
                plain = list(self._rows(event))
            else:
                run.add(event)
                continue
            yield from run.taken()  # what has headers goes by itself, in its place
            yield plain
        yield from run.taken()


def _next_in_order(event: Event) -> Event:
    """A new key is two events."""
    order = event.order
    return event if order is None else event._replace(order=(order[0] + 1, order[1] + 1))


def _sequence(before: int | None, lsn: int | None) -> str:
    first = "null" if before is None else f'"{before}"'
    return f"[{first}," + ("null]" if lsn is None else f'"{lsn}"]')


class _Run:
    """Records on end, by topic."""

    __slots__ = ("_form", "_found", "_heads", "_origin", "_source", "_table", "_tails", "_writing")

    def __init__(self, writing: Writing, form: spi.JsonForm, now_micros: int) -> None:
        self._writing = writing
        self._form = form
        self._found: dict[str, tuple[list[bytes | None], list[bytes | None]]] = {}
        self._heads: dict[Table, tuple[str, str]] = {}
        end = "}" if form.values_have_schemas else ""
        self._tails = {
            op: f'"op":"{op}","ts_ms":{now_micros // 1000},"ts_us":{now_micros},"ts_ns":{now_micros * 1000}}}{end}'
            for op in "cudrt"
        }
        self._origin: Origin | None = None
        self._table: Table | None = None
        self._source = ("", "", "")

    def add(self, event: Event) -> None:
        table, op, old, new, origin, lsn, order = event
        if origin is not self._origin or table is not self._table:
            self._begin(table, origin)
        before = "null" if old is None else table.row_json(old)
        after = "null" if new is None else table.row_json(new)
        key_head, value_head = self._heads[table]
        first, second, third = self._source
        place = "null" if lsn is None else lsn
        in_sequence = "null" if lsn is None else f'\\"{lsn}\\"'
        block = (
            "null"
            if order is None
            else f'{{"id":"{origin.xid}:{lsn}","total_order":{order[0]},"data_collection_order":{order[1]}}}'
        )
        value = (
            f'{value_head}{{"before":{before},"after":{after},{first}{in_sequence}{second}{place}{third}'
            f'"transaction":{block},{self._tails[op]}'
        )
        keys, values = self._found[table.topic]
        keyed = old if new is None else new
        key = None if keyed is None else table.key_json(keyed)
        made = None if key is None else _encoded(f"{key_head}{key}}}" if key_head else key)
        keys.append(made)
        values.append(_encoded(value))
        if op == "d" and made is not None and self._writing.tombstones:
            keys.append(made)
            values.append(None)

    def _begin(self, table: Table, origin: Origin) -> None:
        self._table, self._origin = table, origin
        if table not in self._heads:
            self._heads[table] = (
                _head(table.key_schema) if self._form.keys_have_schemas and table.key_schema is not None else "",
                _head(table.envelope) if self._form.values_have_schemas else "",
            )
        self._found.setdefault(table.topic, ([], []))
        micros = origin.micros
        before = "null" if origin.before is None else f'\\"{origin.before}\\"'
        xid = "null" if origin.xid is None else origin.xid
        self._source = (
            f'"source":{{"version":{quoted(ottla.__version__)},"connector":"{CONNECTOR}","name":'
            f'{quoted(self._writing.prefix)},"ts_ms":{micros // 1000},"snapshot":"{origin.snapshot}","db":'
            f'{quoted(self._writing.database)},"sequence":"[{before},',
            f']","ts_us":{micros},"ts_ns":{micros * 1000},"schema":{quoted(table.schema)},"table":'
            f'{quoted(table.name)},"txId":{xid},"lsn":',
            ',"xmin":null},',
        )

    def taken(self) -> Iterator[spi.Texts]:
        """And forgotten."""
        for topic, (keys, values) in self._found.items():
            if values:
                yield spi.Texts(topic, keys, values)
        self._found = {}
        self._origin = None


def _head(schema: Schema) -> str:
    return f'{{"schema":{schema_text(schema, _WRITERS)},"payload":'


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# ---- records that are no changes


def heartbeat(topic: str, prefix: str, now_ms: int) -> spi.Row:
    key, value = Struct.of(HEARTBEAT_KEY, [prefix]), Struct.of(HEARTBEAT, [now_ms])
    return spi.Row(topic, value, key, value_schema=HEARTBEAT, key_schema=HEARTBEAT_KEY)


def transaction_began(topic: str, name: str, at_ms: int) -> spi.Row:
    return _transaction(topic, name, ["BEGIN", name, None, None, at_ms])


def transaction_ended(topic: str, name: str, counts: dict[str, int], at_ms: int) -> spi.Row:
    counted = [Struct.of(_COUNT, [table, count]) for table, count in counts.items()]
    return _transaction(topic, name, ["END", name, sum(counts.values()), counted, at_ms])


def _transaction(topic: str, name: str, values: list[Any]) -> spi.Row:
    key, value = Struct.of(TRANSACTION_KEY, [name]), Struct.of(TRANSACTION, values)
    return spi.Row(topic, value, key, value_schema=TRANSACTION, key_schema=TRANSACTION_KEY)


def completed(old: Columns | None, new: Columns) -> Columns:
    """Large values that are not in the new row are in the old one, if that is whole."""
    if old is None or not any(isinstance(each, Unchanged) for each in new):
        return new
    return [_either(one, other) for one, other in zip(new, old, strict=True)]


def _either(new: Text, old: Text) -> Text:
    return old if isinstance(new, Unchanged) and old is not None else new
