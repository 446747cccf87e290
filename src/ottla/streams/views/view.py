"""A view of one store, as bytes: what its changelog says, in an SQLite file, in the order of key bytes as in Kafka.

SQLite for every size instead of a map in memory for small stores: memory stays bounded by its page cache, ranges come
from the index, the changelog position commits together with the data, so a restart goes on where it was, and a reader
sees a snapshot while the follower writes. A point lookup costs some ten microseconds.

All kinds of stores share one table. A windowed key is taken apart on the way in:

    kind        changelog key                            (key, first, second)
    key-value   key                                      (key, 0, 0)
    window      key ‖ start 8 bytes ‖ sequence 4 bytes   (key, start, sequence)
    session     key ‖ end 8 bytes ‖ start 8 bytes        (key, end, start)
    versioned   key                                      (key, the record's timestamp, 0)

Of a versioned store deletions are entries too, without a value: they end the version before them.
"""

import json
import sqlite3
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.streams.record import Headers
from ottla.streams.topology.stores import StoreKind

MOST: Final = 1 << 62
"""Above any time: an open end."""
LEAST: Final = -MOST

_WINDOW: Final = struct.Struct(">qi")
_SESSION: Final = struct.Struct(">qq")

_FORMAT: Final = 3
"""Of the file. Another one is thrown away and made again from the changelog."""
_CACHE_KIB: Final = 16_384

_SCHEMA: Final = """
CREATE TABLE entries (
  key BLOB NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL, partition INTEGER NOT NULL,
  value BLOB, timestamp INTEGER NOT NULL, headers TEXT,
  PRIMARY KEY (key, first, second, partition)
) WITHOUT ROWID;
CREATE TABLE positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, newest INTEGER NOT NULL);
CREATE TABLE origin (topic TEXT NOT NULL, topic_id BLOB NOT NULL);
"""
_BY_TIME: Final = "CREATE INDEX by_time ON entries (partition, first);"


class Change(NamedTuple):
    """A record of the changelog. No value: the key is gone."""

    partition: int
    key: bytes
    value: bytes | None
    timestamp: int
    headers: Headers = ()


class Place(NamedTuple):
    """Where an entry stands in the order of the view: what a page hands on to the next."""

    key: bytes
    first: int
    second: int
    partition: int


class Entry(NamedTuple):
    place: Place
    value: bytes | None
    """None: a deletion in the history of a versioned store."""
    timestamp: int
    headers: Headers = ()


class Slice(NamedTuple):
    """Which part of an answer: behind which entry, how many, from which end, of which partition."""

    after: Place | None = None
    limit: int = 1000
    reverse: bool = False
    partition: int | None = None


class Version(NamedTuple):
    entry: Entry
    valid_to: int | None
    """None: it is the latest."""


class Page(NamedTuple):
    entries: Sequence[Entry]
    more: bool
    """Whether there are entries behind the last one."""


class BadKey(ValueError):
    """A changelog key that is too short for its kind of store: this topic is not its changelog."""


def split_key(kind: StoreKind, key: bytes) -> tuple[bytes, int, int]:
    """(key, first, second) as the table above has them; the time of a version is not in its key."""
    if kind is StoreKind.KEY_VALUE or kind is StoreKind.VERSIONED:
        return key, 0, 0
    tail = _WINDOW if kind is StoreKind.WINDOW else _SESSION
    if len(key) < tail.size:
        raise BadKey(f"a key of {len(key)} bytes is too short for a {kind.value} store")
    first, second = tail.unpack_from(key, len(key) - tail.size)
    return key[: -tail.size], first, second


