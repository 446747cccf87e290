"""Changes of the cluster by clients: how many partitions one request may create or delete (KIP-599)."""

from typing import Final, TypeVar

from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.quotas.meters import MutationMeter
from ottla.model.ids import Millis
from ottla.protocol.codec import Message

AnyMessage = TypeVar("AnyMessage", bound=Message)

STRICT_SINCE: Final = {19: 6, 20: 5, 37: 3}
"""By key of the request: versions from there on know THROTTLING_QUOTA_EXCEEDED."""


class Mutations:
    """What one request may change: the controller's Permits. A client that knows the error is refused while it is in
    debt (`strict`); of an older one all is done, and its connection held."""

    __slots__ = ("_meter", "_strict", "throttle_ms")

    def __init__(self, meter: MutationMeter, *, strict: bool) -> None:
        self._meter = meter
        self._strict = strict
        self.throttle_ms = 0

    def take(self, partitions: int, now: Millis) -> bool:
        meter = self._meter
        meter.last_used = now
        if self._strict:
            owed = meter.tokens.throttle_ms(meter.bound, now)
            if owed:
                self._hold(meter, owed, now)
                return False
            meter.tokens.take(partitions, meter.bound, now)
            return True
        meter.tokens.take(partitions, meter.bound, now)
        owed = meter.tokens.throttle_ms(meter.bound, now)
        if owed:
            self._hold(meter, owed, now)
        return True

    def _hold(self, meter: MutationMeter, throttle_ms: int, now: Millis) -> None:
        self.throttle_ms = max(self.throttle_ms, throttle_ms)
        meter.throttled.note(throttle_ms, now)


def permits_for(
    quotas: ClientQuotas, key: int, version: int, principal: str, client_id: str, now: Millis
) -> Mutations | None:
    """Of a request with that key. None: it may change as much as it likes."""
    if not quotas.in_force or key not in STRICT_SINCE:
        return None
    meter = quotas.mutations(principal.partition(":")[2], client_id, now)
    return None if meter is None else Mutations(meter, strict=version >= STRICT_SINCE[key])


def held(answer: AnyMessage, permits: Mutations | None) -> AnyMessage:
    """The answer, with the time for which its client is held."""
    if permits is not None and permits.throttle_ms:
        answer.throttle_time_ms = permits.throttle_ms  # type: ignore[attr-defined]  # those of STRICT_SINCE all have it
    return answer
