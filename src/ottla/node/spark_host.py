"""The Spark host as a child of this process: started with the first job, watched, started anew if it dies.

What runs in it is told by its own door (`pipelines.door`); what ran when it died it begins again by itself. For the
platform (connectors, SQL, mirrors): a node without pipelines never starts it.
"""

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ottla.pipelines.door import FAREWELL, HostClient, HostGone
from ottla.pipelines.installed import CannotRun, check_spark
from ottla.runtime.child import Child, Died, Unavailable

logger = logging.getLogger(__name__)

MODULE: Final = "ottla.pipelines.host_process"
PATIENCE_S: Final = 60.0
GLANCE_S: Final = 0.02
LAST_BATCHES_S: Final = 30.0
"""How long batches may take to end when the host is told to go."""


class SparkHost:
    """`client` from any thread; `close` when no more jobs come."""

    def __init__(self, directory: Path, master: str = "local[*]", settings: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        words = [f"{name}={value}" for name, value in (settings or {}).items()]
        self._child = Child("the Spark host", MODULE, str(directory), master, *words)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def client(self, patience_s: float = PATIENCE_S) -> HostClient:
        """To a host that runs, started now if need be. Raises HostGone when it does not come."""
        self._watch()
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return HostClient(self._directory)
            except HostGone:
                if time.monotonic() > deadline or self._closing.is_set():
                    raise
            self._closing.wait(GLANCE_S)

    def missing(self) -> str | None:
        """What this machine lacks to run it, and how it is had. Looked for until it was there once."""
        if self._watcher is None:
            try:
                check_spark()
            except CannotRun as error:
                return str(error)
        return None

    def _watch(self) -> None:
        if (why := self.missing()) is not None:
            raise HostGone(why)
        with self._lock:
            if self._watcher is None:
                logger.info("a Spark host is started: a JVM of half a gigabyte and more")
                self._watcher = threading.Thread(target=self._keep_running, name="spark-host", daemon=True)
                self._watcher.start()

    def _keep_running(self) -> None:
        while not self._closing.is_set():
            try:
                self._child.send("live")  # starts it, after the pause that is due
                self._child.receive()  # it says nothing: this waits for its end
            except Died as error:
                if not self._closing.is_set():
                    logger.warning("%s and is started anew; its jobs go on where they were", error)
            except Unavailable as error:
                logger.error("%s", error)
                self._closing.wait(1.0)

    def close(self) -> None:
        """The batches under way end first."""
        self._closing.set()
        self._child.close(LAST_BATCHES_S, FAREWELL)
        if self._watcher is not None:
            self._watcher.join()
