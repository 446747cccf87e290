"""Leaders whose connection to this broker has just broken: what the image says of them is probably about to change.

A client whose leader was killed asks for metadata within a millisecond, before any controller can have decided. If it
is told the dead leader's name, librdkafka comes back after a second. So such an answer waits a moment for the verdict.
"""

from collections.abc import Iterable

from ottla.model.ids import Millis


class LostLeaders:
    __slots__ = ("_until", "_wait_ms")

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._until: dict[int, Millis] = {}
        """Broker id to the end of the wait. It stays until the broker is reached again: a network that stays broken
        between two brokers must not slow down every answer."""

    def lost(self, broker_id: int, now: Millis) -> None:
        self._until.setdefault(broker_id, Millis(now + self._wait_ms))

    def reached(self, broker_id: int) -> None:
        self._until.pop(broker_id, None)

    def any(self, now: Millis) -> bool:
        return any(now < until for until in self._until.values())

    def is_awaited(self, leaders: Iterable[int], now: Millis) -> bool:
        """Whether there may soon be news of one of these."""
        return any(now < self._until.get(leader, now) for leader in leaders)
