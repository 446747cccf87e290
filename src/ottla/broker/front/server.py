"""Listeners: accept, admit, hand each connection to a session, and drop those that sit still."""

import logging
import socket
from asyncio import AbstractEventLoop, TimerHandle
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.front.admission import Admission, Doors, Refusals
from ottla.broker.front.client import ANONYMOUS, NOBODY, note_login
from ottla.broker.front.dispatch import Routes
from ottla.broker.front.session import Session
from ottla.broker.front.wrong_listener import advice
from ottla.broker.services import ControllerServices, Services
from ottla.metrics.counts import Traffic
from ottla.model.ids import Millis
from ottla.model.properties import Listener
from ottla.net.connection import Connection, PlainConnection, ReadBudget, Scratch
from ottla.net.listening import listening_socket, plain_address, refusal

if TYPE_CHECKING:  # loaded with the first listener that has TLS, or on which clients log in
    from ottla.broker.front.encrypted import Encrypted
    from ottla.broker.front.login import Logins
    from ottla.net.handshakes import HandshakeFailed
    from ottla.net.secured import Secured
    from ottla.net.tls_listener import ListenerTls

logger = logging.getLogger(__name__)

_ACCEPTS_PER_WAKEUP: Final = 16
"""The others have their turn before the next."""
_BY_CERTIFICATE: Final = "SSL"
"""In the audit log, in place of a mechanism."""
_SWEEP_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0
"""How long nobody is let in when the system has no descriptor left: asking again at once would never end."""


AnyServices = Services | ControllerServices


class CannotListen(Exception):
    """A listener's address, or its TLS, cannot be had. The text names it."""


class SocketOptions(NamedTuple):
    max_frame_bytes: int
    backlog: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    idle: Millis
    slow_peer: Millis
    handshake: Millis
    """How long one of TLS may take."""
    half_open_handshakes: int
    listeners: tuple[Listener, ...] = ()
    """All of the node's: who took the wrong one is told of the right one."""


