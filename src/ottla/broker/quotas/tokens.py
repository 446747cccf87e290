"""A bucket of tokens, as Kafka's `TokenBucket`: for changes of the cluster, which may come many at once (KIP-599)."""

from math import floor

from ottla.broker.quotas.samples import MAX_THROTTLE
from ottla.model.ids import Millis


class TokenBucket:
    """Full at first. A change may take it below zero: the next has to wait until that is paid back."""

    __slots__ = ("_burst_s", "_since", "_tokens")

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._burst_s = samples * (sample_ms / 1000)
        """It holds what the rate gives in so many seconds."""
        self._tokens: float | None = None
        self._since = Millis(0)

    def tokens(self, rate: float, now: Millis) -> float:
        burst = self._burst_s * rate
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + rate * ((now - self._since) / 1000))
        self._since = now
        return self._tokens

    def take(self, amount: float, rate: float, now: Millis) -> None:
        self._tokens = min(self._burst_s * rate, self.tokens(rate, now) - amount)

    def throttle_ms(self, rate: float, now: Millis) -> int:
        """Until it holds nothing again, if it holds less."""
        tokens = self.tokens(rate, now)
        # By a rate that is next to nothing it is for ever, which is no whole number.
        return 0 if tokens >= 0 else floor(min(MAX_THROTTLE, -tokens / rate * 1000 + 0.5))
