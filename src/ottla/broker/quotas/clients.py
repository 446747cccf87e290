"""The book of a node: which quotas are set, and the buckets in which their use is counted."""

from collections.abc import Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from ottla.broker.quotas.levels import Applied, Bucket, applied
from ottla.broker.quotas.meters import Meter, Meters, MutationMeter
from ottla.broker.quotas.samples import MAX_THROTTLE
from ottla.metadata.image import QuotaEntity
from ottla.model.ids import Millis
from ottla.model.quotas import CONTROLLER_MUTATION_RATE, OF_CLIENTS, REQUEST_PERCENTAGE

_IDLE: Final = Millis(3_600_000)
"""Kafka's: a bucket that nobody has used for so long is forgotten."""
_LOOK_EVERY: Final = Millis(60_000)

Bounds = Mapping[QuotaEntity, float]
AnyMeter = TypeVar("AnyMeter", Meter, MutationMeter)


class Windows(NamedTuple):
    """quota.window.num and quota.window.size.seconds, and the same of the controller."""

    samples: int
    sample_ms: int


class _Buckets(Generic[AnyMeter]):
    """Those of one kind of quota."""

    __slots__ = ("bounds", "meters")

    def __init__(self) -> None:
        self.bounds: Bounds = {}
        self.meters: dict[Bucket, AnyMeter] = {}

    def find(self, user: str, client_id: str) -> tuple[Applied, AnyMeter | None] | None:
        found = applied(self.bounds, user, client_id) if self.bounds else None
        return None if found is None else (found, self.meters.get(found.bucket))

    def forget(self, before: int) -> bool:
        idle = [bucket for bucket, meter in self.meters.items() if meter.last_used < before]
        for bucket in idle:
            del self.meters[bucket]
        return bool(idle)


class ClientQuotas:
    __slots__ = ("_looked", "_mutations", "_of_changes", "_of_clients", "_rates", "in_force", "limit", "version")

    def __init__(self, of_clients: Windows, of_changes: Windows, limit: int) -> None:
        self._of_clients = of_clients
        self._of_changes = of_changes
        self._rates: dict[str, _Buckets[Meter]] = {key: _Buckets() for key in OF_CLIENTS[:3]}
        self._mutations: _Buckets[MutationMeter] = _Buckets()
        self._looked = Millis(0)
        self.limit = limit
        """Buckets of one kind. Who calls himself differently each time must not fill the memory: above it those that
        were not used for longest are forgotten."""
        self.in_force = False
        """Some quota of clients is set. Nothing else of this is looked at where it is not."""
        self.version = 0
        """Meters of an older one have to be asked for again."""

    def set(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """All quotas that there are now, as the image has them. Use that was counted stays counted."""
        for key in OF_CLIENTS:
            bounds = {entity: values[key] for entity, values in quotas.items() if key in values}
            (self._mutations if key == CONTROLLER_MUTATION_RATE else self._rates[key]).bounds = bounds
        self.in_force = bool(self._mutations.bounds) or any(kind.bounds for kind in self._rates.values())
        self.version += 1

    def meters(self, user: str, client_id: str, now: Millis) -> Meters:
        if now - self._looked >= _LOOK_EVERY:
            self._looked = now
            self._forget(Millis(now - _IDLE))
        produce, fetch, request = (self._meter(key, user, client_id, now) for key in OF_CLIENTS[:3])
        return Meters(self.version, produce, fetch, request, self.mutations(user, client_id, now))

    def mutations(self, user: str, client_id: str, now: Millis) -> MutationMeter | None:
        found = self._mutations.find(user, client_id)
        if found is None:
            return None
        level, meter = found
        if meter is None:
            meter = MutationMeter(*self._of_changes, now)
            self._add(self._mutations, level.bucket, meter)
        meter.bound = level.bound
        return meter

    def _meter(self, key: str, user: str, client_id: str, now: Millis) -> Meter | None:
        kind = self._rates[key]
        found = kind.find(user, client_id)
        if found is None:
            return None
        level, meter = found
        if meter is None:
            # KIP-124: time is held back for one sample at most, so that clients do not run into their own timeouts.
            at_most_ms = self._of_clients.sample_ms if key == REQUEST_PERCENTAGE else MAX_THROTTLE
            meter = Meter(*self._of_clients, at_most_ms, now)
            self._add(kind, level.bucket, meter)
        meter.bound = level.bound
        return meter

    def _add(self, kind: _Buckets[AnyMeter], bucket: Bucket, meter: AnyMeter) -> None:
        if len(kind.meters) >= self.limit:
            half = sorted(each.last_used for each in kind.meters.values())[len(kind.meters) // 2]
            kind.forget(half + 1)
            self.version += 1  # a bucket that a session still holds and one made anew would each grant the quota
        kind.meters[bucket] = meter

    def _forget(self, before: Millis) -> None:
        forgotten = [kind.forget(before) for kind in self._rates.values()]
        if any((*forgotten, self._mutations.forget(before))):
            self.version += 1

    # ---- for those who look

    def rates(self) -> Iterator[tuple[str, Bucket, Meter]]:
        for key, kind in self._rates.items():
            for bucket, meter in kind.meters.items():
                yield key, bucket, meter

    def changes(self) -> Iterator[tuple[Bucket, MutationMeter]]:
        yield from self._mutations.meters.items()
