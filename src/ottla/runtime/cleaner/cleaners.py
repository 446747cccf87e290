"""Who does the cleaner's rounds: a process of its own. A simulated disk, which no process sees, has another Cleaner.

A cleaner shares no interpreter with the node, for the two would take turns of milliseconds at it, and every request
would feel that. Its process is killed when a round is not wanted any more: all that is lost is a file nobody knows of.
"""

import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from ottla.storage.cleaner.facts import Facts, Failed, LastRecords, Mapped, Rewrite, Rewritten, Spent

Pace = Callable[[int], float]
"""Takes bytes read and written; tells for how many seconds to wait."""
T = TypeVar("T")

_LONGEST_PAUSE_MS: Final = 1 << 30
"""About what a system call takes."""


class Unavailable(Exception):
    """No process could be started."""


class Died(Exception):
    """The process ended in the middle of a round."""


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

    __slots__ = ("_killed", "_lock", "_pace", "_process")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._lock = threading.Lock()
        self._killed = False
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, facts: Facts) -> Mapped:
        return self._ask(facts, Mapped)

    def rewrite(self, number: int, last_records: LastRecords) -> Rewritten:
        return self._ask(Rewrite(number, last_records), Rewritten)

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        self.kill()
        if self._process is not None:
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):  # something was not sent any more
                    pipe.close()

    def _ask(self, request: object, kind: type[T]) -> T:
        process = self._running()
        try:
            answer = _exchange(process, request)
            while isinstance(answer, Spent):
                _pause(process, self._pace(answer.size))
                answer = _exchange(process, None)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            process.kill()
            raise Died(f"the cleaner's process ended with {process.wait()}") from error
        if isinstance(answer, Failed):
            raise answer.error
        assert isinstance(answer, kind), answer
        return answer

    def _running(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._killed:
                raise Died("the cleaner was told to stop")
            if self._process is None:
                self._process = _start()
            return self._process


def _start() -> "subprocess.Popen[bytes]":
    """In a process group of its own: Ctrl-C in a terminal is for the node, which ends its cleaner itself. But in the
    node's session: Linux shares processors out by session first (autogroup), and in one of its own the cleaner would
    stand back from nobody."""
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ottla.runtime.cleaner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            process_group=0,
        )
    except OSError as error:
        raise Unavailable(f"the cleaner's process cannot be started: {error}") from error


def _pause(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Not longer than the process lives: it is silent until it is told to go on, so all there is to hear is its end."""
    assert process.stdout is not None
    news = select.poll()
    news.register(process.stdout, select.POLLIN)
    news.poll(min(seconds * 1000, _LONGEST_PAUSE_MS))


def _exchange(process: "subprocess.Popen[bytes]", message: object) -> object:
    assert process.stdin is not None and process.stdout is not None
    pickle.dump(message, process.stdin, pickle.HIGHEST_PROTOCOL)
    process.stdin.flush()
    return pickle.load(process.stdout)
