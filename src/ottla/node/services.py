"""A node is a table of services: what it is made of, row by row, each with its start, stop, health and line of banner.

Rows start in their order, and each finds what stands below it complete; they stop in the opposite order. To add a
service, write a `Service` and start it in `node.node.Node`: banner, health and the end come by themselves.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from enum import Enum
from typing import Final, NamedTuple, TypeVar


class State(Enum):
    OK = "ok"
    STARTING = "starting"
    DEGRADED = "degraded"
    """It works, but not as it should; the reasons say what is amiss."""


class Health(NamedTuple):
    state: State
    reasons: Mapping[str, str] = {}
    """A word for programs, such as "fenced", and what it means here, for people."""

    @classmethod
    def of(cls, reasons: Mapping[str, str]) -> "Health":
        return cls(State.DEGRADED, reasons) if reasons else OK


OK: Final = Health(State.OK)


class Ending(NamedTuple):
    """How a node stops."""

    clean: bool = True
    """False after a failure: nothing is written that would vouch for what is on the disk."""
    hand_over: bool = True
    """Leaders are moved elsewhere first. Not where the whole cluster stops: nobody is left to take them."""


class CannotStart(Exception):
    """Of a service, and so of the node. The text says what is wrong and what to do."""


class Service:
    """One row. A service overrides what it has; most have no need for some of it."""

    name: str

    async def start(self) -> None:
        """Returns when the service does what it is for. If it raises or is cancelled, `stop` is called all the same."""

    async def stop(self, ending: Ending) -> None:
        """Returns when nothing is left running. Called once for each row whose start was begun."""

    def abandon(self) -> None:
        """The end by force, as by kill -9: lets go of what the system would take back (sockets, locks), no more."""

    async def health(self) -> Health:
        """At any time, every second or so. Who has much to look at lets others have their turn now and then."""
        return OK

    def banner(self) -> Sequence[str]:
        """Lines that tell where it can be reached: a word of up to eight letters, then the address."""
        return ()


Row = TypeVar("Row", bound=Service)


class ServiceTable:
    __slots__ = ("_rows", "_started")

    def __init__(self) -> None:
        self._rows: list[Service] = []
        self._started: list[Service] = []

    async def start(self, row: Row) -> Row:
        self._rows.append(row)  # before it starts: what fails half-way is stopped like the others
        await row.start()
        self._started.append(row)
        return row

    async def stop(self, ending: Ending) -> None:
        """All of them, even if one fails to."""
        try:
            async with AsyncExitStack() as stack:
                for row in self._rows:
                    stack.push_async_callback(row.stop, ending)
        finally:
            self._rows.clear()
            self._started.clear()

    def abandon(self) -> None:
        for row in reversed(self._rows):
            row.abandon()

    def find(self, kind: type[Row]) -> Row | None:
        return next((row for row in self._rows if isinstance(row, kind)), None)

    async def health(self) -> dict[str, Health]:
        return {row.name: await self._health(row) for row in list(self._rows)}

    async def _health(self, row: Service) -> Health:
        found = await row.health()
        return found if row in self._started else Health(State.STARTING, found.reasons)

    def banner(self) -> list[str]:
        return [line for row in self._rows for line in row.banner()]
