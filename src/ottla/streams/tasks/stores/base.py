"""What all stores of a task share: who is told of dropped records, what time it is, where changes go."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.topology.stores import ChangeLog, StoreBackend

if TYPE_CHECKING:
    from ottla.serdes.base import Serde

EXPIRED: Final = "expired-window"


class Moment:
    """The timestamp of the record that is being processed, which changes of plain stores carry in the changelog."""

    __slots__ = ("timestamp",)

    def __init__(self) -> None:
        self.timestamp = -1


class StoreContext:
    """What a store is given besides its spec."""

    __slots__ = ("backend", "dropped", "key_serde", "log", "moment", "value_serde")

    def __init__(
        self,
        backend: StoreBackend,
        key_serde: "Serde[Any]",
        value_serde: "Serde[Any]",
        *,
        log: ChangeLog | None = None,
        moment: Moment | None = None,
        dropped: Callable[[str], None] | None = None,
    ) -> None:
        self.backend = backend
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.log = log
        self.moment = moment or Moment()
        self.dropped = dropped or _nobody


def _nobody(_reason: str) -> None:
    pass
