"""What one connection uses of its client's quotas, and for how long it is not read (KIP-219).

A client that is over its quota gets its answer at once, with the time for which it should be still, and for that long
its connection is not read: clients that do not wait by themselves find their next request waiting in the socket. A
produce is charged when it comes, a fetch before its answer is made, time when an answer leaves.

Time is what the loop spends on a request: 100 per cent are all that this node has. Steps of work that waits in between
are added up (`timed`), and what an answer costs to write is charged with the next one, as Kafka does.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Coroutine
from typing import Any, Final

from ottla.broker.front.client import Client
from ottla.broker.front.timed import timed
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.quotas.meters import Meters
from ottla.model.ids import Millis
from ottla.model.ports import Clock
from ottla.net.connection import BY_QUOTA, Line
from ottla.protocol.codec import Message

_NO_METERS: Final = Meters(-1, None, None, None, None)
_US_PER_PERCENT: Final = 10_000
"""Of a second: a rate of one per cent."""


class Share:
    __slots__ = (
        "_began_us",
        "_client",
        "_clock",
        "_line",
        "_loop",
        "_meters",
        "_muted_until",
        "_owed_ms",
        "_spent_us",
        "_timer",
        "applies",
        "quotas",
        "timed",
        "version",
    )

    def __init__(self, quotas: ClientQuotas, line: Line, loop: AbstractEventLoop, clock: Clock) -> None:
        self.quotas = quotas
        """Nothing here is called while they are not in force."""
        self.version = -1
        """Of the book that was looked into last; -1 if the client calls itself differently since."""
        self.applies = False
        """Some quota does to this client. Else nothing of it is measured either."""
        self.timed = False
        """A quota of time does."""
        self._line = line
        self._loop = loop
        self._clock = clock
        self._meters = _NO_METERS
        self._client: Client | None = None
        self._owed_ms = 0
        """For how long the client is held, and has not been told yet."""
        self._began_us = 0
        """When the loop turned to what it does now for this client; 0: it does something else, or nobody asks."""
        self._spent_us = 0
        """On requests that are not answered yet."""
        self._muted_until = 0.0
        self._timer: TimerHandle | None = None

    # ---- what is used

    def is_of(self, client: Client, client_id: str) -> bool:
        """Whether any quota applies to who sends the next request. Looked up when the quotas have changed, or he has:
        a client is replaced as a whole when it logs in."""
        if self.version != self.quotas.version or client is not self._client:
            user = client.principal.partition(":")[2]
            self._meters = meters = self.quotas.meters(user, client_id, self._clock.monotonic())
            self._client, self.version = client, meters.version
            self.timed = meters.request is not None
            self.applies = self.timed or meters.produce is not None or meters.fetch is not None or self._changes
        return self.applies

    @property
    def _changes(self) -> bool:
        return self._meters.mutations is not None

    def begin(self, produced_bytes: int) -> None:
        """A request has come: of that size, if it is a produce."""
        meter = self._meters.produce
        if produced_bytes and meter is not None:
            held_ms = meter.charge(produced_bytes, self._clock.monotonic())
            if held_ms:
                self._owe(held_ms)
        if self.timed:
            self._began_us = self._line.us_since(0.0)

    def end(self) -> None:
        """The loop turns to something else."""
        if self._began_us:
            self._spent_us += self._line.us_since(0.0) - self._began_us
            self._began_us = 0

    def forgive(self) -> None:
        """What was done was done for the cluster: a copy for a follower, or nothing that is ever answered."""
        self._began_us = self._spent_us = 0

    def watched(self, work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        return timed(self, work) if self.timed else work

    def step(self) -> None:
        """The loop turns to this client's work again."""
        self._began_us = self._line.us_since(0.0)

    @property
    def most_fetched(self) -> int:
        """Bytes: more at once would surely be held back, and never come through."""
        meter = self._meters.fetch
        return (1 << 31) - 1 if meter is None else min((1 << 31) - 1, max(1, int(meter.burst)))

    def fetched(self, size: int) -> tuple[int, bool]:
        """Before a fetch is answered with so many bytes: for how long the client is held, and whether it gets nothing.

        Bytes that are held back are not charged. Unlike in Kafka, what is larger than all that a client may have within
        the window (one batch can be) is sent to one who has had nothing, or it would never get past it."""
        meter = self._meters.fetch
        now = self._clock.monotonic()
        throttle_ms = self._charge_time(now)
        if meter is not None:
            held_ms = meter.charge(size, now)
            if not throttle_ms and held_ms and meter.rate.total <= size:
                return held_ms, False
            throttle_ms = max(throttle_ms, held_ms)
            if throttle_ms:
                meter.give_back(size, now)
        return throttle_ms, throttle_ms > 0

    def _charge_time(self, now: Millis) -> int:
        meter = self._meters.request
        if meter is None:
            return 0
        if self._began_us:
            present = self._line.us_since(0.0)
            self._spent_us += present - self._began_us
            self._began_us = present
        spent, self._spent_us = self._spent_us, 0
        return meter.charge(spent / _US_PER_PERCENT, now) if spent else 0

    # ---- what follows from it

    def answer(self, message: Message, *, exempt: bool) -> None:
        """Before an answer is written: it tells for how long the client is held from now on. A time that the controller
        has put there, or the handler, counts as well; the longest does."""
        owed, self._owed_ms = self._owed_ms, 0
        if not (owed or self.timed or self._changes or self._meters.fetch is not None):
            return  # what most answers are
        if exempt:
            self.forgive()
        else:
            owed = max(owed, self._charge_time(self._clock.monotonic()))
        if "throttle_time_ms" in message.FIELDS:
            told: int = message.throttle_time_ms  # type: ignore[attr-defined]  # as FIELDS say
            if owed > told:
                message.throttle_time_ms = owed  # type: ignore[attr-defined]
            else:
                owed = told
        if owed:
            self._mute(owed)

    def _owe(self, throttle_ms: int) -> None:
        self._owed_ms = max(self._owed_ms, throttle_ms)
        self._mute(throttle_ms)

    def _mute(self, throttle_ms: int) -> None:
        until = self._loop.time() + throttle_ms / 1000
        if until <= self._muted_until:
            return
        self._muted_until = until
        if self._timer is not None:
            self._timer.cancel()
        else:
            self._line.pause_reading(BY_QUOTA)
        self._timer = self._loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._timer = None
        self._line.resume_reading(BY_QUOTA)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
