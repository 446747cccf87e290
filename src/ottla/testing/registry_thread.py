"""A schema registry on a loop in a thread of its own, beside the nodes of a `Cluster` or against any other."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from ottla.client.addresses import parse_bootstrap
from ottla.client.security import security
from ottla.registry.languages import LANGUAGES
from ottla.registry.machine.parsing import Languages
from ottla.registry.service import RegistryService
from ottla.registry.settings import RegistrySettings
from ottla.testing.node_thread import PATIENCE_SECONDS

T = TypeVar("T")


class RegistryThread:
    """Its port is taken for good, so that a URL which a test has stays right; `start` and `stop` as often as needed.
    `kill` ends it as kill -9 would, with its port: nobody is told."""

    def __init__(self, settings: Mapping[str, object] | None = None, languages: Languages = LANGUAGES) -> None:
        """Of `registry.listeners` only the scheme counts."""
        given = {"registry.listeners": "http://127.0.0.1:0", **(settings or {})}
        self._port = socket.create_server(("127.0.0.1", 0))
        scheme = str(given["registry.listeners"]).partition(":")[0]
        self.url = f"{scheme}://127.0.0.1:{self._port.getsockname()[1]}"
        self._settings = {**given, "registry.listeners": self.url}
        self._languages = languages
        self._running: tuple[RegistryService, asyncio.AbstractEventLoop, threading.Thread] | None = None

    @property
    def alive(self) -> bool:
        return self._running is not None

    @property
    def service(self) -> RegistryService:
        assert self._running is not None, "it does not run"
        return self._running[0]

    def start(self, bootstrap: str, more: Mapping[str, str] | None = None) -> None:
        """Returns when it answers. Raises what kept it from starting. `more`: settings of the cluster's security."""
        loop = asyncio.new_event_loop()  # not uvloop, which cannot be left with sockets open, as `kill` leaves it
        thread = threading.Thread(target=loop.run_forever, name="registry", daemon=True)
        thread.start()
        settings = RegistrySettings.of({**self._settings, **(more or {})})

        async def made() -> RegistryService:
            return RegistryService(
                settings,
                parse_bootstrap(bootstrap),
                security=security(settings.client),
                ports=[self._port.dup()],
                languages=self._languages,
            )

        self._running = _waited(made(), loop), loop, thread
        try:
            self.do(self.service.start)
        except BaseException:
            self.stop()
            raise

    def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """On its loop."""
        assert self._running is not None, "it does not run"
        return _waited(work(), self._running[1])

    def stop(self) -> None:
        if self._running is not None:
            self.do(self.service.stop)
            self._end()

    def kill(self) -> None:
        """Sockets close at once, tasks end where they are."""
        self.do(self._abandon)
        self._end()

    async def _abandon(self) -> None:
        self._port.close()  # nobody is to wait in its backlog
        self.service.abandon()
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.service.stop()
        await asyncio.sleep(0)  # what was aborted is told so before the loop ends

    def _end(self) -> None:
        assert self._running is not None
        _, loop, thread = self._running
        self._running = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_SECONDS)
        loop.close()

    def close(self) -> None:
        self.stop()
        self._port.close()


def _waited(work: Awaitable[T], loop: asyncio.AbstractEventLoop) -> T:
    async def main() -> T:
        return await work

    return asyncio.run_coroutine_threadsafe(main(), loop).result(PATIENCE_SECONDS)
