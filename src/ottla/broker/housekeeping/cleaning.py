"""The log cleaner of a broker: picks the dirtiest compacted log, has a cleaner work through it, swaps the result in.

The loop only weighs, begins, swaps and ends. Threads here wait, for a cleaner's process or for the disk, and do nothing
else: what they did with the interpreter they would take from the loop.
"""

import asyncio
import logging
import sys
import threading
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.broker.partition import Partition
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.configs import Configs
from ottla.model.ports import Clock
from ottla.runtime.child import Died, Unavailable
from ottla.runtime.cleaner.cleaners import Cleaner, Pace
from ottla.storage.cleaner import plan
from ottla.storage.cleaner.cleaned_segment import discard
from ottla.storage.cleaner.facts import Facts, Limits, Mapped, Rewritten, Source, Stats
from ottla.storage.cleaner.plan import Candidate
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import ROOM_ERRORS, CorruptLog, StorageError
from ottla.storage.log import Log
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

logger = logging.getLogger(__name__)
T = TypeVar("T")

_LOGS_PER_TURN: Final = 200
_MIN_BACKOFF_MS: Final = 100
_GLANCE_SECONDS: Final = 0.5
"""How often a round under way is asked whether anybody still wants it."""
_MAX_DEATHS: Final = 3
"""Of cleaners in rounds over one log, one after the other: it would keep all others waiting for ever."""


class Throttle:
    """log.cleaner.io.max.bytes.per.second over all cleaners. Tells how long to wait; never waits itself."""

    __slots__ = ("_free_at", "_lock", "_rate")

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    @property
    def is_unlimited(self) -> bool:
        return self._rate >= sys.float_info.max

    def limit(self, bytes_per_second: float) -> None:
        """Debts at another rate are forgotten: after a very low one they would last for ever."""
        with self._lock:
            if bytes_per_second != self._rate:
                self._rate, self._free_at = bytes_per_second, 0.0

    def take(self, size: int, now: float) -> float:
        """Seconds from `now` until what was taken before has been paid for."""
        with self._lock:
            wait = max(0.0, self._free_at - now)
            self._free_at = max(self._free_at, now) + size / self._rate
            return wait

    def pace(self, size: int) -> float:
        return self.take(size, time.monotonic())


class Work(NamedTuple):
    """A round, who does it, and what it is about."""

    cleaner: Cleaner
    partition: Partition
    directory: LogDirectory
    log: Log
    generation: int
    facts: Facts
    segments: dict[int, Segment]
    """By base offset: those there were when it began."""

    @property
    def is_current(self) -> bool:
        return self.partition.log is self.log and self.log.generation == self.generation

    @property
    def is_wanted(self) -> bool:
        return self.is_current and self.log.config.compact and self.partition.future is None


