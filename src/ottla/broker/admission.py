"""Who gets in: connections counted in all, per address and per second. A core: it is told the time."""

from ottla.model.ids import Millis


class Admission:
    """Limits of 0 or less admit everyone. A rate is a bucket that holds one second's worth."""

    __slots__ = ("_buckets", "_max_per_address", "_max_total", "_per_address", "_rate", "total")

    _FORGET_ABOVE = 10_000

    def __init__(self, max_total: int, max_per_address: int, rate_per_address: int) -> None:
        self._max_total = max_total
        self._max_per_address = max_per_address
        self._rate = rate_per_address
        self._per_address: dict[str, int] = {}
        self._buckets: dict[str, tuple[float, Millis]] = {}
        self.total = 0

    def refusal(self, address: str, now: Millis) -> str | None:
        """None if `address` may connect: it then counts until `left`. Else the setting that keeps it out."""
        if 0 < self._max_total <= self.total:
            return "max.connections"
        here = self._per_address.get(address, 0)
        if 0 < self._max_per_address <= here:
            return "max.connections.per.ip"
        if self._rate > 0 and not self._take_token(address, now):
            return "ottla.connection.creation.rate.per.ip"
        self._per_address[address] = here + 1
        self.total += 1
        return None

    def left(self, address: str) -> None:
        self.total -= 1
        here = self._per_address[address] - 1
        if here:
            self._per_address[address] = here
        else:
            del self._per_address[address]

    def _take_token(self, address: str, now: Millis) -> bool:
        tokens, since = self._buckets.get(address, (float(self._rate), now))
        tokens = min(float(self._rate), tokens + (now - since) * self._rate / 1000)
        if len(self._buckets) > self._FORGET_ABOVE:
            self._buckets.clear()  # addresses come and go: at worst some get a fresh second
        self._buckets[address] = (max(0.0, tokens - 1), now)
        return tokens >= 1
