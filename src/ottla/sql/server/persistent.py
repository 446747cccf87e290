"""Queries that write topics: jobs of a Spark host, which is started with the first of them.

All that is asked of the host is asked by one thread, in the order in which it was wanted; the loop never waits for it.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.client.errors import ClientError
from ottla.client.reach import Reach, write_private
from ottla.client.security import SecurityRefused
from ottla.pipelines.door import HostClient, HostGone, Refused
from ottla.sql.catalog import PersistentQuery
from ottla.sql.properties import of_application
from ottla.sql.server import remains
from ottla.sql.server.log import Logged
from ottla.sql.server.measuring import application_id
from ottla.sql.server.replaying import QueryFailure

logger = logging.getLogger(__name__)

ENTRY: Final = "ottla.sql.server.job:start"
_STATEMENTS: Final = "statements"
_STATES: Final = {"STARTING": "RUNNING", "RUNNING": "RUNNING", "WAITING": "ERROR", "FAILED": "ERROR"}
_LOST: Final = "the Spark host does not answer: it is started anew, and goes on where it was"
_GLANCE_S: Final = 1.0
"""How old a state may be."""


class _Wish(NamedTuple):
    """A query is to run with these arguments; without, it is to stop, and if `kept` is said, for good."""

    query_id: str
    arguments: Mapping[str, Any] | None = None
    kept: Sequence[str] | None = None
    """All other queries there are, paused ones too: what is theirs stays."""


class SparkQueries:
    def __init__(
        self,
        client: Callable[[], HostClient],
        *,
        missing: Callable[[], str | None],
        service_id: str,
        reach: Reach,
        state_dir: str,
        registry: Mapping[str, str] | None = None,
        dead_letters: str = "",
        processing_log: Mapping[str, Any] | None = None,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        """`client` reaches the host, and starts it if need be; `missing` tells what it needs and is not installed here,
        and how it is had. `registry`: its `url`, and the `file` that says who asks
        it. `processing_log`: its `topic`, and whether `rows` are shown there. Raises HostGone."""
        self._client = client
        self._missing = missing
        self._service_id = service_id
        self._reach = reach
        self._config: dict[str, Any] = {
            "bootstrap.servers": reach.servers,
            "client.settings.file": reach.settings_file,
            "state.dir": state_dir,
            "deserialization.exception.handler": "continue",
        }
        if dead_letters:
            self._config["errors.dead.letter.queue.topic.name"] = dead_letters
        self._registry = dict(registry or {})
        self._processing_log = dict(processing_log or {})
        self._defaults = dict(defaults or {})
        self._wanted: queue.Queue[_Wish | None] = queue.Queue()
        self._states: dict[str, str] = {}
        self._failures: dict[str, QueryFailure] = {}
        """The last of each query; one that runs again keeps it."""
        self._running: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="sql-queries", daemon=True)
        self._thread.start()

    # ---- on the loop

    def missing(self) -> str | None:
        return self._missing()

    def start(
        self, query: PersistentQuery, statements: list[tuple[int, Logged]], properties: Mapping[str, str]
    ) -> None:
        self._states[query.id] = "RUNNING"
        listed = [[offset, each.text, {**self._defaults, **each.properties}] for offset, each in statements]
        arguments = {
            "query": query.id,
            _STATEMENTS: listed,
            "application.id": application_id(self._service_id, query.id),
            "config": {**self._config, **of_application({**self._defaults, **properties})},
            "registry": self._registry,
            "processing.log": self._processing_log,
        }
        self._wanted.put(_Wish(query.id, arguments))

    def stop(self, query_id: str) -> None:
        self._states.pop(query_id, None)
        self._failures.pop(query_id, None)
        self._wanted.put(_Wish(query_id))

    def end(self, query_id: str, others: Sequence[str]) -> None:
        self._states.pop(query_id, None)
        self._failures.pop(query_id, None)
        self._wanted.put(_Wish(query_id, kept=others))

    def states(self) -> Mapping[str, str]:
        return dict(self._states)

    def failure(self, query_id: str) -> QueryFailure | None:
        return self._failures.get(query_id)

    def progress(self, query_id: str) -> Mapping[str, Any]:
        """In any thread but the loop's."""
        if query_id not in self._running:
            return {}
        try:
            with self._client() as client:
                return client.progress(f"{self._service_id}.{query_id}")
        except (HostGone, Refused):
            return {}

    def close(self) -> None:
        self._wanted.put(None)
        self._thread.join()

    # ---- in its thread

    def _work(self) -> None:
        while True:
            try:
                wanted = self._wanted.get(timeout=_GLANCE_S if self._running else None)
            except queue.Empty:
                self._look()
                continue
            if wanted is None:
                return
            query_id, arguments = wanted.query_id, wanted.arguments
            try:
                self._do(query_id, arguments)
            except (HostGone, Refused) as error:
                logger.error("query %s: %s", query_id, error)
                if arguments is not None:
                    self._failed(query_id, str(error))
            if wanted.kept is not None:
                self._remove(query_id, wanted.kept)

    def _do(self, query_id: str, arguments: Mapping[str, Any] | None) -> None:
        name = f"{self._service_id}.{query_id}"
        if arguments is None and query_id not in self._running:
            return  # and no host is started to be told so
        with self._client() as client:
            if name in client.status():
                client.stop(name)
            self._running.discard(query_id)
            if arguments is not None:
                client.start(name, ENTRY, self._written_down(query_id, arguments))
                self._running.add(query_id)

    def _remove(self, query_id: str, kept: Sequence[str]) -> None:
        """What it leaves."""
        folder = self._config["state.dir"]
        (Path(folder) / f"{query_id}.statements").unlink(missing_ok=True)
        ended = application_id(self._service_id, query_id)
        others = [application_id(self._service_id, each) for each in kept]
        try:
            remains.remove(self._reach, folder, ended, others)
        except (ClientError, SecurityRefused, OSError) as error:
            logger.warning("what query %s leaves is not removed: %s", query_id, error)

    def _written_down(self, query_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The statements go into a file: there may be many, and the host keeps what it is told in one line."""
        folder = Path(self._config["state.dir"])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{query_id}.statements"
        write_private(path, json.dumps(arguments[_STATEMENTS]).encode())
        return {name: each for name, each in arguments.items() if name != _STATEMENTS} | {"file": str(path)}

    def _look(self) -> None:
        try:
            with self._client() as client:
                found = client.status()
        except HostGone:
            found = {}
        for query_id in sorted(self._running):
            told = found.get(f"{self._service_id}.{query_id}") or {"state": "FAILED", "reason": _LOST}
            if query_id not in self._states:
                continue
            if (state := _STATES.get(str(told["state"]), "ERROR")) == "ERROR":
                self._failed(query_id, str(told["reason"]))
            else:
                self._states[query_id] = state

    def _failed(self, query_id: str, why: str) -> None:
        known = self._failures.get(query_id)
        if known is None or known.why != why or self._states.get(query_id) != "ERROR":
            self._failures[query_id] = QueryFailure(time.time_ns() // 1_000_000, why)
        self._states[query_id] = "ERROR"
