"""What all stores of a task share: who is told of dropped records, what time it is, where changes go."""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla.streams.record import Headers
from ottla.streams.topology.stores import ChangeLog, StoreBackend

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.tasks.stores.record_cache import RecordCache

EXPIRED: Final = "expired-window"


IN_ORDER_FROM: Final = 100_000


def to_write(changed: Collection[bytes]) -> Iterable[bytes]:
    """Keys as they are best written. Many of them in order: a backend that has its entries in pages, more than fit into
    memory, then comes by each page once."""
    return sorted(changed) if len(changed) >= IN_ORDER_FROM else changed


class Moment:
    """The record that is being processed by a node with stores: its timestamp, which changes of plain stores carry in
    the changelog, and its headers."""

    __slots__ = ("headers", "timestamp")

    def __init__(self) -> None:
        self.timestamp = -1
        self.headers: Headers = ()


class StoreContext:
    """What a store is given besides its spec."""

    __slots__ = ("backend", "cache", "dropped", "key_serde", "log", "moment", "value_serde")

    def __init__(
        self,
        backend: StoreBackend,
        key_serde: "Serde[Any]",
        value_serde: "Serde[Any]",
        *,
        log: ChangeLog | None = None,
        moment: Moment | None = None,
        dropped: Callable[[str], None] | None = None,
        cache: "RecordCache | None" = None,
    ) -> None:
        """With a cache changes go there, and from there to the changelog."""
        self.backend = backend
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.cache = cache
        self.log = log if cache is None else cache.note
        self.moment = moment or Moment()
        self.dropped = dropped or nobody


def nobody(_reason: str) -> None:
    """Is told of dropped records where nobody counts them."""
