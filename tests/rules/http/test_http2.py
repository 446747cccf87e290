"""What one client of HTTP/2 may cost, and that none of its requests takes from the others."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, cast

import pytest
from h2.connection import H2Connection
from h2.events import Event, ResponseReceived
from h2.exceptions import StreamClosedError

from ottla.http.asgi import Receive, Scope, Send
from ottla.http.http2 import MOST_TASKS, Http2, Sniffing
from ottla.http.limits import Limits

_HEADERS: Final = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "here")]
_WINDOW: Final = 65_535


class Wire(asyncio.Transport):
    """To a client that answers at once, or does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closing = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = True

    def get_write_buffer_size(self) -> int:
        return len(self.written)


class Client:
    def __init__(self, application: Callable[[Scope, Receive, Send], Awaitable[None]], connections: int = 10) -> None:
        self.wire = Wire()
        self.h2 = H2Connection()
        self.tasks: set[asyncio.Task[None]] = set()
        self.server = Http2(application, Limits(connections=connections), set(), self.tasks)
        self.events: list[Event] = []
        self.server.connection_made(self.wire)
        self.h2.initiate_connection()
        self.say()

    def say(self) -> None:
        self.server.data_received(self.h2.data_to_send() or b"")
        if self.wire.written:
            self.events += self.h2.receive_data(bytes(self.wire.written))
            self.wire.written.clear()

    async def turns(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
            self.say()

    def request(self, body: bytes = b"", *, end: bool = True) -> int:
        stream_id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, _HEADERS, end_stream=end and not body)
        if body:
            self.h2.send_data(stream_id, body, end_stream=end)
        self.say()
        return stream_id

    def heard(self, kind: type[Event]) -> list[Any]:
        return [cast(Any, each) for each in self.events if isinstance(each, kind)]


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    """As one that does not look at the body of whom it does not let in."""
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b"no"})


def test_a_body_that_nobody_read_is_given_back_to_the_window() -> None:
    async def scenario() -> tuple[int, int]:
        client = Client(refusing)
        for _ in range(10):
            client.request(bytes(16_000))
            await client.turns()
        return len(client.heard(ResponseReceived)), client.h2.outbound_flow_control_window

    answers, window = asyncio.run(scenario())
    assert answers == 10
    assert window > _WINDOW // 2, "h2 gives back in larger pieces"


def test_requests_that_are_taken_back_at_once_do_not_pile_up() -> None:
    started: list[Scope] = []

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        started.append(scope)
        await asyncio.Event().wait()

    async def scenario() -> int:
        client = Client(slow)
        for _ in range(2 * MOST_TASKS):
            stream_id = client.request()
            with suppress(StreamClosedError):  # it was refused
                client.h2.reset_stream(stream_id)
            client.say()
        await client.turns()
        running = len(client.tasks)
        for task in client.tasks:
            task.cancel()
        await asyncio.wait(list(client.tasks))
        return running

    assert asyncio.run(scenario()) == len(started) == MOST_TASKS


def test_a_client_that_asks_and_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.http.http2.MOST_UNREAD_BYTES", 1_000)

    async def scenario() -> int:
        client = Client(refusing)
        pings = 0
        while not client.wire.closing:
            client.h2.ping(b"12345678")
            client.server.data_received(client.h2.data_to_send() or b"")
            pings += 1
        return pings

    assert 50 < asyncio.run(scenario()) < 100


def test_one_connection_too_many_is_not_answered() -> None:
    started: list[Scope] = []

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        started.append(scope)

    async def scenario() -> bool:
        client = Client(noting, connections=0)
        client.request()
        await client.turns()
        return client.wire.closing

    assert asyncio.run(scenario())
    assert not started


def test_those_who_say_nothing_are_no_more_than_may_come() -> None:
    async def scenario() -> list[bool]:
        connections: set[Any] = set()
        wires = [Wire() for _ in range(5)]
        sniffing = [Sniffing(list, list, Limits(connections=3), connections) for _ in wires]  # type: ignore[arg-type]
        for each, wire in zip(sniffing, wires, strict=True):
            each.connection_made(wire)
        for each in sniffing:
            each.connection_lost(None)
        return [wire.closing for wire in wires]

    assert asyncio.run(scenario()) == [False] * 4 + [True]
