"""HTTP/2 without TLS, by prior knowledge or by a request that asks for it, beside HTTP/1.1 on one port: for services
whose clients speak nothing else.

`Sniffing` looks at the first bytes of a connection and gives it to whom it is for. `Http2` turns the frames that the
library h2 understands into calls of the ASGI application, each stream a task of its own: it may answer while its
request still comes. Bytes of a body are acknowledged when the application takes them, and answers wait for the window
of the client, so that neither side can fill the memory of the other.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.exceptions import HyperframeError

from ottla.http.asgi import Event, Receive, Scope, Send
from ottla.http.limits import Limits

Answering = Callable[[Scope, Receive, Send], Awaitable[None]]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MOST_STREAMS: Final = 100
"""Of one connection at a time."""
MOST_TASKS: Final = 2 * MOST_STREAMS
"""With those whose request was taken back: a client may do that faster than they end."""
FRAME_BYTES: Final = 16 << 10
"""What every client takes; to some that take more a single one could be all of a body."""
MOST_UNREAD_BYTES: Final = 4 << 20
"""Of a client that asks, by pings say, and does not read. Bodies wait long before: each stream has a frame at most in
what is not sent yet."""
_FORBIDDEN: Final = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade")
"""Of answers: headers that HTTP/2 has no use for."""
_SETTINGS: Final = re.compile(rb"[A-Za-z0-9_-]*")
_UPGRADED: Final = 1
"""The stream of the request that asked for HTTP/2."""


class Asked(NamedTuple):
    """A request by HTTP/1.1 that asks for HTTP/2 (RFC 7540, 3.2), which has its answer."""

    scope: Scope
    settings: bytes
    body_bytes: int
    """What comes before the client's first frame."""


def are_settings(header: bytes) -> bool:
    """Whether that is what a client may say of itself in HTTP2-Settings."""
    if _SETTINGS.fullmatch(header) is None:
        return False
    trial = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    try:
        trial.initiate_upgrade_connection(header)
    except (ValueError, HyperframeError, h2.exceptions.H2Error):
        return False
    return True


def http2_scope(method: bytes, path: bytes, query: bytes, headers: list[tuple[bytes, bytes]], peer: Any) -> Scope:
    return {
        "type": "http",
        "http_version": "2",
        "method": method.decode("latin-1"),
        "scheme": "http",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "client": tuple(peer[:2]) if peer else None,
    }


