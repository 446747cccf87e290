"""A real node inside your test process: real sockets on free ports, a directory of its own, gone when you are done."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.model.properties import Settings
from ottla.node import Node, new_event_loop
from ottla.protocol.messages import DeleteTopicsRequest

T = TypeVar("T")

_READY_SECONDS = 30.0


class Cluster:
    """One Kafka node for tests. Use it with `with` or `async with`, or call `start` and `stop`.

    Keyword arguments are settings of the node with underscores for dots: `Cluster(num_partitions=3)`.
    """

    def __init__(self, *, data_dir: str | Path | None = None, **settings: object) -> None:
        self._given = settings
        self._directory = Path(data_dir) if data_dir is not None else None
        self._temporary: Path | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._node: Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        """host:port, what every client calls bootstrap servers."""
        assert self._node is not None, "the cluster is not started"
        return self._node.bootstrap_servers

    # ---- life

    def start(self) -> Self:
        """Returns when clients can produce."""
        if self._directory is None:
            self._directory = self._temporary = Path(tempfile.mkdtemp(prefix="ottla-"))
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="ottla", daemon=True)
        self._thread.start()
        try:
            started.result(_READY_SECONDS)
        except BaseException:
            self._clean_up()
            raise
        return self

    def stop(self) -> None:
        """A clean shutdown, as by SIGTERM."""
        if self._node is not None:
            self._call(self._node.stop())
            self._node = None
        self._clean_up()

    def reset(self) -> None:
        """Deletes every topic: a test that comes after finds an empty cluster, in a few milliseconds."""
        assert self._node is not None, "the cluster is not started"
        self._call(_delete_all_topics(self._node))

    def _run(self, started: "Future[None]") -> None:
        loop = self._loop = new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            node = Node(self._settings())
            loop.run_until_complete(node.start())
        except BaseException as error:  # noqa: BLE001  it belongs to the thread that asked for the cluster
            started.set_exception(error)
        else:
            self._node = node
            started.set_result(None)
            loop.run_forever()
        finally:
            loop.close()

    def _settings(self) -> Settings:
        assert self._directory is not None
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            # Tests open many short connections from one address.
            "ottla_connection_creation_rate_per_ip": "0",
            "max_connections_per_ip": str(2**31 - 1),
        }
        settings.update({name: _text(value) for name, value in self._given.items()})
        return Settings.defaults(str(self._directory), **settings)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_READY_SECONDS)

    def _clean_up(self) -> None:
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join(_READY_SECONDS)
        self._thread = self._loop = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._directory = self._temporary = None

    # ---- with, async with

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _delete_all_topics(node: Node) -> None:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in node.control_plane.image.topics]
    if topics:
        await node.control_plane.submit(DeleteTopicsRequest(topics=topics))
