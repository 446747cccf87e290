"""Runs the machine: decides, writes, replays, replies; and takes the lead when there is nobody else to write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from ottla.client.aio.cluster import Cluster
from ottla.client.errors import ClientError, KafkaError
from ottla.registry.journal.reader import Follower, Leader
from ottla.registry.journal.writer import Superseded, TooLarge, Writer, Written
from ottla.registry.machine import refusals
from ottla.registry.machine.commands import Command, Register
from ottla.registry.machine.machine import Machine
from ottla.registry.machine.parsing import TakesLong
from ottla.registry.machine.records import Record, SchemaPut

logger = logging.getLogger(__name__)

T = TypeVar("T")

QUICK_STEPS: Final = 4_000
"""Of a parse or comparison that is made on the loop: it takes a few milliseconds at most."""
LARGE_TEXT: Final = 16 << 10
"""Characters of a schema that is not even tried there."""
RENEWAL_S: Final = 3600.0
"""A transactional id that nobody uses is forgotten after a week (transactional.id.expiration.ms), and with it who was
fenced: it is taken anew long before."""


class NotLeading(Exception):
    """Another registry writes; `leader` tells which. If `unheard_of`, only when the topic has been read up to that
    point: it was the topic that refused a write."""

    def __init__(self, *, unheard_of: bool = False) -> None:
        super().__init__("another registry writes")
        self.unheard_of = unheard_of


async def _is_right() -> None:
    return


class Runner:
    __slots__ = ("_cluster", "_lead", "_quick", "_taken_s", "_timeout_s", "_transactional_id", "_url", "_writer",
                 "_writing", "follower", "machine")  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        machine: Machine,
        topic: str,
        *,
        url: str,
        group: str,
        timeout_s: float,
        check_topic: Callable[[], Awaitable[None]] = _is_right,
    ) -> None:
        """`check_topic` is asked again when the topic turns out to be another one than it was."""
        self._cluster = cluster
        self._url = url
        self._transactional_id = f"{group}-{topic}"
        self._timeout_s = timeout_s
        self.machine = machine
        self._quick = machine.in_a_hurry(QUICK_STEPS)
        self.follower = Follower(cluster, machine, topic, check_topic)
        self._writer = Writer(cluster, self.follower.place, url)
        self._writing = asyncio.Lock()
        """Held by one command from its decision until it is replayed."""
        self._lead: Leader | None = None
        """This registry's, while it may write as far as it knows."""
        self._taken_s = 0.0

    @property
    def leads(self) -> bool:
        return self._lead is not None and self._lead == self.follower.leader

    @property
    def leader(self) -> str | None:
        """The URL of who writes, as far as the topic was read."""
        return self.follower.leader.url if self.follower.leader is not None else None

    # Questions that may take long.

    async def look(self, question: Callable[[Machine], T], *, large: bool = False) -> T:
        """Asks the machine, at once if it can be. What takes long is done in a thread, while nobody changes it: a
        thread that is not needed costs more than most answers."""
        if not large:
            with suppress(TakesLong):
                return question(self._quick)
        async with self.follower.turn:
            return await asyncio.to_thread(question, self.machine)

    # Writes.

    async def submit(self, command: Command) -> Any:
        """The reply to a command, once it is replayed. Raises Refusal, NotLeading."""
        async with self._writing:
            if not self.follower.is_current:
                raise refusals.store_failed(f"The topic {self.follower.place.topic} was made anew, and is being read")
            if not self.leads:
                raise NotLeading()
            if asyncio.get_running_loop().time() - self._taken_s > RENEWAL_S:
                await self._take()
            position = self.follower.position
            decision = await self.look(lambda machine: machine.decide(command), large=_is_large(command))
            if isinstance(decision.reply, refusals.Refusal):
                raise decision.reply
            if decision.records:
                await self._write(decision.records, position)
            return decision.reply

    async def _write(self, records: Sequence[Record], position: int) -> None:
        """`position` is where the topic ended when they were decided on."""
        try:
            async with asyncio.timeout(self._timeout_s):
                written = await self._writer.write(records)
        except Superseded as error:
            self._give_up()
            raise NotLeading(unheard_of=True) from error
        except TooLarge as error:
            raise refusals.too_large() from error
        except (ClientError, TimeoutError) as error:
            # What became of it will be known when the identity has been taken anew: until then nothing is written.
            self._give_up()
            raise refusals.store_failed(
                f"Error while writing to the topic {self.follower.place.topic}: {self._why(error)}"
            ) from error
        if not self.follower.is_current:
            self._give_up()
            raise refusals.store_failed(
                f"The topic {self.follower.place.topic} was deleted and made anew in the midst of the request"
            )
        await self._replay(records, written, position)

    async def _replay(self, records: Sequence[Record], written: Written, position: int) -> None:
        """What this registry wrote itself it need not read, if nothing of others stands in between."""
        if written.first_offset == position == self.follower.position:
            async with self.follower.turn:
                if self.follower.position == position:
                    for index, (record, timestamp) in enumerate(zip(records, written.timestamps, strict=True)):
                        self.follower.apply(record, position + index, timestamp, self._writer.header_of(record))
                    self.follower.written()
                    return
        last = written.first_offset + len(records) - 1
        await self._until(self.follower.replayed(last) if written.first_offset >= 0 else self.follower.caught_up())
        for index, record in enumerate(records):
            wrong = self.follower.refused.get(written.first_offset + index)
            if wrong is not None and isinstance(record, SchemaPut):
                raise refusals.store_failed(f"Another registry writes to the same topic: {wrong}")

    # The lead.

    async def take_lead(self, instead_of: Leader | None) -> None:
        """Unless somebody else than `instead_of` has taken it already. Raises Refusal."""
        async with self._writing:
            if self.follower.leader == instead_of and not self.leads:
                await self._take()

    def _give_up(self) -> None:
        self._lead = None
        self.follower.resting = False

    async def _take(self) -> None:
        """Returns when this registry writes, and knows all that was written before; or when another one was faster."""
        try:
            async with asyncio.timeout(self._timeout_s):
                self._lead = await self._writer.take(self._transactional_id)
                said = self.machine.barrier()
                written = await self._writer.write([said])
        except Superseded:
            self._give_up()
            await self._until(self.follower.caught_up())
            return
        except (ClientError, TooLarge, TimeoutError) as error:
            self._give_up()
            raise refusals.store_failed(f"Error while taking the lead: {self._why(error)}") from error
        self._taken_s = asyncio.get_running_loop().time()
        await self._until(
            self.follower.replayed(written.first_offset) if written.first_offset >= 0 else self.follower.caught_up()
        )
        if self.leads:
            self.follower.resting = True
            logger.info("this registry (%s) writes to %s from now on", self._url, self.follower.place.topic)
            if self.machine.barrier() != said:  # told by who led before, between our last look and our NOOP
                await self._write([self.machine.barrier()], self.follower.position)

    def _why(self, error: Exception) -> str:
        return str(error) or f"no answer within {self._timeout_s:g} s (kafkastore.timeout.ms)"

    async def _until(self, reached: Any) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await reached
        except TimeoutError:
            self._give_up()
            raise refusals.timed_out(
                f"The topic {self.follower.place.topic} was not read up to the write within {self._timeout_s:g} s"
            ) from None
        except KafkaError as error:
            self._give_up()
            raise refusals.store_failed(f"The topic {self.follower.place.topic} cannot be read: {error}") from error

    async def catch_up(self) -> None:
        """Returns when all that is written by now can be read here. Raises Refusal."""
        await self._until(self.follower.caught_up())


def _is_large(command: Command) -> bool:
    return isinstance(command, Register) and len(command.schema.text) > LARGE_TEXT
