"""The platform beside a node: the schema registry (and what comes after it) in a process of its own.

The node takes the ports when it starts, so that they are there as soon as it is ready; the process behind them comes
with the first connection, which waits in the backlog meanwhile. Who never asks never pays for it, and nothing that it
does is in the way of a produce request. If it dies the ports stay, and the next connection starts it anew.

A port that is taken costs its service, said in one line, never the node.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ottla.http.addresses import Address, parse
from ottla.model.properties import Settings
from ottla.net.listening import listening_socket, refusal
from ottla.node.services import Ending, Health, Service
from ottla.runtime.child import Child, Died, Unavailable

logger = logging.getLogger(__name__)

MODULE: Final = "ottla.node.platform_process"
SERVICES: Final = ("registry",)
"""Each has its addresses in `<name>.listeners`."""
_BACKLOG: Final = 128
_LAST_REQUESTS_S: Final = 5.0
"""How long requests may take to end when the process is told to go."""


@dataclass(frozen=True, slots=True)
class Door:
    """One port of one service, as the process gets it."""

    service: str
    address: str
    """With the port that was got."""
    descriptor: int


@dataclass(frozen=True, slots=True)
class Work:
    """What the process is told first."""

    bootstrap: str
    doors: tuple[Door, ...]
    given: dict[str, str]
    """The node's own settings, in which those of its services are."""


class Platform(Service):
    name = "platform"

    def __init__(self, settings: Settings, bootstrap: str) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._open: list[tuple[str, Address, socket.socket]] = []
        self._missing: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._watched = False
        self._stopping = False
        self._child: Child | None = None
        self._watcher: threading.Thread | None = None

    async def start(self) -> None:
        for service in SERVICES:
            for address in map(parse, self._settings.get_list(f"{service}.listeners")):
                self._take(service, address)
        self._watch_ports()

    def _take(self, service: str, address: Address) -> None:
        try:
            bound = listening_socket(address.host, address.port, _BACKLOG)
        except OSError as error:
            self._missing.append(f"no {service}: {refusal(error, address.host, address.port, f'{service}.listeners')}")
            logger.warning("%s", self._missing[-1])
            return
        self._open.append((service, address._replace(port=bound.getsockname()[1]), bound))

    # ---- the process

    def _watch_ports(self) -> None:
        if not self._watched and not self._stopping:
            self._watched = True
            for _, _, bound in self._open:
                self._loop.add_reader(bound, self._somebody_came)

    def _forget_ports(self) -> None:
        if self._watched:
            self._watched = False
            for _, _, bound in self._open:
                self._loop.remove_reader(bound)

    def _somebody_came(self) -> None:
        """The process takes the connection out of the backlog: until it is gone nobody looks here."""
        self._forget_ports()
        if self._child is None:
            doors = [bound.fileno() for _, _, bound in self._open]
            self._child = Child("the platform", MODULE, inherits=doors)
        self._watcher = threading.Thread(target=self._live, args=(self._child, self._work()), name="platform")
        self._watcher.daemon = True
        self._watcher.start()

    def _work(self) -> Work:
        doors = tuple(Door(service, str(address), bound.fileno()) for service, address, bound in self._open)
        return Work(self._bootstrap, doors, dict(self._settings.given))

    def _live(self, child: Child, work: Work) -> None:
        """In a thread: one life of the process."""
        try:
            child.send(work)  # after the pause that is due, if it died before
            while True:
                logger.info("%s", child.receive())
        except Died as error:
            if self._stopping:
                return
            logger.warning("%s; the next request starts it anew", error)
        except Unavailable as error:
            logger.error("%s", error)
        self._loop.call_soon_threadsafe(self._watch_ports)

    # ---- the end

    async def stop(self, ending: Ending) -> None:
        self._stopping = True
        self._forget_ports()
        if self._child is not None:
            await asyncio.to_thread(self._child.close, _LAST_REQUESTS_S)
        if self._watcher is not None:
            await asyncio.to_thread(self._watcher.join)
        self._close()

    def abandon(self) -> None:
        self._stopping = True
        self._forget_ports()
        if self._child is not None:
            self._child.kill()
        self._close()

    def _close(self) -> None:
        for _, _, bound in self._open:
            bound.close()
        self._open.clear()

    # ---- seen from outside

    async def health(self) -> Health:
        return Health.of({"platform_listeners": "; ".join(self._missing)} if self._missing else {})

    @property
    def addresses(self) -> dict[str, str]:
        """By service, the first of each."""
        return {service: str(address) for service, address, _ in reversed(self._open)}

    def banner(self) -> Sequence[str]:
        return [f"{service:<8} {address}" for service, address, _ in self._open]
