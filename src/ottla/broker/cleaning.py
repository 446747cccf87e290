"""The log cleaner of a broker: picks the dirtiest compacted log, has a thread work through it, swaps the result in.

The loop only weighs, begins, swaps and ends; a request never waits for more than a slice of the thread's work.
"""

import asyncio
import logging
import os
import sys
import threading
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.broker.configs import Configs
from ottla.broker.partition import Partition
from ottla.broker.replicas import Replicas
from ottla.model.ports import Clock
from ottla.storage.cleaner import plan
from ottla.storage.cleaner.cleaned_segment import discard
from ottla.storage.cleaner.plan import Candidate
from ottla.storage.cleaner.rewrite import Limits, Round, Source
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import ROOM_ERRORS, CorruptLog, StorageError
from ottla.storage.log import Log, Replacement

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)
T = TypeVar("T")

_LOGS_PER_TURN: Final = 200
_MIN_BACKOFF_MS: Final = 100
_BREATH_SECONDS: Final = 0.0002
"""About what the loop needs for a request: let go for less, the thread would be back at the loop's next system call."""
_NICENESS: Final = 15
"""Of a cleaner thread where threads have one of their own: the loop gets a processor at once when it wakes up."""
_LONGEST_NAP_SECONDS: Final = 0.2
"""So that a throttled thread still notices that it is to stop."""


class Abandoned(Exception):
    """The round is not wanted any more: the node stops, or the log went away."""


class Throttle:
    """log.cleaner.io.max.bytes.per.second over all cleaner threads. Tells how long to wait; never waits itself."""

    __slots__ = ("_free_at", "_lock", "bytes_per_second")

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    def take(self, size: int, now: float) -> float:
        """Seconds from `now` until what was taken before has been paid for."""
        with self._lock:
            wait = max(0.0, self._free_at - now)
            self._free_at = max(self._free_at, now) + size / self.bytes_per_second
            return wait


class Breath:
    """What a cleaner thread does between two slices: stop if told to, wait if too fast, let the loop go first.

    A thread that computes hands the interpreter over only every five milliseconds, so it has to step back by itself.
    It does so when the loop has been running since the last slice: its processor clock tells, for it advances also when
    the loop has woken up and waits for the interpreter. And a scheduler lets whoever runs go on for some milliseconds
    before it looks who else would like to: so it is asked to look now.
    """

    __slots__ = ("_loop_clock", "_loop_time", "_throttle", "is_abandoned")

    def __init__(self, throttle: Throttle, loop_clock: int | None) -> None:
        self.is_abandoned = False
        self._throttle = throttle
        self._loop_clock = loop_clock
        self._loop_time = 0.0

    def __call__(self, size: int) -> None:
        if self.is_abandoned:
            raise Abandoned
        wait = self._throttle.take(size, time.monotonic()) if size else 0.0
        if wait > 0:
            self._nap(wait)
        elif self._loop_is_busy():
            time.sleep(_BREATH_SECONDS)
        else:
            _look_who_else_waits()

    def _nap(self, wait: float) -> None:
        while wait > 0 and not self.is_abandoned:
            time.sleep(min(wait, _LONGEST_NAP_SECONDS))
            wait -= _LONGEST_NAP_SECONDS

    def _loop_is_busy(self) -> bool:
        if self._loop_clock is None:
            return True
        used = time.clock_gettime(self._loop_clock)
        busy, self._loop_time = used != self._loop_time, used
        return busy


class Work(NamedTuple):
    """A round and what it is about."""

    partition: Partition
    directory: LogDirectory
    round: Round
    breath: Breath

    @property
    def log(self) -> Log:
        return self.round.candidate.log

    @property
    def is_current(self) -> bool:
        return self.partition.log is self.log and self.log.generation == self.round.generation


