"""The platform beside a node: the schema registry and the Connect worker in a process of their own.

The node takes the ports when it starts, so that they are there as soon as it is ready; the process behind them comes
with the first connection, which waits in the backlog meanwhile. Who never asks never pays for it, and nothing that it
does is in the way of a produce request. If it dies the ports stay, and the next connection starts it anew. Where there
are connectors it comes with the node, and comes back by itself: they have to run, whether anybody asks or not.

A port that is taken costs its service, said in one line, never the node.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.http.addresses import Address, parse
from ottla.model.properties import Listener, Settings
from ottla.net.listening import listening_socket, refusal
from ottla.node.services import CannotStart, Ending, Health, Service
from ottla.runtime.child import Child, Died, Unavailable

logger = logging.getLogger(__name__)

MODULE: Final = "ottla.node.platform_process"
SERVICES: Final = {
    "registry": "registry.kafkastore.",
    "connect": "connect.",
    "sql": "sql.",
}
"""Each has its addresses in `<name>.listeners`; its client settings (security.protocol and the like) stand behind the
prefix."""
_CONFIG_TOPIC: Final = "config.storage.topic"
_SQL_SERVICE: Final = "default_"
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
    """By service: it reaches the node by the listener that speaks as it does."""
    doors: tuple[Door, ...]
    given: dict[str, str] = field(repr=False)
    """The node's own settings, in which those of its services are, and secrets."""
    at_once: tuple[str, ...] = ()
    """Services that start with the process; others wait for a connection of their own."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What the process says of a service that will not come, however long one waits."""

    service: str
    why: str


@dataclass(frozen=True, slots=True)
class Keep:
    """What the process says of a service that has work to do: it is to come back by itself if it dies."""

    service: str


