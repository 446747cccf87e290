"""Which transactions' rows are read: those of a window of PostgreSQL's transaction ids, each window once.

A window ends at the horizon, the oldest transaction that is under way. All below it are over, so nothing will ever turn
up in the window that was not there when it was read, whatever numbers or times its rows have. A row that is changed
again is read as it is then, in the window of that change.

Rows tell the low 32 bits of who wrote them; what is ahead by fewer than 2^30 counts as not over yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

HORIZON: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_ROUND: Final = 1 << 32
_AHEAD: Final = 1 << 30


class Window(NamedTuple):
    """From `since` up to, but without, `until`; None: from the first one on, and not known yet."""

    since: int | None = None
    until: int | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Window:
        given = offset or {}
        since, until = given.get("horizon"), given.get("until")
        return cls(None if since is None else int(since), None if until is None else int(until))

    def offset(self) -> dict[str, Any]:
        made: dict[str, Any] = {"horizon": self.since}
        if self.until is not None:
            made["until"] = self.until
        return made

    def opened(self, horizon: int) -> Window:
        return Window(self.since, horizon)

    def closed(self) -> Window:
        return Window(self.until)

    @property
    def is_empty(self) -> bool:
        return self.since is not None and self.until is not None and self.until <= self.since

    def condition(self) -> str:
        assert self.until is not None
        low = self.until % _ROUND
        if self.since is None:
            return f"mod(xmin::text::bigint - {low} + {_ROUND}, {_ROUND}) >= {_AHEAD}"
        return f"mod({low} - xmin::text::bigint + {_ROUND}, {_ROUND}) BETWEEN 1 AND {self.until - self.since}"
