"""The transaction coordinator of this node: its shards, the one way handlers ask them, and the markers they send.

An answer is given at once where the log commits at once; otherwise it is a future.
"""

import logging
from asyncio import Future
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ottla.broker.coordination.coordinators import Coordinators, Host, guarded
from ottla.broker.coordination.endings import Endings
from ottla.broker.coordination.producer_ids import ProducerIds
from ottla.broker.coordination.rounds import LONGEST_PAUSE_MS, MarkerRounds, MarkerWriter
from ottla.broker.coordination.verification import Answer
from ottla.broker.settings.internal_topics import TRANSACTION_TOPIC, transaction_topic
from ottla.coordinator.records import Decoder
from ottla.coordinator.shard import Decision, Now
from ottla.coordinator.transaction.machine import NONE, TV0, TV2, Producer, Transaction
from ottla.coordinator.transaction.shard import (
    EndReply,
    InitProducerId,
    InitReply,
    Listed,
    ListFilter,
    Load,
    TimedOut,
    TransactionSettings,
    TransactionShard,
    WantsProducerId,
    WriteMarkers,
)
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.model.properties import Settings
from ottla.protocol import messages
from ottla.runtime.coordinator import CoordinatorError

logger = logging.getLogger(__name__)

R = TypeVar("R")
ResponseT = TypeVar("ResponseT")
Command = Callable[[TransactionShard, Now, int], Decision["R | WantsProducerId"]]
"""The last argument is a fresh producer id, or NONE as long as nobody knows whether one is needed."""


