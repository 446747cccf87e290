"""How much of the cluster whoever asks may change now (KIP-599). Who counts it stands above: `broker.quotas`."""

from typing import Final, Protocol

from ottla.controller.refusal import Refusal
from ottla.model.errors import Errors
from ottla.model.ids import Millis


class Permits(Protocol):
    def take(self, partitions: int, now: Millis) -> bool:
        """False: so many partitions are not to be created or deleted now. It counts what it allows."""


class _Any:
    __slots__ = ()

    def take(self, partitions: int, now: Millis) -> bool:
        return True


ANY: Final[Permits] = _Any()

EXHAUSTED: Final = Refusal(
    Errors.THROTTLING_QUOTA_EXCEEDED, "The controller_mutation_rate of this client is used up: wait and repeat."
)


class Allowance:
    """The permits of one request, at the time of its decision."""

    __slots__ = ("_now", "_permits")

    def __init__(self, permits: Permits, now: Millis) -> None:
        self._permits = permits
        self._now = now

    def refusal(self, partitions: int) -> Refusal | None:
        return None if self._permits.take(partitions, self._now) else EXHAUSTED


UNLIMITED: Final = Allowance(ANY, Millis(0))
