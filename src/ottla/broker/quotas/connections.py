"""New connections per second: of the node, of a listener, of an address (KIP-612).

Above the rate of the node or of a listener its acceptor rests; above the rate of an address that one connection is kept
waiting, unread, and closed. Nobody waits for longer than one sample. The listener between brokers is not held up by
what clients do to the node as a whole.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.broker.quotas.levels import ip_bound
from ottla.broker.quotas.meters import Meter
from ottla.broker.quotas.samples import MAX_THROTTLE
from ottla.metadata.image import QuotaEntity
from ottla.model.ids import Millis


class CreationRates(NamedTuple):
    """`max.connection.creation.rate`, for all and by listener. None: no limit."""

    node: float | None = None
    listeners: Mapping[str, float] = {}
    protected: str = ""
    """The listener between brokers, if it is not the only one."""


class ConnectionRates:
    __slots__ = ("_addresses", "_listeners", "_node", "_sample_ms", "_samples", "address_bounds", "limits")

    _FORGET_ABOVE = 10_000

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._samples = samples
        self._sample_ms = sample_ms
        self._node = self._meter(Millis(0))
        self._listeners: dict[str, Meter] = {}
        self._addresses: dict[str, Meter] = {}
        self.limits = CreationRates()
        """May be replaced at any time, as may those of addresses."""
        self.address_bounds: Mapping[QuotaEntity, float] = {}

    def _meter(self, now: Millis) -> Meter:
        return Meter(self._samples, self._sample_ms, self._sample_ms, now)

    def acceptor_rest_ms(self, listener: str, now: Millis) -> int:
        """One was accepted there: for how long no other is to be."""
        limits = self.limits
        rest = 0
        if limits.node is not None and listener != limits.protected:
            self._node.bound = limits.node
            rest = self._node.charge(1, now)
        bound = limits.listeners.get(listener)
        if bound is not None:
            meter = self._listeners.get(listener)
            if meter is None:
                meter = self._listeners[listener] = self._meter(now)
            meter.bound = bound
            rest = max(rest, meter.charge(1, now))
        return rest

    def hold_ms(self, address: str, now: Millis) -> int:
        """0: welcome. Else it is too many from there, does not count, and is closed after so long."""
        if not self.address_bounds:
            return 0
        bound = ip_bound(self.address_bounds, address)
        if bound is None or bound > MAX_THROTTLE - 1:
            return 0
        meter = self._addresses.get(address)
        if meter is None:
            self._make_room(now)
            meter = self._addresses[address] = self._meter(now)
        meter.bound = bound
        held = meter.charge(1, now)
        if held:
            meter.give_back(1, now)
        return held

    def _make_room(self, now: Millis) -> None:
        """Addresses come and go: those that have used nothing of late are as if they had never come."""
        if len(self._addresses) < self._FORGET_ABOVE:
            return
        window = self._samples * self._sample_ms
        self._addresses = {
            address: meter for address, meter in self._addresses.items() if now - meter.last_used < window
        }
        if len(self._addresses) >= self._FORGET_ABOVE:
            self._addresses.clear()  # at worst some get a fresh window
