"""What PostgreSQL's pgoutput plugin says, protocol version 1: bytes in, values out.

A column of a row is a text, None (null) or UNCHANGED (a large value that an update has left as it was, and that is not
in the log). Each answer of the server repeats the descriptions of the relations that occur in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Binary
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias

EPOCH_MICROS: Final = 946_684_800_000_000
"""2000-01-01, from which PostgreSQL counts."""
MOST_COLUMNS: Final = 1600
"""As many as a table can have."""


class Malformed(ValueError):
    """These bytes are not pgoutput's."""


class Unchanged:
    """See UNCHANGED."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"

    def __reduce__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()

Text: TypeAlias = str | Unchanged | None
Columns: TypeAlias = list[Text]


class Begin(NamedTuple):
    commit_lsn: int
    """Of the commit record itself: what positions are compared with."""
    time_micros: int
    """Since 1970."""
    xid: int


class Commit(NamedTuple):
    commit_lsn: int
    end_lsn: int
    """Behind the commit record."""
    time_micros: int


class RelationColumn(NamedTuple):
    name: str
    type_oid: int
    modifier: int
    is_key: bool
    """Of the replica identity."""


class Relation(NamedTuple):
    oid: int
    schema: str
    table: str
    identity: str
    """Replica identity: d (default), n (nothing), f (full), i (an index)."""
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    relation: int
    new: Columns


class Update(NamedTuple):
    relation: int
    old: Columns | None
    """The key if it was changed, or all of the row with a full identity."""
    is_whole: bool
    """Whether `old` is the whole row."""
    new: Columns


class Delete(NamedTuple):
    relation: int
    old: Columns
    is_whole: bool


class Truncate(NamedTuple):
    relations: tuple[int, ...]
    cascade: bool
    restart_identity: bool


class Message(NamedTuple):
    """Written by pg_logical_emit_message."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


class Other(NamedTuple):
    """Types and origins: nothing that is needed."""

    kind: str


Change: TypeAlias = Insert | Update | Delete | Truncate | Message
Decoded: TypeAlias = Begin | Commit | Relation | Change | Other

_U16: Final = Binary(">H").unpack_from
_U32: Final = Binary(">I").unpack_from
_BEGIN: Final = Binary(">QqI").unpack_from
_COMMIT: Final = Binary(">BQQq").unpack_from
_COLUMN: Final = Binary(">Ii").unpack_from
_MESSAGE: Final = Binary(">BQ").unpack_from

_TEXT, _NULL, _TOAST = ord("t"), ord("n"), ord("u")
_NEW, _OLD, _KEY = ord("N"), ord("O"), ord("K")


def decode(data: bytes) -> Decoded:
    """One message. Raises Malformed."""
    try:
        return _DECODERS[data[0]](data)
    except KeyError:
        raise Malformed(f"{data[:1]!r} is no message of pgoutput's protocol 1") from None
    except (IndexError, ValueError, StructError) as error:
        raise Malformed(f"a message {data[:1]!r} of {len(data)} bytes is cut off or broken: {error}") from error


def row(data: bytes, at: int) -> tuple[Columns, int]:
    """The columns that begin at a place, and the place behind them."""
    (count,) = _U16(data, at)
    if count > MOST_COLUMNS:
        raise Malformed(f"a row of {count} columns")
    at += 2
    found: Columns = []
    add = found.append
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            end = at + 5 + _U32(data, at + 1)[0]
            add(str(data[at + 5 : end], "utf-8"))
            at = end
        elif kind == _NULL:
            add(None)
            at += 1
        elif kind == _TOAST:
            add(UNCHANGED)
            at += 1
        else:
            raise Malformed(f"a column of kind {chr(kind)!r}")
    if at > len(data):
        raise Malformed("a row is longer than its message")
    return found, at


def insert(data: bytes) -> Insert:
    if data[5] != _NEW:
        raise Malformed("an insert without a new row")
    return Insert(_U32(data, 1)[0], row(data, 6)[0])


def _update(data: bytes) -> Update:
    kind = data[5]
    old: Columns | None = None
    at = 5
    if kind in (_OLD, _KEY):
        old, at = row(data, 6)
    if data[at] != _NEW:
        raise Malformed("an update without a new row")
    return Update(_U32(data, 1)[0], old, kind == _OLD, row(data, at + 1)[0])


def _delete(data: bytes) -> Delete:
    if data[5] not in (_OLD, _KEY):
        raise Malformed("a delete without an old row")
    return Delete(_U32(data, 1)[0], row(data, 6)[0], data[5] == _OLD)


def _begin(data: bytes) -> Begin:
    commit_lsn, micros, xid = _BEGIN(data, 1)
    return Begin(commit_lsn, micros + EPOCH_MICROS, xid)


def _commit(data: bytes) -> Commit:
    _, commit_lsn, end_lsn, micros = _COMMIT(data, 1)
    return Commit(commit_lsn, end_lsn, micros + EPOCH_MICROS)


def _relation(data: bytes) -> Relation:
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _U16(data, at + 1)
    at += 3
    columns: list[RelationColumn] = []
    for _ in range(min(count, MOST_COLUMNS)):
        flags = data[at]
        name, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN(data, at)
        at += 8
        columns.append(RelationColumn(name, type_oid, modifier, bool(flags & 1)))
    return Relation(_U32(data, 1)[0], schema or "pg_catalog", table, identity, tuple(columns))


def _truncate(data: bytes) -> Truncate:
    (count,) = _U32(data, 1)
    if len(data) != 6 + 4 * count:
        raise Malformed("a truncate of another length than its relations")
    flags = data[5]
    return Truncate(tuple(_U32(data, 6 + 4 * n)[0] for n in range(count)), bool(flags & 1), bool(flags & 2))


def _message(data: bytes) -> Message:
    flags, lsn = _MESSAGE(data, 1)
    prefix, at = _text(data, 10)
    (size,) = _U32(data, at)
    content = data[at + 4 : at + 4 + size]
    if len(content) != size:
        raise Malformed("a message that is cut off")
    return Message(bool(flags & 1), lsn, prefix, content)


def _other(data: bytes) -> Other:
    return Other(chr(data[0]))


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Up to a zero."""
    end = data.index(0, at)
    return str(data[at:end], "utf-8"), end + 1


_DECODERS: Final[dict[int, Callable[[bytes], Decoded]]] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("R"): _relation,
    ord("I"): insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
    ord("M"): _message,
    ord("Y"): _other,
    ord("O"): _other,
}


class Transaction(NamedTuple):
    """What one transaction has changed, in order; `skipped` changes at its beginning were left out."""

    begin: Begin
    changes: Sequence[tuple[int, Change]]
    """With the place in the WAL of each."""
    commit: Commit | None
    """None if its end has not been seen: there are more changes."""
    skipped: int = 0
