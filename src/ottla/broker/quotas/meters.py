"""What the requests of one client are charged to."""

from ottla.broker.quotas.samples import Rate
from ottla.broker.quotas.tokens import TokenBucket
from ottla.model.ids import Millis


class Throttled:
    """How often and for how long somebody was held up."""

    __slots__ = ("ms", "times")

    def __init__(self) -> None:
        self.times = 0
        self.ms = 0

    def note(self, throttle_ms: int) -> None:
        self.times += 1
        self.ms += throttle_ms


class Meter:
    """A bucket of bytes, or of the time that requests take."""

    __slots__ = ("_at_most_ms", "_window_s", "bound", "last_used", "rate", "throttled")

    def __init__(self, samples: int, sample_ms: int, at_most_ms: int, now: Millis) -> None:
        self.rate = Rate(samples, sample_ms)
        self._window_s = (samples - 1) * sample_ms / 1000
        self._at_most_ms = at_most_ms
        """Nobody is held for longer by one request."""
        self.bound = 0.0
        self.last_used = now
        self.throttled = Throttled()

    @property
    def burst(self) -> float:
        """What can be used at once by who has used nothing, without being held."""
        return self.bound * self._window_s

    def charge(self, amount: float, now: Millis) -> int:
        """For how many milliseconds the client is to be held; 0 if it is within its quota."""
        self.last_used = now
        self.rate.record(amount, now)
        throttle_ms = self.rate.throttle_ms(self.bound, now)
        if not throttle_ms:
            return 0
        throttle_ms = min(throttle_ms, self._at_most_ms)
        self.throttled.note(throttle_ms)
        return throttle_ms

    def count(self, amount: float, now: Millis) -> None:
        """Without a word: it is too late to hold this request. The next one pays."""
        self.last_used = now
        self.rate.record(amount, now)

    def give_back(self, amount: float, now: Millis) -> None:
        self.rate.record(-amount, now)


class MutationMeter:
    """A bucket of partitions to create or delete (KIP-599)."""

    __slots__ = ("bound", "last_used", "throttled", "tokens")

    def __init__(self, samples: int, sample_ms: int, now: Millis) -> None:
        self.tokens = TokenBucket(samples, sample_ms)
        self.bound = 0.0
        self.last_used = now
        self.throttled = Throttled()


class Meters:
    """Those of one (user, client id). None: no quota of that kind applies to it."""

    __slots__ = ("fetch", "mutations", "produce", "request", "version")

    def __init__(
        self,
        version: int,
        produce: Meter | None,
        fetch: Meter | None,
        request: Meter | None,
        mutations: MutationMeter | None,
    ) -> None:
        self.version = version
        """Of the book that said so."""
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.mutations = mutations
