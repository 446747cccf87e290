"""The HTTP room over real sockets: what every service of the house gets from it."""

import asyncio
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ottla.http import streaming
from ottla.http.addresses import Address
from ottla.http.answers import NO_CONTENT, Answer, Stream
from ottla.http.application import Application, Manners
from ottla.http.auth import Basic, Caller, challenge, credentials
from ottla.http.call import Call
from ottla.http.limits import Limits
from ottla.http.listening import Listening
from ottla.http.media import Media
from ottla.http.problems import Problem, confluent_body
from ottla.http.routes import Route
from ottla.http.threads import ThreadedServer
from ottla.http.tls import server_context
from tests.support.patience import eventually

PATIENCE_S = 60
LOOPBACK = Address("http", "127.0.0.1", 0)


class Order(msgspec.Struct):
    item: str
    count: int = 1


async def echo(call: Call) -> Any:
    return {"path": call.path, "query": call.query, "body": call.body, "who": call.caller.principal, "url": call.url}


async def failing(call: Call) -> Any:
    raise RuntimeError("a secret of the inside")


async def refusing(call: Call) -> Any:
    raise Problem(422, "no such thing", 42201)


async def nothing(call: Call) -> Any:
    return NO_CONTENT


async def streamed(call: Call) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        if "refuse" in call.query:
            raise Problem(409, "not now")
        for number in range(3):
            yield b"%d\n" % number
        if "break" in call.query:
            raise RuntimeError("in the midst")

    return Stream(pieces(), "text/plain")


async def silent_events(call: Call) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        yield streaming.event({"n": 1}, name="row", number="7")
        await asyncio.Event().wait()

    return streaming.events(pieces(), heartbeat_s=0.01)


OPEN: list[str] = []
"""Kinds of endless streams that somebody reads."""


async def endless(call: Call) -> Any:
    """`?kind=busy` always has something, `resting` waits in vain, `events` as well, between heartbeats."""
    kind = call.query["kind"]

    async def pieces() -> AsyncIterator[bytes]:
        OPEN.append(kind)
        try:
            yield b"x" * 1000
            while kind == "busy":
                yield b"x" * 1000
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # an end may have to wait for something
            OPEN.remove(kind)

    return streaming.events(pieces(), heartbeat_s=3600) if kind == "events" else Stream(pieces(), "text/plain")


async def unsendable(call: Call) -> Any:
    return {"what": object()}


ROUTES = (
    Route("GET", "/echo/{name}", echo, "says what it heard"),
    Route("POST", "/orders", echo, "takes an order", body=Order, needs="WRITE"),
    Route("POST", "/raw", nothing, "takes bytes", body=bytes),
    Route("GET", "/failing", failing, "fails"),
    Route("GET", "/refusing", refusing, "refuses"),
    Route("GET", "/stream", streamed, "a stream"),
    Route("GET", "/events", silent_events, "a stream that rests"),
    Route("GET", "/endless", endless, "a stream without an end"),
    Route("GET", "/unsendable", unsendable, "what JSON has no form for"),
)


@contextmanager
def serving(manners: Manners | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Address]:
    where = Address("https" if tls else "http", "127.0.0.1", 0)
    server = ThreadedServer(Listening(where, lambda address: Application(ROUTES, address, manners), tls=tls))
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with serving() as found:
        yield found


def ask(
    address: Address, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(address.host, address.port, timeout=PATIENCE_S)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_a_part_of_the_path_may_hold_a_slash_and_the_first_of_two_parameters_counts(address: Address) -> None:
    status, headers, body = ask(address, "GET", "/echo/a%2Fb?x=1&x=2&y=")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body) == {
        "path": {"name": "a/b"},
        "query": {"x": "1", "y": ""},
        "body": None,
        "who": "User:ANONYMOUS",
        "url": "/echo/a%2Fb?x=1&x=2&y=",
    }


def test_head_is_answered_as_get_without_the_body(address: Address) -> None:
    status, headers, body = ask(address, "HEAD", "/echo/a")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


