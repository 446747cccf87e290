"""Which input partitions a task waits for: `max.task.idle.ms` of Kafka (KIP-695).

A task takes the record with the lowest timestamp of all its partitions, so it has to know the next one of each. One of
which more is known to lie at the brokers is waited for. One that has been read to its end is waited for as long as the
setting says, in case something comes. With -1 a task never waits, and may take records out of order.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

Place = tuple[str, int]

NEVER_WAITS: Final = -1


class Idling:
    """`deadlines` are those of partitions without records, in ms."""

    __slots__ = ("_idle_ms", "deadlines")

    def __init__(self, idle_ms: int, deadlines: Mapping[Place, int] | None = None) -> None:
        self._idle_ms = idle_ms
        self.deadlines = dict(deadlines or {})

    def awaited(
        self, places: Iterable[Place], more: Collection[Place], filled: Collection[Place], now: int
    ) -> list[Place]:
        """Those that must not run dry. `more`: more is to come of them; `filled`: they have records here."""
        if self._idle_ms == NEVER_WAITS:
            return []
        found = []
        for place in places:
            if place in more or place in filled:
                self.deadlines.pop(place, None)
                if place in more or self._idle_ms > 0:
                    found.append(place)
            elif now < self.deadlines.setdefault(place, now + self._idle_ms):
                found.append(place)
        return found

    def next_ms(
        self, places: Iterable[Place], more: Collection[Place], filled: Collection[Place], now: int
    ) -> int | None:
        """When a task whose records wait has to look again; None: not before something was read."""
        if self._idle_ms <= 0 or not filled:
            return None
        empty = [place for place in places if place not in filled and place not in more]
        for place in empty:
            self.deadlines.setdefault(place, now + self._idle_ms)
        return max((self.deadlines[place] for place in empty), default=None)
