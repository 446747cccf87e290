"""uvicorn's protocol in a server of ours: no process, no signals, no polling, and the limits that it has not.

Imported with the first connection (see `listening`).
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ottla.http.asgi import AsgiApplication, Receive, Scope, Send
from ottla.http.limits import Limits

_LONGEST_MESSAGE = 64 << 10
"""Of a client over a WebSocket: it has nothing to say but its question, which stands in the path."""

_GLANCE_S = 0.01
_GLANCES = 100
"""How often it is looked whether clients have ended the connections that are closed: a second in all."""


_SWITCHING: Final = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
_SETTINGS: Final = b"http2-settings"
_OF_HTTP_1: Final = (b"connection", b"upgrade", _SETTINGS)


class _Seen(NamedTuple):
    """What a look at a connection found, for the next one."""

    received: int = -1
    """Bytes of the client, over all."""
    open_head: int = 0
    """The number of the head that had begun and was not whole; 0: none."""
    unsent: int = 0
    """Bytes that the client has not taken yet."""


class _Bounded(HttpToolsProtocol):
    """uvicorn 0.54 reads a head of any length and waits for a client that is silent, drips or does not read without
    end; this one does not."""

    limits: Limits
    http2: Callable[[Any], Any] | None
    """For services that speak it: who goes on with a request that asked for it, and with its connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Head and body leave in two writes; asyncio turns Nagle off only for sockets that were made as TCP by number.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = 0
        self._heads = 0
        self._head_bytes = 0
        self._head_open = False
        self._awaited = True  # the first request is, as if it had begun
        self._watch: asyncio.TimerHandle | None = None
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "Too many connections.")
        else:
            self._watch = self.loop.call_later(self.limits.silence_s, self._look, _Seen())

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _look(self, before: _Seen) -> None:
        """Ends the connection if since the last look nothing came in the midst of a request, or not the end of a head,
        or nothing was taken of an answer."""
        unsent = self.transport.get_write_buffer_size() if self.flow.write_paused else 0
        now = _Seen(self._received, self._heads if self._head_open else 0, unsent)
        if 0 < before.unsent <= now.unsent:
            self.transport.abort()
            return
        silent = now.received in (0, before.received) and not self.flow.read_paused
        if (self._awaited and silent) or 0 < now.open_head == before.open_head:
            self._refuse(408, "Nothing came for too long.")
            return
        self._watch = self.loop.call_later(self.limits.silence_s, self._look, now)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        was_open = self._head_open
        self._unset_keepalive_if_required()
        self._feed(data)
        # What came with the end of another request is not counted: it is one read at most.
        if was_open and self._head_open:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                self._refuse(431, "The head of the request is too long.")

    def _feed(self, data: bytes) -> None:
        """As uvicorn does, but who asks for a protocol that is not spoken here (Java's HttpClient always does, for h2c)
        is not heard, as RFC 9110 (7.8) allows: httptools would take the body for words of that protocol."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as asked:
            if self._should_upgrade():
                self._to_websocket()
            elif not self._to_http2(rest := data[asked.args[0] :]):
                head = self._head_without_upgrade()
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
                self._feed(head + rest)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def _to_websocket(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self.handle_websocket_upgrade()

    def _to_http2(self, rest: bytes) -> bool:
        if self.http2 is None or (body_bytes := self._bytes_before_http2()) is None:
            return False
        from ottla.http.http2 import Asked, are_settings, http2_scope  # noqa: PLC0415  for services that speak it

        (settings,) = (value for name, value in self.headers if name == _SETTINGS)
        if not are_settings(settings):
            return False
        url = httptools.parse_url(self.url)
        headers = [(name, value) for name, value in self.headers if name not in _OF_HTTP_1]
        scope = http2_scope(self.parser.get_method(), url.path, url.query or b"", headers, self.client)
        if self._watch is not None:
            self._watch.cancel()
        self.connections.discard(self)
        protocol = self.http2(Asked(scope, settings, body_bytes))
        self.transport.write(_SWITCHING)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if rest:
            protocol.data_received(rest)
        return True

    def _bytes_before_http2(self) -> int | None:
        """How long the body is of a request that asks for HTTP/2. None where it is answered by HTTP/1.1, as all may be:
        over TLS, where it is not asked for so, behind requests under way, and if nobody knows how much comes."""
        given = {name: value for name, value in self.headers if name in (_SETTINGS, b"content-length")}
        once = [name for name, _ in self.headers].count(_SETTINGS) == 1
        free = self.cycle is None or self.cycle.response_complete
        if self._get_upgrade() != b"h2c" or self.transport.get_extra_info("sslcontext") or not (once and free):
            return None
        if self.expect_100_continue or any(name == b"transfer-encoding" for name, _ in self.headers):
            return None
        length = int(given.get(b"content-length", b"0"))
        return length if length <= self.limits.body_bytes else None

    @property
    def _upgrades(self) -> bool:
        """To something that is not heard."""
        return (
            not self._should_upgrade()
            and self.parser.should_upgrade()
            and any(name == b"upgrade" for name, _ in self.headers)
        )

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                wishes = [wish.strip().lower() for wish in value.split(b",")]
                lines += [b"connection: " + wish for wish in wishes if wish in (b"close", b"keep-alive")]
            elif name != b"upgrade":
                lines.append(b"%b: %b" % (name, value))
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        self._awaited = self._head_open = True
        self._heads += 1
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_open = False
        if not self._upgrades:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._awaited = False
        if not self._upgrades:
            super().on_message_complete()

    def abandon(self) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True  # or uvicorn would miss the end of an answer that is cut off
        self.transport.abort()

    def _refuse(self, status: int, text: str) -> None:
        if self.transport.is_closing():
            return
        head = f"HTTP/1.1 {status} \r\ncontent-type: text/plain\r\ncontent-length: {len(text)}\r\nconnection: close\r\n"
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(f"{head}\r\n{text}".encode())
        self.transport.close()


def _websockets() -> Any:
    """For services that have clients of them."""
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol  # noqa: PLC0415

    class Bounded(WSProtocol):
        def abandon(self) -> None:
            self.transport.abort()

    return Bounded


class HttpServer:
    def __init__(self, application: AsgiApplication, tls: ssl.SSLContext | None) -> None:
        self._limits = application.limits
        self._tls = tls
        self._state = ServerState()

        async def answered(scope: Scope, receive: Receive, send: Send) -> None:
            # Cancelled by `abandon`: the task ends here, and uvicorn would log that as a failure.
            with suppress(asyncio.CancelledError):
                await application(scope, receive, send)

        speaks_http2 = getattr(application, "speaks_http2", False)
        http2 = staticmethod(self._http2_protocol) if speaks_http2 else None
        protocol = type("_Protocol", (_Bounded,), {"limits": self._limits, "http2": http2})
        self._config = Config(
            app=answered,
            http=protocol,
            ws=_websockets() if getattr(application, "speaks_websockets", False) else "none",
            ws_max_size=_LONGEST_MESSAGE,
            ws_ping_interval=self._limits.silence_s,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(self._limits.keep_alive_s),
        )
        self._config.load()
        self._answered = answered
        self._http2 = speaks_http2
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()

        def protocol() -> Any:
            made: Any = self._config.http_protocol_class
            return made(config=self._config, server_state=self._state, app_state={}, _loop=loop)

        def either() -> Any:
            from ottla.http.http2 import Sniffing  # noqa: PLC0415  for services that have clients of it

            return Sniffing(protocol, self._http2_protocol, self._limits, self._state.connections)

        # In two steps: who is cancelled in between still has what to close.
        made = either if self._http2 else protocol
        self._server = await loop.create_server(made, sock=listening, ssl=self._tls, start_serving=False)
        await self._server.start_serving()

    def _http2_protocol(self, asked: Any = None) -> Any:
        from ottla.http.http2 import Http2  # noqa: PLC0415  for services that have clients of it

        return Http2(self._answered, self._limits, self._state.connections, self._state.tasks, asked)

    def abandon(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            ending: Any = connection
            ending.abandon()
        for task in list(self._state.tasks):
            task.cancel()

    async def stop(self) -> None:
        """No new connection; answers under way may end within a limit; then nothing is left."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=self._limits.stopping_s)
        if late := list(self._state.tasks):
            self.abandon()
            await asyncio.wait(late)
        for connection in list(self._state.connections):
            connection.transport.close()
        await self._gone()

    async def _gone(self) -> None:
        """What was sent is taken, and over TLS the end is said by both sides, or it is cut off: a loop that is closed
        waits for its sockets, for a silent client without end."""
        for _ in range(_GLANCES):
            if not self._state.connections:
                return
            await asyncio.sleep(_GLANCE_S)
        for connection in list(self._state.connections):
            connection.transport.abort()
