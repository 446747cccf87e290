"""Making things durable: one thread that calls fsync, and group commit in front of it.

While one flush runs, everything appended meanwhile waits for the next one, so many waiting appends share one fsync. The
first error latches: what failed to reach the disk once is never tried again (reliability.md 2.1).
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from ottla.storage.flush import Flush
from ottla.storage.log import Log

Job = Callable[[], None]
Done = Callable[[BaseException | None], None]


class DiskThread(Protocol):
    """Runs jobs one after the other and reports each on the caller's loop."""

    def run(self, job: Job, done: Done) -> None: ...

    def close(self) -> None: ...


class SyncThread:
    """The real one. Started with the first job; a node that writes nothing has no thread."""

    __slots__ = ("_jobs", "_loop", "_thread")

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Job, Done] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, job: Job, done: Done) -> None:
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._work, name="ottla-fsync", daemon=True)
            self._thread.start()
        self._jobs.put((job, done))

    def _work(self) -> None:
        loop = self._loop
        assert loop is not None
        while (item := self._jobs.get()) is not None:
            job, done = item
            error: BaseException | None = None
            try:
                job()
            except BaseException as raised:  # noqa: BLE001 - it is handed to the loop's side, which decides
                error = raised
            try:
                loop.call_soon_threadsafe(done, error)
            except RuntimeError:
                return  # the loop is gone, and with it everyone who could wait for an answer

    def close(self) -> None:
        """Waits for the jobs that were given before."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


class InlineDisk:
    """Runs each job at once in the caller's thread: for tools, and for tests that must be deterministic."""

    __slots__ = ()

    def run(self, job: Job, done: Done) -> None:
        try:
            job()
        except OSError as error:
            done(error)
        else:
            done(None)

    def close(self) -> None:
        """Nothing is ever left over."""


class GroupCommit:
    """Group commit of one log. `request` is cheap; `durable` waits until an offset is on the disk."""

    __slots__ = (
        "_again",
        "_disk",
        "_idle",
        "_log",
        "_on_failed",
        "_on_flushed",
        "_running",
        "_waiting",
        "error",
        "flushed",
    )

    def __init__(
        self,
        log: Log,
        disk: DiskThread,
        on_flushed: Callable[[int], None] | None = None,
        on_failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._log = log
        self._disk = disk
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._running = False
        self._again = False
        self._idle: asyncio.Future[None] | None = None
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.flushed = -1
        """Everything below this offset is on the disk."""
        self.error: BaseException | None = None

    def request(self) -> None:
        """Everything appended so far shall become durable soon."""
        if self._running:
            self._again = True
        elif self.error is None:
            self._start()

    def _start(self) -> None:
        self._again = False
        try:
            flush = self._log.flush_begin()
        except OSError as error:
            self._fail(error)
            return
        if flush is not None:
            self._running = True
            self._disk.run(flush.run, lambda error: self._finished(flush, error))

    def _finished(self, flush: Flush, error: BaseException | None) -> None:
        self._running = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        if error is not None:
            self._fail(error)
            return
        self._log.flush_done(flush)
        self.flushed = max(self.flushed, flush.offset)
        if self._on_flushed is not None:
            self._on_flushed(self.flushed)
        while self._waiting and self._waiting[0][0] <= self.flushed:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._again:
            self._start()

    def _fail(self, error: BaseException) -> None:
        self.error = error
        waiting, self._waiting = self._waiting, deque()
        for _, waiter in waiting:
            if not waiter.done():
                waiter.set_exception(error)
        if self._on_failed is not None:
            self._on_failed(error)

    async def durable(self, end_offset: int) -> None:
        """Returns once everything below `end_offset` is on the disk; raises what the disk said."""
        if self.error is not None:
            raise self.error
        if end_offset <= self.flushed:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((end_offset, waiter))
        self.request()
        await waiter

    async def idle(self) -> None:
        """Waits out running flushes, so that the log may be closed."""
        while self._running:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
