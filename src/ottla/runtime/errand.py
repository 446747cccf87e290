"""Work that is done by one task at a time, for as long as there is some."""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)


class Errand:
    """`run` is begun when there is work and nobody is at it."""

    __slots__ = ("_has_work", "_loop", "_name", "_run", "_stopped", "_task")

    def __init__(
        self,
        loop: AbstractEventLoop,
        name: str,
        run: Callable[[], Coroutine[None, None, None]],
        has_work: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._name = name
        self._run = run
        self._has_work = has_work
        self._task: Task[None] | None = None
        self._stopped = False

    def work(self) -> None:
        if self._task is None and not self._stopped and self._has_work():
            self._task = self._loop.create_task(self._run(), name=self._name)
            self._task.add_done_callback(self._ended)

    def _ended(self, task: "Task[None]") -> None:
        self._task = None
        if task.cancelled():
            return
        if task.exception() is not None:
            logger.error("%s: failed", self._name, exc_info=task.exception())
        # Whatever came between the last look of the task and this call: nobody else would ask for it again.
        self.work()

    async def stop(self) -> None:
        """For good: what a timer still brings is nobody's any more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
