"""Runs the purgatories: wakes what is complete, on the loop, and keeps one timer for the nearest deadline."""

from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from ottla.broker.partition import Partition
from ottla.broker.waiting.purgatory import FetchWait, ProduceWait, Purgatory, Wait
from ottla.model.ids import Millis
from ottla.model.ports import Clock

Key = TypeVar("Key", Partition, int)


class WaitingRequests:
    __slots__ = ("_clock", "_completed", "_timer", "_timer_at", "copies", "deletes", "fetches", "loop", "produces")

    def __init__(self, loop: AbstractEventLoop, clock: Clock) -> None:
        self.loop = loop
        self._clock = clock
        self.fetches: Purgatory[Partition] = Purgatory()
        """Of clients, who see up to the high watermark."""
        self.copies: Purgatory[int] = Purgatory()
        """Of followers, who see the whole log; by broker id, as one fetch may name thousands of partitions."""
        self.produces: Purgatory[Partition] = Purgatory()
        self.deletes: Purgatory[Partition] = Purgatory()
        """Of DeleteRecords, until every living follower has moved its log start."""
        self._completed: list[Wait] = []
        self._timer: TimerHandle | None = None
        self._timer_at: Millis | None = None

    def deadline(self, timeout_ms: int) -> Millis:
        return Millis(self._clock.monotonic() + timeout_ms)

    def park_fetch(self, wait: FetchWait, partitions: Iterable[Partition], future: "Future[Any]") -> None:
        self._park(self.fetches, wait, partitions, future)

    def park_copy(self, wait: FetchWait, replica_id: int, future: "Future[Any]") -> None:
        self._park(self.copies, wait, (replica_id,), future)

    def park_produce(self, wait: ProduceWait, future: "Future[Any]") -> None:
        self._park(self.produces, wait, cast("list[Partition]", list(wait.required)), future)

    def park_delete(self, wait: ProduceWait, future: "Future[Any]") -> None:
        self._park(self.deletes, wait, cast("list[Partition]", list(wait.required)), future)

    def _park(self, purgatory: Purgatory[Key], wait: Wait, keys: Iterable[Key], future: "Future[Any]") -> None:
        wait.answer = future
        purgatory.watch(wait, keys)
        future.add_done_callback(lambda done: purgatory.cancel(wait) if done.cancelled() else None)
        self._arm(wait.deadline)

    def records_visible(self, partition: Partition, size: int) -> None:
        """The high watermark of `partition` moved over `size` bytes."""
        if self.fetches.waiting:
            self._complete(self.fetches.touched(partition, size))
        if self.produces.waiting and partition.leader is not None:
            self._complete(self.produces.touched(partition, partition.leader.high_watermark))

    def records_appended(self, followers: Iterable[int], size: int) -> None:
        """A log that `followers` copy grew by `size` bytes."""
        for replica_id in followers:
            self._complete(self.copies.touched(replica_id, size))

    def low_watermark_moved(self, partition: Partition, low_watermark: int) -> None:
        self._complete(self.deletes.touched(partition, low_watermark))

    def partition_changed(self, partition: Partition) -> None:
        """Another epoch, deleted, offline or led by another: whoever reads gets the error now, and so does whoever
        writes if this node does not lead any more."""
        self._complete(self.fetches.released(partition))
        if partition.leader is None:
            self._complete(self.produces.released(partition))
            self._complete(self.deletes.released(partition))

    def followers_changed(self, followers: Iterable[int]) -> None:
        """What these brokers copy from here is no longer what their fetches asked for."""
        for replica_id in followers:
            self._complete(self.copies.released(replica_id))

    def _complete(self, waits: list[Wait]) -> None:
        if not waits:
            return
        if not self._completed:
            # After the appends of the whole request, so that a fetch over six partitions gets all six.
            self.loop.call_soon(self._resume_completed)
        self._completed += waits

    def _resume_completed(self) -> None:
        completed, self._completed = self._completed, []
        self._resume(completed)

    def _resume(self, waits: list[Wait]) -> None:
        for at, wait in enumerate(waits, 1):
            parked = cast("FetchWait | ProduceWait", wait)
            # Its task is done, and the function often knows the wait: together they would be left to the collector.
            resume, parked.resume = cast("Callable[[], None]", parked.resume), None
            answer, parked.answer = parked.answer, None
            try:
                resume()
            except Exception:  # nobody looks for these waits again: who asked is cut off, the others have their turn
                cast("Future[Any]", answer).cancel()
                self._complete(waits[at:])
                raise

    def _arm(self, deadline: Millis) -> None:
        if self._timer_at is not None and self._timer_at <= deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self.loop.call_later(max(0, deadline - self._clock.monotonic()) / 1000, self._expire)

    def _expire(self) -> None:
        """What is past its deadline is told so in this very turn: nobody watches for it any more, and what it waited
        for might come before the next."""
        self._timer = self._timer_at = None
        now = self._clock.monotonic()
        everybody = (self.fetches, self.copies, self.produces, self.deletes)
        late = [wait for purgatory in everybody for wait in purgatory.expired(now)]
        for purgatory in everybody:
            deadline = purgatory.next_deadline()
            if deadline is not None:
                self._arm(deadline)
        self._resume(late)
