"""Requests that wait: produce for the high watermark, fetch for enough bytes. A core: it is told the time.

A wait is watched under the partitions it concerns. Whoever moves a partition calls `touched`, which returns the waits
that may now be complete; `expired` returns those whose deadline has passed. Both forget what they return.
"""

from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Generic, TypeVar

from ottla.model.ids import Millis

_CROWDED = 16

Key = TypeVar("Key", bound=Hashable)


class Wait:
    """One parked request. Subclasses say when a touched partition completes it."""

    __slots__ = ("answer", "deadline", "done")

    def __init__(self, deadline: Millis) -> None:
        self.deadline = deadline
        self.done = False
        self.answer: object = None
        """What whoever asked waits for, as long as this waits."""

    def satisfied_by(self, key: object, amount: int) -> bool:
        raise AssertionError("each kind of wait has its own rule")

    def is_over_without(self, key: object) -> bool:
        """What was to come of `key` will not come any more."""
        return True


class Purgatory(Generic[Key]):
    __slots__ = ("_deadlines", "_order", "_watched", "waiting")

    def __init__(self) -> None:
        self._watched: dict[Key, list[Wait]] = {}
        self._deadlines: list[tuple[Millis, int, Wait]] = []
        self._order = count()
        self.waiting = 0

    def watch(self, wait: Wait, keys: Iterable[Key]) -> None:
        if len(self._deadlines) > 2 * self.waiting + _CROWDED:
            self._forget_finished()
        heappush(self._deadlines, (wait.deadline, next(self._order), wait))
        for key in keys:
            watchers = self._watched.setdefault(key, [])
            if len(watchers) >= _CROWDED:
                # A partition that nobody writes to is never touched: forget its finished waits here.
                watchers[:] = [other for other in watchers if not other.done]
            watchers.append(wait)
        self.waiting += 1

    def is_watched(self, key: Key) -> bool:
        return key in self._watched

    def touched(self, key: Key, amount: int) -> list[Wait]:
        """`key` gained `amount`: the waits this completes."""
        watchers = self._watched.get(key)
        if not watchers:
            return []
        complete: list[Wait] = []
        left: list[Wait] = []
        for wait in watchers:
            if wait.done:
                continue
            if wait.satisfied_by(key, amount):
                self._finish(wait)
                complete.append(wait)
            else:
                left.append(wait)
        if left:
            self._watched[key] = left
        else:
            del self._watched[key]
        return complete

    def released(self, key: Key) -> list[Wait]:
        """`key` is gone or changed hands: everything that waits for nothing else has to look again."""
        waits = [wait for wait in self._watched.pop(key, []) if not wait.done and wait.is_over_without(key)]
        for wait in waits:
            self._finish(wait)
        return waits

    def expired(self, now: Millis) -> list[Wait]:
        due: list[Wait] = []
        heap = self._deadlines
        while heap and (heap[0][2].done or heap[0][0] <= now):
            wait = heappop(heap)[2]
            if not wait.done:
                self._finish(wait)
                due.append(wait)
        return due

    def next_deadline(self) -> Millis | None:
        heap = self._deadlines
        while heap and heap[0][2].done:
            heappop(heap)
        return heap[0][0] if heap else None

    def cancel(self, wait: Wait) -> None:
        """The requester has gone away."""
        if not wait.done:
            self._finish(wait)

    def _finish(self, wait: Wait) -> None:
        wait.done = True
        self.waiting -= 1

    def _forget_finished(self) -> None:
        """Most waits end long before their deadline. All that would stay until then, tens of thousands of requests of a
        busy node, would cost memory, and the garbage collector pauses of tens of milliseconds."""
        self._deadlines = [entry for entry in self._deadlines if not entry[2].done]
        heapify(self._deadlines)


class FetchWait(Wait):
    """KIP-74: complete once the bytes that were there plus those that became visible since reach fetch.min.bytes."""

    __slots__ = ("missing_bytes", "resume")

    def __init__(self, deadline: Millis, missing_bytes: int, resume: object) -> None:
        super().__init__(deadline)
        self.missing_bytes = missing_bytes
        self.resume = resume

    def satisfied_by(self, key: object, amount: int) -> bool:
        self.missing_bytes -= amount
        return self.missing_bytes <= 0


class StableFetchWait(FetchWait):
    """Of a reader of committed records: what an open transaction appends is nothing to it, and the end of one shows
    more than the marker's own bytes. It looks again when a partition's last stable offset has moved."""

    __slots__ = ("_seen", "_stable_offset")

    def __init__(
        self,
        deadline: Millis,
        missing_bytes: int,
        resume: object,
        keys: Iterable[Key],
        stable_offset: Callable[[Key], int],
    ) -> None:
        super().__init__(deadline, missing_bytes, resume)
        self._seen: dict[object, int] = {key: stable_offset(key) for key in keys}
        self._stable_offset: Callable[[Any], int] = stable_offset

    def satisfied_by(self, key: object, amount: int) -> bool:
        return self._stable_offset(key) > self._seen.get(key, -1)


class ProduceWait(Wait):
    """Complete once every partition's high watermark has passed what the request appended, or never will here. Those
    that are still required then were not seen to be committed."""

    __slots__ = ("_lost", "required", "resume")

    def __init__(self, deadline: Millis, required: dict[object, int], resume: object) -> None:
        super().__init__(deadline)
        self.required = required
        self.resume = resume
        self._lost: tuple[object, ...] = ()
        """Of the required. A partition that comes back may hold other records at these offsets."""

    def satisfied_by(self, key: object, amount: int) -> bool:
        """`amount` is the partition's high watermark."""
        if amount >= self.required.get(key, 0) and key not in self._lost:
            self.required.pop(key, None)
        return len(self.required) == len(self._lost)

    def is_over_without(self, key: object) -> bool:
        """Whoever wrote to several partitions is not told to write again to those that are well."""
        if key in self.required and key not in self._lost:
            self._lost += (key,)
        return len(self.required) == len(self._lost)
