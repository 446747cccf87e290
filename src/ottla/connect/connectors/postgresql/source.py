"""The connector: what a position is followed by."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from ottla.connect import spi
from ottla.connect.connectors.postgresql.catalog import Catalog, ColumnFacts, TableFacts
from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.connectors.postgresql.events import Changes, Event, Origin, Writing, heartbeat
from ottla.connect.connectors.postgresql.loading import Rows, Sight, joined
from ottla.connect.connectors.postgresql.lsn import lsn_text
from ottla.connect.connectors.postgresql.pgoutput import Malformed, Relation
from ottla.connect.connectors.postgresql.position import Portion, Position, position_of
from ottla.connect.connectors.postgresql.server import Refused, Server
from ottla.connect.connectors.postgresql.slot import Slot, Status, Tail, ensure_publication
from ottla.connect.connectors.postgresql.stream import Known, Rules, Unpacking, Watch, reached
from ottla.connect.connectors.postgresql.tables import Capture, Table

logger = logging.getLogger(__name__)

OPERATIONS: Final = frozenset("cudt")
SMALL: Final = 1000
"""Who asks for less than this only has a look: what the server has decoded is not kept for later."""
FLUSH_S: Final = 10.0
"""How long to wait until the server's WAL is on its disk."""
ADVANCE_S: Final = 1.0
"""The slot is advanced at most so often: the server reads some WAL again each time."""


