"""Runs a core: decide, append, replay, commit, reply.

Append comes before replay, so a failed append leaves the core untouched. Nothing is awaited in the middle of a change:
from decide to replay no other task runs, and a caller that is cancelled later loses its answer, never half of a change.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from ottla.protocol.codec import MetadataRecord

Change = TypeVar("Change")


class Placed(NamedTuple):
    """Where appended records are in the log."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int


class NotLeader(Exception):
    """Only the leader of the quorum may append, and this node is not it, or not any more."""


class Journal(Protocol):
    def append(self, records: Sequence[MetadataRecord]) -> Placed:
        """All of the records or none; raises if the log refuses them."""

    def commit(self) -> None:
        """Starts to make durable what was appended, and returns; `Runner.advance` is called when it is."""


class Core(Protocol[Change]):  # type: ignore[misc]  # replay gives a Change and never takes one
    def replay(self, records: Sequence[MetadataRecord], *, base_offset: int, epoch: int, timestamp: int) -> Change: ...


class Runner(Generic[Change]):
    """`publish` is called once for each appended list, in order, when it is committed."""

    __slots__ = ("_core", "_journal", "_publish", "_replayed", "_waiting", "error", "high_watermark")

    def __init__(self, core: Core[Change], journal: Journal, publish: Callable[[Change, Placed], None]) -> None:
        self._core = core
        self._journal = journal
        self._publish = publish
        self._replayed: deque[tuple[Placed, Change]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.error: BaseException | None = None
        self.high_watermark = -1

    def carry_out(self, records: Sequence[MetadataRecord]) -> int | None:
        """Appends and replays what a core decided. Gives the offset to wait for, None if there was nothing to do."""
        if not records:
            return self._replayed[-1][0].last_offset if self._replayed else None
        # Appended, it could not be replayed, here or anywhere: better no answer than a log that nobody can read.
        assert all(isinstance(record, MetadataRecord) for record in records), records
        placed = self._journal.append(records)
        change = self._core.replay(
            records, base_offset=placed.base_offset, epoch=placed.epoch, timestamp=placed.timestamp
        )
        self._replayed.append((placed, change))
        self._journal.commit()
        return placed.last_offset

    async def committed(self, offset: int | None) -> None:
        """Also for a reply that changed nothing: it may have been decided from changes that are not committed yet."""
        if self.error is not None:
            raise self.error
        if offset is None or offset < self.high_watermark:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, waiter))
        await waiter

    def advance(self, high_watermark: int) -> None:
        """Everything below is committed: readers see it before those who asked for it get their answer."""
        self.high_watermark = high_watermark
        while self._replayed and self._replayed[0][0].last_offset < high_watermark:
            placed, change = self._replayed.popleft()
            try:
                self._publish(change, placed)
            except Exception as error:
                # A reader's bug: nobody may be left waiting for an answer that will not come.
                self.fail(error)
                raise
        while self._waiting and self._waiting[0][0] < high_watermark:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: BaseException) -> None:
        """The log is lost to this node: nobody will get an answer any more."""
        self.error = error
        waiting, self._waiting = self._waiting, deque()
        for _, waiter in waiting:
            if not waiter.done():
                waiter.set_exception(error)
