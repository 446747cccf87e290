"""The folder of an application: `<state.dir>/<application.id>`. Who runs the application holds a lock in it.

    .lock                    held by the process that runs the application; tells who that is
    status.json              what the run does, told every two seconds if something has changed
    topology.json            what each query keeps
    checkpoints/<query>      Spark's: offsets, commits, state
    checkpoints/<query>.*    where it began, and what it was restored from
    restoring/<store>-<n>    how far tasks are that restore a store
    stream-time/<query>      what tasks carry from batch to batch: the highest timestamps seen, counts of open windows
    views/<store>.sqlite     what interactive queries read

On a cluster `state.dir` is a URL that Spark understands (s3a://, hdfs://); then only Spark's folders are in it, and
nothing is locked.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.files import delete

if TYPE_CHECKING:
    from ottla.streams.app import StreamsApp

LOCK: Final = ".lock"
STATUS: Final = "status.json"
NOTE: Final = ".restored"


class AlreadyRunning(Exception):
    """Another process runs the application."""

    def __init__(self, application_id: str, path: str, owner: Mapping[str, Any]) -> None:
        self.owner = owner
        pid = owner.get("pid")
        who = f" as process {pid}" if pid else ""
        super().__init__(f"the application {application_id} is running already{who}, with its state in {path}")


class StateDirectory:
    __slots__ = ("application_id", "root")

    def __init__(self, root: str, application_id: str) -> None:
        self.root = root.removeprefix("file://")
        self.application_id = application_id

    @classmethod
    def of(cls, app: "StreamsApp") -> "StateDirectory":
        return cls(app.config["state.dir"], app.application_id)

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    @property
    def path(self) -> str:
        root = os.path.abspath(self.root) if self.is_local else self.root.rstrip("/")
        return f"{root}/{self.application_id}"

    def checkpoint(self, query: str) -> str:
        return f"{self.path}/checkpoints/{query}"

    def note(self, query: str) -> str:
        """What the query's state was restored from, if it was."""
        return f"{self.checkpoint(query)}{NOTE}"

    def initial_offsets(self, query: str) -> str:
        """Where its first batch began."""
        return initial_offsets_of(self.checkpoint(query))

    @property
    def shape(self) -> str:
        """What its queries keep, see `kept_shape`."""
        return f"{self.path}/topology.json"

    @property
    def restoring(self) -> str:
        return f"{self.path}/restoring"

    def stream_time(self, query: str) -> str:
        return f"{self.path}/stream-time/{query}"

    @property
    def views(self) -> Path:
        assert self.is_local
        return Path(self.path, "views")

    @contextmanager
    def held(self, about: Mapping[str, Any]) -> "Iterator[Callable[[Mapping[str, Any]], None]]":
        """Raises AlreadyRunning. The lock goes with the process, however that ends. Gives a function that changes what
        is told about the owner."""
        assert self.is_local
        os.makedirs(self.path, exist_ok=True)
        descriptor = os.open(Path(self.path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _locked(descriptor, attempts=5):
                raise AlreadyRunning(self.application_id, self.path, _owner(descriptor))
            _write(descriptor, about)
            yield partial(_write, descriptor)
        finally:
            os.close(descriptor)

    def owner(self) -> Mapping[str, Any] | None:
        """What the process that runs the application tells of itself; None when it does not run here."""
        try:
            descriptor = os.open(Path(self.path, LOCK), os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return None if _locked(descriptor) else _owner(descriptor)
        finally:
            os.close(descriptor)

    def tell(self, status: Mapping[str, Any]) -> None:
        """What the run does, for whoever looks from another process."""
        os.makedirs(self.path, exist_ok=True)
        draft = Path(self.path, f"{STATUS}.draft")
        draft.write_text(json.dumps(status, default=str), encoding="utf-8")
        draft.replace(Path(self.path, STATUS))

    def status(self) -> Mapping[str, Any] | None:
        """The last that was told; None if nothing was."""
        try:
            told = json.loads(Path(self.path, STATUS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return told if isinstance(told, dict) else None

    def contents(self) -> list[str]:
        """What `delete` would delete. What a URL has in it is not known here: all of it."""
        if not self.is_local:
            return [self.path]
        if not os.path.isdir(self.path):
            return []
        return [f"{self.path}/{name}" for name in sorted(os.listdir(self.path)) if name != LOCK]

    def delete(self) -> None:
        """All but the lock, which whoever starts the application now may be about to take. Behind a URL Spark has to
        run here. Raises OSError for what cannot be done."""
        if not self.is_local:
            delete(self.path)
            return
        for path in self.contents():
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)


def initial_offsets_of(checkpoint: str) -> str:
    return f"{checkpoint}.initial-offsets"


def _locked(descriptor: int, attempts: int = 1) -> bool:
    """Who only looks (`owner`) holds the lock for a moment too: who wants to keep it tries again."""
    for attempt in range(attempts):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < attempts:
                time.sleep(0.02)
        else:
            return True
    return False


def _write(descriptor: int, about: Mapping[str, Any]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"pid": os.getpid(), **about}).encode(), 0)


def _owner(descriptor: int) -> Mapping[str, Any]:
    try:
        about = json.loads(os.pread(descriptor, 65_536, 0) or b"{}")
    except ValueError:  # the owner is writing it at this moment
        return {}
    return about if isinstance(about, dict) else {}


def applications(root: str) -> list[str]:
    """The ids of those that have a folder in `root`."""
    if not os.path.isdir(root):
        return []
    return [name for name in sorted(os.listdir(root)) if os.path.isfile(Path(root, name, LOCK))]
