"""Messages of the log into changes: which transactions count, where a batch ends, what a position becomes. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.connect import spi
from ottla.connect.connectors.postgresql.events import (
    Event,
    Origin,
    completed,
    transaction_began,
    transaction_ended,
)
from ottla.connect.connectors.postgresql.pgoutput import (
    Begin,
    Change,
    Columns,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Text,
    Truncate,
    Update,
    decode,
    insert,
)
from ottla.connect.connectors.postgresql.position import Inside, Position, View
from ottla.connect.connectors.postgresql.signals import row_of, signalled
from ottla.connect.connectors.postgresql.tables import Table

_INSERT: Final = ord("I")


class Known(NamedTuple):
    """A relation of the log."""

    table: Table | None
    """None: not captured."""
    signal_names: tuple[str, ...] | None = None
    """Of the columns, if signals are put here."""


class Rules(NamedTuple):
    """What does not change from read to read."""

    skipped: frozenset[str]
    """Operations that are left out."""
    describe: Callable[[Relation], Known]
    tables: Callable[[], Sequence[str]]
    """Names of all that are captured."""
    transactions_topic: str = ""
    """Where begins and ends of transactions go; nothing: nowhere."""


@dataclass(slots=True)
class Watch:
    """Which rows of a table are changed by transactions that a view does not show."""

    table: str
    view: View
    keys: set[tuple[Text, ...]] = field(default_factory=set)
    all: bool = False

    def see(self, xid: int, table: Table, old: Columns | None, new: Columns | None) -> None:
        if table.full_name != self.table or self.view.shows(xid):
            return
        for each in (old, new):
            if each is not None:
                self.keys.add(table.key_texts(each))
        if old is None and new is None:
            self.all = True


class Unpacking:
    """Of one tail, from a position on. Each `take` gives changes, up to a limit."""

    __slots__ = (
        "_begin", "_counts", "_known", "_messages", "_origin", "_past", "_rules", "_seen", "_skips", "_upto",
        "_watch", "position",
    )  # fmt: skip

    def __init__(
        self, rules: Rules, position: Position, upto: int, messages: Iterator[tuple[int, bytes]], watch: Watch | None
    ) -> None:
        self._rules = rules
        self._messages = messages
        self._upto = upto
        self._watch = watch
        self._known: dict[int, Known] = {}
        self._begin: Begin | None = None
        """Of the transaction that is read; None between them, and in one that is left out."""
        self._origin = Origin(0)
        self._seen = 0
        """Changes of this transaction."""
        self._skips = 0
        """So many of them were done before."""
        self._counts: dict[str, int] = {}
        self._past = False
        self.position = position

    def take(self, limit: int) -> tuple[list[Event | spi.Row], bool]:
        """About so many changes, and whether there is nothing left. `position` is then where they end."""
        events: list[Event | spi.Row] = []
        for lsn, data in self._messages:
            if data[0] == _INSERT:
                if self._begin is not None:
                    self._change(lsn, insert(data), events)
                    if len(events) >= limit:
                        return self._paused(events)
                continue
            decoded = decode(data)
            if isinstance(decoded, Begin):
                self._began(lsn, decoded, events)
                if self._past:
                    return events, True
            elif isinstance(decoded, Commit):
                self._committed(lsn, decoded, events)
                if len(events) >= limit:
                    return events, False
            elif isinstance(decoded, Relation):
                self._known[decoded.oid] = self._rules.describe(decoded)
            elif isinstance(decoded, Insert | Update | Delete | Truncate | Message) and self._begin is not None:
                self._change(lsn, decoded, events)
                if len(events) >= limit:
                    return self._paused(events)
        return events, True

    def _paused(self, events: list[Event | spi.Row]) -> tuple[list[Event | spi.Row], bool]:
        begin = self._begin
        assert begin is not None
        self.position = self.position._replace(
            lsn=begin.commit_lsn, inside=Inside(begin.commit_lsn, max(self._seen, self._skips))
        )
        return events, False

    def _began(self, lsn: int, begin: Begin, events: list[Event | spi.Row]) -> None:
        position = self.position
        self._begin, self._seen, self._skips = None, 0, 0
        self._past = begin.commit_lsn >= self._upto
        if self._past or begin.commit_lsn < position.lsn:
            return
        if position.view is not None and position.view.shows(begin.xid):
            return  # what it changed was read with the tables
        inside = position.inside
        if inside is not None and inside.commit_lsn == begin.commit_lsn:
            self._skips = inside.changes
        self._begin = begin
        self._counts = {}
        self._origin = Origin(begin.time_micros, begin.xid, position.commit)
        if self._rules.transactions_topic and not self._skips:
            name = f"{begin.xid}:{lsn}"
            events.append(transaction_began(self._rules.transactions_topic, name, begin.time_micros // 1000))

    def _committed(self, lsn: int, commit: Commit, events: list[Event | spi.Row]) -> None:
        if commit.commit_lsn < self.position.lsn:
            return
        begin, self._begin = self._begin, None
        if begin is not None and self._rules.transactions_topic:
            name, at_ms = f"{begin.xid}:{lsn}", begin.time_micros // 1000
            events.append(transaction_ended(self._rules.transactions_topic, name, self._counts, at_ms))
        self.position = reached(self.position, commit.end_lsn)._replace(commit=commit.end_lsn)

    def _change(self, lsn: int, change: Change, events: list[Event | spi.Row]) -> None:
        self._seen += 1
        is_new = self._seen > self._skips
        if isinstance(change, Message):
            return
        if isinstance(change, Truncate):
            for oid in change.relations:
                self._event(lsn, self._known[oid], "t", None, None, events if is_new else None)
            return
        known = self._known[change.relation]
        if isinstance(change, Insert):
            if known.signal_names is not None and is_new:
                row = row_of(known.signal_names, change.new)
                self.position = signalled(self.position, row, self._rules.tables)
            self._event(lsn, known, "c", None, change.new, events if is_new else None)
        elif isinstance(change, Update):
            whole = change.old if change.is_whole else None
            new = completed(whole, change.new)
            self._event(lsn, known, "u", change.old, new, events if is_new else None)
        else:
            self._event(lsn, known, "d", change.old, None, events if is_new else None)

    def _event(
        self,
        lsn: int,
        known: Known,
        op: str,
        old: Columns | None,
        new: Columns | None,
        events: list[Event | spi.Row] | None,
    ) -> None:
        """`events` is None for what was done before: only its place in the transaction counts."""
        table = known.table
        if table is None:
            return
        begin = self._begin
        assert begin is not None
        if self._watch is not None:
            self._watch.see(begin.xid, table, old, new)
        if op in self._rules.skipped:
            return
        order = None
        if self._rules.transactions_topic:
            name = table.full_name
            self._counts[name] = self._counts.get(name, 0) + 1
            order = (sum(self._counts.values()), self._counts[name])
            if op == "u" and old is not None and new is not None and not table.is_same_key(old, new):
                self._counts[name] += 1  # it becomes two
        if events is not None:
            events.append(Event(table, op, old, new, self._origin, lsn, order))


def reached(position: Position, lsn: int) -> Position:
    """All before this place is done."""
    view = position.view
    if view is not None and lsn >= view.until and not position.loading:
        view = None
    return position._replace(lsn=max(lsn, position.lsn), inside=None, view=view)
