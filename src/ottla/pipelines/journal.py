"""The jobs of a host, written down: one that comes back after a crash begins them all again.

One file, replaced as a whole, so that a crash leaves the old list or the new one.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ottla.pipelines.job import CannotStart, Job

FILE: Final = "jobs.json"


class Journal:
    """Methods may be called from any thread."""

    __slots__ = ("_jobs", "_lock", "_path")

    def __init__(self, directory: Path) -> None:
        """Raises ValueError for a file that is no list of jobs."""
        self._lock = threading.Lock()
        self._path = directory / FILE
        self._jobs = {job.name: job for job in _read(self._path)}

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs.values())

    def put(self, job: Job) -> None:
        with self._lock:
            self._jobs[job.name] = job
            self._write()

    def remove(self, name: str) -> None:
        with self._lock:
            if self._jobs.pop(name, None) is not None:
                self._write()

    def _write(self) -> None:
        unfinished = self._path.with_suffix(".unfinished")
        # For its owner only: a job's arguments may hold a password.
        with open(unfinished, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump([job.as_json() for job in self._jobs.values()], file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path)


def _read(path: Path) -> Iterable[Job]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    try:
        return [Job.of_json(each) for each in json.loads(text)]
    except (ValueError, TypeError, CannotStart) as error:
        raise ValueError(f"{path} is no list of jobs: {error}; move it away, and start the jobs anew") from error
