"""A request to another service of the house, for who has to pass one on. One connection for each."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httptools

_READ_BYTES: Final = 64 << 10


class NoAnswer(Exception):
    """`sent` tells whether the other side may have acted on the request."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class _Reading:
    """What httptools calls."""

    def __init__(self, most_bytes: int, *, ends_with_head: bool) -> None:
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.complete = False
        self._most_bytes = most_bytes
        self._ends_with_head = ends_with_head
        """It tells the length of a body that does not follow."""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.complete = self._ends_with_head

    def on_body(self, body: bytes) -> None:
        self.body += body
        if len(self.body) > self._most_bytes:
            raise ValueError(f"an answer of more than {self._most_bytes} bytes")

    def on_message_complete(self) -> None:
        self.complete = True


async def ask(
    url: str,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    connect_s: float,
    answer_s: float,
    most_bytes: int = 64 << 20,
    tls: ssl.SSLContext | None = None,
) -> Reply:
    """`url` is scheme, host and port; `target` the path and query as they are sent. Raises NoAnswer."""
    address = urlsplit(url)
    context = (tls or ssl.create_default_context()) if address.scheme == "https" else None
    try:
        async with asyncio.timeout(connect_s):
            reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context)
    except (OSError, ValueError) as error:  # the second of what is no host or port
        raise NoAnswer(f"{url} cannot be reached: {str(error) or 'no answer in time'}", sent=False) from None
    try:
        async with asyncio.timeout(answer_s):
            writer.write(_head(address.netloc, method, target, headers, body) + body)
            return await _reply(reader, method, most_bytes)
    except (OSError, TimeoutError, ValueError, httptools.HttpParserError) as error:
        raise NoAnswer(f"{url} gave no answer: {str(error) or f'none within {answer_s:g} s'}", sent=True) from None
    finally:
        writer.close()


def _head(host: str, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    sent = {**headers, "host": host, "content-length": str(len(body)), "connection": "close"}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _reply(reader: asyncio.StreamReader, method: str, most_bytes: int) -> Reply:
    reading = _Reading(most_bytes, ends_with_head=method == "HEAD")
    parser = httptools.HttpResponseParser(reading)
    while not reading.complete:
        data = await reader.read(_READ_BYTES)
        if not data:
            raise ValueError("the connection ended before the answer did")
        parser.feed_data(data)
    return Reply(parser.get_status_code(), reading.headers, bytes(reading.body))
