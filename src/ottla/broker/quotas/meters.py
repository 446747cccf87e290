"""What the requests of one client are charged to."""

from ottla.broker.quotas.samples import Rate
from ottla.broker.quotas.tokens import TokenBucket
from ottla.model.ids import Millis


class Throttled:
    """For how long somebody was held up of late. Most never are, and have nothing to remember."""

    __slots__ = ("_ms", "_times", "_windows")

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._windows = samples, sample_ms
        self._ms: Rate | None = None
        self._times: Rate | None = None

    def note(self, throttle_ms: int, now: Millis) -> None:
        if self._ms is None or self._times is None:
            self._ms, self._times = Rate(*self._windows), Rate(*self._windows)
        self._ms.record(throttle_ms, now)
        self._times.record(1, now)

    def average_ms(self, now: Millis) -> float:
        """Of the times that it happened; 0 if it did not."""
        if self._ms is None or self._times is None:
            return 0.0
        self._ms.window_ms(now)
        self._times.window_ms(now)
        return self._ms.total / self._times.total if self._times.total else 0.0


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
        self.throttled = Throttled(samples, sample_ms)

    @property
    def burst(self) -> float:
        """What can be used at once by who has used nothing, without being held."""
        return self.bound * self._window_s

    def charge(self, amount: float, now: Millis) -> int:
        """For how many milliseconds the client is to be held; 0 if it is within its quota."""
        self.count(amount, now)
        return self.held_ms(now)

    def count(self, amount: float, now: Millis) -> None:
        """Without a word: whoever asks next is told."""
        self.last_used = now
        self.rate.record(amount, now)

    def may_be_over(self) -> bool:
        """False: surely not, as no window is shorter, and samples that are too old can only be too many."""
        return self.rate.total > self.bound * self._window_s

    def held_ms(self, now: Millis) -> int:
        if not self.may_be_over():
            return 0
        throttle_ms = self.rate.throttle_ms(self.bound, now)
        if not throttle_ms:
            return 0
        throttle_ms = min(throttle_ms, self._at_most_ms)
        self.throttled.note(throttle_ms, now)
        return throttle_ms

    def give_back(self, amount: float, now: Millis) -> None:
        self.rate.record(-amount, now)


class MutationMeter:
    """A bucket of partitions to create or delete (KIP-599)."""

    __slots__ = ("bound", "last_used", "throttled", "tokens")

    def __init__(self, samples: int, sample_ms: int, now: Millis) -> None:
        self.tokens = TokenBucket(samples, sample_ms)
        self.bound = 0.0
        self.last_used = now
        self.throttled = Throttled(samples, sample_ms)


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
