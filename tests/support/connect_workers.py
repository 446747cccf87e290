"""Connect workers against a real cluster, each on a loop in a thread of its own, as in a process of its own."""

import asyncio
import http.client
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from ottla.client.addresses import parse_bootstrap
from ottla.client.security import security
from ottla.connect.orders import Event, Listener, Order, Report, Resolved, WorkerFacts
from ottla.connect.service import ConnectService
from ottla.connect.settings import ConnectSettings

T = TypeVar("T")

PATIENCE_S = 120.0


class RehearsedRunner:
    """Runs nothing, and says so at once: connectors run until they are stopped, or fail when a test says so. The twin
    of the one that has a Spark host."""

    def __init__(self, facts: WorkerFacts) -> None:
        self.facts = facts
        self.running: dict[str, Order] = {}
        self.resolved: dict[str, Mapping[str, str | None]] = {}
        self.stands_by = False
        self.levels: dict[str, int] = {}
        self.held_up: dict[str, asyncio.Event] = {}
        """Connectors that end only when these are set."""
        self._listener: Listener = lambda _: None

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    async def start(self, order: Order, resolved: Resolved) -> None:
        self.running[order.connector] = order
        self.resolved[order.connector] = resolved.config
        self._listener(Report(order.connector, order.epoch, Event.RUNNING))

    async def stop(self, connector: str) -> None:
        if connector in self.held_up:
            await self.held_up[connector].wait()
        self.running.pop(connector, None)

    async def forget(self, connector: str) -> None:
        pass

    def stand_by(self) -> None:
        self.stands_by = True

    def set_level(self, namespace: str, level: int) -> None:
        self.levels[namespace] = level

    async def progress(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    async def close(self) -> None:
        self.running.clear()

    def config_of(self, connector: str) -> Mapping[str, str | None]:
        """What it runs with; nothing while it does not run."""
        order = self.running.get(connector)
        return {} if order is None else order.config

    def fail(self, connector: str, trace: str) -> None:
        order = self.running.pop(connector)
        self._listener(Report(connector, order.epoch, Event.FAILED, trace))


class Answered(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


class ConnectWorker:
    """`with ConnectWorker(kafka.bootstrap_servers) as worker`. `kill` ends it as kill -9 would: nobody is told."""

    def __init__(self, bootstrap: str, settings: Mapping[str, object] | None = None) -> None:
        quick = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "offset.storage.partitions": 2}
        given = {"connect.listeners": "http://127.0.0.1:0", **quick, "status.storage.partitions": 2, **(settings or {})}
        self._settings = ConnectSettings.of(given)
        self._bootstrap = parse_bootstrap(bootstrap)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="connect", daemon=True)
        self._ended = False

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.do(self._start)
            self.until("/health", lambda answer: answer.status == 200)
        except BaseException:
            self.stop()
            raise
        return self

    async def _start(self) -> None:
        self.service = ConnectService(
            self._settings, self._bootstrap, self._made, security=security(self._settings.client)
        )
        await self.service.start()

    def _made(self, facts: WorkerFacts) -> Any:
        self.runner = RehearsedRunner(facts)
        return self.runner

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if not self._ended:
            self._ended = True
            self.do(self._stop)
            self._end_loop()

    async def _stop(self) -> None:
        if hasattr(self, "service"):
            await self.service.stop()

    def kill(self) -> None:
        """Tasks end where they are, sockets close: no farewell."""
        self._ended = True
        self.do(self._abandon)
        self._end_loop()

    async def _abandon(self) -> None:
        self.service.abandon()
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.service.stop(hand_over=False)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        if not self._loop.is_running():
            self._loop.close()

    def do(self, work: Callable[[], Awaitable[T]]) -> T:
        async def doing() -> T:
            return await work()

        future: Future[T] = asyncio.run_coroutine_threadsafe(doing(), self._loop)
        return future.result(PATIENCE_S)

    @property
    def url(self) -> str:
        return self.service.url

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answered:
        """`body` as JSON; bytes are sent as they are."""
        return ask(self.url, method, path, body, **headers)

    def until(self, path: str, holds: Callable[[Answered], bool]) -> Answered:
        """Asks again until the answer is as it should be."""
        return until(self.url, path, holds)


def ask(url: str, method: str, path: str, body: object = None, **headers: str) -> Answered:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, sent, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    found: Any = None
    if text:
        found = text.decode()
        with suppress(ValueError):
            found = json.loads(text)
    return Answered(answer.status, found, {name.lower(): value for name, value in answer.getheaders()})


def until(url: str, path: str, holds: Callable[[Answered], bool]) -> Answered:
    waiting = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        answer = ask(url, "GET", path)
        if holds(answer):
            return answer
        waiting.wait(0.05)
    raise AssertionError(f"{path} never was as it should be; last: {answer}")
