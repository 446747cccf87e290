"""Writes the history of a run, one line for each operation that ended, and reads it back."""

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.testing.checkers import Action, Kind, Leadership, Operation, Watermarks, from_json, to_json
from ottla.testing.checkers.history import Step


class Recorder:
    """Shared by all clients of a run, which are threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w")
        self._lock = threading.Lock()
        self._processes = itertools.count(1)
        self._values = itertools.count(1)
        self.acknowledged = 0
        self.languages: dict[int, str] = {}
        """Of the processes that are writers or readers."""
        self.written: dict[tuple[str, str], int] = {}
        """A writer's language and a partition, to the moment at which the latest of its sends began that the partition
        has acknowledged."""
        self.failed: list[str] = []
        """What sends were told that were not acknowledged."""
        self.watermarks: list[Watermarks] = []
        self.leaderships: list[Leadership] = []

    def new_process(self, language: str = "") -> int:
        process = next(self._processes)
        if language:
            self.languages[process] = language
        return process

    def new_value(self) -> int:
        return next(self._values)

    def ended(
        self,
        process: int,
        action: Action,
        outcome: Kind,
        invoked: int,
        steps: tuple[Step, ...] = (),
        partitions: tuple[str, ...] = (),
        *,
        fresh: bool = False,
    ) -> None:
        line = to_json(Operation(process, action, outcome, steps, partitions, fresh, invoked, time.monotonic_ns()))
        with self._lock:
            self._file.write(line + "\n")

    def close(self) -> None:
        with self._lock:
            self._file.close()


def recorded(path: Path) -> Iterator[Operation]:
    with path.open() as lines:
        for line in lines:
            yield from_json(line)
