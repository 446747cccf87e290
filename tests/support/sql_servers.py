"""SQL servers against a real cluster, each on a loop in a thread of its own."""

import asyncio
import http.client
import itertools
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

from ottla.client.addresses import parse_bootstrap
from ottla.node.process import new_event_loop
from ottla.sql.server.engine import Persistent
from ottla.sql.service import SqlService
from ottla.sql.settings import SqlSettings

PATIENCE_S = 120.0
_NUMBERS = itertools.count()


def unique(name: str) -> str:
    """Of this run alone: tests share a cluster."""
    return f"{name}_{os.getpid()}_{next(_NUMBERS)}"


class SqlServer:
    """`with SqlServer(bootstrap) as server`."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, object] | None = None, persistent: Persistent | None = None
    ) -> None:
        self._settings = SqlSettings.of({"sql.listeners": "http://127.0.0.1:0", **(settings or {})})
        self._bootstrap = parse_bootstrap(bootstrap)
        self._persistent = persistent
        self._loop = new_event_loop()  # of the kind that serves people
        self._thread = threading.Thread(target=self._loop.run_forever, name="sql", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._start())
        return self

    async def _start(self) -> None:
        self.service = SqlService(self._settings, self._bootstrap, persistent=self._persistent)
        await self.service.start()

    def __exit__(self, *_: object) -> None:
        self._do(self.service.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    @property
    def url(self) -> str:
        return self.service.addresses[0]

    # ---- asking

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        with self._asked(method, path, body, headers) as response:
            data = response.read()
            return response.status, json.loads(data) if data else None

    @contextmanager
    def _asked(self, method: str, path: str, body: Any, headers: Mapping[str, str] | None) -> Iterator[Any]:
        host = urlsplit(self.url)
        connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=PATIENCE_S)
        sent = {"content-type": "application/json", **(headers or {})}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            yield connection.getresponse()
        finally:
            connection.close()

    def ksql(self, text: str, **properties: str) -> list[dict[str, Any]]:
        status, answer = self.ask("POST", "/ksql", {"ksql": text, "streamsProperties": properties})
        assert status == 200, answer
        return list(answer)

    def select(self, sql: str, **properties: str) -> list[Any]:
        """Head and rows of /query-stream, which has to end by itself."""
        body = {"sql": sql, "properties": {name.replace("_", "."): value for name, value in properties.items()}}
        with self._asked("POST", "/query-stream", body, None) as response:
            assert response.status == 200, response.read()
            return [json.loads(line) for line in response.read().splitlines()]

    @contextmanager
    def following(self, sql: str, **properties: str) -> Iterator[Iterator[Any]]:
        """Lines of a push query, as they come."""
        body = {"sql": sql, "properties": {name.replace("_", "."): value for name, value in properties.items()}}
        with self._asked("POST", "/query-stream", body, None) as response:
            assert response.status == 200, response.read()
            yield (json.loads(line) for line in iter(response.readline, b""))
