"""Rows of a time that has been passed already: a transaction that took its time early and commits after others.

A position by time keeps what was given of the last while (`timestamp.look.back.ms`), row by row as a digest; what turns
up in that while and is not among them is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

MOST_SEEN: Final = 2000
"""Rows that are remembered; with more in the while, it is looked back less far."""


class Seen(NamedTuple):
    """All rows younger than `floor` that were given, with their times, in order. In microseconds."""

    floor: int = 0
    rows: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Seen:
        return cls(int(offset.get("floor", 0)), tuple((int(at), str(told)) for at, told in offset.get("seen") or ()))

    def offset(self) -> dict[str, Any]:
        return {"floor": self.floor, "seen": [list(each) for each in self.rows]}

    def late(self, rows: Sequence[tuple[int, str]]) -> list[int]:
        """The places of those that were not given."""
        known = dict.fromkeys(self.rows)
        return [at for at, row in enumerate(rows) if row not in known]

    def after(self, rows: Sequence[tuple[int, str]], last: int, look_back: int) -> Seen:
        """With rows that were given now; `last` is the youngest of all."""
        floor = max(self.floor, last - look_back)
        kept = sorted(each for each in (*self.rows, *rows) if each[0] > floor)
        if len(kept) > MOST_SEEN:
            floor = kept[-MOST_SEEN - 1][0]
            kept = [each for each in kept if each[0] > floor]
        return Seen(floor, tuple(kept))


def digest(row: Sequence[Any]) -> str:
    return blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()
