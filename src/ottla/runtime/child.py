"""A process that this one owns: started on first use, watched, started anew after a pause if it dies, ended with us.

The contract, for whoever has work that needs a process of its own (the log cleaner; Spark):

- **What runs.** `python -m MODULE ARGUMENTS… NUMBER`, with our `sys.path`. NUMBER is its end of a socket pair, which
  `runtime.parent.Parent` takes. What it prints goes to our standard error. It has a process group of its own, for
  Ctrl-C in a terminal is meant for us; but our session: Linux shares processors out by session first (autogroup), and
  in one of its own an idle process would stand back from nobody.
- **What it inherits**: descriptors that are named (`inherits`), under their numbers, such as ports that are taken.
- **Messages** are Python objects, pickled, in both directions. `send` and `receive` wait, so they belong to a thread;
  one thread sends and one receives (the same, as in `ask`, or two).
- **Start.** The first `send` starts it. So does the first after it died, when the pause of `Backoff` is over; until
  then `send` waits. A new process knows nothing: whoever asks tells it again what it needs.
- **Death** is told by `Died`, to whoever sends or receives: when that is raised the process and all it had started are
  gone. To be told at once, have a thread in `receive`.
- **End.** `kill` from any thread: whatever waits raises `Died`, and nothing follows. `close` lets it go by itself for a
  while first (its input ends, behind a last message if one is given: so it can tell a wish from our death), then kills
  it; when `close` returns nothing is left.
- **Our end**, however we die, ends its input: `Parent.hear` raises Gone then, and unless that is caught the child ends.
  One in the middle of long work asks `Parent.has_news` every now and then.
"""

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_LONGEST_WAIT_MS: Final = 1 << 30
"""About what a system call takes."""
_LOOK_SECONDS: Final = 0.02
"""Between two looks whether a process has ended by itself."""


class Unavailable(Exception):
    """No process could be started."""


class Died(Exception):
    """The process has ended, by itself or because it was told to."""


class Backoff:
    """How long to wait before a process that died is started anew. Seconds in, seconds out."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float = 0.5, longest: float = 60.0) -> None:
        self._first = self._next = first
        self._longest = longest

    def died(self, lived: float) -> float:
        """Twice as long each time, unless it lived for a while: then whatever it was is over."""
        pause = self._first if lived >= self._longest else self._next
        self._next = min(pause * 2, self._longest)
        return pause


class _Line:
    """One life of the process, and our end of the socket."""

    __slots__ = ("_process", "_reader", "_socket", "_writer", "began")

    def __init__(self, command: Sequence[str], inherits: Sequence[int], began: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", *command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=2,
                    pass_fds=[theirs.fileno(), *inherits],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                    process_group=0,
                )
            except OSError:
                ours.close()
                raise
        self._socket = ours
        self._reader = ours.makefile("rb")
        self._writer = ours.makefile("wb")
        self.began = began

    def send(self, message: object) -> None:
        pickle.dump(message, self._writer, pickle.HIGHEST_PROTOCOL)
        self._writer.flush()

    def receive(self) -> object:
        return pickle.load(self._reader)

    def wait(self, seconds: float) -> None:
        news = select.poll()
        news.register(self._socket, select.POLLIN)
        news.poll(min(seconds * 1000, _LONGEST_WAIT_MS))

    def end_input(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """With everything it has started, such as a JVM. Wakes up whoever waits for it."""
        with suppress(ProcessLookupError, PermissionError):  # nothing is left of it, as two systems say it
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def let_end(self, patience_s: float) -> None:
        """Without taking notice of its end: until then its process group is known by its number, and can be killed
        with all that it has left behind."""
        deadline = time.monotonic() + patience_s
        with suppress(ChildProcessError):  # somebody else took notice
            while os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                if time.monotonic() >= deadline:
                    return
                time.sleep(_LOOK_SECONDS)

    def ended(self) -> int:
        """Waits for its end."""
        return self._process.wait()

    def close(self) -> None:
        for file in (self._writer, self._reader):
            with suppress(OSError):  # something was not sent any more
                file.close()
        self._socket.close()


class Child:
    __slots__ = ("_backoff", "_command", "_inherits", "_killed", "_line", "_lock", "_not_before", "what")

    def __init__(self, what: str, *command: str, inherits: Sequence[int] = (), backoff: Backoff | None = None) -> None:
        """`what` is its name in messages, as in "the cleaner"; the command is a module and its arguments."""
        self.what = what
        self._command = command
        self._inherits = inherits
        self._backoff = backoff or Backoff()
        self._lock = threading.Lock()
        self._killed = threading.Event()
        self._line: _Line | None = None
        self._not_before = 0.0

    def ask(self, message: object) -> object:
        """Raises Died and Unavailable."""
        self.send(message)
        return self.receive()

    def send(self, message: object) -> None:
        """Raises Died and Unavailable."""
        line = self._running()
        try:
            line.send(message)
        except OSError as error:
            raise self._died(line) from error

    def receive(self) -> object:
        """Raises Died."""
        line = self._line
        if line is None:
            raise Died(f"{self.what} is not running")
        try:
            return line.receive()
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            raise self._died(line) from error

    def wait(self, seconds: float) -> None:
        """For something to receive, its death included, at most so long."""
        line = self._line
        if line is not None:
            line.wait(seconds)

    def kill(self) -> None:
        with self._lock:
            self._killed.set()
            if self._line is not None:
                self._line.kill()

    def close(self, patience_s: float = 0.0, farewell: object = None) -> None:
        line = self._line
        if line is not None and patience_s > 0:
            if farewell is not None:
                with suppress(OSError):  # it has just died
                    line.send(farewell)
            line.end_input()
            line.let_end(patience_s)
        self.kill()
        if line is not None:
            line.ended()
            line.close()
            self._line = None

    def _running(self) -> _Line:
        if self._line is None:
            self._killed.wait(self._not_before - time.monotonic())
        with self._lock:
            if self._killed.is_set():
                raise Died(f"{self.what} was told to stop")
            if self._line is None:
                try:
                    self._line = _Line(self._command, self._inherits, time.monotonic())
                except OSError as error:
                    raise Unavailable(f"{self.what}'s process cannot be started: {error}") from error
            return self._line

    def _died(self, line: _Line) -> Died:
        with self._lock:
            line.kill()
            code = line.ended()
            if self._line is line:  # else whoever else waited for it has seen to this
                line.close()
                now = time.monotonic()
                self._not_before = now + self._backoff.died(now - line.began)
                self._line = None
        return Died(f"{self.what}'s process ended with {code}")