class Cleaning:
    __slots__ = (
        "_backoff",
        "_clock",
        "_configs",
        "_deaths",
        "_loop",
        "_new_cleaner",
        "_pool",
        "_replicas",
        "_runner",
        "_stopping",
        "_throttle",
        "uncleanable",
        "working",
    )

    def __init__(
        self,
        loop: AbstractEventLoop,
        replicas: Replicas,
        configs: Configs,
        clock: Clock,
        new_cleaner: Callable[[Pace], Cleaner],
    ) -> None:
        self._loop = loop
        self._replicas = replicas
        self._configs = configs
        self._clock = clock
        self._new_cleaner = new_cleaner
        self._throttle = Throttle(1.0)
        self._pool: ThreadPoolExecutor | None = None
        self._runner: asyncio.Task[None] | None = None
        self._backoff: TimerHandle | None = None
        self._stopping = False
        self.working: dict[Log, Work] = {}
        self.uncleanable: dict[Log, str] = {}
        """Logs that a round failed on, and why: left alone until a restart, as Kafka does."""
        self._deaths: dict[Log, int] = {}

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
            logger.error("cleaning failed", exc_info=runner.exception())
        if not self._stopping:
            self._wait()

    async def stop(self) -> None:
        """What a cleaner wrote until now is thrown away."""
        self._stopping = True
        if self._backoff is not None:
            self._backoff.cancel()
        for work in self.working.values():
            work.cleaner.kill()
        if self._runner is not None:
            await asyncio.wait([self._runner])
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    async def _run(self) -> None:
        """Until nothing is due."""
        settings = self._configs.settings
        self._throttle.limit(settings.get_float("log.cleaner.io.max.bytes.per.second"))
        known = {partition.log for partition in self._replicas.all()}
        self.uncleanable = {found: why for found, why in self.uncleanable.items() if found in known}
        self._deaths = {found: number for found, number in self._deaths.items() if found in known}
        await asyncio.gather(*(self._clean_what_is_due() for _ in range(settings.get_int("log.cleaner.threads"))))

    async def _clean_what_is_due(self) -> None:
        """The cleaner ends when there is nothing left to do: between rounds a node is as small as one that has none."""
        cleaner, begun = self._new_cleaner(self._throttle.pace), False
        try:
            while not self._stopping:
                work = await self._dirtiest(cleaner)
                if work is None or self._stopping:
                    return
                self.working[work.log], begun = work, True
                try:
                    cleaned = await self._clean(work)
                finally:
                    del self.working[work.log]
                if not cleaned:
                    return  # the same would happen again: first the pause
        finally:
            if begun:
                cleaner.kill()
                await self._in_thread(cleaner.close)

    # ---- choosing

    async def _dirtiest(self, cleaner: Cleaner) -> Work | None:
        best: tuple[Partition, Candidate] | None = None
        for turn, partition in enumerate(list(self._replicas.all())):
            if turn % _LOGS_PER_TURN == _LOGS_PER_TURN - 1:
                await asyncio.sleep(0)
            found = self._candidate(partition)
            if found is not None and (best is None or found.ratio > best[1].ratio):
                best = partition, found
        if best is None:
            return None
        # Weighed again: while others had their turn the log may have changed, or another cleaner may have taken it.
        partition, candidate = best[0], self._candidate(best[0])
        if candidate is None or partition.directory is None:
            return None
        return Work(
            cleaner,
            partition,
            partition.directory,
            candidate.log,
            candidate.log.generation,
            candidate.facts(self._limits(), now=self._clock.wall()),
            {segment.base_offset: segment for segment in candidate.log.segments},
        )

    def _candidate(self, partition: Partition) -> Candidate | None:
        found, role = partition.log, partition.role
        if found is None or role is None or partition.directory is None or not found.config.compact:
            return None
        if partition.future is not None:
            return None  # a tombstone must not go before the copy has it, or the copy keeps what it deletes
        if found in self.working or found in self.uncleanable or len(found.segments) == 1 or not found.is_online:
            return None
        try:
            candidate = plan.weigh(
                found,
                partition.directory.saved.cleaned_to.get(found.topic_partition),
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
            paced=not self._throttle.is_unlimited,
        )

    # ---- one log

    async def _clean(self, work: Work) -> bool:
        began, base = self._clock.monotonic(), -1
        stats = Stats(0, 0, 0)
        try:
            mapped: Mapped = await self._wanted(work, work.cleaner.begin, work.facts)
            for number, group in enumerate(mapped.groups):
                base = group[0].base_offset
                if not work.is_wanted:
                    return False
                last_records = work.log.last_records(below=group[-1].next_base)
                done: Rewritten = await self._wanted(work, work.cleaner.rewrite, number, last_records)
                if not await self._replace(work, group, done):
                    return False
                stats = done.stats
            await self._checkpoint(work, mapped.end_offset)
            self._deaths.pop(work.log, None)
            self._tell(work, mapped.end_offset, stats, self._clock.monotonic() - began)
            return True
        except Died as death:
            await self._discard(work, base)
            self._died(work, death)
        except Unavailable as error:
            logger.warning("%s could not be compacted, it is tried again: %s", work.log.topic_partition, error)
        except CorruptLog as error:
            await self._discard(work, base)
            self._give_up(work.log, error)
        except OSError as error:
            await self._discard(work, base)
            if work.is_current:  # else its files went away with it
                self._disk_failed(work.directory, work.log, error)
        except Exception as error:  # whatever is wrong with one log, the others are cleaned
            logger.error("the cleaner failed", exc_info=error)
            await self._discard(work, base)
            self._give_up(work.log, error)
        return False

    async def _wanted(self, work: Work, ask: Callable[..., T], *args: object) -> T:
        """The answer of a cleaner, which is killed as soon as its round has become pointless."""
        asked = asyncio.ensure_future(self._in_thread(ask, *args))
        try:
            while not asked.done():
                await asyncio.wait([asked], timeout=_GLANCE_SECONDS)
                if not work.is_wanted:
                    work.cleaner.kill()
        except asyncio.CancelledError:
            work.cleaner.kill()
            raise
        return asked.result()

    def _tell(self, work: Work, end_offset: int, stats: Stats, took_ms: int) -> None:
        logger.info(
            "%s is clean up to offset %d: read %d bytes, kept %d, in %.1f s",
            work.log.topic_partition,
            end_offset,
            stats.bytes_read,
            stats.bytes_written,
            took_ms / 1000,
        )

    async def _replace(self, work: Work, group: tuple[Source, ...], done: Rewritten) -> bool:
        """False if the log has changed meanwhile."""
        new, deletion = done.replacement, None
        if work.is_wanted:
            old = [(work.segments[source.base_offset], source.size) for source in group]
            deletion = work.log.replace_segments(old, new)
        if deletion is None:
            await self._discard(work, new.base_offset)
            return False
        await self._in_thread(work.log.filesystem.sync_dir, work.log.path)
        self._replicas.deletions.append((work.directory, deletion))
        return True

    async def _checkpoint(self, work: Work, end_offset: int) -> None:
        if work.is_current:
            work.directory.saved.cleaned_to[work.log.topic_partition] = end_offset
            await self._in_thread(work.directory.write_cleaner_offsets)

    async def _discard(self, work: Work, base_offset: int) -> None:
        if base_offset >= 0:
            with suppress(OSError):  # a leftover is removed by the next start
                await self._in_thread(discard, work.log.filesystem, work.log.path, base_offset)

    async def _in_thread(self, job: Callable[..., T], *args: object) -> T:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most nodes never clean anything

            self._pool = ThreadPoolExecutor(thread_name_prefix="cleaner")
        return await self._loop.run_in_executor(self._pool, job, *args)

    # ---- failing

    def _died(self, work: Work, death: Died) -> None:
        if self._stopping or not work.is_wanted:
            return  # as it was told to
        deaths = self._deaths[work.log] = self._deaths.get(work.log, 0) + 1
        if deaths == _MAX_DEATHS:
            self._give_up(work.log, death)
        else:
            logger.warning("%s could not be compacted, it is tried again: %s", work.log.topic_partition, death)

    def _give_up(self, found: Log, error: Exception) -> None:
        logger.error("%s cannot be compacted and is left as it is: %s", found.topic_partition, error)
        self.uncleanable[found] = str(error)

    def _disk_failed(self, directory: LogDirectory, found: Log, error: OSError) -> None:
        if error.errno in ROOM_ERRORS:
            logger.warning("%s could not be compacted, it is tried again: %s", found.topic_partition, error)
            return
        try:
            directory.latch.fail(f"cannot clean {found.topic_partition}", error)
        except StorageError as failure:
            self._replicas.storage_failed(directory, failure)
