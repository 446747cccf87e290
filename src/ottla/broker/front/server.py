"""Listeners: accept, admit, hand each connection to a session, and drop those that sit still."""

import logging
import socket
from asyncio import AbstractEventLoop, TimerHandle
from dataclasses import dataclass
from typing import Final

from ottla.broker.front.admission import Admission, Doors, Refusals
from ottla.broker.front.dispatch import Routes
from ottla.broker.front.session import Session
from ottla.broker.services import ControllerServices, Services
from ottla.metrics.counts import Traffic
from ottla.model.ids import Millis
from ottla.model.properties import Listener
from ottla.net.connection import Connection, ReadBudget, Scratch
from ottla.net.listening import listening_socket, plain_address, refusal

logger = logging.getLogger(__name__)

_ACCEPTS_PER_WAKEUP: Final = 64
_SWEEP_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0
"""How long nobody is let in when the system has no descriptor left: asking again at once would never end."""


AnyServices = Services | ControllerServices


class CannotListen(Exception):
    """A listener's address cannot be had. The text names it."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    max_frame_bytes: int
    backlog: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    idle: Millis
    slow_peer: Millis


class Server:
    """The listeners of one node and every session on them."""

    __slots__ = (
        "_budget",
        "_doors",
        "_loop",
        "_options",
        "_oversized",
        "_pauses",
        "_refusals",
        "_scratch",
        "_sessions",
        "_sockets",
        "_sweeper",
        "_swept",
        "routes",
        "traffic",
    )

    def __init__(self, loop: AbstractEventLoop, doors: Doors, budget: ReadBudget, options: SocketOptions) -> None:
        self._loop = loop
        self._doors = doors
        self._refusals = Refusals()
        self._oversized = Refusals()
        self._pauses: dict[socket.socket, TimerHandle] = {}
        self._budget = budget
        self._options = options
        self._scratch = Scratch()
        self._sockets: list[socket.socket] = []
        self._sessions: dict[Session, Connection] = {}
        self._sweeper: TimerHandle | None = None
        self._swept = loop.time()
        self.routes: dict[str, Routes] = {}
        """By listener: each route counts its requests."""
        self.traffic: dict[str, Traffic] = {}
        """By listener."""

    @property
    def connections(self) -> int:
        return len(self._sessions)

    def connections_of(self, listener_name: str) -> int:
        return self._doors.clients.at(listener_name) + self._doors.controllers.at(listener_name)

    def bind(self, listener: Listener) -> tuple[socket.socket, int]:
        """Takes the port, without answering on it yet. Port 0 takes a free one; the port taken is returned."""
        try:
            sock = listening_socket(listener.host, listener.port, self._options.backlog)
        except OSError as error:
            raise CannotListen(f"{refusal(error, listener.host, listener.port)}.") from error
        self._sockets.append(sock)
        return sock, sock.getsockname()[1]

    def serve(self, sock: socket.socket, listener_name: str, routes: Routes, services: AnyServices) -> None:
        self.routes[listener_name] = routes
        self.traffic[listener_name] = Traffic()
        self._loop.add_reader(sock.fileno(), self._accept, sock, listener_name, routes, services)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _accept(self, sock: socket.socket, listener_name: str, routes: Routes, services: AnyServices) -> None:
        for _ in range(_ACCEPTS_PER_WAKEUP):
            try:
                peer, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.warning("no connection can be accepted for %g s: %s", _PAUSE_SECONDS, error)
                self._loop.remove_reader(sock.fileno())
                self._pauses[sock] = self._loop.call_later(
                    _PAUSE_SECONDS, self._accept_again, sock, listener_name, routes, services
                )
                return
            host = plain_address(address[0])
            now = services.clock.monotonic()
            turned_away = self._door(services).refusal(host, listener_name, now)
            if turned_away is not None:
                line = self._refusals.said(f"refusing a connection from {host}: {turned_away} is reached", now)
                if line is not None:
                    logger.warning("%s", line)
                peer.close()
                continue
            self._welcome(peer, host, listener_name, routes, services)

    def _accept_again(self, sock: socket.socket, listener_name: str, routes: Routes, services: AnyServices) -> None:
        del self._pauses[sock]
        self._loop.add_reader(sock.fileno(), self._accept, sock, listener_name, routes, services)

    def _door(self, services: AnyServices) -> Admission:
        return self._doors.controllers if isinstance(services, ControllerServices) else self._doors.clients

    def _welcome(
        self, peer: socket.socket, host: str, listener_name: str, routes: Routes, services: AnyServices
    ) -> None:
        options = self._options
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if options.send_buffer_bytes > 0:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
        if options.receive_buffer_bytes > 0:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)
        connection = Connection(
            peer, self._loop, self._scratch, self._budget, options.max_frame_bytes, self.traffic[listener_name]
        )
        session = Session(connection, host, listener_name, routes, services, self._loop, self._forget)
        self._sessions[session] = connection
        connection.start(session)

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session, None)
        if session.refused:
            line = self._oversized.said(session.refused, session.services.clock.monotonic())
            if line is not None:
                logger.warning("%s", line)
        self._door(session.services).left(session.client.host, session.client.listener)
        if session.broker is not None and self._sockets:
            session.services.control_plane.broker_disconnected(*session.broker, session)

    def _sweep(self) -> None:
        self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)
        before, now = self._swept, self._loop.time()
        self._swept = now
        idle = self._options.idle / 1000
        slow = self._options.slow_peer / 1000
        for session, connection in list(self._sessions.items()):
            still = now - connection.last_active
            if connection.out_bytes and still > slow:
                logger.info("closing %s: it took no byte of its answer for %d s", session.client.host, int(still))
                connection.close()
            elif 0 < idle < still and not session.is_waiting:
                connection.close()
            elif connection.last_active >= before:
                connection.notice_reset()

    def stop_accepting(self) -> None:
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        for sock in self._sockets:
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def close(self) -> None:
        self.stop_accepting()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self._sessions.values()):
            connection.close()
