"""What happens in a broker that other parts of it must hear of: one object, made first and given to all.

Who tells and who hears are joined in one place, `node.broker`. An event that nobody hears is nothing; nobody has to be
there before it is told.
"""

from collections.abc import Callable
from typing import Generic, ParamSpec

from ottla.broker.partition import Partition
from ottla.model.ids import Uuid
from ottla.model.properties import Settings

P = ParamSpec("P")


class Event(Generic[P]):
    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: tuple[Callable[P, None], ...] = ()

    def hear(self, listener: Callable[P, None]) -> None:
        self._listeners += (listener,)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in self._listeners:
            listener(*args, **kwargs)

    def silence(self) -> None:
        """Nobody hears it any more."""
        self._listeners = ()


class Events:
    __slots__ = (
        "came",
        "came_late",
        "flush_wanted",
        "followed",
        "isr_change_wanted",
        "lies_in",
        "log_start_moved",
        "moving",
        "settings_changed",
    )

    def __init__(self) -> None:
        self.followed: Event[[Partition]] = Event()
        """A partition has another leader, or none to follow any more, or may be asked for again."""
        self.isr_change_wanted: Event[[Partition]] = Event()
        """`partition.leader.pending` is to be sent to the controller."""
        self.flush_wanted: Event[[Partition]] = Event()
        """A topic asks for an fsync now."""
        self.log_start_moved: Event[[]] = Event()
        """Records were deleted on request: a checkpoint soon, so that they stay deleted."""
        self.lies_in: Event[[Partition, Uuid]] = Event()
        """The metadata does not know that a replica lies in this directory."""
        self.moving: Event[[Partition]] = Event()
        """A replica was found on its way from one directory to another: it goes on."""
        self.came: Event[[]] = Event()
        """A partition is here that was not before."""
        self.came_late: Event[[]] = Event()
        """Logs have come without any news of the metadata: coordinators wait for theirs."""
        self.settings_changed: Event[[Settings]] = Event()
        """While the broker runs (KIP-226)."""

    def silence(self) -> None:
        """The broker stops: what still happens is nobody's business."""
        for name in self.__slots__:
            getattr(self, name).silence()
