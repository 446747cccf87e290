"""Queries that write topics: jobs of a Spark host, which is started with the first of them.

All that is asked of the host is asked by one thread, in the order in which it was wanted; the loop never waits for it.
"""

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.pipelines.door import HostClient, HostGone, Refused
from ottla.sql.catalog import PersistentQuery
from ottla.sql.server.log import Logged

logger = logging.getLogger(__name__)

ENTRY: Final = "ottla.sql.server.job:start"
_STATES: Final = {"STARTING": "RUNNING", "RUNNING": "RUNNING", "WAITING": "ERROR", "FAILED": "ERROR"}
_GLANCE_S: Final = 1.0
"""How old a state may be."""


class SparkQueries:
    def __init__(
        self,
        client: Callable[[], HostClient],
        *,
        service_id: str,
        bootstrap: str,
        state_dir: str,
        registry_url: str = "",
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        """`client` reaches the host, and starts it if need be. Raises HostGone."""
        self._client = client
        self._service_id = service_id
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "state.dir": state_dir,
            "deserialization.exception.handler": "continue",
        }
        self._registry_url = registry_url
        self._defaults = dict(defaults or {})
        self._wanted: queue.Queue[tuple[str, Mapping[str, Any] | None] | None] = queue.Queue()
        self._states: dict[str, str] = {}
        self._running: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="sql-queries", daemon=True)
        self._thread.start()

    # ---- on the loop

    def start(self, query: PersistentQuery, statements: list[tuple[int, Logged]]) -> None:
        self._states[query.id] = "RUNNING"
        listed = [[offset, each.text, {**self._defaults, **each.properties}] for offset, each in statements]
        arguments = {
            "query": query.id,
            "statements": listed,
            "application.id": f"_ottla-sql-{self._service_id}-query_{query.id}",
            "config": self._config,
            "registry": self._registry_url,
        }
        self._wanted.put((query.id, arguments))

    def stop(self, query_id: str) -> None:
        self._states.pop(query_id, None)
        self._wanted.put((query_id, None))

    def states(self) -> Mapping[str, str]:
        return dict(self._states)

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
            query_id, arguments = wanted
            try:
                self._do(query_id, arguments)
            except (HostGone, Refused) as error:
                logger.error("query %s: %s", query_id, error)
                if arguments is not None:
                    self._states[query_id] = "ERROR"

    def _do(self, query_id: str, arguments: Mapping[str, Any] | None) -> None:
        name = f"{self._service_id}.{query_id}"
        if arguments is None and query_id not in self._running:
            return  # and no host is started to be told so
        with self._client() as client:
            if name in client.status():
                client.stop(name)
            self._running.discard(query_id)
            if arguments is not None:
                client.start(name, ENTRY, arguments)
                self._running.add(query_id)

    def _look(self) -> None:
        try:
            with self._client() as client:
                found = client.status()
        except HostGone:
            found = {}
        for query_id in sorted(self._running):
            told = found.get(f"{self._service_id}.{query_id}")
            if query_id in self._states:
                self._states[query_id] = _STATES.get(str(told["state"]), "ERROR") if told else "ERROR"
