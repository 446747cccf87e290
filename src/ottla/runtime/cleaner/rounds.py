"""The work of the process that cleans: it does rounds as the node asks for them, one answer to each request.

All it knows is the round it is in, so nothing else is lost when it is killed. It ends when its input does: that is how
it learns that the node is gone, however the node died. What it wrote is found and removed when the node starts again.
"""

import time
import traceback
from typing import Final, NoReturn

from ottla.runtime.cleaner.priority import Priority
from ottla.runtime.parent import Gone, Parent
from ottla.storage.cleaner.facts import Facts, Failed, Mapped, Rewrite, Rewritten, Spent
from ottla.storage.cleaner.rewrite import Round
from ottla.storage.fs import CorruptLog, RealFilesystem

_ASK_BYTES: Final = 512 << 10
"""A paced cleaner asks often enough to be smooth, and seldom enough not to keep the node busy."""


class Line:
    """The node, which must not be kept waiting while a round works."""

    __slots__ = ("_parent", "_priority", "_spent", "is_paced")

    def __init__(self, parent: Parent, priority: Priority) -> None:
        self._parent = parent
        self._spent = 0
        self._priority = priority
        self.is_paced = False

    def hear(self) -> object:
        return self._parent.hear()

    def say(self, answer: object) -> None:
        self._parent.say(answer)

    def breathe(self, size: int) -> None:
        # In the middle of an answer the node has nothing to say: if there is something to hear, it is the end.
        if self._parent.has_news:
            raise Gone
        self._priority.adapt(time.monotonic())
        self._spent += size
        if self.is_paced and self._spent >= _ASK_BYTES:
            self.say(Spent(self._spent))
            self._spent = 0
            self.hear()


def serve(line: Line) -> NoReturn:
    rounds = Rounds(line)
    while True:
        request = line.hear()
        try:
            line.say(rounds.answer(request))
        except (CorruptLog, OSError) as error:
            line.say(Failed(error))
        except Exception:  # noqa: BLE001  the node tells it, and leaves that log alone
            line.say(Failed(RuntimeError(traceback.format_exc())))


class Rounds:
    """One after the other."""

    __slots__ = ("_left", "_line", "_round")

    def __init__(self, line: Line) -> None:
        self._line = line
        self._round: Round | None = None
        self._left = 0

    def answer(self, request: object) -> Mapped | Rewritten:
        match request:
            case Facts():
                return self._begin(request)
            case Rewrite():
                return self._rewrite(request)
        raise TypeError(request)

    def _begin(self, facts: Facts) -> Mapped:
        self._line.is_paced = facts.limits.paced
        self._round = Round(facts, RealFilesystem(), self._line.breathe)
        mapped = self._round.map_keys()
        self._left = len(mapped.groups)
        return mapped

    def _rewrite(self, request: Rewrite) -> Rewritten:
        assert self._round is not None
        replacement = self._round.rewrite(request.number, request.last_records)
        stats = self._round.stats
        self._left -= 1
        if not self._left:
            self._round = None  # its memory is not needed until the next one
        return Rewritten(replacement, stats)
