"""SQL servers against a real cluster, each on a loop in a thread of its own."""

import asyncio
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from ottla.client.addresses import parse_bootstrap
from ottla.client.security import security
from ottla.node.event_loop import new_event_loop
from ottla.registry.lookup import Registry
from ottla.sql.server.replaying import Persistent
from ottla.sql.service import SqlService
from ottla.sql.settings import SqlSettings

PATIENCE_S = 120.0
PROCESS_PATIENCE_S = 400.0
"""With Spark behind it."""
_NUMBERS = itertools.count()


def unique(name: str) -> str:
    """Of this run alone: tests share a cluster."""
    return f"{name}_{os.getpid()}_{next(_NUMBERS)}"


class SqlServer:
    """`with SqlServer(bootstrap) as server`."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, object] | None = None,
        persistent: Persistent | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._settings = SqlSettings.of({"sql.listeners": "http://127.0.0.1:0", **(settings or {})})
        self._bootstrap = parse_bootstrap(bootstrap)
        self._persistent = persistent
        self._registry = registry
        self._loop = new_event_loop()  # of the kind that serves people
        self._thread = threading.Thread(target=self._loop.run_forever, name="sql", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._start())
        return self

    async def _start(self) -> None:
        self.service = SqlService(
            self._settings,
            self._bootstrap,
            security=security(self._settings.client),
            persistent=self._persistent,
            registry=self._registry,
        )
        await self.service.start()

    def __exit__(self, *_: object) -> None:
        self._do(self.service.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def run(self, work: Any) -> Any:
        """A coroutine, on the loop of the server."""
        return self._do(work)

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

    def text(self, path: str, body: Any) -> tuple[int, list[str]]:
        """An answer of lines, which has to end by itself."""
        with self._asked("POST", path, body, None) as response:
            return response.status, response.read().decode().splitlines()

    @contextmanager
    def following(self, sql: str, **properties: str) -> Iterator[Iterator[Any]]:
        """Lines of a push query, as they come."""
        body = {"sql": sql, "properties": {name.replace("_", "."): value for name, value in properties.items()}}
        with self._asked("POST", "/query-stream", body, None) as response:
            assert response.status == 200, response.read()
            yield (json.loads(line) for line in iter(response.readline, b""))


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PROCESS_PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.2)


class SqlProcess:
    """`ottla sql-server` as a process of its own, in a group that is killed as one."""

    def __init__(self, bootstrap: str, service: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        settings = {
            "ksql.service.id": service,
            "sql.state.dir": str(folder / "state"),
            "sql.dead.letter.topic": f"{service}_DEAD",
        }
        words = [each for name, value in settings.items() for each in ("-o", f"{name}={value}")]
        listen = f"http://127.0.0.1:{self._port}"
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ottla", "sql-server", "-b", bootstrap, "--listen", listen, *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        try:
            return self.ask("GET", "/info")[0] == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PROCESS_PATIENCE_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def select(self, sql: str) -> tuple[int, list[Any]]:
        """What /query-stream answers to a query that ends by itself, line by line."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PROCESS_PATIENCE_S)
        try:
            connection.request("POST", "/query-stream", json.dumps({"sql": sql}), {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, [json.loads(line) for line in response.read().splitlines()]
        finally:
            connection.close()

    def ksql(self, text: str) -> list[Any]:
        status, answer = self.ask("POST", "/ksql", {"ksql": text})
        assert status == 200, answer
        return list(answer)

    def kill(self) -> None:
        """Alone: what it started has to notice."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PROCESS_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