class View:
    """One writer (`apply`) and any number of readers, from any threads."""

    __slots__ = ("_path", "_reader", "_reading", "_retention_ms", "_with_headers", "_writer", "kind", "name")

    def __init__(
        self, name: str, kind: StoreKind, path: Path, *, retention_ms: int = 0, with_headers: bool = False
    ) -> None:
        """`retention_ms`: entries that are older than the newest window of their partition by more are forgotten.
        `with_headers`: those of records are kept, for serdes that look at them."""
        self.name = name
        self.kind = kind
        self._path = path
        self._retention_ms = retention_ms
        self._with_headers = with_headers
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = _opened(path, kind)
        self._reader = _connection(path)
        self._reading = threading.Lock()

    def close(self) -> None:
        self._writer.close()
        with self._reading:
            self._reader.close()

    # ---- writing

    def begin_with(self, topic: str, topic_id: bytes) -> None:
        """Before the first `apply`. What came from another topic, or from one of the same name that was deleted since,
        is thrown away."""
        (known,) = self._writer.execute("SELECT (SELECT topic_id FROM origin WHERE topic = ?)", (topic,)).fetchone()
        if known == topic_id:
            return
        with self._writer:
            for table in ("entries", "positions", "origin"):
                self._writer.execute(f"DELETE FROM {table}")
            self._writer.execute("INSERT INTO origin VALUES (?, ?)", (topic, topic_id))

    def apply(self, changes: Iterable[Change], positions: Mapping[int, int]) -> None:
        """All of it or nothing. `positions`: the next offset of each partition after these changes."""
        last: dict[Place, tuple[bytes | None, int, str | None]] = {}
        versioned = self.kind is StoreKind.VERSIONED
        newest = self._newest() if versioned else {}
        for change in changes:
            key, first, second = split_key(self.kind, change.key)
            seen = newest.get(change.partition, LEAST)
            if versioned:
                first = change.timestamp
                if first < seen - self._retention_ms:
                    continue  # too old when it came: the store did not take it either
            headers = _written(change.headers) if self._with_headers and change.headers else None
            last[Place(key, first, second, change.partition)] = (change.value, change.timestamp, headers)
            newest[change.partition] = max(first, seen)
        # In the order of the table: neighbours lie on the same page.
        ordered = sorted(last.items(), key=itemgetter(0))
        gone = [place for place, (value, *_) in ordered if value is None and not versioned]
        kept = [(*place, *entry) for place, entry in ordered if entry[0] is not None or versioned]
        with self._writer:
            self._writer.executemany(
                "DELETE FROM entries WHERE key = ? AND first = ? AND second = ? AND partition = ?", gone
            )
            self._writer.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", kept)
            self._writer.executemany(
                "INSERT INTO positions VALUES (?, ?, ?) ON CONFLICT (partition) DO UPDATE SET "
                "next = excluded.next, newest = max(newest, excluded.newest)",
                [(partition, offset, newest.get(partition, LEAST)) for partition, offset in positions.items()],
            )
            self._expire(newest)

    def _expire(self, partitions: Iterable[int]) -> None:
        if self.kind is StoreKind.KEY_VALUE or not (self._retention_ms or self.kind is StoreKind.VERSIONED):
            return
        limit = "(SELECT newest FROM positions WHERE partition = ?1) - ?2"
        condition = f"partition = ?1 AND first < {limit}"
        if self.kind is StoreKind.VERSIONED:
            # A version goes once it has ended before that; a deletion, once it could not end one any more.
            condition += (
                f" AND (value IS NULL OR EXISTS (SELECT 1 FROM entries AS later WHERE later.key = entries.key "
                f"AND later.first > entries.first AND later.first <= {limit} AND later.partition = ?1))"
            )
        self._writer.executemany(
            f"DELETE FROM entries WHERE {condition}",
            [(partition, self._retention_ms) for partition in partitions],
        )

    def _newest(self) -> dict[int, int]:
        return dict(self._writer.execute("SELECT partition, newest FROM positions").fetchall())

    # ---- reading

    def positions(self) -> dict[int, int]:
        """The next changelog offset of each partition: everything below is in the view."""
        return dict(self._rows("SELECT partition, next FROM positions ORDER BY partition", ()))

    def count(self) -> int:
        ((number,),) = self._rows("SELECT count(*) FROM entries", ())
        return int(number)

    def get(self, key: bytes, *, partition: int | None = None) -> Entry | None:
        """Of a key-value store, or the latest version of a versioned one."""
        rows = self._select("key = ?", (key,), Slice(limit=1, reverse=True, partition=partition))
        return rows[0] if rows and rows[0].value is not None else None

    def range(self, first: bytes | None = None, last: bytes | None = None, slice_: "Slice | None" = None) -> Page:
        """In the order of key bytes, both ends inclusive; None is open. Of a versioned store the latest versions."""
        conditions, values = ["1"], []
        if first is not None:
            conditions.append("key >= ?")
            values.append(first)
        if last is not None:
            conditions.append("key <= ?")
            values.append(last)
        return self._page(" AND ".join(conditions), values, slice_)

    def prefix(self, prefix: bytes, slice_: "Slice | None" = None) -> Page:
        end = _behind(prefix)
        if end is None:
            return self._page("key >= ?", (prefix,), slice_)
        return self._page("key >= ? AND key < ?", (prefix, end), slice_)

    def windows(self, key: bytes, first: int = LEAST, last: int = MOST, slice_: "Slice | None" = None) -> Page:
        """Those of a window store that begin between the two times, both inclusive; the oldest comes first."""
        return self._page("key = ? AND first BETWEEN ? AND ?", (key, first, last), slice_)

    def all_windows(self, first: int = LEAST, last: int = MOST, slice_: "Slice | None" = None) -> Page:
        """Of all keys."""
        return self._page("first BETWEEN ? AND ?", (first, last), slice_)

    def sessions(
        self, key: bytes, earliest_end: int = LEAST, latest_start: int = MOST, slice_: "Slice | None" = None
    ) -> Page:
        """Those of a session store that end no earlier and begin no later, as Kafka's findSessions."""
        return self._page("key = ? AND first >= ? AND second <= ?", (key, earliest_end, latest_start), slice_)

    def all_sessions(self, earliest_end: int = LEAST, latest_start: int = MOST, slice_: "Slice | None" = None) -> Page:
        """Of all keys."""
        return self._page("first >= ? AND second <= ?", (earliest_end, latest_start), slice_)

    def versions(self, key: bytes, first: int, last: int, *, partition: int | None = None) -> "list[Version]":
        """Of a versioned store: what was valid at some moment between the two times, the oldest first. Times that the
        store's history does not reach have the latest version only, if it is that old."""
        rows = self._select("key = ?", (key,), Slice(limit=MOST, partition=partition))
        found = []
        for row, later in zip(rows, [*rows[1:], None], strict=True):
            valid_to = later.place.first if later is not None and later.place.partition == row.place.partition else None
            if row.value is not None and row.place.first <= last and (valid_to is None or valid_to > first):
                found.append(Version(row, valid_to))
        if last < self._newest_seen(partition) - self._retention_ms:
            return [version for version in found if version.valid_to is None]
        return found

    def _newest_seen(self, partition: int | None) -> int:
        where = "" if partition is None else f" WHERE partition = {partition}"
        ((newest,),) = self._rows(f"SELECT max(newest) FROM positions{where}", ())
        return LEAST if newest is None else int(newest)

    def _page(self, condition: str, values: Sequence[object], slice_: "Slice | None") -> Page:
        wanted = slice_ or Slice()
        if self.kind is StoreKind.VERSIONED:
            condition += (
                " AND value IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entries AS later WHERE later.key = entries.key "
                "AND later.first > entries.first AND later.partition = entries.partition)"
            )
        rows = self._select(condition, values, wanted._replace(limit=wanted.limit + 1))
        return Page(rows[: wanted.limit], len(rows) > wanted.limit)

    def _select(self, condition: str, values: Sequence[object], slice_: "Slice") -> list[Entry]:
        if slice_.after is not None:
            condition += f" AND (key, first, second, partition) {'<' if slice_.reverse else '>'} (?, ?, ?, ?)"
            values = (*values, *slice_.after)
        if slice_.partition is not None:
            condition += " AND partition = ?"
            values = (*values, slice_.partition)
        order = ", ".join(f"{name} {'DESC' if slice_.reverse else 'ASC'}" for name in Place._fields)
        rows = self._rows(
            f"SELECT key, first, second, partition, value, timestamp, headers FROM entries WHERE {condition} "
            f"ORDER BY {order} LIMIT ?",
            (*values, slice_.limit),
        )
        return [Entry(Place(*row[:4]), row[4], row[5], _read(row[6]) if row[6] else ()) for row in rows]

    def _rows(self, statement: str, values: Sequence[object]) -> list[Any]:
        with self._reading:
            return self._reader.execute(statement, values).fetchall()


def _written(headers: Headers) -> str:
    return json.dumps([(name, None if value is None else value.hex()) for name, value in headers])


def _read(text: str) -> Headers:
    return tuple((name, None if value is None else bytes.fromhex(value)) for name, value in json.loads(text))


def _behind(prefix: bytes) -> bytes | None:
    """The least key above all that begin with the prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10.0, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # In WAL mode this loses at most the last transactions when the machine dies, and the changelog has those.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _opened(path: Path, kind: StoreKind) -> sqlite3.Connection:
    """A file of another format or a damaged one is no loss: the changelog has everything."""
    connection = sqlite3.connect(path)
    try:
        usable = connection.execute("PRAGMA user_version").fetchone() == (_FORMAT,)
    except sqlite3.DatabaseError:
        usable = False
    finally:
        connection.close()
    if usable:
        return _connection(path)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    connection = _connection(path)
    connection.executescript(_SCHEMA + ("" if kind is StoreKind.KEY_VALUE else _BY_TIME))
    connection.execute(f"PRAGMA user_version = {_FORMAT}")
    return connection
