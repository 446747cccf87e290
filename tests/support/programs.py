"""Programs that run on beside the test: started, watched through their output and what they bring about, ended."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

Seen = TypeVar("Seen")

DEADLINE_S = 120.0
"""For a JVM on a busy machine. Nobody waits that long unless something is wrong."""
GLANCE_S = 0.05


class Program:
    """One process. What it prints, to either stream, is in a file."""

    def __init__(self, name: str, command: Sequence[str], directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._log = directory / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

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