class Server:
    """The listeners of one node and every session on them."""

    __slots__ = (
        "_budget",
        "_doors",
        "_encrypted",
        "_held",
        "_loop",
        "_options",
        "_pauses",
        "_refusals",
        "_scratch",
        "_sessions",
        "_sockets",
        "_sweeping",
        "logins",
        "routes",
        "traffic",
    )

    def __init__(self, loop: AbstractEventLoop, doors: Doors, budget: ReadBudget, options: SocketOptions) -> None:
        self._loop = loop
        self._doors = doors
        self._refusals: dict[str, Refusals] = {}
        """By listener: who takes the wrong one must not hide who takes another. Of the limits, under none."""
        self._pauses: dict[socket.socket, TimerHandle] = {}
        self._held: dict[socket.socket, TimerHandle] = {}
        self._budget = budget
        self._options = options
        self._scratch = Scratch()
        self._sockets: list[socket.socket] = []
        self._sessions: dict[Session, Connection] = {}
        self._sweeping: tuple[float, TimerHandle] | None = None
        """Since when no connection was looked at, and what comes next."""
        self._encrypted: Encrypted | None = None
        """Who comes by a listener with TLS, until the handshake is done."""
        self.logins: dict[str, Logins] = {}
        """By listener, of those on which clients say who they are."""
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

    def serve(
        self,
        sock: socket.socket,
        listener_name: str,
        routes: Routes,
        services: AnyServices,
        tls: "ListenerTls | None" = None,
    ) -> None:
        if tls is not None:
            self._encrypt(listener_name, tls)
        self.routes[listener_name] = routes
        self.traffic[listener_name] = Traffic()
        self._loop.add_reader(sock.fileno(), self._accept, sock, listener_name, routes, services)
        if self._sweeping is None:
            self._sweep_later(self._loop.time())

    def _accept(self, sock: socket.socket, listener_name: str, routes: Routes, services: AnyServices) -> None:
        for _ in range(_ACCEPTS_PER_WAKEUP):
            try:
                peer, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.warning("no connection can be accepted for %g s: %s", _PAUSE_SECONDS, error)
                self._rest(_PAUSE_SECONDS, sock, listener_name, routes, services)
                return
            host = plain_address(address[0])
            now = services.clock.monotonic()
            door = self._door(services)
            rest_ms = door.rates.acceptor_rest_ms(listener_name, now)
            if rest_ms:
                self._rest(rest_ms / 1000, sock, listener_name, routes, services)
            turned_away = door.refusal(host, listener_name, now)
            if turned_away is not None:
                line = self._refusals_at("").said(f"refusing a connection from {host}: {turned_away} is reached", now)
                if line is not None:
                    logger.warning("%s", line)
                peer.close()
            elif held_ms := door.rates.hold_ms(host, now):
                self._hold(peer, held_ms / 1000, door, host, listener_name)
            else:
                self._welcome(peer, host, listener_name, routes, services)
            if rest_ms:
                return

    def _rest(
        self, seconds: float, sock: socket.socket, listener_name: str, routes: Routes, services: AnyServices
    ) -> None:
        self._loop.remove_reader(sock.fileno())
        self._pauses[sock] = self._loop.call_later(seconds, self._accept_again, sock, listener_name, routes, services)

    def _hold(self, peer: socket.socket, seconds: float, door: Admission, host: str, listener_name: str) -> None:
        """One too many from an address: to close it at once would only bring the next. It counts while it waits."""

        def let_go() -> None:
            del self._held[peer]
            peer.close()
            door.left(host, listener_name)

        self._held[peer] = self._loop.call_later(seconds, let_go)

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
        tls = None if self._encrypted is None else self._encrypted.of(listener_name)
        if self._encrypted is None or tls is None:
            connection = PlainConnection(
                peer, self._loop, self._scratch, self._budget, options.max_frame_bytes, self.traffic[listener_name]
            )
            self._converse(connection, ANONYMOUS, host, listener_name, routes, services)
            return
        self._encrypted.begin(
            peer,
            tls,
            partial(self._handshaken, tls, host, listener_name, routes, services),
            partial(self._not_handshaken, host, listener_name, services),
        )

    def _converse(
        self,
        connection: Connection,
        principal: str,
        host: str,
        listener_name: str,
        routes: Routes,
        services: AnyServices,
    ) -> None:
        session = Session(connection, host, listener_name, routes, services, self._loop, self._forget, principal)
        self._sessions[session] = connection
        logins = self.logins.get(listener_name)
        if logins is None:
            connection.start(session)
        else:
            door = logins.door(session, connection, self._options.max_frame_bytes)
            connection.start(door, logins.options.max_frame_bytes)

    # ---- listeners with TLS

    def _encrypt(self, listener_name: str, tls: "ListenerTls") -> None:
        if self._encrypted is None:
            from ottla.broker.front.encrypted import Encrypted  # noqa: PLC0415  a node without TLS does without

            options = self._options
            self._encrypted = Encrypted(
                self._loop, options.handshake / 1000, options.half_open_handshakes, self._scratch, self._budget
            )
        self._encrypted.add(listener_name, tls)

    def _handshaken(
        self,
        tls: "ListenerTls",
        host: str,
        listener_name: str,
        routes: Routes,
        services: AnyServices,
        secured: "Secured",
    ) -> None:
        assert self._encrypted is not None
        try:
            principal = tls.principal(secured)
        except ValueError as error:
            secured.close()
            self._turned_away(host, listener_name, services, str(error))
            note_login(services.authorizer, NOBODY, host, listener_name, _BY_CERTIFICATE, str(error))
            return
        connection = self._encrypted.connection(secured, self._options.max_frame_bytes, self.traffic[listener_name])
        self._converse(connection, principal, host, listener_name, routes, services)
        if principal != ANONYMOUS and listener_name not in self.logins:
            note_login(services.authorizer, principal, host, listener_name, _BY_CERTIFICATE)

    def _not_handshaken(self, host: str, listener_name: str, services: AnyServices, failure: "HandshakeFailed") -> None:
        assert self._encrypted is not None
        why = self._encrypted.sentence(failure, listener_name, self._options.listeners)
        self._turned_away(host, listener_name, services, why)

    def _turned_away(self, host: str, listener_name: str, services: AnyServices, why: str | None) -> None:
        self._door(services).left(host, listener_name)
        if why is not None:
            line = self._refusals_at(listener_name).said(f"closing {host}: {why}", services.clock.monotonic())
            if line is not None:
                logger.warning("%s", line)

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session, None)
        if session.refused is not None:
            refused = session.refused.sentence
            if session.refused.spoke_tls:
                refused += advice(session.client.listener, self._options.listeners, encrypted=True)
            line = self._refusals_at(session.client.listener).said(refused, session.services.clock.monotonic())
            if line is not None:
                logger.warning("%s", line)
        self._door(session.services).left(session.client.host, session.client.listener)
        if session.broker is not None and self._sockets:
            session.services.control_plane.broker_disconnected(*session.broker, session)

    def _refusals_at(self, listener_name: str) -> Refusals:
        return self._refusals.setdefault(listener_name, Refusals())

    def _sweep_later(self, now: float) -> None:
        self._sweeping = now, self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        assert self._sweeping is not None
        (before, _), now = self._sweeping, self._loop.time()
        self._sweep_later(now)
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
        if self._sweeping is not None:
            self._sweeping[1].cancel()
        if self._encrypted is not None:
            self._encrypted.close()
        for peer, timer in self._held.items():
            timer.cancel()
            peer.close()
        self._held.clear()
        for connection in list(self._sessions.values()):
            connection.close()
