"""What a store of the user's own is given."""

from typing import Any

from ottla.streams.tasks.stores.base import StoreContext
from ottla.streams.topology.stores import StateStore, StoreBackend, StoreSpec


class OwnContext:
    __slots__ = ("_context", "name")

    def __init__(self, spec: StoreSpec, context: StoreContext) -> None:
        self.name = spec.name
        self._context = context

    @property
    def state(self) -> StoreBackend:
        return self._context.backend

    @property
    def timestamp(self) -> int:
        return self._context.moment.timestamp

    def log_change(self, key: bytes, value: bytes | None, timestamp: int | None = None) -> None:
        if self._context.log is not None:
            self._context.log(key, value, self.timestamp if timestamp is None else timestamp, ())

    def dropped(self, reason: str) -> None:
        self._context.dropped(reason)


def own_store(spec: StoreSpec, context: StoreContext) -> StateStore:
    assert spec.supplier is not None
    made: Any = spec.supplier(OwnContext(spec, context))
    if not isinstance(made, StateStore):
        raise TypeError(f"the supplier of the store {spec.name} gave {made!r}, which is no StateStore")
    return made
