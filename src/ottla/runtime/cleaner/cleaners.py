"""Who does the cleaner's rounds: a process of its own. A simulated disk, which no process sees, has another Cleaner.

A cleaner shares no interpreter with the node, for the two would take turns of milliseconds at it, and every request
would feel that. Its process is killed when a round is not wanted any more: all that is lost is a file nobody knows of.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from ottla.runtime.child import Child
from ottla.storage.cleaner.facts import Facts, Failed, LastRecords, Mapped, Rewrite, Rewritten, Spent

Pace = Callable[[int], float]
"""Takes bytes read and written; tells for how many seconds to wait."""
T = TypeVar("T")


class Cleaner(Protocol):
    """Does one round after the other. Its calls wait, so they belong to a worker thread; all but `kill`."""

    def begin(self, facts: Facts) -> Mapped:
        """Raises, as `rewrite` does, CorruptLog, OSError if the disk fails, Died and Unavailable."""

    def rewrite(self, number: int, last_records: LastRecords) -> Rewritten: ...

    def kill(self) -> None:
        """From any thread: what is under way raises Died, and nothing follows it."""

    def close(self) -> None:
        """Returns when nothing is left of it."""


class CleanerProcess:
    """Started with the first round."""

    __slots__ = ("_child", "_pace")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._child = Child("the cleaner", "ottla.runtime.cleaner")

    def begin(self, facts: Facts) -> Mapped:
        return self._ask(facts, Mapped)

    def rewrite(self, number: int, last_records: LastRecords) -> Rewritten:
        return self._ask(Rewrite(number, last_records), Rewritten)

    def kill(self) -> None:
        self._child.kill()

    def close(self) -> None:
        self._child.close()

    def _ask(self, request: object, kind: type[T]) -> T:
        answer = self._child.ask(request)
        while isinstance(answer, Spent):
            # It is silent until it is told to go on, so all there is to hear meanwhile is its end.
            self._child.wait(self._pace(answer.size))
            answer = self._child.ask(None)
        if isinstance(answer, Failed):
            raise answer.error
        assert isinstance(answer, kind), answer
        return answer
