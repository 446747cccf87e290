"""What the active controller does now and then without being asked."""

from ottla.model.ids import Millis


class Chore:
    """Due every so often, first after one whole interval; `hurry` makes it due at once."""

    __slots__ = ("_due", "_every")

    def __init__(self, every: int) -> None:
        self._every = every
        self._due: int | None = None

    def begin(self, now: Millis) -> None:
        self._due = now + self._every

    def hurry(self) -> None:
        self._due = 0

    def due(self, now: Millis) -> Millis:
        if self._due is None:
            self.begin(now)
        assert self._due is not None
        return Millis(self._due)

    def is_due(self, now: Millis) -> bool:
        return self.due(now) <= now

    def done(self, now: Millis, *, more: bool = False) -> None:
        """`more` if there was too much of it for one go."""
        self._due = now if more else now + self._every
