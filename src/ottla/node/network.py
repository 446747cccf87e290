"""The lowest row of a node: its listening sockets, taken before anything else, and its connections to other nodes."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.broker.front.dispatch import Routes
from ottla.broker.front.server import AnyServices, CannotListen
from ottla.metadata.image import MetadataImage, QuotaEntity
from ottla.model.ports import Clock
from ottla.model.properties import Listener, Settings
from ottla.net.connection import ReadBudget
from ottla.net.peer import PLAIN, Way
from ottla.node import options
from ottla.node.hosts import addresses_of
from ottla.node.services import Ending, Service
from ottla.node.surroundings import Surroundings
from ottla.runtime import forwarding, joining, raft_driver
from ottla.runtime.tasks import Tasks

if TYPE_CHECKING:
    from ottla.net.peer import LogIn
    from ottla.node.logins import ListenerLogins
    from ottla.node.tls import NodeTls

logger = logging.getLogger(__name__)

_TO_CONTROLLERS: Final = frozenset((*raft_driver.LANES, forwarding.LANE, joining.LANE))
"""Lanes that lead to the controllers' listener; the others lead to that of brokers."""


class Network(Service):
    name = "network"

    def __init__(self, settings: Settings, world: Surroundings) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._doors = options.doors(settings)
        budget = ReadBudget(settings.get_int("queued.max.request.bytes"))
        self.server = world.listen(loop, self._doors, budget, options.options(settings))
        self._sockets: dict[str, tuple[socket.socket, int]] = {}
        self._loop = loop
        self.tls = _tls(settings, world)
        """None if nothing of this node is under TLS."""
        self._logins: ListenerLogins | None = None
        self._log_in = _introductions(settings)
        self._tasks = Tasks(loop)
        self._limited_by = settings
        self._hosts: dict[str, tuple[str, ...]] = {}
        """Addresses of those that limits of connections name."""
        self.peers = world.peers(loop, f"node-{settings.node_id}", self._way)

    def _way(self, lane: str) -> Way:
        settings = self._settings
        to = settings.controller_listener_names[0] if lane in _TO_CONTROLLERS else settings.inter_broker_listener
        way = PLAIN if self.tls is None else self.tls.way(to)
        log_in = self._log_in.get(to)
        return way if log_in is None else way._replace(log_in=log_in)

    async def start(self) -> None:
        self._sockets = {listener.name: self.server.bind(listener) for listener in self._to_open()}
        await self._look_up_hosts()
        if self.tls is not None:
            self.tls.watch(self._loop, self._settings.get_int("ottla.tls.reload.interval.ms") / 1000)

    def _to_open(self) -> list[Listener]:
        """A quorum of one that asks for any free port has nobody who could find it there."""
        settings = self._settings
        found = list(settings.broker_listeners) if settings.is_broker else []
        if settings.is_controller:
            found += [each for each in settings.controller_listeners if each.port]
        return found

    @property
    def advertised(self) -> tuple[Listener, ...]:
        """Where clients are told to connect, free ports filled in."""
        return options.advertised(self._settings, {name: port for name, (_, port) in self._sockets.items()})

    def serve(self, listeners: Iterable[Listener], routes: Routes, services: AnyServices) -> None:
        for listener in listeners:
            if listener.name in self._sockets:
                sock, _ = self._sockets[listener.name]
                tls = None if self.tls is None else self.tls.listener(listener.name)
                if tls is None:
                    self.server.serve(sock, listener.name, routes, services)
                else:
                    self.server.serve(sock, listener.name, routes, services, tls)

    def ask_for_logins(self, clock: Clock, image: Callable[[], MetadataImage]) -> None:
        """Before any listener is served: on some of them clients, and other nodes, have to say who they are."""
        if any(each.protocol.startswith("SASL_") for each in self._settings.listeners):
            from ottla.node.logins import ListenerLogins, lacking  # noqa: PLC0415  a node that nobody logs in to needs none

            trouble = lacking(self._settings)
            if trouble is not None:
                raise CannotListen(f"{trouble}.")
            self._logins = ListenerLogins(self._settings, clock, image)
            self.server.logins.update(self._logins.by_listener)

    def reconfigure(self, settings: Settings) -> None:
        """Dynamic settings have changed (KIP-226)."""
        self._limited_by = settings
        self._limit_connections()
        if options.hosts_of_limits(settings):
            self._tasks.start(self._look_up_hosts(), "addresses of hosts with limits")
        self._doors.clients.rates.limits = options.creation_rates(settings)
        if self.tls is not None:
            self.tls.reconfigure(settings)
        if self._logins is not None:
            self._logins.reconfigure(settings)

    def _limit_connections(self) -> None:
        self._doors.clients.limits = options.connection_limits(self._limited_by, self._hosts)

    async def _look_up_hosts(self) -> None:
        """Whom limits name, side by side; until their addresses are known those of before hold."""
        settings = self._limited_by
        await asyncio.gather(*map(self._look_up, options.hosts_of_limits(settings)))
        if settings is self._limited_by:  # else others have come meanwhile, and are looked up as well
            self._limit_connections()

    async def _look_up(self, host: str) -> None:
        try:
            self._hosts[host] = await addresses_of(host)
        except OSError as error:
            logger.warning("max.connections.per.ip.overrides: %s has no address: %s", host, error)

    def check(self, settings: Settings) -> None:
        """Whether the node could go over to these settings. Raises ValueError."""
        if self.tls is not None:
            self.tls.check(settings)

    def limit_addresses(self, bounds: Mapping[QuotaEntity, float]) -> None:
        self._doors.clients.rates.address_bounds = bounds

    def stop_serving(self) -> None:
        """Whoever answers on a listener has it closed before it goes itself."""
        self.server.close()

    async def stop(self, ending: Ending) -> None:
        self.abandon()

    def abandon(self) -> None:
        self._tasks.cancel()
        self.server.close()
        if self._logins is not None:
            self._logins.close()
        self.peers.close()
        if self.tls is not None:
            self.tls.close()


def _tls(settings: Settings, world: Surroundings) -> "NodeTls | None":
    encrypted = any("SSL" in (settings.protocol_of(name) or "") for name in _names(settings))
    if not encrypted and not any(each.startswith("https:") for each in settings.get_list("http.listeners")):
        return None
    from ottla.node.tls import NodeTls  # noqa: PLC0415  a node without TLS does without
    from ottla.security.tls.settings import TlsRefused  # noqa: PLC0415

    try:
        return NodeTls(settings, world.clock)
    except TlsRefused as error:
        raise CannotListen(f"{error}.") from error


def _introductions(settings: Settings) -> "dict[str, LogIn]":
    """How this node says who it is, by the listener where that is wanted."""
    names = (settings.inter_broker_listener, *settings.controller_listener_names[:1])
    if not any((settings.protocol_of(name) or "").startswith("SASL_") for name in names):
        return {}
    from ottla.net.introduction import introductions  # noqa: PLC0415  a node that does not log in does without

    return introductions(settings)


def _names(settings: Settings) -> tuple[str, ...]:
    """Of listeners that this node opens or connects to."""
    own = (each.name for each in settings.listeners)
    return (*own, settings.inter_broker_listener, *settings.controller_listener_names)
