"""Runs one coordinator shard over the log of one partition: load, decide, append, replay, commit, reply.

`submit` is stage one: when it returns, the change is appended and replayed, and no other task ran in between. What it
returns is the reply, or a future for it if the log has not committed yet or the shard wants to answer later. A log that
refuses the records changes nothing: who asked is told, and what nobody asked for is tried again after a pause.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from ottla.coordinator.records import CoordinatorRecord, Decoder, Packed, encode
from ottla.coordinator.shard import Decision, Now, Parked, Respond, Run, Shard
from ottla.metadata.image import EMPTY, MetadataImage
from ottla.model.errors import Errors
from ottla.model.ports import Clock
from ottla.protocol import batch as b
from ottla.protocol.codec import DecodeError
from ottla.protocol.records import CorruptBatch, NewRecord, read_records
from ottla.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

ShardT = TypeVar("ShardT", bound=Shard)
R = TypeVar("R")

_TURN_MS: Final = 5
"""How long a shard that is being loaded may hold up other work."""
_REFUSED_PAUSE_S: Final = 1.0
"""Until what the log refused and nobody waits for is tried again."""
_COMMIT: Final = 1


class CoordinatorError(Exception):
    """The shard cannot serve a request at all; `error` is what the client is told."""

    def __init__(self, error: Errors) -> None:
        super().__init__(error.name)
        self.error = error


class UnreadableJournal(Exception):
    """What a shard is to be loaded from is damaged. The text says where and how."""


class Transaction(NamedTuple):
    """The producer in whose transaction records are written."""

    producer_id: int
    producer_epoch: int


class Journal(Protocol):
    """One partition of an internal topic, as its leader sees it."""

    def append(self, records: Sequence[NewRecord], transaction: Transaction | None) -> int:
        """All of the records or none, which bear one timestamp; gives the offset of the first. Raises
        CoordinatorError."""

    def append_packed(self, packed: Packed) -> int:
        """The same for many records at once, which belong to no transaction."""

    def is_committed(self, offset: int) -> bool: ...

    def when_committed(self, offset: int, then: Callable[[Errors], None]) -> None:
        """Calls `then` once the record at `offset` is committed, or with the error if it cannot be any more."""

    def batches(self, offset: int) -> Iterable[memoryview]:
        """Everything in the log from `offset` on, in order; what is appended meanwhile need not be among it."""


class CoordinatorRunner(Generic[ShardT]):
    __slots__ = (
        "_clock",
        "_decoder",
        "_error",
        "_follow_again",
        "_image",
        "_journal",
        "_last_offset",
        "_loop",
        "_parked",
        "_perform_other",
        "_tasks",
        "_tick_at",
        "_timer",
        "shard",
    )

    def __init__(
        self,
        shard: ShardT,
        journal: Journal,
        decoder: Decoder,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        perform: Callable[[object], None] | None = None,
    ) -> None:
        """`perform` takes effects other than those of coordinator.shard."""
        self.shard = shard
        self._journal = journal
        self._decoder = decoder
        self._clock = clock
        self._loop = loop
        self._perform_other = perform
        self._image = EMPTY
        """The latest that this runner was told."""
        self._follow_again: asyncio.TimerHandle | None = None
        """While the log has refused what follows from it."""
        self._error: Errors | None = Errors.COORDINATOR_LOAD_IN_PROGRESS
        self._last_offset = -1
        self._parked: dict[int, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tick_at = -1
        self._tasks = Tasks(loop)

    @property
    def error(self) -> Errors | None:
        """Why nothing can be submitted now; None if it can."""
        return self._error

    def _now(self) -> Now:
        return Now(self._clock.wall(), self._clock.monotonic())

    # ---- loading

    async def load(self, image: Callable[[], MetadataImage]) -> None:
        """Replays the log, a few batches at a time, then lets requests in. Raises UnreadableJournal."""
        began = self._clock.monotonic()
        position, caught_up = 0, False
        while not caught_up:
            caught_up = True
            for batch in self._journal.batches(position):
                caught_up = False  # markers may have come while we read: look once more
                position = self._replay_batch(batch)
                if self._clock.monotonic() - began >= _TURN_MS:
                    await asyncio.sleep(0)
                    if self._error is not Errors.COORDINATOR_LOAD_IN_PROGRESS:
                        return  # resigned meanwhile
                    began = self._clock.monotonic()
        # The end of the log may be on this replica alone: whatever follows from it waits until others hold it too.
        self._last_offset = position - 1
        self.begin(image)

    def begin(self, image: Callable[[], MetadataImage]) -> None:
        """Everything the log holds has been replayed: lets requests in."""
        if self._error is Errors.COORDINATOR_LOAD_IN_PROGRESS:  # it may have resigned while it waited for its log
            self._error = None
            if self._carry_out(lambda now: self.shard.loaded(image(), now)):
                self._arm()
            else:
                self._error = Errors.COORDINATOR_LOAD_IN_PROGRESS
                self._loop.call_later(_REFUSED_PAUSE_S, self.begin, image)

    def _replay_batch(self, batch: memoryview) -> int:
        """Gives the offset behind the batch."""
        header = b.read_header(batch)
        try:
            # A clean stop vouches for the log, not for the disk: what is wrong here would be handed out as offsets.
            if header.crc != b.computed_crc(batch):
                raise CorruptBatch("it fails its CRC")
            return self._replay_records(batch, header)
        except CorruptBatch as error:
            raise UnreadableJournal(f"the batch at offset {header.base_offset} cannot be read: {error}") from error

    def _replay_records(self, batch: memoryview, header: b.BatchHeader) -> int:
        end = header.base_offset + header.last_offset_delta + 1
        if header.attributes & b.CONTROL:
            for record in read_records(batch):
                self._replay_marker(record.key, header.producer_id, header.producer_epoch)
            return end
        in_transaction = header.attributes & b.TRANSACTIONAL
        producer_id = header.producer_id if in_transaction else -1
        for record in read_records(batch):
            try:
                decoded = self._decoder.decode(record.key, record.value)
            except DecodeError as error:
                logger.error(
                    "a coordinator record at offset %d cannot be read and is skipped: %s", record.offset, error
                )
                continue
            if decoded is not None:
                self.shard.replay(decoded, record.offset, producer_id, header.producer_epoch)
        return end

    def _replay_marker(self, key: bytes | None, producer_id: int, producer_epoch: int) -> None:
        kind = int.from_bytes(key[2:4], "big") if key is not None and len(key) >= 4 else -1
        if kind in (0, _COMMIT):
            self.shard.complete_transaction(producer_id, producer_epoch, kind == _COMMIT)

    # ---- commands

    def check(self) -> None:
        """Raises CoordinatorError if nothing can be submitted now."""
        if self._error is not None:
            raise CoordinatorError(self._error)

    def submit(
        self, command: Callable[[ShardT, Now], Decision[R]], transaction: Transaction | None = None
    ) -> "R | asyncio.Future[R]":
        """Raises CoordinatorError if the shard is not (or no longer) kept here, or the log refuses the records."""
        self.check()
        try:
            decision = command(self.shard, self._now())
            offset = self._append(decision, transaction)
        except BaseException:
            self.shard.undo.run()
            raise
        reply: Any = decision.reply
        parked = type(reply) is Parked
        if parked:
            token, reply = reply.token, self._loop.create_future()
            self._parked[token] = reply
        if self._journal.is_committed(offset):
            if decision.effects:
                self._perform(decision.effects)
            if parked and reply.done():
                reply = reply.result()
        elif parked:
            self._when_committed(offset, decision.effects, None, None)
        else:
            waiting: asyncio.Future[Any] = self._loop.create_future()
            self._when_committed(offset, decision.effects, waiting, reply)
            reply = waiting
        self._arm()
        return cast("R | asyncio.Future[R]", reply)

    def complete_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A marker was appended to this partition, in this turn of the loop: its records count, or never happened."""
        if self._error is None:
            self.shard.complete_transaction(producer_id, producer_epoch, committed)
            self._arm()

    def on_metadata(self, image: MetadataImage) -> None:
        if self._error is None:
            self._image = image
            self._follow()

    def _follow(self) -> None:
        """Tried again it is the latest image that counts, or what came meanwhile would be taken back; so one attempt
        stands for all that were refused."""
        if self._follow_again is not None:
            self._follow_again.cancel()
            self._follow_again = None
        if self._error is None:
            if not self._carry_out(lambda now: self.shard.on_metadata(self._image, now)):
                self._follow_again = self._loop.call_later(_REFUSED_PAUSE_S, self._follow)
            self._arm()

    def _append(self, decision: Decision[Any], transaction: Transaction | None) -> int:
        records = decision.records
        if not records:
            self.shard.undo.clear()
            return self._last_offset
        first = records[0]
        if not isinstance(first, CoordinatorRecord):
            assert len(records) == 1 and transaction is None
            return self._append_packed(first)
        wall = self._clock.wall()
        encoded = [encode(cast("CoordinatorRecord", record), wall) for record in records]
        offset = self._journal.append(encoded, transaction)
        self.shard.undo.clear()
        replay = self.shard.replay
        producer_id, epoch = (-1, -1) if transaction is None else transaction
        for at, record in enumerate(records, offset):
            replay(record, at, producer_id, epoch)
        self._last_offset = offset + len(records) - 1
        return self._last_offset

    def _append_packed(self, packed: Packed) -> int:
        offset = self._journal.append_packed(packed)
        self.shard.undo.clear()
        self.shard.replay(packed, offset)
        self._last_offset = offset + packed.count - 1
        return self._last_offset

    def _carry_out(self, decide: Callable[[Now], Decision[Any]]) -> bool:
        """A decision nobody waits for. False if the log refused it."""
        try:
            decision = decide(self._now())
            offset = self._append(decision, None)
        except CoordinatorError:
            self.shard.undo.run()
            return False
        except BaseException:
            self.shard.undo.run()
            raise
        if decision.effects:
            if self._journal.is_committed(offset):
                self._perform(decision.effects)
            else:
                self._when_committed(offset, decision.effects, None, None)
        return True

    def _insist(self, decide: Callable[[Now], Decision[Any]]) -> None:
        """Until the log takes it, or this node no longer keeps the shard."""
        if self._error is None and not self._carry_out(decide):
            self._loop.call_later(_REFUSED_PAUSE_S, self._insist, decide)
        if self._error is None:
            self._arm()

    def _when_committed(
        self, offset: int, effects: tuple[object, ...], waiting: "asyncio.Future[Any] | None", reply: Any
    ) -> None:
        def then(error: Errors) -> None:
            if error:
                self._disappoint(offset, effects, error)
            elif self._error is None:
                self._perform(effects)
            if waiting is None or waiting.done():
                return
            if error:
                waiting.set_exception(CoordinatorError(error))
            else:
                waiting.set_result(reply)

        self._journal.when_committed(offset, then)

    # ---- effects

    def _perform(self, effects: Iterable[object]) -> None:
        for effect in effects:
            if type(effect) is Respond:
                self._respond(effect)
            elif type(effect) is Run:
                self._tasks.start(self._run(effect), "work of a coordinator")
            else:
                assert self._perform_other is not None, f"nobody performs {effect!r}"
                self._perform_other(effect)

    def _respond(self, effect: Respond) -> None:
        future = self._parked.pop(effect.token, None)
        if future is not None and not future.done():
            future.set_result(effect.response)

    def _disappoint(self, offset: int, effects: Iterable[object], error: Errors) -> None:
        """Replies that were to come with a commit which did not, or not in time.

        The records may still be committed, as long as this node leads: what else was to follow them then follows.
        Dropped with the replies, the markers of a transaction would never be written.
        """
        still_due = []
        for effect in effects:
            if not isinstance(effect, Respond):
                still_due.append(effect)
                continue
            future = self._parked.pop(effect.token, None)
            if future is not None and not future.done():
                future.set_exception(CoordinatorError(error))
        if still_due and self._error is None and error is not Errors.NOT_COORDINATOR:
            self._when_committed(offset, tuple(still_due), None, None)

    async def _run(self, effect: Run) -> None:
        outcome = await self._loop.run_in_executor(None, effect.work)
        self._insist(lambda now: effect.then(outcome, now))

    # ---- time

    def _arm(self) -> None:
        """One timer, for the shard's nearest deadline."""
        at = self.shard.next_tick()
        if at is None or (self._timer is not None and self._tick_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._tick_at = at
        self._timer = self._loop.call_later(max(0, at - self._clock.monotonic()) / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        while self._error is None:
            now = self._now()
            at = self.shard.next_tick()
            if at is None or at > now.monotonic:
                break
            self._carry_out(self.shard.tick)
        if self._error is None:
            self._arm()

    # ---- the end

    def resign(self, error: Errors = Errors.NOT_COORDINATOR) -> None:
        """The partition is led elsewhere now, or its log is lost: everyone who waits is told."""
        self._error = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for effect in self.shard.resigned():
            self._respond(effect)
        parked, self._parked = self._parked, {}
        for future in parked.values():
            if not future.done():
                future.set_exception(CoordinatorError(error))
        self._tasks.cancel()
