"""As much HTTP/1.1 as queries need: GET, answered by a function, in a thread with a loop of its own.

The standard library's asyncio and some hundred lines instead of Starlette and uvicorn: four packages less for a
question and an answer in JSON, nothing to pay for at start, and a limit on everything that a stranger sends.
"""

import asyncio
import ipaddress
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

JSON: Final = "application/json"
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

HEAD_BYTES: Final = 16_384
IDLE_S: Final = 30.0
CONNECTIONS: Final = 256


class Request(NamedTuple):
    path: tuple[str, ...]
    """Its parts, each unquoted by itself: a key may hold a slash."""
    query: Mapping[str, str]


class Response(NamedTuple):
    status: HTTPStatus
    body: bytes
    kind: str = JSON


class BadRequest(ValueError):
    """The client's fault; the text says what is wrong."""


Answering = Callable[[Request], Response]


class HttpServer:
    """`start` gives the port; requests are answered one after another by `answer`, which must be quick."""

    def __init__(self, host: str, port: int, answer: Answering, failed: Callable[[HTTPStatus, str], Response]) -> None:
        """`failed` makes the answer to what is not even a request."""
        self._host = host
        self._port = port
        self._answer = answer
        self._failed = failed
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, name="ottla-queries-http", daemon=True)

    def start(self) -> int:
        """Raises OSError when the port is taken."""
        starting = asyncio.start_server(self._serve, self._host, self._port, limit=HEAD_BYTES)
        try:
            self._server = self._loop.run_until_complete(starting)
        except OSError:
            self._loop.close()
            raise
        self._thread.start()
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_forever()

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.close()
        # The tasks behind the connections end when they see them closed.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS:
            writer.close()
            return
        self._open.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection stays open."""
        keep = False
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE_S)
            method, target, keep, headers = _parsed(head)
            response = self._respond(method, target, headers)
        except asyncio.LimitOverrunError:
            method, response = (
                "GET",
                self._failed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long"),
            )
        except BadRequest as error:
            method, response = "GET", self._failed(HTTPStatus.BAD_REQUEST, str(error))
        body = b"" if method == "HEAD" else response.body
        writer.write(_head(response, keep) + body)
        await asyncio.wait_for(writer.drain(), IDLE_S)
        return keep

    def _respond(self, method: str, target: str, headers: Mapping[str, str]) -> Response:
        if method not in ("GET", "HEAD"):
            return self._failed(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not offered: stores are read with GET")
        if not self._is_for_us(headers.get("host", "")):
            return self._failed(HTTPStatus.FORBIDDEN, "the Host header names another machine than this one")
        url = urlsplit(target)
        path = tuple(unquote(part) for part in url.path.split("/")[1:])
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        return self._answer(Request(path, query))

    def _is_for_us(self, host: str) -> bool:
        """A page in a browser can make a name of its own mean 127.0.0.1 (DNS rebinding): who listens on loopback only
        answers to addresses and to localhost."""
        if not _is_loopback(self._host):
            return True
        name = urlsplit(f"//{host}").hostname or ""
        return name in ("", "localhost", self._host) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _parsed(head: bytes) -> tuple[str, str, bool, dict[str, str]]:
    """(method, target, keep alive, headers)"""
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise BadRequest("this is not an HTTP/1.1 request for a path")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest("a header has no colon")
        headers[name.strip().lower()] = value.strip()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    wish = headers.get("connection", "").lower()
    keep = wish == "keep-alive" if words[2] == "HTTP/1.0" else wish != "close"
    # A body is nothing that a question needs; rather than read it, the connection ends.
    return words[0], words[1], keep and not has_body, headers


def _head(response: Response, keep: bool) -> bytes:
    return (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
        f"Content-Type: {response.kind}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
    ).encode("latin-1")