class Platform(Service):
    name = "platform"

    def __init__(self, settings: Settings, listeners: Sequence[Listener], topics: Container[str] = ()) -> None:
        """`listeners` are the node's own, by which the services reach it; `topics` those there are now."""
        self._settings = settings
        self._listeners = listeners
        self._at_once = _with_work(settings, topics)
        self._open: list[tuple[str, Address, socket.socket]] = []
        self._missing: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._watched = False
        self._stopping = False
        self._child: Child | None = None
        self._watcher: threading.Thread | None = None

    async def start(self) -> None:
        """Raises CannotStart for settings that the services would not take."""
        for service in SERVICES:
            if _is_special(self._settings.given, service):
                try:
                    _CHECKS[service](self._settings.given)
                except ValueError as error:
                    raise CannotStart(f"the {service}'s settings: {error}") from error
        for service in SERVICES:
            for address in map(parse, self._settings.get_list(f"{service}.listeners")):
                if self._reaches_the_node(service):
                    self._take(service, address)
        self._watch_ports()
        self._start_if_wanted()

    def _start_if_wanted(self) -> None:
        if any(service in self._at_once for service, _, _ in self._open):
            self._somebody_came()

    def _reaches_the_node(self, service: str) -> bool:
        """Else it would try for ever, and its clients would wait as long."""
        wanted = _protocol(self._settings.given, service)
        offered = sorted({each.protocol for each in self._listeners})
        if wanted in offered:
            return True
        self._miss(
            f"no {service}: it would speak {wanted} to this node, whose listeners are {', '.join(offered)}; "
            f"{SERVICES[service]}security.protocol says how, and {SERVICES[service]}sasl.* and .ssl.* who it is"
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
        if self._stopping:
            return
        self._forget_ports()
        if self._child is None:
            doors = [bound.fileno() for _, _, bound in self._open]
            self._child = Child("the platform", MODULE, inherits=doors)
        self._watcher = threading.Thread(target=self._live, args=(self._child, self._work()), name="platform")
        self._watcher.daemon = True
        self._watcher.start()

    def _work(self) -> Work:
        doors = tuple(Door(service, str(address), bound.fileno()) for service, address, bound in self._open)
        given = dict(self._settings.given)
        reached = dict.fromkeys(service for service, _, _ in self._open)
        bootstrap = {service: _bootstrap(given, self._listeners, service) for service in reached}
        return Work(bootstrap, doors, given, self._at_once)

    def _live(self, child: Child, work: Work) -> None:
        """In a thread: one life of the process."""
        try:
            child.send(work)  # after the pause that is due, if it died before
            while True:
                said = child.receive()
                if isinstance(said, Keep):
                    self._at_once = (said.service,)
                    continue
                assert isinstance(said, Lost)
                self._loop.call_soon_threadsafe(self._let_go, said)
        except Died as error:
            if self._stopping:
                return
            logger.warning("%s; the next request starts it anew", error)
        except Unavailable as error:
            logger.error("%s", error)
        self._loop.call_soon_threadsafe(self._watch_ports)
        self._loop.call_soon_threadsafe(self._start_if_wanted)

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


def _with_work(settings: Settings, topics: Container[str]) -> tuple[str, ...]:
    """Services that have something to run already, as the topic tells that they keep it in."""
    service_id = settings.given.get("ksql.service.id", _SQL_SERVICE)
    kept = {
        "connect": settings.given.get(f"connect.{_CONFIG_TOPIC}", "connect-configs"),
        "sql": f"_ottla-sql-{service_id}-statements",
    }
    return tuple(
        service for service, topic in kept.items() if settings.get_list(f"{service}.listeners") and topic in topics
    )


def _is_special(given: Mapping[str, str], service: str) -> bool:
    """Whether the service has settings that could be wrong."""
    listeners = f"{service}.listeners"
    own = any(name.startswith(f"{service}.") and name != listeners for name in given)
    return own or "https:" in given.get(listeners, "")


def _check_connect(given: Mapping[str, str]) -> None:
    """Raises ValueError."""
    from ottla.client.security import security  # noqa: PLC0415  seldom needed
    from ottla.connect.settings import ConnectSettings  # noqa: PLC0415

    settings = ConnectSettings.beside_a_node(given)
    security(settings.client)
    if any(address.scheme == "https" for address in settings.listeners):
        from ottla.connect.doors import worker_tls  # noqa: PLC0415  for who has TLS

        worker_tls(settings)


def _check_registry(given: Mapping[str, str]) -> None:
    """Raises ValueError for a certificate that cannot be used, or a way to log in."""
    from ottla.registry.settings import RegistrySettings  # noqa: PLC0415  seldom needed

    settings = RegistrySettings.beside_a_node(given)
    from ottla.client.security import security  # noqa: PLC0415  seldom needed

    security(settings.client)
    if any(address.scheme == "https" for address in settings.listeners):
        from ottla.registry.tls import ServiceTls  # noqa: PLC0415  for who has TLS

        ServiceTls(settings)


def _check_sql(given: Mapping[str, str]) -> None:
    """Raises ValueError."""
    from ottla.client.security import security  # noqa: PLC0415  seldom needed
    from ottla.sql.settings import SqlSettings  # noqa: PLC0415

    settings = SqlSettings.beside_a_node(given)
    security(settings.client)
    if any(address.scheme == "https" for address in settings.listeners):
        from ottla.sql.tls import server_tls  # noqa: PLC0415  for who has TLS

        server_tls(settings)


_CHECKS: Final = {"registry": _check_registry, "connect": _check_connect, "sql": _check_sql}


def _protocol(given: Mapping[str, str], service: str) -> str:
    return given.get(f"{SERVICES[service]}security.protocol", "PLAINTEXT").upper()


def _bootstrap(given: Mapping[str, str], listeners: Sequence[Listener], service: str) -> str:
    """The listener that speaks as the service is told to, PLAINTEXT if it is told nothing."""
    wanted = _protocol(given, service)
    found = next(each for each in listeners if each.protocol == wanted)
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{host}:{found.port}"
