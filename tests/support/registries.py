"""Registries against a real cluster, each on a loop in a thread of its own, as in a process of its own."""

import asyncio
import http.client
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from ottla.client.addresses import parse_bootstrap
from ottla.client.security import security
from ottla.registry.machine.parsing import Languages
from ottla.registry.service import RegistryService
from ottla.registry.settings import RegistrySettings
from tests.support.toy_language import TOY_LANGUAGES

T = TypeVar("T")

PATIENCE_S = 120.0


class Registry:
    """`with Registry(kafka.bootstrap_servers) as registry`. `kill` ends it as kill -9 would: nobody is told."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, object] | None = None, languages: Languages = TOY_LANGUAGES
    ) -> None:
        given = {"registry.listeners": "http://127.0.0.1:0", **(settings or {})}
        self._settings = RegistrySettings.of(given)
        self._bootstrap = parse_bootstrap(bootstrap)
        self._languages = languages
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="registry", daemon=True)
        self._ended = False

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.do(self._start)
        except BaseException:
            self.stop()
            raise
        return self

    async def _start(self) -> None:
        safe = security(self._settings.client)
        self.service = RegistryService(self._settings, self._bootstrap, security=safe, languages=self._languages)
        await self.service.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if not self._ended:
            self._ended = True
            self.do(self._stop)
            self._end_loop()

    async def _stop(self) -> None:
        await self.service.stop()

    def kill(self) -> None:
        """Sockets close at once, tasks end where they are."""
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
        await self.service.stop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """On its loop."""

        async def main() -> T:
            return await work()

        future: Future[T] = asyncio.run_coroutine_threadsafe(main(), self._loop)
        return future.result(PATIENCE_S)

    @property
    def url(self) -> str:
        return self.service.url

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return ask(self.url, method, path, body)


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status, and the body as JSON. Raises OSError when nobody is there."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, raw, {"content-type": "application/json"} if raw is not None else {})
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()
