"""A node in a thread of its own, with a loop of its own: it can be stopped, killed and paused like a process."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ottla.model.properties import Settings
from ottla.node.event_loop import new_event_loop
from ottla.node.node import Node
from ottla.node.surroundings import Surroundings

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""For what takes a fraction of a second: a machine may be busy."""


class NodeThread:
    """One life of a node. `start` returns at once; `ready` waits until clients can produce."""

    def __init__(self, settings: Settings, surroundings: Surroundings | None = None) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._loop = new_event_loop()
        self._started: Future[None] = Future()
        self._resume: threading.Event | None = None
        self.node: Node | None = None
        self._thread = threading.Thread(target=self._run, name=f"ottla-{settings.node_id}", daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def ready(self) -> None:
        """Raises what kept the node from starting."""
        self._started.result(PATIENCE_SECONDS)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            self.node = Node(self._settings, surroundings=self._surroundings)
            starting = loop.create_task(self.node.start())
            starting.add_done_callback(self._told)
            loop.run_forever()
        finally:
            _cancel_everything(loop)
            loop.close()

    def _told(self, starting: "asyncio.Task[None]") -> None:
        if starting.cancelled():
            self._started.cancel()
        elif (problem := starting.exception()) is not None:
            self._started.set_exception(problem)
            self._loop.stop()
        else:
            self._started.set_result(None)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` on the node's loop and waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def stop(self, *, hand_over: bool = True) -> None:
        """A clean shutdown, as by SIGTERM."""
        self.resume()
        if self.alive and self.node is not None:
            self.call(self.node.stop(hand_over=hand_over))
        self._end()

    def kill(self) -> None:
        """As by kill -9: nothing is flushed, nobody is told; what was written is what a restart finds."""
        self.resume()
        if self.alive and self.node is not None:
            self._loop.call_soon_threadsafe(self.node.abandon)
        self._end()

    def _end(self) -> None:
        if self.alive:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_SECONDS)

    def pause(self) -> None:
        """As by SIGSTOP: connections stay open, nothing is answered."""
        if self._resume is None:
            self._resume = threading.Event()
            self._loop.call_soon_threadsafe(self._resume.wait)

    def resume(self) -> None:
        if self._resume is not None:
            self._resume.set()
            self._resume = None


def _cancel_everything(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
