"""Who gets in: connections counted in all, per listener, per address and per second. A core: it is told the time."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.broker.quotas.connections import ConnectionRates
from ottla.model.ids import Millis

UNLIMITED: Final = (1 << 31) - 1
"""Kafka's own default of these settings."""


class Limits(NamedTuple):
    """How many connections there may be at a time, and how many new ones in a second."""

    total: int = UNLIMITED
    per_address: int = UNLIMITED
    addresses: Mapping[str, int] = {}
    """In place of `per_address`: 0 there and some addresses here let in nobody else."""
    listeners: Mapping[str, int] = {}
    rate_per_address: int = UNLIMITED


class _Bucket:
    """A rate holds one second's worth."""

    __slots__ = ("_since", "_tokens")

    def __init__(self, rate: int, now: Millis) -> None:
        self._tokens = float(rate)
        self._since = now

    def take(self, rate: int, now: Millis) -> bool:
        tokens = min(float(rate), self._tokens + (now - self._since) * rate / 1000)
        self._tokens, self._since = max(0.0, tokens - 1), now
        return tokens >= 1


class Admission:
    __slots__ = ("_buckets", "_per_address", "_per_listener", "limits", "rates", "total")

    _FORGET_ABOVE = 10_000

    def __init__(self, limits: Limits, rates: ConnectionRates | None = None) -> None:
        self.limits = limits
        """May be replaced at any time; who is in stays in."""
        self.rates = rates or ConnectionRates(11, 1000)
        """Who is too fast is not refused, but has to wait."""
        self._per_address: dict[str, int] = {}
        self._per_listener: dict[str, int] = {}
        self._buckets: dict[str, _Bucket] = {}
        self.total = 0

    def refusal(self, address: str, listener: str, now: Millis) -> str | None:
        """None if `address` may connect: it then counts until `left`. Else the setting that keeps it out."""
        limits = self.limits
        if self.total >= limits.total:
            return "max.connections"
        at_listener = self._per_listener.get(listener, 0)
        if at_listener >= limits.listeners.get(listener, UNLIMITED):
            return f"listener.name.{listener.lower()}.max.connections"
        here = self._per_address.get(address, 0)
        if here >= limits.addresses.get(address, limits.per_address):
            return "max.connections.per.ip.overrides" if address in limits.addresses else "max.connections.per.ip"
        if not self._is_slow_enough(address, now):
            return "ottla.connection.creation.rate.per.ip"
        self._per_address[address] = here + 1
        self._per_listener[listener] = at_listener + 1
        self.total += 1
        return None

    def at(self, listener: str) -> int:
        return self._per_listener.get(listener, 0)

    def left(self, address: str, listener: str) -> None:
        self.total -= 1
        _count_down(self._per_address, address)
        _count_down(self._per_listener, listener)

    def _is_slow_enough(self, address: str, now: Millis) -> bool:
        rate = self.limits.rate_per_address
        if rate >= UNLIMITED:
            return True
        if len(self._buckets) > self._FORGET_ABOVE:
            self._buckets.clear()  # addresses come and go: at worst some get a fresh second
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = self._buckets[address] = _Bucket(rate, now)
        return bucket.take(rate, now)


def _count_down(counts: dict[str, int], name: str) -> None:
    rest = counts[name] - 1
    if rest:
        counts[name] = rest
    else:
        del counts[name]


class Doors(NamedTuple):
    """Controllers have an entrance of their own: clients at their limit must not keep a node out of its quorum."""

    clients: Admission
    controllers: Admission


class Refusals:
    """What to say of clients that are refused: a line at once, and one in every `_PAUSE` that counts the rest. Another
    reason is told at once too, but only a few of them. Who floods a node with connections or tries again and again must
    not fill its log with lines."""

    __slots__ = ("_quiet_until", "_said", "_unsaid")

    _PAUSE = Millis(10_000)
    _REASONS = 4

    def __init__(self) -> None:
        self._quiet_until: Millis | None = None
        self._said: dict[str, None] = {}
        self._unsaid = 0

    def said(self, line: str, now: Millis) -> str | None:
        """The line to log about one more, or None."""
        if self._quiet_until is not None and now < self._quiet_until:
            if line in self._said or len(self._said) >= self._REASONS:
                self._unsaid += 1
                return None
            self._said[line] = None
            return line
        rest = f" ({self._unsaid} more since the last line)" if self._unsaid else ""
        self._quiet_until, self._unsaid, self._said = Millis(now + self._PAUSE), 0, {line: None}
        return f"{line}{rest}"
