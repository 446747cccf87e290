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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.http.addresses import Address, parse
from ottla.model.properties import Listener, Settings
from ottla.net.listening import listening_socket, refusal
from ottla.node.services import CannotStart, Ending, Health, Service
from ottla.runtime.child import Child, Died, Unavailable

if TYPE_CHECKING:
    from ottla.registry.settings import RegistrySettings

logger = logging.getLogger(__name__)

MODULE: Final = "ottla.node.platform_process"
SERVICES: Final = ("registry", "sql")
"""Each has its addresses in `<name>.listeners`."""
_LISTENERS: Final = "registry.listeners"
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

    bootstrap: dict[str, str]
    """By service."""
    doors: tuple[Door, ...]
    given: dict[str, str] = field(repr=False)
    """The node's own settings, in which those of its services are, and secrets."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What the process says of a service that will not come, however long one waits."""

    service: str
    why: str


class Platform(Service):
    name = "platform"

    def __init__(self, settings: Settings, listeners: Sequence[Listener]) -> None:
        """`listeners` are the node's own, by which the services reach it."""
        self._settings = settings
        self._listeners = listeners
        self._open: list[tuple[str, Address, socket.socket]] = []
        self._missing: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._watched = False
        self._stopping = False
        self._child: Child | None = None
        self._watcher: threading.Thread | None = None

    async def start(self) -> None:
        """Raises CannotStart for settings that the services would not take."""
        if _is_special(self._settings.given):
            from ottla.registry.settings import RegistrySettings  # noqa: PLC0415  seldom needed

            try:
                _check(RegistrySettings.beside_a_node(self._settings.given))
            except ValueError as error:
                raise CannotStart(f"the registry's settings: {error}") from error
        for service in SERVICES:
            for address in map(parse, self._settings.get_list(f"{service}.listeners")):
                if self._reaches_the_node(service):
                    self._take(service, address)
        self._watch_ports()

    def _reaches_the_node(self, service: str) -> bool:
        """Else it would try for ever, and its clients would wait as long."""
        wanted = _protocol(self._settings.given, service)
        offered = sorted({each.protocol for each in self._listeners})
        if wanted in offered:
            return True
        if service == "sql":
            self._miss(f"no sql: it speaks PLAINTEXT to its node, whose listeners are {', '.join(offered)}")
            return False
        self._miss(
            f"no {service}: it would speak {wanted} to this node, whose listeners are {', '.join(offered)}; "
            "registry.kafkastore.security.protocol says how, and registry.kafkastore.sasl.* and .ssl.* who it is"
        )
        return False

    def _miss(self, why: str) -> None:
        if why not in self._missing:
            self._missing.append(why)
            logger.warning("%s", why)

    def _take(self, service: str, address: Address) -> None:
        try:
            bound = listening_socket(address.host, address.port, _BACKLOG)
        except OSError as error:
            self._miss(f"no {service}: {refusal(error, address.host, address.port, f'{service}.listeners')}")
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
        brokers = {service: _bootstrap(self._settings.given, self._listeners, service) for service, *_ in self._open}
        return Work(brokers, doors, dict(self._settings.given))

    def _live(self, child: Child, work: Work) -> None:
        """In a thread: one life of the process."""
        try:
            child.send(work)  # after the pause that is due, if it died before
            while True:
                said = child.receive()
                assert isinstance(said, Lost)
                self._loop.call_soon_threadsafe(self._let_go, said)
        except Died as error:
            if self._stopping:
                return
            logger.warning("%s; the next request starts it anew", error)
        except Unavailable as error:
            logger.error("%s", error)
        self._loop.call_soon_threadsafe(self._watch_ports)

    def _let_go(self, lost: Lost) -> None:
        """Clients are refused from now on, instead of waiting for nobody."""
        self._missing.append(f"no {lost.service}: {lost.why}")
        logger.error("%s", self._missing[-1])
        for entry in [entry for entry in self._open if entry[0] == lost.service]:
            self._open.remove(entry)
            entry[2].close()

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


def _is_special(given: Mapping[str, str]) -> bool:
    """Whether the registry has settings that could be wrong."""
    own = any(name.startswith("registry.") and name != _LISTENERS for name in given)
    return own or "https:" in given.get(_LISTENERS, "")


def _check(settings: "RegistrySettings") -> None:
    """Raises ValueError for a certificate that cannot be used, or a way to log in."""
    from ottla.client.security import security  # noqa: PLC0415  seldom needed

    security(settings.client)
    if any(address.scheme == "https" for address in settings.listeners):
        from ottla.registry.tls import RegistryTls  # noqa: PLC0415  for who has TLS

        RegistryTls(settings)


def _protocol(given: Mapping[str, str], service: str = "registry") -> str:
    return "PLAINTEXT" if service == "sql" else given.get("registry.kafkastore.security.protocol", "PLAINTEXT").upper()


def _bootstrap(given: Mapping[str, str], listeners: Sequence[Listener], service: str) -> str:
    """The listener that speaks as the services are told to, PLAINTEXT if they are told nothing."""
    wanted = _protocol(given, service)
    found = next(each for each in listeners if each.protocol == wanted)
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{host}:{found.port}"
