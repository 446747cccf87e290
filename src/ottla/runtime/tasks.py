"""Tasks that belong to somebody: they are kept, what they raise is told, and they end with their owner.

Not asyncio's TaskGroup: there the failure of one ends all others, and a node must outlive a failed errand.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Tasks:
    __slots__ = ("_loop", "_running")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._running: dict[Task[Any], None] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> "Task[T]":
        task = self._loop.create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "Task[Any]") -> None:
        del self._running[task]
        if not task.cancelled() and task.exception() is not None:
            logger.error("%s failed", task.get_name(), exc_info=task.exception())

    def cancel(self) -> None:
        for task in list(self._running):
            task.cancel()

    async def stop(self) -> None:
        """Returns when all have ended."""
        self.cancel()
        if self._running:
            await asyncio.wait(list(self._running))
