"""A blocking socket that speaks Kafka, for tests that need a say in every byte.

`Wire.ask` is one request and its answer; `send`, `receive` and the raw forms are there for tests of order, of broken
frames and of silence.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from struct import pack, unpack
from types import TracebackType
from typing import Any, Self

from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import Message
from ottla.protocol.frames import RequestHeader, decode_response_header, encode_request
from tests.support.patience import PATIENCE_SECONDS

DEADLINE_S = PATIENCE_SECONDS
"""Far more than anything takes, also on a machine with twenty other things to do: a slow test is not a wrong one."""

SERVED_BY_KAFKA_4_3 = {18: 4}
"""Where the schemas know a version that Apache Kafka 4.3.1 does not serve."""


def latest(key: int) -> int:
    return SERVED_BY_KAFKA_4_3.get(key, API[key].stable_max)


def versions(key: int) -> range:
    """Every version of an API that Apache Kafka 4.3.1 serves."""
    return range(API[key].min_version, latest(key) + 1)


class Closed(Exception):
    """The server hung up."""


class Wire:
    """One connection."""

    def __init__(self, bootstrap: str, client_id: str | None = "wire-test", *, source: str | None = None) -> None:
        """`source` is the own address, of those that the loopback has."""
        host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
        own = None if source is None else (source, 0)
        self._socket = socket.create_connection((host, int(port)), timeout=DEADLINE_S, source_address=own)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The answer to a request, at its latest version unless told."""
        if version is None:
            version = latest(request.API_KEY)
        self.send(request, version)
        return self.receive(request.API_KEY, version)

    def send(self, request: Message, version: int | None = None) -> int:
        """Returns the correlation id."""
        if version is None:
            version = latest(request.API_KEY)
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        self._socket.sendall(encode_request(header, request))
        return self._correlation_id

    def receive(self, key: int, version: int | None = None) -> Any:
        return self.receive_numbered(key, version)[1]

    def receive_numbered(self, key: int, version: int | None = None) -> tuple[int, Any]:
        """The correlation id of the next response, and the response; all of its bytes must belong to it."""
        if version is None:
            version = latest(key)
        frame = self.receive_frame()
        correlation_id, pos = decode_response_header(frame, key, version)
        response, end = messages.response_class(key).DECODERS[version](frame, pos)
        assert end == len(frame), f"{len(frame) - end} bytes follow the response to {API[key].name} v{version}"
        return correlation_id, response

    def send_frame(self, payload: bytes) -> None:
        """Header and body as they are, behind a true size."""
        self.send_bytes(pack(">i", len(payload)) + payload)

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        (size,) = unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not piece:
                raise Closed(f"after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    def is_closed_by_peer(self) -> bool:
        """Waits until the server hangs up; False if it sends something instead."""
        try:
            return not self._socket.recv(1)
        except ConnectionError:
            return True


@contextmanager
def connections(bootstrap: str, count: int) -> Iterator[list[Wire]]:
    wires = [Wire(bootstrap) for _ in range(count)]
    try:
        yield wires
    finally:
        for wire in wires:
            wire.__exit__(None, None, None)


class Deadline:
    """Lets a loop ask again until something has come about, and fails the test when it does not in time."""

    def __init__(self, what: str, seconds: float = DEADLINE_S) -> None:
        self._what = what
        self._end = time.monotonic() + seconds

    def check(self, seen: object = None) -> None:
        assert time.monotonic() < self._end, f"{self._what} did not come about; last seen: {seen}"
