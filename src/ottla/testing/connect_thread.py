"""A Connect worker in a thread of its own, beside the nodes of a `Cluster`. Its connectors run in a Spark host, which
comes with the first of them."""

import asyncio
import shutil
import socket
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future

from ottla.client.addresses import parse_bootstrap
from ottla.client.security import security
from ottla.connect.service import ConnectService
from ottla.connect.settings import ConnectSettings
from ottla.node.connect_process import runner_maker
from ottla.node.event_loop import new_event_loop
from ottla.testing.node_thread import PATIENCE_SECONDS


class ConnectThread:
    """Its port is taken for good, so that a URL which a test has stays right; `start` and `stop` as often as needed."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._given = dict(settings or {})
        self._port = socket.create_server(("127.0.0.1", 0))
        self._directory = tempfile.mkdtemp(prefix="ottla-connect-")
        self.url = f"http://127.0.0.1:{self._port.getsockname()[1]}"
        self._thread: threading.Thread | None = None
        self._over: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    @property
    def alive(self) -> bool:
        return self._thread is not None

    def start(self, bootstrap: str, more: Mapping[str, str] | None = None) -> None:
        """Returns when it answers. Raises what kept it from starting. `more`: settings of the cluster's security."""
        self._given |= more or {}
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(bootstrap, started), name="connect", daemon=True)
        self._thread.start()
        try:
            started.result(PATIENCE_SECONDS)
        except BaseException:
            self._thread = None
            raise

    def _run(self, bootstrap: str, started: "Future[None]") -> None:
        loop = new_event_loop()
        try:
            loop.run_until_complete(self._serve(bootstrap, started))
        finally:
            loop.close()

    async def _serve(self, bootstrap: str, started: "Future[None]") -> None:
        over = asyncio.Event()
        self._over = (asyncio.get_running_loop(), over)
        own = {"connect.listeners": self.url, "connect.state.dir": self._directory}
        settings = ConnectSettings.beside_a_node({**self._given, **own})
        ports = [self._port.dup()]
        service = ConnectService(
            settings,
            parse_bootstrap(bootstrap),
            runner_maker(settings),
            security=security(settings.client),
            ports=ports,
        )
        try:
            await service.start()
            started.set_result(None)
            await over.wait()
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            await service.stop()

    def stop(self) -> None:
        if self._thread is not None and self._over is not None:
            loop, over = self._over
            loop.call_soon_threadsafe(over.set)
            self._thread.join(PATIENCE_SECONDS)
            self._thread = self._over = None

    def close(self) -> None:
        self.stop()
        self._port.close()
        shutil.rmtree(self._directory, ignore_errors=True)
