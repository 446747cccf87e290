"""Work that waits in between, with a watch on what the loop does for it."""

from collections.abc import Coroutine, Generator
from typing import Any, Protocol


class Watch(Protocol):
    def step(self) -> None:
        """The loop turns to the work."""

    def end(self) -> None:
        """It turns to something else."""


async def timed(watch: Watch, work: Coroutine[Any, Any, Any]) -> Any:
    return await _Steps(watch, work)


class _Steps:
    __slots__ = ("_watch", "_work")

    def __init__(self, watch: Watch, work: Coroutine[Any, Any, Any]) -> None:
        self._watch = watch
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        watch, work = self._watch, self._work
        thrown: BaseException | None = None
        while True:
            watch.step()
            try:
                awaited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as done:
                return done.value
            finally:
                watch.end()
            thrown = None
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001  a cancellation too is the work's own business
                thrown = error
