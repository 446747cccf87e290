"""Where the connector stands: a place in the WAL, and what is still to be read of tables. Plain data, for JSON."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.connect import spi
from ottla.connect.connectors.postgresql.lsn import lsn_of, lsn_text

_HALF: Final = 1 << 31


class View(NamedTuple):
    """A snapshot of the database: which transactions it shows."""

    xids: str
    """As pg_current_snapshot says it: `xmin:xmax:those,under,way`."""
    until: int
    """All that it shows was committed before this place in the WAL."""
    name: str = ""
    """Under which other connections may share it, as long as the one lives that made it."""

    def shows(self, xid: int) -> bool:
        """`xid`: the low 32 bits, which is all that the log has."""
        _, most, under_way = self.xids.split(":")
        if (xid - int(most)) % (1 << 32) < _HALF:
            return False
        return all(int(each) & 0xFFFFFFFF != xid for each in under_way.split(",") if each)

    def written(self) -> dict[str, Any]:
        return {"xids": self.xids, "until": lsn_text(self.until), "name": self.name}

    @classmethod
    def of(cls, found: dict[str, Any]) -> View:
        made = cls(str(found["xids"]), lsn_of(found["until"]), str(found.get("name") or ""))
        made.shows(0)  # a text that says nothing is found now
        return made


class Portion(NamedTuple):
    """A table of which something is still to be read."""

    table: str
    """SCHEMA.TABLE."""
    after: tuple[str, ...] = ()
    """The key of the last row that was read; nothing: from the beginning."""
    condition: str = ""
    """SQL that the rows have to fulfil."""

    def written(self) -> dict[str, Any]:
        return {"table": self.table, "after": list(self.after), "condition": self.condition}

    @classmethod
    def of(cls, found: dict[str, Any]) -> Portion:
        return cls(str(found["table"]), tuple(map(str, found["after"])), str(found.get("condition") or ""))


class Inside(NamedTuple):
    """In the midst of a transaction."""

    commit_lsn: int
    changes: int
    """So many of its changes are done."""


class Position(NamedTuple):
    lsn: int
    """Transactions whose commit record lies before this place are done."""
    commit: int | None = None
    """The end of the last transaction that was read."""
    inside: Inside | None = None
    loading: tuple[Portion, ...] = ()
    """Tables that are read before any change."""
    view: View | None = None
    """By which they are read; later, whose transactions are left out of the changes."""
    chunks: tuple[Portion, ...] = ()
    """Tables that are read between changes."""
    paused: bool = False
    """Whether chunks wait."""
    heartbeat_ms: int = 0
    """When the last heartbeat was written."""
    loaded: bool = True
    """False as long as no row has been read of the tables."""

    def as_offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {"lsn": lsn_text(self.lsn)}
        if self.commit is not None:
            found["commit"] = lsn_text(self.commit)
        if self.inside is not None:
            found["inside"] = [lsn_text(self.inside.commit_lsn), self.inside.changes]
        if self.loading:
            found["loading"] = [each.written() for each in self.loading]
        if self.view is not None:
            found["view"] = self.view.written()
        if self.chunks:
            found["chunks"] = [each.written() for each in self.chunks]
        if self.paused:
            found["paused"] = True
        if self.heartbeat_ms:
            found["heartbeat"] = self.heartbeat_ms
        if not self.loaded:
            found["loaded"] = False
        return found


def position_of(offset: spi.Offset) -> Position:
    """Debezium's is understood: its `lsn_commit` is the end of the last transaction that it has done. Raises
    ConnectorFailed."""
    try:
        commit = offset.get("commit", offset.get("lsn_commit"))
        inside = offset.get("inside")
        view = offset.get("view")
        is_debeziums = "lsn_commit" in offset or "lsn_proc" in offset
        return Position(
            lsn_of(offset["lsn_commit"] if is_debeziums and offset.get("lsn_commit") else offset["lsn"]),
            None if commit is None else lsn_of(commit),
            None if inside is None else Inside(lsn_of(inside[0]), int(inside[1])),
            tuple(map(Portion.of, offset.get("loading", ()))),
            None if view is None else View.of(view),
            tuple(map(Portion.of, offset.get("chunks", ()))),
            bool(offset.get("paused", False)),
            int(offset.get("heartbeat", 0)),
            bool(offset.get("loaded", True)),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise spi.ConnectorFailed(
            f"the offset {dict(offset)!r} says nothing of where to go on ({error!r}). One looks like "
            '{"lsn": "16/B374D848"}: put it right, or reset the offsets, and the tables are read again'
        ) from error