class Cleaning:
    __slots__ = (
        "_backoff",
        "_clock",
        "_configs",
        "_loop",
        "_pool",
        "_replicas",
        "_runner",
        "_stopping",
        "_throttle",
        "uncleanable",
        "working",
    )

    def __init__(self, loop: AbstractEventLoop, replicas: Replicas, configs: Configs, clock: Clock) -> None:
        self._loop = loop
        self._replicas = replicas
        self._configs = configs
        self._clock = clock
        self._throttle = Throttle(1.0)
        self._pool: ThreadPoolExecutor | None = None
        self._runner: asyncio.Task[None] | None = None
        self._backoff: TimerHandle | None = None
        self._stopping = False
        self.working: dict[Log, Work] = {}
        self.uncleanable: dict[Log, str] = {}
        """Logs that a round failed on, and why: left alone until a restart, as Kafka does."""

    # ---- running

    def start(self) -> None:
        if self._configs.settings.get_bool("log.cleaner.enable"):
            self._wait()

    def _wait(self) -> None:
        backoff = max(self._configs.settings.get_int("log.cleaner.backoff.ms"), _MIN_BACKOFF_MS)
        self._backoff = self._loop.call_later(backoff / 1000, self._begin)

    def _begin(self) -> None:
        self._backoff = None
        self._runner = self._loop.create_task(self._run(), name="cleaning")
        self._runner.add_done_callback(self._ended)

    def _ended(self, runner: "asyncio.Task[None]") -> None:
        self._runner = None
        if not runner.cancelled() and runner.exception() is not None:
            log.error("cleaning failed", exc_info=runner.exception())
        if not self._stopping:
            self._wait()

    async def stop(self) -> None:
        """A thread ends at its next breath; what it wrote until then is thrown away."""
        self._stopping = True
        if self._backoff is not None:
            self._backoff.cancel()
        for work in self.working.values():
            work.breath.is_abandoned = True
        if self._runner is not None:
            await asyncio.wait([self._runner])
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    async def _run(self) -> None:
        """Until nothing is due."""
        settings = self._configs.settings
        self._throttle.bytes_per_second = settings.get_float("log.cleaner.io.max.bytes.per.second")
        known = {partition.log for partition in self._replicas.all()}
        self.uncleanable = {found: why for found, why in self.uncleanable.items() if found in known}
        await asyncio.gather(*(self._clean_what_is_due() for _ in range(settings.get_int("log.cleaner.threads"))))

    async def _clean_what_is_due(self) -> None:
        while not self._stopping:
            work = await self._dirtiest()
            if work is None or self._stopping:
                return
            self.working[work.log] = work
            try:
                cleaned = await self._clean(work)
            finally:
                del self.working[work.log]
            if not cleaned:
                return  # the same would happen again: first the pause

    # ---- choosing

    async def _dirtiest(self) -> Work | None:
        best: tuple[Partition, Candidate] | None = None
        for turn, partition in enumerate(list(self._replicas.all())):
            if turn % _LOGS_PER_TURN == _LOGS_PER_TURN - 1:
                await asyncio.sleep(0)
            found = self._candidate(partition)
            if found is not None and (best is None or found.ratio > best[1].ratio):
                best = partition, found
        if best is None:
            return None
        # Weighed again: while others had their turn the log may have changed, or another thread may have taken it.
        partition, candidate = best[0], self._candidate(best[0])
        if candidate is None or partition.directory is None:
            return None
        breath = Breath(self._throttle, _thread_clock())
        return Work(
            partition,
            partition.directory,
            Round(candidate, self._limits(), breath, now=self._clock.wall()),
            breath,
        )

    def _candidate(self, partition: Partition) -> Candidate | None:
        found, role = partition.log, partition.role
        if found is None or role is None or partition.directory is None or not found.config.compact:
            return None
        if found in self.working or found in self.uncleanable or len(found.segments) == 1 or not found.is_online:
            return None
        try:
            candidate = plan.weigh(
                found,
                partition.directory.cleaned_to.get(found.topic_partition),
                high_watermark=role.high_watermark,
                now=self._clock.wall(),
            )
        except CorruptLog as error:
            self._give_up(found, error)
            return None
        except OSError as error:
            self._disk_failed(partition.directory, found, error)
            return None
        return candidate if candidate.is_due else None

    def _limits(self) -> Limits:
        settings = self._configs.settings
        threads = max(1, settings.get_int("log.cleaner.threads"))
        return Limits(
            memory=settings.get_int("log.cleaner.dedupe.buffer.size") // threads,
            load=settings.get_float("log.cleaner.io.buffer.load.factor"),
            read_bytes=settings.get_int("log.cleaner.io.buffer.size") // threads // 2,
        )

    # ---- one log

    async def _clean(self, work: Work) -> bool:
        began, base = self._clock.monotonic(), -1
        try:
            await self._in_thread(work.round.map_keys)
            for group in await self._in_thread(work.round.groups):
                base = group[0].base_offset
                if not await self._replace(work, group):
                    return False
            await self._checkpoint(work)
            self._tell(work, self._clock.monotonic() - began)
            return True
        except Abandoned:
            await self._discard(work, base)
        except CorruptLog as error:
            await self._discard(work, base)
            self._give_up(work.log, error)
        except OSError as error:
            await self._discard(work, base)
            if work.is_current:  # else its files went away with it
                self._disk_failed(work.directory, work.log, error)
        except Exception as error:  # whatever is wrong with one log, the others are cleaned
            log.error("the cleaner failed", exc_info=error)
            await self._discard(work, base)
            self._give_up(work.log, error)
        return False

    def _tell(self, work: Work, took_ms: int) -> None:
        stats = work.round.stats
        log.info(
            "%s is clean up to offset %d: read %d bytes, kept %d, in %.1f s",
            work.log.topic_partition,
            work.round.end_offset,
            stats.bytes_read,
            stats.bytes_written,
            took_ms / 1000,
        )

    async def _replace(self, work: Work, group: tuple[Source, ...]) -> bool:
        """False if the log has changed meanwhile."""
        if not work.is_current:
            return False
        new: Replacement = await self._in_thread(work.round.rewrite, group, work.log.last_records())
        deletion = None
        if work.is_current and work.log.config.compact:
            old = [(source.segment, source.size) for source in group]
            deletion = work.log.replace_segments(old, new, self._clock.wall())
        if deletion is None:
            await self._discard(work, new.base_offset)
            return False
        await self._in_thread(work.log.filesystem.sync_dir, work.log.path)
        self._replicas.deletions.append((work.directory, deletion))
        return True

    async def _checkpoint(self, work: Work) -> None:
        if work.is_current:
            work.directory.cleaned_to[work.log.topic_partition] = work.round.end_offset
            await self._in_thread(work.directory.write_cleaner_offsets)

    async def _discard(self, work: Work, base_offset: int) -> None:
        if base_offset >= 0:
            with suppress(OSError):  # a leftover is removed by the next start
                await self._in_thread(discard, work.log.filesystem, work.log.path, base_offset)

    async def _in_thread(self, job: Callable[..., T], *args: object) -> T:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most nodes never clean anything

            self._pool = ThreadPoolExecutor(thread_name_prefix="cleaner", initializer=_step_back)
        return await self._loop.run_in_executor(self._pool, job, *args)

    # ---- failing

    def _give_up(self, found: Log, error: Exception) -> None:
        log.error("%s cannot be compacted and is left as it is: %s", found.topic_partition, error)
        self.uncleanable[found] = str(error)

    def _disk_failed(self, directory: LogDirectory, found: Log, error: OSError) -> None:
        if error.errno in ROOM_ERRORS:
            log.warning("%s could not be compacted, it is tried again: %s", found.topic_partition, error)
            return
        try:
            directory.latch.fail(f"cannot clean {found.topic_partition}", error)
        except StorageError as failure:
            self._replicas.storage_failed(directory, failure)


def _step_back() -> None:
    """Makes the calling thread, and no other, give way. Only Linux knows priorities of threads by this call."""
    if sys.platform == "linux":
        with suppress(OSError):  # a sandbox may forbid it, and cleaning goes on without
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


_look_who_else_waits: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)
"""Not every system lets a thread ask for that."""


def _thread_clock() -> int | None:
    """The processor clock of the calling thread, which is the loop's; None where the system has none."""
    find = getattr(time, "pthread_getcpuclockid", None)
    return None if find is None else find(threading.get_ident())
