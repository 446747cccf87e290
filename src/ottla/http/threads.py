"""A server for programs that have no loop of their own: it runs in a thread."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext

from ottla.http.addresses import Address
from ottla.http.listening import Listening

_PATIENCE_S = 30.0


class ThreadedServer:
    """`start` gives the address; what the application does, it does in this server's one thread. `alongside` is entered
    there before the first request comes, and left after the last."""

    def __init__(
        self, listening: Listening, alongside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    ) -> None:
        self._listening = listening
        self._alongside = alongside
        self._thread = threading.Thread(target=self._run, name="ottla-http", daemon=True)
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._ending: asyncio.Event | None = None

    def start(self) -> Address:
        """Raises OSError when the address cannot be had."""
        address = self._listening.open()
        self._thread.start()
        self._started.result(_PATIENCE_S)
        return address

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        assert self._ending is not None
        self._started.result().call_soon_threadsafe(self._ending.set)
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._ending = asyncio.Event()
        async with self._alongside():
            try:
                await self._listening.start_now()
            except BaseException as error:
                self._listening.abandon()
                self._started.set_exception(error)
                raise
            self._started.set_result(asyncio.get_running_loop())
            await self._ending.wait()
            await self._listening.stop()
