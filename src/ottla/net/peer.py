"""Outgoing connections to other nodes: requests go out in order, each outcome comes back exactly once.

One connection per address and lane. It is opened by the first request, greets with ApiVersions, and is opened anew by
the next request after it was lost; whoever sends decides how soon that is. An answer is decoded where it lies in the
read buffer and handed over at once, so a follower appends fetched records without a copy of them.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.metrics.counts import Traffic
from ottla.net.connection import Connection, PlainConnection, ReadBudget, Scratch
from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, EncodeError, Message, Request, ResponseT_co
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request

if TYPE_CHECKING:
    from ssl import SSLContext

    from ottla.net.secured import Secured
    from ottla.net.tls_connection import TlsBuffers

_HELLO_VERSION: Final = 4
_SILENCE_SECONDS: Final = 3
_HANDSHAKE_SECONDS: Final = 10
_MAX_ANSWER_BYTES: Final = 256 << 20
"""Above any fetch a follower asks for: whoever announces more does not speak our protocol."""
_SHARE_OF_A_SESSION: Final = 0.9
"""After which a login that ends is renewed."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Unreachable(Exception):
    """No answer: refused, lost, timed out or unreadable. Whether the request was carried out is not known."""


class Refused(Unreachable):
    """The host is there and nobody listens: the process that did is dead, or was never started."""


Outcome = Message | Unreachable
Then = Callable[[Outcome], None]
LogIn = Callable[[Callable[[Message, Then], None], Callable[[int], None], Callable[[str], None]], None]
"""Begins to say who this node is. Given are: how to ask, whom to tell for how many milliseconds it holds (0: for as
long as the connection), and whom to tell why it does not."""


class ClientTls:
    """The TLS of connections to other nodes."""

    __slots__ = ("context",)

    def __init__(self, context: "SSLContext") -> None:
        self.context = context
        """For the next handshake: may be replaced at any time."""


class Way(NamedTuple):
    """How connections to a kind of node are made, before anything is asked on them."""

    tls: ClientTls | None = None
    log_in: LogIn | None = None
    """None: nobody has to say there who he is."""


PLAIN: Final = Way()
Ways = Callable[[str], Way]
"""By lane: a lane leads to brokers or to controllers, which may have listeners of different kinds."""


def _all_plain(lane: str) -> Way:
    return PLAIN


class Peers(Protocol):
    """How a node reaches the others. The simulator has its own."""

    traffic: dict[str, Traffic]
    """What went over the connections of each lane."""

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        """`then` is called once, on the loop, never from inside this call. Records in an answer are views that end with
        it. A request that times out takes its connection and all that wait on it along: answers come in order."""

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        """For answers without records. Raises Unreachable."""

    def close(self) -> None: ...


class SocketPeers:
    __slots__ = ("_budget", "_buffers", "_client_id", "_links", "_loop", "_scratch", "_ways", "traffic")

    def __init__(self, loop: asyncio.AbstractEventLoop, client_id: str, ways: Ways = _all_plain) -> None:
        self._loop = loop
        self._client_id = client_id
        self._ways = ways
        self._buffers: TlsBuffers | None = None
        self._scratch = Scratch()
        self._budget = ReadBudget(0)
        self._links: dict[tuple[Address, str], _Link] = {}
        self.traffic: dict[str, Traffic] = {}

    def send(self, to: Address, request: Message, then: Then, *, timeout_ms: int, lane: str = "") -> None:
        link = self._links.get((to, lane))
        if link is None or link.lost:
            way = self._ways(lane)
            link = self._links[to, lane] = _Link(to, self._client_id, self._loop, way.log_in)
            link.open(way, partial(self._connection, self.traffic.setdefault(lane, Traffic())))
        link.send(_Pending(request, then, timeout_ms))

    def _connection(self, traffic: Traffic, sock: "socket.socket | Secured") -> Connection:
        if isinstance(sock, socket.socket):
            return PlainConnection(sock, self._loop, self._scratch, self._budget, _MAX_ANSWER_BYTES, traffic)
        from ottla.net.tls_connection import TlsBuffers, TlsConnection  # noqa: PLC0415  for who has TLS

        if self._buffers is None:
            self._buffers = TlsBuffers()
        return TlsConnection(sock, self._loop, self._scratch, self._budget, _MAX_ANSWER_BYTES, traffic, self._buffers)

    async def ask(
        self, to: Address, request: Request[ResponseT_co], *, timeout_ms: int, lane: str = ""
    ) -> ResponseT_co:
        return await ask(self, self._loop, to, request, timeout_ms=timeout_ms, lane=lane)

    def close(self) -> None:
        for link in list(self._links.values()):
            link.end("this node is closing its connections")
        self._links.clear()


