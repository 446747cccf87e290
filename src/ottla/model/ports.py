"""What the house asks of the world, each port small enough to have a simulated twin."""

from typing import Protocol

from ottla.model.ids import Millis, Uuid


class Clock(Protocol):
    def wall(self) -> Millis:
        """Milliseconds since 1970: for timestamps in records and retention. It may jump."""

    def monotonic(self) -> Millis:
        """Milliseconds that never go back: for deadlines."""


class Ids(Protocol):
    def uuid(self) -> Uuid:
        """A fresh random id that is neither zero nor reserved and does not start with a dash when printed."""

    def number(self, low: int, high: int) -> int:
        """A fresh random number from `low` to `high`, both included."""
