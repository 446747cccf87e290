"""What one connection uses of its client's quotas, and for how long it is not read (KIP-219).

A client that is over its quota gets its answer at once, with the time for which it should be still, and for that long
its connection is not read: clients that do not wait by themselves find their next request waiting in the socket. A
produce is charged when it comes, a fetch before its answer is made, time when an answer leaves.

Time is what the loop spends on a request: 100 per cent are all that this node has. Steps of work that waits in between
are added up (`timed`). A request that is answered at once is charged when the loop turns to something else, so that it
costs two looks at the clock and no more: whom that puts over the quota the next answer tells, as Kafka's does of what
an answer cost to write.
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
_PERCENT: Final = 100.0
"""Of a second are all of it."""


class Share:
    __slots__ = (
        "_answered",
        "_began",
        "_client",
        "_clock",
        "_fetches_held",
        "_line",
        "_loop",
        "_meters",
        "_muted_until",
        "_owed_ms",
        "_seconds",
        "_spent",
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
        self._seconds = line.seconds
        self._loop = loop
        self._clock = clock
        self._meters = _NO_METERS
        self._client: Client | None = None
        self._owed_ms = 0
        """For how long the client is held, and has not been told yet."""
        self._began = 0.0
        """When the loop turned to what it does now for this client; 0: it does something else."""
        self._answered = False
        """What the loop does for this client since then is about a request that has its answer already."""
        self._spent = 0.0
        """Seconds, on requests that are not answered yet."""
        self._fetches_held = 0
        """Answers to fetches that tell of a time and have not left."""
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
            self.applies = self.timed or any((meters.produce, meters.fetch, meters.mutations))
        return self.applies

    def begin(self, produced_bytes: int) -> None:
        """A request has come: of that size, if it is a produce."""
        now = self._seconds()
        if self.timed:
            self._began, self._answered = now, False
        meter = self._meters.produce
        if produced_bytes and meter is not None:
            held_ms = meter.charge(produced_bytes, Millis(int(now * 1000)))
            if held_ms:
                self._owe(held_ms)

    def end(self) -> None:
        """The loop turns to something else."""
        if not self._began:
            return
        now = self._seconds()
        spent, self._began = now - self._began, 0.0
        meter = self._meters.request
        if self._answered and meter is not None:
            meter.count(spent * _PERCENT, Millis(int(now * 1000)))
        else:
            self._spent += spent

    def forgive(self) -> None:
        """What was done was done for the cluster: a copy for a follower, or nothing that is ever answered."""
        self._began = self._spent = 0.0

    def watched(self, work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        return timed(self, work) if self.timed else work

    def step(self) -> None:
        """The loop turns to this client's work again."""
        self._began, self._answered = self._seconds(), False

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
        now = self._now()
        throttle_ms = self._charge_time()
        if meter is not None:
            held_ms = meter.charge(size, now)
            if not throttle_ms and held_ms and meter.rate.total <= size:
                self._fetches_held += 1
                return held_ms, False
            throttle_ms = max(throttle_ms, held_ms)
            if throttle_ms:
                meter.give_back(size, now)
        if throttle_ms:
            self._fetches_held += 1
        return throttle_ms, throttle_ms > 0

    def _now(self) -> Millis:
        """As good as now: a request that is answered at once is not looked at the clock for again."""
        return Millis(int((self._began or self._seconds()) * 1000))

    def _charge_time(self) -> int:
        meter, spent = self._meters.request, self._spent
        if meter is None:
            return 0
        if spent:
            self._spent = 0.0
            return meter.charge(spent * _PERCENT, self._now())
        return meter.held_ms(self._now()) if meter.may_be_over() else 0

    # ---- what follows from it

    def answer(self, message: Message, *, exempt: bool) -> None:
        """Before an answer is written: it tells for how long the client is held from now on. A time that the controller
        has put there, or the handler, counts as well; the longest does."""
        owed, self._owed_ms = self._owed_ms, 0
        if exempt:
            self.forgive()
        elif self.timed:
            owed = max(owed, self._charge_time())
            self._answered = True
        if not (owed or self._fetches_held or self._meters.mutations is not None):
            return  # what most answers are
        if "throttle_time_ms" in message.FIELDS:
            told: int = message.throttle_time_ms  # type: ignore[attr-defined]  # as FIELDS say
            if told and self._fetches_held:
                self._fetches_held -= 1
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