async def ask(
    peers: Peers,
    loop: asyncio.AbstractEventLoop,
    to: Address,
    request: Request[ResponseT_co],
    *,
    timeout_ms: int,
    lane: str = "",
) -> ResponseT_co:
    """`Peers.ask` in terms of `Peers.send`."""
    waiter: asyncio.Future[Any] = loop.create_future()

    def then(outcome: Outcome) -> None:
        if waiter.done():
            return
        if isinstance(outcome, Unreachable):
            waiter.set_exception(outcome)
        else:
            waiter.set_result(outcome)

    peers.send(to, request, then, timeout_ms=timeout_ms, lane=lane)
    answer: ResponseT_co = await waiter
    return answer


class _Pending:
    """One request on its way. It is given up by its timer, by the link's end, or by its answer."""

    __slots__ = ("request", "then", "timeout_ms", "timer", "version")

    def __init__(self, request: Message, then: Then, timeout_ms: int) -> None:
        self.request = request
        self.then = then
        self.timeout_ms = timeout_ms
        self.timer: asyncio.TimerHandle | None = None
        self.version = -1

    def settle(self, outcome: Outcome) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.then(outcome)


class _Link:
    """One connection and what waits on it. Once lost it is never used again."""

    __slots__ = (
        "_address",
        "_client_id",
        "_connection",
        "_correlation",
        "_log_in",
        "_loop",
        "_ranges",
        "_ready",
        "_renewal",
        "_sent",
        "_task",
        "_unsent",
        "_why",
        "lost",
    )

    def __init__(
        self, address: Address, client_id: str, loop: asyncio.AbstractEventLoop, log_in: "LogIn | None"
    ) -> None:
        self._address = address
        self._log_in = log_in
        self._client_id = client_id
        self._loop = loop
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._ranges: dict[int, tuple[int, int]] | None = None
        """What the other side speaks, by API key; None until it has said so."""
        self._ready = False
        """Greeted and, where that is asked for, logged in."""
        self._renewal: asyncio.TimerHandle | None = None
        """Of a login that ends."""
        self._unsent: deque[_Pending] = deque()
        self._sent: deque[_Pending] = deque()
        self._correlation = 0
        self._why = "the connection was closed by the other side"
        self.lost = False

    # ---- opening

    def open(self, way: Way, connected: "Callable[[socket.socket | Secured], Connection]") -> None:
        self._task = self._loop.create_task(self._open(way, connected))

    async def _open(self, way: Way, connected: "Callable[[socket.socket | Secured], Connection]") -> None:
        sock: socket.socket | None = None
        try:
            found = await self._loop.getaddrinfo(*self._address, type=socket.SOCK_STREAM)
            family, kind, protocol, _, address = found[0]
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            _detect_silence(sock)
            await self._loop.sock_connect(sock, address)
        except (OSError, UnicodeError) as error:  # the second of a name that no name server could know
            if sock is not None:
                sock.close()
            is_refused = isinstance(error, ConnectionRefusedError)
            why = getattr(error, "strerror", None) or error
            self.end(f"cannot connect: {why}", Refused if is_refused else Unreachable)
            return
        except asyncio.CancelledError:
            if sock is not None:
                sock.close()
            raise
        made = sock if way.tls is None else await self._secured(sock, way.tls)
        if made is None:
            return
        if self.lost:
            made.close()
            return
        self._connection = connected(made)
        self._connection.start(self)
        hello = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version="inter.node")
        self._write(_Pending(hello, self._greeted, 0), _HELLO_VERSION)

    async def _secured(self, sock: socket.socket, tls: ClientTls) -> "Secured | None":
        """None if the other side is not whom it should be: whoever waits was told."""
        from ottla.net.handshakes import HandshakeFailed, connected  # noqa: PLC0415  for who has TLS

        try:
            return await connected(self._loop, sock, tls.context, self._address.host, _HANDSHAKE_SECONDS)
        except HandshakeFailed as failure:
            self.end(f"no TLS: {failure}")
            return None

    def _greeted(self, outcome: Outcome) -> None:
        if isinstance(outcome, Unreachable):
            return  # the end was told to everyone who waits
        assert isinstance(outcome, messages.ApiVersionsResponse)
        if outcome.error_code:
            self.end(f"it refuses ApiVersions with error {outcome.error_code}")
            return
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in outcome.api_keys}
        if self._log_in is None:
            self._go_on()
        else:
            self._introduce()

    def _go_on(self) -> None:
        self._ready = True
        while self._unsent and not self.lost:
            self._negotiated(self._unsent.popleft())

    # ---- logging in

    def _introduce(self) -> None:
        """Says who this node is; again before the session ends (KIP-368), and meanwhile nothing else is sent."""
        if self.lost or self._log_in is None:
            return
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        self._ready = False
        self._log_in(self._say, self._introduced, self._not_introduced)

    def _say(self, request: Message, then: Then) -> None:
        if not self.lost:
            self._negotiated(_Pending(request, then, 0))

    def _introduced(self, lifetime_ms: int) -> None:
        if self.lost:
            return
        if lifetime_ms:
            self._renewal = self._loop.call_later(lifetime_ms * _SHARE_OF_A_SESSION / 1000, self._introduce)
        self._go_on()

    def _not_introduced(self, why: str) -> None:
        self.end(f"this node could not log in there: {why}")

    # ---- requests

    def send(self, pending: _Pending) -> None:
        pending.timer = self._loop.call_later(pending.timeout_ms / 1000, self._timed_out, pending)
        if self._renewal is not None and self._renewal.when() <= self._loop.time():
            # Its timer is as late as this loop: under a login that has ended the request would be cut off. It is among
            # those who wait before that is tried, as the link may end in the attempt, and they are told so.
            self._unsent.append(pending)
            self._introduce()
        elif not self._ready:
            self._unsent.append(pending)
        else:
            self._negotiated(pending)

    def _negotiated(self, pending: _Pending) -> None:
        kind = type(pending.request)
        assert self._ranges is not None
        low, high = self._ranges.get(kind.API_KEY, (1, 0))
        version = min(high, API[kind.API_KEY].stable_max)
        if version < low or version not in kind.ENCODERS:
            self._fail_later(pending, f"{self._address} does not serve {kind.__name__}")
            return
        self._write(pending, version)

    def _write(self, pending: _Pending, version: int) -> None:
        assert self._connection is not None
        correlation = self._correlation
        self._correlation = (correlation + 1) & 0x7FFFFFFF
        pending.version = version
        header = RequestHeader(pending.request.API_KEY, version, correlation, self._client_id)
        try:
            frame = encode_request(header, pending.request)
        except EncodeError as error:
            self._fail_later(pending, f"{type(pending.request).__name__} cannot be written at v{version}: {error}")
            return
        self._sent.append(pending)
        self._connection.send_bytes(frame)

    def _fail_later(self, pending: _Pending, why: str) -> None:
        self._loop.call_soon(pending.settle, Unreachable(why))

    def _timed_out(self, pending: _Pending) -> None:
        pending.timer = None
        self.end(f"no answer to {type(pending.request).__name__} within {pending.timeout_ms} ms")

    # ---- what the connection says

    def frame_received(self, frame: memoryview) -> None:
        if not self._sent:
            self.end("it answered a question that was not asked")
            return
        pending = self._sent.popleft()
        key = pending.request.API_KEY
        try:
            _, body = decode_response_header(frame, key, pending.version)
            answer: Any = messages.response_class(key).decode(frame, pending.version, body)
        except DecodeError as error:
            self._sent.appendleft(pending)
            self.end(f"its answer to {type(pending.request).__name__} v{pending.version} cannot be read: {error}")
            return
        pending.settle(answer)

    def frame_refused(self, size: int, limit: int) -> None:
        self._why = f"it announced an answer of {size} bytes, and {limit} are the limit"

    def output_drained(self) -> None:
        """Requests are small; whoever sends waits for answers, not for buffers."""

    def connection_lost(self) -> None:
        self._connection = None
        self.end(self._why)

    def end(self, why: str, kind: type[Unreachable] = Unreachable) -> None:
        if self.lost:
            return
        self.lost = True
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        if self._task is not None and not self._task.done() and self._task is not _current_task(self._loop):
            self._task.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        problem = kind(f"{self._address}: {why}")
        waiting = [*self._sent, *self._unsent]
        self._sent.clear()
        self._unsent.clear()
        for pending in waiting:
            if pending.timer is not None:
                pending.timer.cancel()
            self._loop.call_soon(pending.then, problem)


def _detect_silence(sock: socket.socket) -> None:
    """A peer whose packets are dropped on the way is missed after a few seconds, not after TCP's quarter of an hour."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", _SILENCE_SECONDS)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_SECONDS * 1000)


def _current_task(loop: asyncio.AbstractEventLoop) -> "asyncio.Task[Any] | None":
    return asyncio.current_task(loop) if loop.is_running() else None
