"""uvicorn's protocol in a server of ours: no process, no signals, no polling, and the limits that it has not.

Imported with the first connection (see `listening`).
"""

import asyncio
import socket
import ssl
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ottla.http.asgi import AsgiApplication
from ottla.http.limits import DEFAULT_LIMITS, Limits


class _Bounded(HttpToolsProtocol):
    """uvicorn 0.54 reads a head of any length and waits for a silent client without end; this one does neither."""

    limits: Limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Head and body leave in two writes; asyncio turns Nagle off only for sockets that were made as TCP by number.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = 0
        self._head_bytes = 0
        self._head_open = False
        self._awaited = True  # the first request is, as if it had begun
        self._watch: asyncio.TimerHandle | None = None
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "Too many connections.")
        else:
            self._watch = self.loop.call_later(self.limits.silence_s, self._look, -1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _look(self, seen: int) -> None:
        """Ends the connection if, in the midst of a request, nothing came since the last look."""
        if self._awaited and self._received in (0, seen):
            self._refuse(408, "Nothing came for too long.")
            return
        self._watch = self.loop.call_later(self.limits.silence_s, self._look, self._received)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        was_open = self._head_open
        super().data_received(data)
        # What came with the end of another request is not counted: it is one read at most.
        if was_open and self._head_open:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                self._refuse(431, "The head of the request is too long.")

    def on_message_begin(self) -> None:
        self._awaited = self._head_open = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_open = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._awaited = False
        super().on_message_complete()

    def _refuse(self, status: int, text: str) -> None:
        if self.transport.is_closing():
            return
        head = f"HTTP/1.1 {status} \r\ncontent-type: text/plain\r\ncontent-length: {len(text)}\r\nconnection: close\r\n"
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(f"{head}\r\n{text}".encode())
        self.transport.close()


class HttpServer:
    def __init__(self, application: AsgiApplication, limits: Limits | None, tls: ssl.SSLContext | None) -> None:
        limits = self._limits = limits or DEFAULT_LIMITS
        self._tls = tls
        self._state = ServerState()
        protocol = type("_Protocol", (_Bounded,), {"limits": limits})
        self._config = Config(
            app=application,
            http=protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(limits.keep_alive_s),
        )
        self._config.load()
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()

        def protocol() -> Any:
            made: Any = self._config.http_protocol_class
            return made(config=self._config, server_state=self._state, app_state={}, _loop=loop)

        self._server = await loop.create_server(protocol, sock=listening, ssl=self._tls)

    def abandon(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()

    async def stop(self) -> None:
        """No new connection; answers under way may end within a limit; then nothing is left."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(list(self._state.tasks), timeout=self._limits.stopping_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        for connection in list(self._state.connections):
            connection.transport.close()
