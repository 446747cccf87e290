"""The lowest row of a node: its listening sockets, taken before anything else, and its connections to other nodes."""

import asyncio
import socket
from collections.abc import Iterable

from ottla.broker.front.dispatch import Routes
from ottla.broker.front.server import AnyServices
from ottla.model.properties import Listener, Settings
from ottla.net.connection import ReadBudget
from ottla.node import options
from ottla.node.services import Ending, Service
from ottla.node.surroundings import Surroundings


class Network(Service):
    name = "network"

    def __init__(self, settings: Settings, world: Surroundings) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._doors = options.doors(settings)
        budget = ReadBudget(settings.get_int("queued.max.request.bytes"))
        self.server = world.listen(loop, self._doors, budget, options.options(settings))
        self._sockets: dict[str, tuple[socket.socket, int]] = {}
        self.peers = world.peers(loop, f"node-{settings.node_id}")

    async def start(self) -> None:
        self._sockets = {listener.name: self.server.bind(listener) for listener in self._to_open()}

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
                self.server.serve(self._sockets[listener.name][0], listener.name, routes, services)

    def limit_connections(self, settings: Settings) -> None:
        self._doors.clients.limits = options.connection_limits(settings)

    def stop_serving(self) -> None:
        """Whoever answers on a listener has it closed before it goes itself."""
        self.server.close()

    async def stop(self, ending: Ending) -> None:
        self.abandon()

    def abandon(self) -> None:
        self.server.close()
        self.peers.close()