class Sniffing(asyncio.Protocol):
    """Until it is known who speaks."""

    def __init__(
        self, plain: Callable[[], Any], http2: Callable[[], "Http2"], limits: Limits, connections: set[Any]
    ) -> None:
        self._plain = plain
        self._http2 = http2
        self._limits = limits
        self._connections = connections
        self._begun = b""
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none of asyncio's classes
        if len(self._connections) > self._limits.connections:  # one more is told so, when it has said how to
            self._transport.abort()
            return
        self._connections.add(self)
        self._watch = asyncio.get_running_loop().call_later(self._limits.silence_s, self._transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._watch is not None:
            self._watch.cancel()

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def shutdown(self) -> None:
        self.transport.close()

    def abandon(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._begun += data
        if len(self._begun) < len(PREFACE) and PREFACE.startswith(self._begun):
            return
        transport = self.transport
        assert self._watch is not None
        self._watch.cancel()
        self._connections.discard(self)
        protocol: Any = self._http2() if self._begun.startswith(PREFACE) else self._plain()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(self._begun)


class _Stream:
    """One request and its answer."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[tuple[Event, int]] = asyncio.Queue()
        """What the application will be told, and how many bytes of the window that gives back."""
        self.window = asyncio.Event()
        self.gone = False
        self.answered = False
        self.task: asyncio.Task[None] | None = None


class Http2(asyncio.Protocol):
    def __init__(
        self,
        application: Answering,
        limits: Limits,
        connections: set[Any],
        tasks: set[Any],
        asked: Asked | None = None,
    ) -> None:
        self._application = application
        self._limits = limits
        self._connections = connections
        self._tasks = tasks
        self._asked = asked
        self._body_left = 0 if asked is None else asked.body_bytes
        settings = h2.config.H2Configuration(client_side=False, header_encoding=None)
        self._h2 = h2.connection.H2Connection(settings)
        self._streams: dict[int, _Stream] = {}
        self._writable = asyncio.Event()
        self._writable.set()
        self._idle: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    # ---- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none of asyncio's classes
        if len(self._connections) >= self._limits.connections:
            self._transport.abort()
            return
        self._connections.add(self)
        self._h2.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: self._limits.head_bytes,
            },
        )
        if self._asked is None:
            self._h2.initiate_connection()
        else:
            self._h2.initiate_upgrade_connection(self._asked.settings)
            self._start(_UPGRADED, self._asked.scope)
            if not self._body_left:
                self._end_of_body(_UPGRADED)
        self._flush()
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._idle is not None:
            self._idle.cancel()
        self._writable.set()
        for stream in self._streams.values():
            self._leave(stream)
        self._streams.clear()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _rest(self) -> None:
        """A connection without requests ends after a while."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._streams:
            self._idle = asyncio.get_running_loop().call_later(self._limits.keep_alive_s, self.shutdown)

    def shutdown(self) -> None:
        """No new request; those under way end."""
        if self._transport is None or self._transport.is_closing():
            return
        if not self._streams:
            self._h2.close_connection()
            self._flush()
            self._transport.close()

    def abandon(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    # ---- what comes

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # one too many: what came with the preface comes here all the same
            return
        if self._body_left:
            data = self._without_body(data)
        try:
            events = self._h2.receive_data(data)
        except h2.exceptions.ProtocolError:
            self._flush()  # it says why
            self.transport.close()
            return
        for event in events:
            self._heard(event)
        self._flush()
        if self.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self.transport.abort()

    def _without_body(self, data: bytes) -> bytes:
        """What comes behind the body of the request that asked for HTTP/2, which goes to its stream."""
        piece, rest = data[: self._body_left], data[self._body_left :]
        self._body_left -= len(piece)
        self._tell(_UPGRADED, {"type": "http.request", "body": bytes(piece), "more_body": True}, 0)
        if not self._body_left:
            self._end_of_body(_UPGRADED)
        return rest

    def _end_of_body(self, stream_id: int | None) -> None:
        self._tell(stream_id, {"type": "http.request", "body": b"", "more_body": False}, 0)

    def _heard(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._begin(event)
            case h2.events.DataReceived():
                self._data(event)
            case h2.events.StreamEnded():
                self._end_of_body(event.stream_id)
            case h2.events.StreamReset():
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    self._leave(stream)
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.window.set()
            case h2.events.ConnectionTerminated():
                self.transport.close()

    def _data(self, event: h2.events.DataReceived) -> None:
        length = event.flow_controlled_length or 0
        if event.stream_id in self._streams:
            told: Event = {"type": "http.request", "body": bytes(event.data or b""), "more_body": True}
            self._tell(event.stream_id, told, length)
        elif length:
            self._h2.acknowledge_received_data(length, event.stream_id)

    def _tell(self, stream_id: int | None, event: Event, length: int) -> None:
        stream = self._streams.get(stream_id or 0)
        if stream is not None:
            stream.events.put_nowait((event, length))

    @staticmethod
    def _leave(stream: _Stream) -> None:
        stream.gone = True
        stream.window.set()
        stream.events.put_nowait(({"type": "http.disconnect"}, 0))

    # ---- a request

    def _begin(self, event: h2.events.RequestReceived) -> None:
        stream_id = event.stream_id or 0
        if len(self._streams) >= MOST_TASKS:
            with suppress(h2.exceptions.ProtocolError):  # it was taken back already
                self._h2.reset_stream(stream_id, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        self._start(stream_id, self._scope(event.headers or []))

    def _start(self, stream_id: int, scope: Scope) -> None:
        stream = self._streams[stream_id] = _Stream()
        self._rest()
        stream.task = asyncio.get_running_loop().create_task(self._answer(stream_id, stream, scope))
        self._tasks.add(stream.task)
        stream.task.add_done_callback(self._tasks.discard)

    def _scope(self, headers: Any) -> Scope:
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        path, _, query = pseudo.get(b":path", b"/").partition(b"?")
        given = [(name.lower(), value) for name, value in headers if not name.startswith(b":")]
        if not any(name == b"host" for name, _ in given) and b":authority" in pseudo:
            given.append((b"host", pseudo[b":authority"]))
        peer = self.transport.get_extra_info("peername")
        return http2_scope(pseudo.get(b":method", b"GET"), path, query, given, peer)

    async def _answer(self, stream_id: int, stream: _Stream, scope: Scope) -> None:
        async def receive() -> Event:
            event, length = await stream.events.get()
            if length and not self.transport.is_closing():
                self._h2.acknowledge_received_data(length, stream_id)
                self._flush()
            return event

        async def send(message: dict[str, Any]) -> None:
            if stream.gone or self.transport.is_closing():
                return
            try:
                await self._send(stream_id, stream, message)
            except h2.exceptions.ProtocolError:  # it was reset meanwhile
                stream.gone = True

        try:
            await self._application(scope, receive, send)
        finally:
            self._end(stream_id, stream)

    async def _send(self, stream_id: int, stream: _Stream, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status = [(b":status", str(message["status"]).encode())]
            headers = [(name.lower(), value) for name, value in message["headers"] if name.lower() not in _FORBIDDEN]
            self._h2.send_headers(stream_id, status + headers)
            self._flush()
            return
        await self._send_body(stream_id, stream, message.get("body", b""))
        if not message.get("more_body", False) and not stream.gone:
            stream.answered = True
            self._h2.end_stream(stream_id)
            self._flush()

    async def _send_body(self, stream_id: int, stream: _Stream, body: bytes) -> None:
        view = memoryview(body)
        while view and not stream.gone:
            room = min(self._h2.local_flow_control_window(stream_id), FRAME_BYTES, len(view))
            if room <= 0:
                stream.window.clear()
                await stream.window.wait()
                continue
            self._h2.send_data(stream_id, bytes(view[:room]))
            view = view[room:]
            self._flush()
            await self._writable.wait()

    def _end(self, stream_id: int, stream: _Stream) -> None:
        self._streams.pop(stream_id, None)
        if self._transport is None or self._transport.is_closing():
            return
        while not stream.events.empty():  # the window is of all streams together
            _, length = stream.events.get_nowait()
            if length:
                self._h2.acknowledge_received_data(length, stream_id)
        if not stream.gone and not stream.answered:
            with suppress(h2.exceptions.ProtocolError):
                self._h2.reset_stream(stream_id, h2.errors.ErrorCodes.INTERNAL_ERROR)
        self._flush()
        self._rest()