def transaction_settings(settings: Settings) -> TransactionSettings:
    number = settings.get_int
    return TransactionSettings(
        max_timeout_ms=number("transaction.max.timeout.ms"),
        id_expiration_ms=number("transactional.id.expiration.ms"),
        timeout_check_ms=number("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expiration_check_ms=number("transaction.remove.expired.transaction.cleanup.interval.ms"),
        two_phase_commit=settings.get_bool("transaction.two.phase.commit.enable"),
        max_open=number("ottla.transactions.open.max"),
        max_ids=number("ottla.producer.ids.max"),
    )


def answered(
    answer: "R | Future[R]", response: Callable[[R], ResponseT]
) -> "ResponseT | Coroutine[Any, Any, ResponseT]":
    """Makes the response: now, or in a coroutine that holds up the connection's next request until it is there."""
    return _answered_later(answer, response) if isinstance(answer, Future) else response(answer)


async def _answered_later(answer: "Future[R]", response: Callable[[R], ResponseT]) -> ResponseT:
    return response(await answer)


class Transactions:
    __slots__ = ("_endings", "_host", "_longest_wait_ms", "_producer_ids", "_rounds", "_settings", "coordinators")

    def __init__(self, settings: Settings, host: Host, producer_ids: ProducerIds, markers: MarkerWriter) -> None:
        self._host = host
        self._producer_ids = producer_ids
        self._settings = transaction_settings(settings)
        self._longest_wait_ms = settings.get_int("add.partitions.to.txn.retry.backoff.max.ms")
        self._endings = Endings(host.loop)
        self._rounds = MarkerRounds(
            host.loop, markers, lambda: host.control_plane.image, self._is_current, self._acknowledge
        )
        self.coordinators: Coordinators[TransactionShard] = Coordinators(
            transaction_topic(settings),
            host,
            Decoder(messages.TRANSACTION_RECORDS),
            self._new_shard,
            perform=lambda _, effect: self._perform(effect),
        )

    def _new_shard(self, index: int) -> TransactionShard:
        partition = self._host.replicas.find(TRANSACTION_TOPIC, index)
        assert partition is not None and partition.leader is not None, "only leaders have a shard"
        return TransactionShard(partition.leader.leader_epoch, self._settings, self._load)

    def _load(self) -> Load:
        ids = still_open = 0
        for runner in self.coordinators.runners():
            ids += len(runner.shard.transactions)
            still_open += runner.shard.open_transactions
        return Load(ids, still_open)

    # ---- requests

    def init_producer_id(self, command: InitProducerId) -> "InitReply | Future[InitReply]":
        return self._ask(
            command.transactional_id,
            lambda shard, now, fresh_id: shard.init_producer_id(command, now, fresh_id),
            InitReply,
        )

    def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], version: int
    ) -> "Errors | Future[Errors]":
        return self._ask(
            transactional_id,
            lambda shard, now, _: shard.add_partitions(transactional_id, producer, partitions, version, now),
            lambda error: error,
        )

    def add_once_ended(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition]
    ) -> "Errors | Future[Errors]":
        """For clients that add by themselves: the markers of the transaction before are a matter of milliseconds. Who
        is told CONCURRENT_TRANSACTIONS pauses for longer, and librdkafka, if it aborts before it has come again, aborts
        what nobody has begun, and is lost (its issue 4849)."""

        def add() -> "Errors | Future[Errors]":
            return self.add_partitions(transactional_id, producer, partitions, TV0)

        if not self._is_ending(transactional_id):
            return add()
        return self._host.loop.create_task(self._once_ended(transactional_id, add))

    def _is_ending(self, transactional_id: str) -> bool:
        found = self.describe(transactional_id)
        return isinstance(found, Transaction) and found.state.is_prepared

    async def _once_ended(self, transactional_id: str, ask: "Callable[[], R | Future[R]]") -> R:
        await self._endings.next(transactional_id, self._longest_wait_ms)
        answer = ask()
        return await answer if isinstance(answer, Future) else answer

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition]
    ) -> "Answer | Future[Answer]":
        def command(shard: TransactionShard, now: Now, _: int) -> Decision[Answer | WantsProducerId]:
            return Decision(shard.verify_partitions(transactional_id, producer, partitions))

        return self._ask(transactional_id, command, lambda error: dict.fromkeys(partitions, error))

    def leader_for(self, transactional_id: str) -> int | None:
        return self.coordinators.leader_for(transactional_id)

    def add_or_verify(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], *, add: bool
    ) -> "Answer | Future[Answer]":
        if not add:
            return self.verify_partitions(transactional_id, producer, partitions)

        def command(shard: TransactionShard, now: Now, _: int) -> Decision[Answer | WantsProducerId]:
            decision = shard.add_partitions(transactional_id, producer, partitions, TV2, now)
            return Decision(dict.fromkeys(partitions, decision.reply), decision.records)

        return self._ask(transactional_id, command, lambda error: dict.fromkeys(partitions, error))

    def end(
        self, transactional_id: str, producer: Producer, committed: bool, version: int
    ) -> "EndReply | Future[EndReply]":
        return self._ask(
            transactional_id,
            lambda shard, now, fresh_id: shard.end(transactional_id, producer, committed, version, now, fresh_id),
            EndReply,
        )

    def describe(self, transactional_id: str) -> Transaction | Errors:
        try:
            runner = self.coordinators.runner_for(transactional_id)
            runner.check()
        except CoordinatorError as refused:
            return refused.error
        return runner.shard.find(transactional_id) or Errors.TRANSACTIONAL_ID_NOT_FOUND

    def listed(self, wanted: ListFilter) -> list[Listed] | Errors:
        clock = self._host.clock
        now = Now(clock.wall(), clock.monotonic())
        found: list[Listed] = []
        for runner in self.coordinators.runners():
            if runner.error is not None:
                return Errors.COORDINATOR_LOAD_IN_PROGRESS
            found += runner.shard.listed(wanted, now)
        return found

    def _ask(self, transactional_id: str, command: "Command[R]", on_error: Callable[[Errors], R]) -> "R | Future[R]":
        answer = self._submit(transactional_id, command, NONE, on_error)
        if isinstance(answer, Future):
            return self._host.loop.create_task(self._later(transactional_id, command, on_error, answer))
        if not isinstance(answer, WantsProducerId):
            return answer
        fresh_id = self._producer_ids.take()
        if fresh_id is None:
            return self._host.loop.create_task(self._later(transactional_id, command, on_error, None))
        again = self._submit(transactional_id, command, fresh_id, on_error)
        assert not isinstance(again, WantsProducerId), "one id is all a command can want"
        return guarded(again, on_error)  # type: ignore[arg-type]

    def _submit(
        self, transactional_id: str, command: "Command[R]", fresh_id: int, on_error: Callable[[Errors], R]
    ) -> "R | WantsProducerId | Future[R | WantsProducerId]":
        try:
            runner = self.coordinators.runner_for(transactional_id)
            return runner.submit(lambda shard, now: command(shard, now, fresh_id))
        except CoordinatorError as refused:
            return on_error(refused.error)

    async def _later(
        self,
        transactional_id: str,
        command: "Command[R]",
        on_error: Callable[[Errors], R],
        answer: "Future[R | WantsProducerId] | None",
    ) -> R:
        try:
            reply = await answer if answer is not None else WantsProducerId()
            if isinstance(reply, WantsProducerId):
                fresh_id = await self._producer_ids.next()
                if fresh_id is None:
                    return on_error(Errors.COORDINATOR_LOAD_IN_PROGRESS)
                again = self._submit(transactional_id, command, fresh_id, on_error)
                reply = await again if isinstance(again, Future) else again
        except CoordinatorError as refused:
            return on_error(refused.error)
        assert not isinstance(reply, WantsProducerId), "one id is all a command can want"
        return reply

    # ---- effects

    def _perform(self, effect: object) -> None:
        if isinstance(effect, WriteMarkers):
            # Behind the answer to who ended it, which is on its way already: the markers of a transaction take longer
            # than the decision. And before the next request of the same client is looked at.
            self._host.loop.call_soon(self._rounds.begin, effect)
        else:
            assert isinstance(effect, TimedOut), effect
            self._time_out(effect)

    def _time_out(self, effect: TimedOut) -> None:
        name, producer = effect

        def command(shard: TransactionShard, now: Now, fresh_id: int) -> Decision[WantsProducerId | None]:
            return shard.time_out(name, producer, now, fresh_id)

        self._ask(name, command, lambda _: None)

    def _acknowledge(self, markers: WriteMarkers, done: Sequence[TopicPartition]) -> None:
        name, producer = markers.transactional_id, markers.producer

        def command(shard: TransactionShard, now: Now) -> Decision[bool]:
            return shard.markers_acknowledged(name, producer, done, now)

        if self._is_current(markers):
            try:
                answer = self.coordinators.runner_for(name).submit(command)
            except CoordinatorError as refused:
                # Not to be forgotten: the shard does not know of these markers, and the transaction would never end.
                logger.warning("the end of %s could not be logged: %s", name, refused)
                self._host.loop.call_later(LONGEST_PAUSE_MS / 1000, self._acknowledge, markers, done)
            else:
                self._tell_ended(name)
                if isinstance(answer, Future):
                    # Nobody waits for it, and an error unasked for would be logged: it is committed late, or elsewhere.
                    answer.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _tell_ended(self, transactional_id: str) -> None:
        if self._endings.is_awaited(transactional_id) and not self._is_ending(transactional_id):
            self._endings.tell(transactional_id)

    def _is_current(self, markers: WriteMarkers) -> bool:
        try:
            runner = self.coordinators.runner_for(markers.transactional_id)
        except CoordinatorError:
            return False
        return runner.error is None and runner.shard.coordinator_epoch == markers.coordinator_epoch