class PostgresSource(spi.Source[PostgresConfig]):
    def __init__(self, config: PostgresConfig, name: str, partition: spi.Partition = {}) -> None:  # noqa: B006
        super().__init__(config, name, partition)
        self._server = Server(config, name)
        self._capture = Capture(config)
        self._catalog = Catalog(self._server)
        self._slot = Slot(config, self._server)
        self._stream = _Stream(config, name, self._rules())
        self._sight: Sight | None = None
        self._status: Status | None = None
        self._known: dict[Relation, Known] = {}
        self._prepared = False
        self._moved_at = time.monotonic()
        self._advanced = (0, 0.0)
        """Where the slot was advanced to, and when."""

    def validate(self) -> None:
        given = {each.strip().lower() for each in self.config.skipped_operations}
        if not given <= OPERATIONS | {"none"}:
            raise spi.ConfigRefused("skipped.operations", "names others than c, u, d, t and none")
        if self.config.signal_data_collection.count(".") not in (0, 1, 2) or (
            self.config.signal_data_collection and "." not in self.config.signal_data_collection
        ):
            raise spi.ConfigRefused("signal.data.collection", "is not SCHEMA.TABLE or DATABASE.SCHEMA.TABLE")

    @classmethod
    def check_offset(cls, partition: spi.Partition, offset: spi.Offset | None) -> None:
        spi.text_of(partition, "server")
        try:
            if offset is not None:
                position_of(offset)
        except spi.ConnectorFailed as error:
            raise ValueError(str(error)) from None

    def partitions(self) -> Sequence[spi.Partition]:
        return [{"server": self.config.topic_prefix}]

    def poll_interval_ms(self) -> int:
        return self.config.poll_interval_ms

    def is_done(self, start: spi.Offset | None) -> bool:
        return self.config.mode == "initial_only" and start is not None and not position_of(start).loading

    def close(self) -> None:
        self._close_sight()
        self._stream.close()
        self._server.close()

    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        try:
            return self._read(start, limit)
        except Refused as error:
            raise spi.ConnectorFailed(f"PostgreSQL refuses it: {error} (SQL state {error.state})") from error
        except Malformed as error:
            raise spi.ConnectorFailed(f"what the slot {self.config.slot_name} gives cannot be read: {error}") from error

    def written(self, end: spi.Offset) -> None:
        """The server need not keep what is before it."""
        lsn = position_of(end).lsn
        done, at = self._advanced
        if lsn <= done or time.monotonic() - at < ADVANCE_S:
            return
        try:
            self._slot.advance(lsn)
            self._advanced = (lsn, time.monotonic())
        except (Refused, spi.TryAgain, spi.ConnectorFailed) as error:
            # It is tried again soon; whether the slot is still there is for `read` to say.
            logger.info("%s: the slot is not advanced now: %s", self.name, error)

    def observed(self, reads: Sequence[spi.Read], now_ms: int) -> Sequence[spi.Observed]:
        status = self._status
        if status is None:
            return ()
        told = {"slot-lag-bytes": status.lag, "slot-retained-bytes": status.retained}
        return [spi.gauge(self.name, name, value) for name, value in told.items()]

    def alert(self) -> str | None:
        status, most = self._status, self.config.slot_lag_alert_bytes
        if status is None or not most or status.retained < most:
            return None
        return (
            f"the slot {self.config.slot_name} makes the server keep more WAL than slot.lag.alert.bytes={most:,}: "
            f"{status.retained:,} bytes now, and its disk may fill up"
        )

    # ---- reading

    def _read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        self._prepare()
        status = self._status = self._slot.status()
        if start is None:
            return self._begun(status)
        position = position_of(start)
        gone = self._gone(position, status)
        if gone:
            if self.config.mode != "when_needed":
                raise spi.ConnectorFailed(
                    f"{gone}. What came in between is lost to this connector: reset its offsets (the tables are read "
                    "again), or set snapshot.mode=when_needed, which does so by itself"
                )
            logger.warning("%s: %s; the tables are read again", self.name, gone)
            return self._begun(status)
        self._slot.check(status)
        if position.loading:
            return self._load(position, limit)
        self._close_sight()
        if position.chunks and not position.paused:
            return self._chunk(position, limit)
        return self._changes(position, limit, status)

    def _prepare(self) -> None:
        if not self._prepared:
            ensure_publication(self.config, self._server, self._capture)
            self._prepared = True

    def _gone(self, position: Position, status: Status) -> str:
        """Why the slot cannot go on from there."""
        name = self.config.slot_name
        if not status.exists:
            return f"the slot {name} is not there: it was dropped, or the server is another one"
        if status.is_lost:
            return f"the slot {name} has lost what it stood for (max_slot_wal_keep_size)"
        if status.confirmed > position.lsn:
            return (
                f"the slot {name} stands at {lsn_text(status.confirmed)}, past {lsn_text(position.lsn)}, where this "
                "connector stands: somebody else reads from this slot. Each connector needs its own slot.name"
            )
        if status.flushed < position.lsn:
            return (
                f"the server's WAL ends at {lsn_text(status.flushed)}, before {lsn_text(position.lsn)}, where this "
                "connector stands: the server was restored from a copy, or is another one"
            )
        return ""

    def _begun(self, status: Status) -> spi.Read:
        """The slot first, then the tables: nothing falls in between."""
        lsn = self._slot.ensure(status)
        tables: list[Portion] = []
        if self.config.mode != "no_data":
            chosen = self._capture.chosen(self._catalog.tables())
            tables = [Portion(str(each)) for each in chosen if self._capture.is_loaded(each.schema, each.name)]
        return self._ended([], Position(lsn, loading=tuple(tables), loaded=not tables), more=False)

    def _ended(self, events: list[Event | spi.Row], position: Position, *, more: bool) -> spi.Read:
        self._moved_at = time.monotonic()
        writing = Writing(self.config.topic_prefix, self.config.database_dbname, self.config.tombstones_on_delete)
        rows = Changes(writing, events, time.time_ns() // 1000) if events else ()
        return spi.Read(rows, position.as_offset(), more=more)

    # ---- tables, all of them by one view

    def _load(self, position: Position, limit: int) -> spi.Read:
        sight = self._seen(position)
        if sight is None:
            # Whoever made the view died. The rest comes in chunks; those without a key begin again, as places in a
            # table mean nothing in another view.
            rest = [each if each != position.loading[0] else self._again(each) for each in position.loading]
            logger.warning("%s: what is left of the tables is read in chunks, between changes", self.name)
            return self._ended([], position._replace(loading=(), chunks=(*rest, *position.chunks)), more=False)
        events: list[Event | spi.Row] = []
        now = time.time_ns() // 1000
        waiting = list(position.loading)
        loaded = position.loaded
        while waiting and len(events) < limit:
            portion = waiting.pop(0)
            found = sight.rows(portion, limit - len(events))
            events += self._read_events(found, sight, now, first=not loaded, begins=not portion.after, last=not waiting)
            loaded = loaded or bool(found.rows)
            if not found.is_end:
                waiting.insert(0, portion._replace(after=found.after))
                break
        after = position._replace(loading=tuple(waiting), view=sight.view, loaded=loaded or not waiting)
        return self._ended(events, after, more=bool(waiting))

    def _again(self, portion: Portion) -> Portion:
        schema, _, name = portion.table.partition(".")
        oid = self._catalog.oid(schema, name)
        has_key = oid is not None and bool(self._catalog.table(oid, schema, name).key)
        return portion if has_key else portion._replace(after=())

    def _seen(self, position: Position) -> Sight | None:
        """The view that the position tells of; a new one if it tells of none."""
        sight = self._sight
        if sight is not None and sight.is_open and (position.view is None or sight.view == position.view):
            return sight
        self._close_sight()
        if position.view is None:
            self._sight = Sight(self.config, self.name, self._capture)
        else:
            self._sight = joined(self.config, self.name, self._capture, position.view)
        return self._sight

    def _close_sight(self) -> None:
        sight, self._sight = self._sight, None
        if sight is not None:
            sight.close()

    def _read_events(
        self, found: Rows, sight: Sight, now: int, *, first: bool, begins: bool, last: bool
    ) -> list[Event | spi.Row]:
        table, rows = found.table, found.rows
        if table is None:
            return []
        plain = Origin(now, snapshot="true")
        until = sight.view.until
        events: list[Event | spi.Row] = [Event(table, "r", None, row, plain, until) for row in rows]
        if not rows:
            return events
        ends: dict[int, str] = {}
        if begins:
            ends[0] = "first" if first else "first_in_data_collection"
        if found.is_end and not (begins and first and len(rows) == 1 and not last):
            ends[len(rows) - 1] = "last" if last else "last_in_data_collection"
        for place, mark in ends.items():
            events[place] = Event(table, "r", None, rows[place], Origin(now, snapshot=mark), until)
        return events

    # ---- a chunk of a table, between changes

    def _chunk(self, position: Position, limit: int) -> spi.Read:
        portion = position.chunks[0]
        sight = Sight(self.config, self.name, self._capture)
        try:
            found = sight.rows(portion, min(limit, self.config.incremental_snapshot_chunk_size))
        finally:
            sight.close()
        until = max(sight.view.until, position.lsn)
        self._wait_until_flushed(until)
        watch = Watch(portion.table, sight.view)
        events, after, is_whole = self._stream.take(position, until, limit, watch)
        if not is_whole:
            return self._ended(events, after, more=True)
        if after.chunks and after.chunks[0] == portion:
            events += self._unchanged(found, watch)
            rest = after.chunks[1:]
            after = after._replace(chunks=rest if found.is_end else (portion._replace(after=found.after), *rest))
        return self._ended(events, after, more=bool(after.chunks))

    def _unchanged(self, found: Rows, watch: Watch) -> list[Event]:
        table = found.table
        if table is None or watch.all:
            return []
        origin = Origin(time.time_ns() // 1000, snapshot="incremental")
        keyless = not table.key_places
        return [
            Event(table, "r", None, row, origin, None)
            for row in found.rows
            if keyless or table.key_texts(row) not in watch.keys
        ]

    def _wait_until_flushed(self, lsn: int) -> None:
        """Asynchronous commits are seen before they are on disk, and decoding stops there. A commit of our own takes
        all before it along: of transactions that are under way the server would flush nothing by itself."""
        until = time.monotonic() + FLUSH_S
        while self._slot.status().flushed < lsn:
            self._server.rows("SELECT pg_logical_emit_message(true, 'ottla', '')")
            if time.monotonic() > until:
                raise spi.TryAgain(f"the server has not flushed its WAL up to {lsn_text(lsn)}")

    # ---- changes

    def _changes(self, position: Position, limit: int, status: Status) -> spi.Read:
        config = self.config
        now_ms = time.time_ns() // 1_000_000
        beats = config.heartbeat_interval_ms > 0 and now_ms - position.heartbeat_ms >= config.heartbeat_interval_ms
        if status.flushed <= position.lsn and not beats:
            return spi.Read((), None)
        events, after, is_whole = self._stream.take(position, status.flushed, limit, None)
        if beats:
            if config.heartbeat_action_query:
                self._server.run(config.heartbeat_action_query)
            events.append(
                heartbeat(f"{config.topic_heartbeat_prefix}.{config.topic_prefix}", config.topic_prefix, now_ms)
            )
            after = after._replace(heartbeat_ms=now_ms)
        if (
            not events
            and after._replace(lsn=position.lsn, commit=position.commit) == position
            and not self._follows(position, after)
        ):
            return spi.Read((), None)
        return self._ended(events, after, more=not is_whole)

    def _follows(self, position: Position, after: Position) -> bool:
        """Whether it is time for the slot to follow a server whose WAL is all about something else."""
        config = self.config
        if after.lsn - position.lsn >= config.slot_advance_bytes:
            return True
        return after.lsn > position.lsn and time.monotonic() - self._moved_at >= config.slot_advance_interval_ms / 1000

    # ---- what the log talks about

    def _rules(self) -> Rules:
        config = self.config
        skipped = frozenset(each.strip().lower() for each in config.skipped_operations) - {"none"}
        topic = f"{config.topic_prefix}.transaction" if config.provide_transaction_metadata else ""
        return Rules(skipped, self._describe, self._table_names, topic)

    def _table_names(self) -> list[str]:
        return [str(each) for each in self._capture.chosen(self._catalog.tables())]

    def _describe(self, relation: Relation) -> Known:
        """A description that was not met before means that the table was changed: the server is asked again."""
        known = self._known.get(relation)
        if known is None:
            known = self._known[relation] = self._asked(relation)
        return known

    def _asked(self, relation: Relation) -> Known:
        names = tuple(each.name for each in relation.columns)
        signals = names if f"{relation.schema}.{relation.table}" == self.config.signal_table else None
        if not self._capture.table(relation.schema, relation.table):
            return Known(None, signals)
        now = self._catalog.table(relation.oid, relation.schema, relation.table)
        columns: dict[str, Any] = {}
        for each in relation.columns:
            type_ = self._catalog.type(each.type_oid, each.modifier)
            facts = now.columns.get(each.name)
            # A column that was dropped since, or had another type.
            columns[each.name] = (
                facts._replace(type=type_) if facts is not None else ColumnFacts(each.name, type_, False, None)
            )
        key = tuple(name for name in now.key if name in columns)
        if not key and not now.columns:  # the table is gone
            key = tuple(each.name for each in relation.columns if each.is_key) if relation.identity != "f" else ()
        return Known(Table(TableFacts(relation.schema, relation.table, columns, key), names, self._capture), signals)


class _Stream:
    """Changes behind a position. What the server has decoded is used up before it is asked again."""

    __slots__ = ("_config", "_rules", "_server", "_tail", "_unpacking")

    def __init__(self, config: PostgresConfig, name: str, rules: Rules) -> None:
        self._config = config
        self._rules = rules
        self._server = Server(config, name)
        self._tail: Tail | None = None
        self._unpacking: Unpacking | None = None

    def close(self) -> None:
        self._tail = self._unpacking = None
        self._server.close()

    def take(
        self, position: Position, upto: int, limit: int, watch: Watch | None
    ) -> tuple[list[Event | spi.Row], Position, bool]:
        """Changes, where they end, and whether they are all up to there."""
        try:
            return self._take(position, upto, limit, watch)
        except (Refused, spi.TryAgain):
            self._tail = self._unpacking = None
            raise

    def _take(
        self, position: Position, upto: int, limit: int, watch: Watch | None
    ) -> tuple[list[Event | spi.Row], Position, bool]:
        kept = self._unpacking
        if kept is None or watch is not None or kept.position != position:
            self._peek(position, upto, limit, watch)
        while True:
            assert self._tail is not None and self._unpacking is not None
            tail, unpacking = self._tail, self._unpacking
            events, is_end = unpacking.take(limit)
            after = unpacking.position
            if not is_end:
                if limit < SMALL or watch is not None:
                    self._forget()
                return events, after, False
            self._forget()
            if not tail.is_cut:
                return events, reached(after, tail.upto), tail.upto >= upto
            if events or after != position:
                return events, after, False
            # All that it gave was before the position: more is needed to get there.
            self._peek(position, upto, limit * 4, watch)
            limit *= 4

    def _peek(self, position: Position, upto: int, limit: int, watch: Watch | None) -> None:
        most = max(limit, self._config.transaction_batch_changes) if limit >= SMALL else limit + 100
        self._tail = Tail(self._config, self._server, upto, most)
        self._unpacking = Unpacking(self._rules, position, upto, self._tail.messages(), watch)

    def _forget(self) -> None:
        tail, self._tail, self._unpacking = self._tail, None, None
        if tail is not None:
            tail.close()