def test_a_wrong_method_is_told_the_right_ones_and_a_wrong_path_nothing(address: Address) -> None:
    status, headers, body = ask(address, "DELETE", "/echo/a")
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert json.loads(body)["detail"] == "DELETE is not offered here; GET, HEAD is."
    assert ask(address, "GET", "/nowhere")[0] == 404


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "no body"),
        (b"{", "not JSON"),
        (b'{"item": 1}', "$.item"),
        (b'{"x": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"item": "\xff"}', "not"),
    ],
)
def test_a_body_that_does_not_fit_is_a_400_that_says_where(address: Address, body: bytes, told: str) -> None:
    status, headers, reply = ask(address, "POST", "/orders", body)
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert told in json.loads(reply)["detail"]


def test_bodies_and_replies_in_other_types_than_offered_are_refused(address: Address) -> None:
    assert ask(address, "POST", "/orders", b"{}", Content_Type="text/xml")[0] == 415
    assert ask(address, "GET", "/echo/a", Accept="text/html")[0] == 406


def test_what_fails_inside_is_a_500_with_a_number_and_nothing_of_the_inside(
    address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    status, _, body = ask(address, "GET", "/failing")
    told = json.loads(body)["detail"]
    assert status == 500
    assert "secret" not in told
    assert told.split()[-1].rstrip(".") in caplog.text
    assert ask(address, "GET", "/echo/a")[0] == 200


def test_an_answer_that_has_no_form_is_a_500_with_a_number_as_well(
    address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    status, headers, body = ask(address, "GET", "/unsendable")
    assert (status, headers["content-type"]) == (500, "application/problem+json")
    assert json.loads(body)["detail"].split()[-1].rstrip(".") in caplog.text


def test_a_service_words_its_errors_and_its_media_types_itself() -> None:
    v1 = "application/vnd.schemaregistry.v1+json"
    manners = Manners(media=Media((v1, "application/json"), (v1, "application/json")), problem_body=confluent_body)
    with serving(manners) as address:
        status, headers, body = ask(address, "GET", "/refusing")
        assert (status, headers["content-type"]) == (422, v1)
        assert json.loads(body) == {"error_code": 42201, "message": "no such thing"}
        assert ask(address, "GET", "/refusing", Accept="application/json")[1]["content-type"] == "application/json"


def test_a_stream_is_sent_piece_by_piece_and_an_early_refusal_is_still_a_status(address: Address) -> None:
    status, headers, body = ask(address, "GET", "/stream")
    assert (status, headers["transfer-encoding"], body) == (200, "chunked", b"0\n1\n2\n")
    assert ask(address, "GET", "/stream?refuse")[0] == 409


def test_a_stream_that_breaks_is_not_taken_for_a_whole_one(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    connection = HTTPConnection(address.host, address.port, timeout=PATIENCE_S)
    connection.request("GET", "/stream?break")
    response = connection.getresponse()
    with pytest.raises(Exception, match="IncompleteRead"):
        response.read()
    connection.close()
    assert caplog.text.count("RuntimeError: in the midst") == 1
    assert "told number" not in caplog.text


@pytest.mark.parametrize("kind", ["busy", "resting", "events"])
def test_a_stream_is_closed_when_its_client_goes_away(address: Address, kind: str) -> None:
    with socket.create_connection((address.host, address.port), PATIENCE_S) as client:
        client.sendall(b"GET /endless?kind=%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % kind.encode())
        assert client.recv(100)
        assert kind in OPEN
    eventually(lambda: kind not in OPEN, "the stream is closed")


def test_a_server_that_stops_ends_its_streams_without_a_complaint(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Manners(limits=Limits(stopping_s=0.01))) as address:
        client = socket.create_connection((address.host, address.port), PATIENCE_S)
        client.sendall(b"GET /endless?kind=resting HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(100)
    client.close()
    assert "resting" not in OPEN
    assert caplog.text == ""


def test_events_come_as_they_happen_with_comments_in_between(address: Address) -> None:
    with socket.create_connection((address.host, address.port), PATIENCE_S) as client:
        client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while heard.count(b": \n\n") < 2:
            heard += client.recv(4096)
    assert b'event: row\nid: 7\ndata: {"n":1}\n\n' in heard


class OnlyAlice:
    async def admit(self, headers: Any, host: str) -> Caller:
        found = credentials(headers)
        if not isinstance(found, Basic) or found.password != "wonder":
            raise Problem(401, "Log in.", headers=challenge("Basic"))
        return Caller(f"User:{found.user}", host)

    def may(self, caller: Caller, need: object, call: Call) -> bool:
        return caller.principal == "User:alice"


def test_the_doorkeeper_is_asked_who_this_is_and_whether_it_may() -> None:
    with serving(Manners(doorkeeper=OnlyAlice())) as address:
        status, headers, _ = ask(address, "GET", "/echo/a")
        assert (status, headers["www-authenticate"]) == (401, 'Basic realm="ottla"')
        bob = {"Authorization": "Basic Ym9iOndvbmRlcg=="}
        status, _, body = ask(address, "POST", "/orders", b'{"item": "x"}', **bob)
        assert status == 403
        assert json.loads(body)["detail"] == "User:bob may not do this: it needs WRITE."
        assert ask(address, "POST", "/orders", b'{"item": "x"}', Authorization="Basic YWxpY2U6d29uZGVy")[0] == 200


def test_pages_of_other_sites_are_no_clients_of_a_service_on_loopback(address: Address) -> None:
    assert ask(address, "GET", "/echo/a", Host="evil.example")[0] == 403
    assert ask(address, "POST", "/raw", b"x", Content_Type="application/json", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(address, "POST", "/raw", b"x", Sec_Fetch_Site="same-origin")[0] == 204


def spoken(address: Address, *said: bytes) -> bytes:
    """What comes back until the server closes."""
    with socket.create_connection((address.host, address.port), PATIENCE_S) as client:
        heard = b""
        try:
            for piece in said:
                client.sendall(piece)
            while more := client.recv(65536):
                heard += more
        except ConnectionError:
            pass  # the server has closed on what was still under way
        return heard


def test_limits_hold_on_bodies_heads_silence_and_connections() -> None:
    limits = Limits(body_bytes=1000, head_bytes=20_000, silence_s=0.2, connections=2)
    with serving(Manners(limits=limits)) as address:
        assert ask(address, "POST", "/raw", b"x" * 1001)[0] == 413
        assert ask(address, "POST", "/raw", b"x" * 1000)[0] == 204
        chunked = b"POST /raw HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert b" 413 " in spoken(address, chunked, b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
        head = b"GET /echo/a HTTP/1.1\r\nHost: localhost\r\nx: "
        assert b" 408 " in spoken(address, head)
        assert b" 408 " in spoken(address)
        endless = spoken(address, head, *[b"y" * 1000] * 2000)
        assert b" 431 " in endless or endless == b""  # a reset may overtake the words
        with (
            socket.create_connection((address.host, address.port), PATIENCE_S),
            socket.create_connection((address.host, address.port), PATIENCE_S),
        ):
            assert b" 503 " in spoken(address)
        assert ask(address, "GET", "/echo/a")[0] == 200


def test_who_drips_a_head_or_does_not_read_its_answer_is_left() -> None:
    with serving(Manners(limits=Limits(silence_s=0.2))) as address:
        with socket.create_connection((address.host, address.port), PATIENCE_S) as client:
            client.sendall(b"GET /echo/a HTTP/1.1\r\nHost: localhost\r\nx: ")
            client.settimeout(0.02)
            heard = b""
            for _ in range(int(PATIENCE_S / 0.02)):
                client.sendall(b"y")
                with suppress(TimeoutError):
                    heard = client.recv(4096)
                    break
            assert b" 408 " in heard
        with socket.create_connection((address.host, address.port), PATIENCE_S) as client:
            client.sendall(b"GET /endless?kind=busy HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(1)
            eventually(lambda: "busy" not in OPEN, "the stream that nobody reads is closed")


def test_a_body_comes_through_with_a_wish_for_another_protocol(address: Address) -> None:
    """Java's HttpClient asks for HTTP/2 with its first request, whatever that is."""
    head = b"POST /orders HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    head += b"HTTP2-Settings: AAEAAEAA\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
    last = b"GET /echo/b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n"
    heard = spoken(address, head, b'{"item":"x"}', last)
    assert heard.count(b" 200 OK") == 2
    assert b'"body":{"item":"x","count":1}' in heard
    assert b'"path":{"name":"b"}' in heard
    assert b" 400 " in spoken(address, b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n\r\n")


@pytest.mark.parametrize(
    "heads",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        b"Content-Length: 4\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n",
        b"Host: evil.example\r\nConnection: close\r\n",
    ],
)
def test_a_request_that_a_proxy_may_read_in_another_way_is_refused(address: Address, heads: bytes) -> None:
    assert b" 400 " in spoken(address, b"POST /raw HTTP/1.1\r\nHost: localhost\r\n" + heads + b"\r\n0\r\n\r\n")


def test_garbage_is_a_400_and_not_the_end(address: Address) -> None:
    assert b" 400 " in spoken(address, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert ask(address, "GET", "/echo/a")[0] == 200


def test_many_requests_go_over_one_connection(address: Address) -> None:
    connection = HTTPConnection(address.host, address.port, timeout=PATIENCE_S)
    for number in range(50):
        connection.request("GET", f"/echo/{number}")
        assert json.loads(connection.getresponse().read())["path"] == {"name": str(number)}
    connection.close()


def test_https_is_served_with_the_certificate_it_is_given(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE_S)
    with serving(tls=server_context(certificate, key)) as address:
        trusting = ssl.create_default_context(cafile=str(certificate))
        connection = HTTPSConnection(address.host, address.port, timeout=PATIENCE_S, context=trusting)
        connection.request("GET", "/echo/a")
        assert connection.getresponse().status == 200
        connection.close()


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cert.pem is not there"):
        server_context(tmp_path / "cert.pem", tmp_path / "key.pem")


def test_a_port_that_is_taken_is_an_error_at_once(address: Address) -> None:
    with pytest.raises(OSError, match="in use"):
        Listening(address, lambda _: Application((), address)).open()


def test_the_server_is_loaded_when_the_first_client_comes_and_stops_with_its_answers() -> None:
    async def life() -> None:
        made: list[Address] = []
        entered, leave = asyncio.Event(), asyncio.Event()

        async def slow(call: Call) -> Any:
            entered.set()
            await leave.wait()
            return Answer({"done": True})

        def make(address: Address) -> Application:
            made.append(address)
            return Application((Route("GET", "/slow", slow, ""),), address)

        listening = Listening(LOOPBACK, make)
        address = listening.open()
        listening.start()
        await asyncio.sleep(0)
        assert made == []
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            await entered.wait()
            assert made == [address]
            stopping = asyncio.ensure_future(listening.stop())
            await asyncio.sleep(0)
            leave.set()
            assert b'{"done":true}' in await reader.read()
            await stopping
        await listening.stop()
        writer.close()

    asyncio.run(life())


def test_a_server_that_cannot_be_made_does_not_leave_its_clients_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def life() -> None:
        def make(address: Address) -> Application:
            raise ImportError("no such module")

        listening = Listening(LOOPBACK, make)
        address = listening.open()
        listening.start()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ConnectionError):
                reader, writer = await asyncio.open_connection(address.host, address.port)
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert await reader.read() != b"", "it was closed"
        await listening.stop()

    asyncio.run(life())
    assert "no such module" in caplog.text


def test_one_that_is_still_being_loaded_stops_as_well() -> None:
    async def life() -> None:
        loop = asyncio.get_running_loop()
        begun, go_on = asyncio.Event(), threading.Event()

        def make(address: Address) -> Application:
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(PATIENCE_S)
            return Application((), address)

        listening = Listening(LOOPBACK, make)
        address = listening.open()
        listening.start()
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            await begun.wait()
            await listening.stop()
            go_on.set()
            with pytest.raises(ConnectionError):
                await reader.readexactly(1)
            writer.close()
        Listening(address, make).open()

    asyncio.run(life())


def test_one_that_nobody_asked_stops_as_well() -> None:
    async def life() -> None:
        listening = Listening(LOOPBACK, lambda address: Application((), address))
        listening.open()
        listening.start()
        await listening.stop()

    asyncio.run(life())


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head(address: Address) -> None:
    """Nagle's algorithm and delayed acknowledgements together cost 40 ms a request."""
    connection = HTTPConnection(address.host, address.port, timeout=PATIENCE_S)

    def quick() -> bool:
        times = []
        for _ in range(20):
            began = time.perf_counter()
            connection.request("GET", "/echo/a")
            connection.getresponse().read()
            times.append(time.perf_counter() - began)
        return min(times[1:]) < 0.035

    eventually(quick, "an answer in less than a delayed acknowledgement")
    connection.close()
