"""An event loop without a clock: virtual time jumps to the next timer, so a minute of a cluster takes a second.

Everything a node starts carries its `Life` along in its context. When the life ends nothing of it runs any more, which
is how a process is killed inside a loop that goes on for the others.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Final

LIFE: Final[contextvars.ContextVar["Life | None"]] = contextvars.ContextVar("life", default=None)


class Deadlock(Exception):
    """Nothing is ready and no timer is set: everybody waits for somebody."""


class Life:
    """One run of one process: from its start until it is killed."""

    __slots__ = ("alive", "name", "on_death")

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.on_death: list[Callable[[], None]] = []

    def run(self, action: Callable[..., Any], *args: Any) -> Any:
        """As this life, unless it has ended."""
        if not self.alive:
            return None
        context = contextvars.copy_context()
        context.run(LIFE.set, self)
        return context.run(action, *args)

    def end(self) -> None:
        if self.alive:
            self.alive = False
            for told in self.on_death:
                told()


class SimLoop(asyncio.BaseEventLoop):
    """Callbacks run in the order they were given; what is random comes from delays of network and disk."""

    def __init__(self, dice: Random) -> None:
        super().__init__()
        self._now = 0.0
        self._dice = dice
        self._clock_resolution = 1e-7
        self._selector = self
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))
        self._tasks: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._now

    # What asyncio's base loop asks of a selector.

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise Deadlock
        self._now += timeout
        return []

    def _process_events(self, events: list[object]) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        """There are no other threads."""

    def _make_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
        task = asyncio.Task(work, loop=loop, **options)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # a killed process finishes nothing
        self._tasks.append(task)
        return task

    def close(self) -> None:
        """Ends what killed processes have left unfinished: the collector would do it at some moment of its own."""
        for task in self._tasks:
            work = task.get_coro()
            if not task.done() and work is not None:
                with suppress(Exception):
                    work.close()
        self._tasks.clear()
        super().close()

    # A dead life does nothing.

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        life = LIFE.get() if context is None else context.get(LIFE)
        if life is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(_if_alive, life, callback, *args, context=context)

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        life = LIFE.get() if context is None else context.get(LIFE)
        if life is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, _if_alive, life, callback, *args, context=context)

    def run_in_executor(self, executor: object, func: Any, *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        """The work is done in one piece at some later moment: a worker thread that nobody can see halfway."""
        future = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001  it belongs to whoever waits
                future.set_exception(error)

        self.call_later(self._dice.uniform(0.0001, 0.02), work)
        return future


def _if_alive(life: Life, callback: Callable[..., Any], *args: Any) -> None:
    if life.alive:
        callback(*args)


@contextmanager
def hushed() -> Iterator[None]:
    """Nodes that are killed by the dozen have much to say."""
    logger = logging.getLogger("ottla")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
