"""A service of the platform in a process of its own: started, told to the terminal, stopped by a signal."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from ottla import __version__
from ottla.node.event_loop import new_event_loop
from ottla.runtime.standard_streams import announce
from ottla.runtime.stop_signals import stop_signals


class Alone(Protocol):
    def banner(self) -> Sequence[str]: ...

    async def stop(self) -> None: ...


S = TypeVar("S", bound=Alone)


async def _nothing(_: Alone) -> None:
    return


def run_alone(
    what: str,
    make: Callable[[], S],
    start: Callable[[S], Awaitable[None]],
    then: Callable[[S], Awaitable[None]] = _nothing,
) -> int:
    """Until SIGTERM, SIGINT or SIGHUP, also while it starts. `then` is done once it is ready. Raises as `start`."""
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(what, make, start, then))
    finally:
        loop.close()


async def _serve(
    what: str, make: Callable[[], S], start: Callable[[S], Awaitable[None]], then: Callable[[S], Awaitable[None]]
) -> int:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in stop_signals():
        loop.add_signal_handler(number, asked.set)
    service = make()
    starting = asyncio.ensure_future(start(service))
    stopping = loop.create_task(asked.wait())
    try:
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            told = "\n".join(f"  {line}" for line in service.banner())
            announce(f"ottla {__version__}: {what} is ready\n{told}\n  stop with Ctrl-C")
            await then(service)
            gc.collect()
            gc.freeze()  # what is alive now lives as long as the process
            await stopping
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await service.stop()
    return 0
