"""Programs that run on beside the test: started, spoken to or watched, ended."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.support.patience import PATIENCE_SECONDS

Seen = TypeVar("Seen")

DEADLINE_S = PATIENCE_SECONDS
"""For a JVM on a busy machine. Nobody waits that long unless something is wrong."""
GLANCE_S = 0.05


class Dialogue:
    """One process that is spoken to by lines and answers by lines."""

    def __init__(self, name: str, command: Sequence[str], log: Path | None = None) -> None:
        """What it prints as errors is put into `log`, or among the errors of this process."""
        self._name = name
        with contextlib.ExitStack() as opened:
            errors = opened.enter_context(log.open("ab")) if log else None
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def heard(self) -> Iterator[str]:
        """All lines it will ever say, as they come."""
        assert self._process.stdout is not None
        return iter(self._process.stdout)

    def ask(self, line: str) -> str:
        """The answer to one line, for processes that answer each before they read the next."""
        self.say(line)
        answer = next(self.heard(), None)
        assert answer, f"{self._name} died when it was told {line[:200]!r}: exit code {self._process.wait()}"
        return answer

    def hang_up(self) -> None:
        """It will hear nothing more, and may still say something."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def close(self, patience_s: float = 60.0) -> None:
        """It is told that there is nothing more to do. One that goes on is killed, and that is an error."""
        self.hang_up()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            assert self._process.stdout is not None
            self._process.stdout.close()


class Program:
    """One process. What it prints, to either stream, is in a file."""

    def __init__(self, name: str, command: Sequence[str], directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._log = directory / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def printed(self) -> str:
        return self._log.read_text(errors="replace")

    def until(self, what: str, glance: Callable[[], Seen | None], seconds: float = DEADLINE_S) -> Seen:
        """Looks again and again until there is something to see, for as long as the program lives."""
        end = time.monotonic() + seconds
        while not (seen := glance()):
            assert time.monotonic() < end, f"{what} did not come about; last seen: {seen}"
            try:
                self._process.wait(GLANCE_S)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"{self.name} ended with {self._process.returncode}")
        return seen

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def stop(self) -> str:
        """SIGTERM. Returns all that it printed."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(DEADLINE_S)
        assert code in (0, 128 + signal.SIGTERM, -signal.SIGTERM), f"{self.name} ended with {code}"
        return self.printed()

    def stop_or_kill(self, patience_s: float = 45.0) -> str:
        """SIGTERM, and SIGKILL for one that does not end by it; where its threads were is in what it printed."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)  # Java prints its threads
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
            self._process.kill()
            self._process.wait(DEADLINE_S)
        return self.printed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(DEADLINE_S)
        if error is not None:
            error.add_note(f"{self.name} printed:\n{self.printed()}")
