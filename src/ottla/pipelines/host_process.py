"""The Spark host as a process: `python -m ottla.pipelines.host_process DIRECTORY MASTER [SETTING=VALUE ...] NUMBER`.

    DIRECTORY/jobs.json     what it runs, also after a crash
    DIRECTORY/host.socket   where it is told to start and stop jobs
    DIRECTORY/.lock         held while it lives

NUMBER is a socket of its owner, who starts it with the first job and again when it dies. When that socket ends, so does
the host: behind a farewell when the micro-batches under way have ended; without one, as its owner was killed and others
may have its jobs already, at once.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.pipelines.door import FAREWELL, Door
from ottla.pipelines.host import Host, NoSuchJob
from ottla.pipelines.job import CannotStart, Job
from ottla.pipelines.journal import Journal
from ottla.pipelines.loggers import set_level

logger = logging.getLogger(__name__)


class HostProcess:
    """A host that remembers its jobs and is asked over a socket."""

    def __init__(self, directory: Path, master: str, settings: Mapping[str, str]) -> None:
        self._journal = Journal(directory)
        self._host = Host("ottla", master, settings)
        for job in self._journal.jobs:
            self._begin_again(job)
        self._door = Door(directory, self.answer, (CannotStart, NoSuchJob, ValueError))

    def _begin_again(self, job: Job) -> None:
        try:
            self._host.start(job)
        except CannotStart as error:
            # It stays in the list: whatever is missing may come back.
            logger.error("%s does not begin again: %s", job.name, error)
            self._host.start(job, _refusing(error))

    def answer(self, request: Mapping[str, Any]) -> object:
        match request.get("do"):
            case "start":
                job = Job.of_json(request.get("job"))
                keep = request.get("keep", True) is not False
                self._host.start(job, again=keep)
                if keep:
                    self._journal.put(job)
                return None
            case "stop":
                name = str(request.get("name"))
                # First, as a job of that name may be started anew as soon as this one has ended.
                self._journal.remove(name)
                self._host.stop(name)
                return None
            case "status":
                jobs = self._host.status()
                if request.get("progress"):
                    jobs = [{**job, "progress": self._host.progress(job["name"])} for job in jobs]
                return {"pid": os.getpid(), "jobs": jobs}
            case "levels":
                for name, level in dict(request.get("levels") or {}).items():
                    set_level(str(name), int(level))
                return None
            case "progress":
                return self._host.progress(str(request.get("name")))
        raise ValueError(f"{request.get('do')!r} is nothing to do: start, stop, status, progress and levels are")

    def close(self) -> None:
        self._door.close()
        self._host.close()


def _refusing(error: CannotStart) -> Any:
    def entry(*_: object) -> None:
        raise error

    return entry


def main(directory: str, master: str, *rest: str) -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S%z"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # One that was killed holds it until the kernel is done with it.
    fcntl.flock(lock, fcntl.LOCK_EX)
    *settings, number = rest
    os.set_inheritable(int(number), False)  # what we start must not hold the line open
    with socket.socket(fileno=int(number)) as owner:
        process = HostProcess(folder, master, dict(each.split("=", 1) for each in settings))
        last = b""
        while said := owner.recv(4096):  # what it says has no meaning but for the farewell; that it ends has
            last = said
    if FAREWELL.encode() not in last:
        logger.warning("whoever started this Spark host is gone, and so is the host")
        _end_at_once()
    process.close()


def _end_at_once() -> None:
    """With the JVM, which is in our process group if that is ours. A batch that went on would be a second one."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
