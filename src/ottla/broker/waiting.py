"""Runs the two purgatories: wakes what is complete, on the loop, and keeps one timer for the nearest deadline."""

from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable, Iterable
from typing import Any, cast

from ottla.broker.partition import Partition
from ottla.broker.purgatory import FetchWait, ProduceWait, Purgatory, Wait
from ottla.model.ids import Millis
from ottla.model.ports import Clock


class WaitingRequests:
    __slots__ = ("_clock", "_completed", "_timer", "_timer_at", "fetches", "loop", "produces")

    def __init__(self, loop: AbstractEventLoop, clock: Clock) -> None:
        self.loop = loop
        self._clock = clock
        self.fetches: Purgatory[Partition] = Purgatory()
        self.produces: Purgatory[Partition] = Purgatory()
        self._completed: list[Wait] = []
        self._timer: TimerHandle | None = None
        self._timer_at: Millis | None = None

    def deadline(self, timeout_ms: int) -> Millis:
        return Millis(self._clock.monotonic() + timeout_ms)

    def park_fetch(self, wait: FetchWait, partitions: Iterable[Partition], future: "Future[Any]") -> None:
        self._park(self.fetches, wait, partitions, future)

    def park_produce(self, wait: ProduceWait, future: "Future[Any]") -> None:
        partitions = cast("list[Partition]", list(wait.required))
        self._park(self.produces, wait, partitions, future)

    def _park(
        self, purgatory: Purgatory[Partition], wait: Wait, partitions: Iterable[Partition], future: "Future[Any]"
    ) -> None:
        purgatory.watch(wait, partitions)
        future.add_done_callback(lambda done: purgatory.cancel(wait) if done.cancelled() else None)
        self._arm(wait.deadline)

    def records_visible(self, partition: Partition, size: int) -> None:
        """The high watermark of `partition` moved over `size` bytes."""
        if self.fetches.waiting:
            self._complete(self.fetches.touched(partition, size))
        if self.produces.waiting:
            assert partition.leader is not None
            self._complete(self.produces.touched(partition, partition.leader.high_watermark))

    def partition_changed(self, partition: Partition) -> None:
        """Deleted, offline or led by another: whoever waits gets the error now."""
        self._complete(self.fetches.released(partition))
        self._complete(self.produces.released(partition))

    def _complete(self, waits: list[Wait]) -> None:
        if not waits:
            return
        if not self._completed:
            # After the appends of the whole request, so that a fetch over six partitions gets all six.
            self.loop.call_soon(self._resume_completed)
        self._completed += waits

    def _resume_completed(self) -> None:
        completed, self._completed = self._completed, []
        for wait in completed:
            resume = cast("Callable[[], None]", cast("FetchWait | ProduceWait", wait).resume)
            resume()

    def _arm(self, deadline: Millis) -> None:
        if self._timer_at is not None and self._timer_at <= deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self.loop.call_later(max(0, deadline - self._clock.monotonic()) / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = self._timer_at = None
        now = self._clock.monotonic()
        self._complete(self.fetches.expired(now))
        self._complete(self.produces.expired(now))
        for deadline in (self.fetches.next_deadline(), self.produces.next_deadline()):
            if deadline is not None:
                self._arm(deadline)
