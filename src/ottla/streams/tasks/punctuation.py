"""Punctuators and when they are due."""

from typing import Final

from ottla.streams.tasks.heap import Heap
from ottla.streams.topology.processor import Punctuator

NEVER: Final = 0x7FFF_FFFF_FFFF_FFFF


class Schedule:
    """One call of `schedule`. Cancelled ones are dropped when their time comes."""

    __slots__ = ("cancelled", "due_ms", "interval_ms", "node", "punctuator")

    def __init__(self, node: str, due_ms: int, interval_ms: int, punctuator: Punctuator) -> None:
        self.node = node
        self.due_ms = due_ms
        self.interval_ms = interval_ms
        self.punctuator = punctuator
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def move_on(self, now: int) -> None:
        """To the next multiple of the interval after now: what was missed is not made up for."""
        due = self.due_ms + self.interval_ms
        if now >= due:
            due = self.due_ms + ((now - self.due_ms) // self.interval_ms + 1) * self.interval_ms
        self.due_ms = due


class Punctuations:
    """Those of one kind of time. `due_ms` is when the next is due; it is looked at after every record."""

    __slots__ = ("_heap", "due_ms", "schedules")

    def __init__(self) -> None:
        self._heap: Heap[Schedule] = Heap()
        self.due_ms = NEVER
        self.schedules: list[Schedule] = []
        """All that are not over, in the order in which they were made: so they are saved and restored."""

    def add(self, schedule: Schedule) -> None:
        self.schedules.append(schedule)
        self._enter(schedule)

    def due(self, now: int) -> Schedule | None:
        """The next whose time has come. Whoever runs it calls `done`."""
        heap = self._heap
        while len(heap) and heap.first()[0] <= now:
            _, schedule = heap.take()
            self._look()
            if not schedule.cancelled:
                return schedule
            self.schedules.remove(schedule)
        return None

    def done(self, schedule: Schedule, now: int) -> None:
        if schedule.cancelled:
            self.schedules.remove(schedule)
        else:
            schedule.move_on(now)
            self._enter(schedule)

    def next_ms(self) -> int | None:
        return None if self.due_ms == NEVER else self.due_ms

    def saved(self) -> list[int]:
        return [schedule.due_ms for schedule in self.schedules]

    def restore(self, saved: list[int]) -> None:
        """Of those made in `init`; what processors scheduled later on is theirs to schedule again."""
        for schedule, due in zip(self.schedules, saved, strict=False):
            schedule.due_ms = due
        self._heap = Heap()
        self._look()
        for schedule in self.schedules:
            self._enter(schedule)

    def _enter(self, schedule: Schedule) -> None:
        self._heap.add(schedule.due_ms, schedule)
        self._look()

    def _look(self) -> None:
        self.due_ms = self._heap.first()[0] if len(self._heap) else NEVER
