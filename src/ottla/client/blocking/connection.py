"""A blocking connection to one broker: a socket around `wire`. Never retries; `cluster` decides about that."""

import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.client.addresses import Address
from ottla.client.errors import ConnectionLost, NotKafka
from ottla.client.security import PLAINTEXT, Security
from ottla.client.sockets import why_lost
from ottla.client.wire import Answer, Wire
from ottla.protocol.codec import Message

if TYPE_CHECKING:
    from ssl import SSLContext

    from ottla.security.sasl.speaker import Credentials

READ_BYTES: Final = 256 << 10

R = TypeVar("R", bound=Message)


class Connection:
    """Open, negotiated, ready for requests. Any ClientError leaves it closed."""

    __slots__ = ("_answers", "_credentials", "_is_new", "_log_in_at", "_socket", "_wire", "address")

    def __init__(
        self, address: Address, sock: socket.socket, client_id: str, credentials: "Credentials | None" = None
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._is_new = True
        """Nothing but the greeting was answered yet."""
        self._log_in_at: float | None = None
        """When a session that ends is renewed."""
        self._socket = sock
        self._wire = Wire(str(address), client_id)
        self._answers: dict[int, Answer] = {}

    @classmethod
    def open(cls, address: Address, *, client_id: str, deadline: float, security: Security = PLAINTEXT) -> "Connection":
        """`deadline` is in time.monotonic() seconds. Raises OSError when nothing can be reached there."""
        sock = socket.create_connection(address, timeout=max(deadline - time.monotonic(), 0.001))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if security.tls is not None:
            sock = _secured(sock, security.tls, address.host)
        connection = cls(address, sock, client_id, security.credentials)
        try:
            connection._negotiate(deadline)
            connection._log_in(deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    def _negotiate(self, deadline: float) -> None:
        hello: bytes | None = self._wire.hello()
        while hello is not None:
            self._send(hello, deadline)
            while not (answers := self._read(deadline)):
                pass
            hello = self._wire.greeted(answers[0])

    def _log_in(self, deadline: float) -> None:
        if self._credentials is None:
            return
        from ottla.client.blocking.login import log_in  # noqa: PLC0415  for who logs in

        self._log_in_at = None
        self._log_in_at = log_in(self, self._credentials, deadline)

    def version_for(self, request: type[Message], at_most: int = 0x7FFF) -> int:
        return self._wire.version_for(request, at_most)

    def call(self, request: Message, response: type[R], *, deadline: float, at_most: int = 0x7FFF) -> R:
        return self.receive(self.submit(request, deadline=deadline, at_most=at_most), response, deadline=deadline)

    def submit(self, request: Message, *, deadline: float, at_most: int = 0x7FFF, expect_answer: bool = True) -> int:
        """Sends without waiting; `receive` takes the correlation id this returns."""
        if self._log_in_at is not None and time.monotonic() >= self._log_in_at:
            self._log_in(deadline)
        correlation, frame = self._wire.request(request, at_most=at_most, expect_answer=expect_answer)
        self._send(frame, deadline)
        return correlation

    def receive(self, correlation: int, response: type[R], *, deadline: float) -> R:
        while correlation not in self._answers:
            self.pump(deadline)
        return self._answers.pop(correlation).decode(response)

    def pump(self, deadline: float) -> None:
        """Reads once, so that answers which have arrived are `arrived`."""
        for answer in self._read(deadline):
            self._answers[answer.correlation] = answer

    def arrived(self, correlation: int) -> bool:
        return correlation in self._answers

    @property
    def busy(self) -> bool:
        """A request waits for its answer: another one would have to wait behind it."""
        return self._wire.waiting > 0

    @property
    def closed(self) -> bool:
        return self._socket.fileno() < 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _send(self, frame: bytes, deadline: float) -> None:
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error) from error

    def _read(self, deadline: float) -> Sequence[Answer]:
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            data = self._socket.recv(max(READ_BYTES, min(self._wire.missing(), 4 << 20)))
            data = _with_pending(self._socket, data)
        except OSError as error:
            raise self._lost(error) from error
        except NotKafka:
            self.close()
            raise
        if not data:
            self.close()
            # It greets everybody: who has to log in, and does not, is cut off at the first request.
            unknown = self._is_new and self._wire.is_greeted and self._credentials is None
            reason = "the broker closed it"
            raise ConnectionLost(str(self.address), why_lost(reason, "PLAINTEXT") if unknown else reason)
        try:
            answers = self._wire.received(data)
            self._is_new = self._is_new and not (answers and self._wire.is_greeted)
            return answers
        except Exception:
            self.close()
            raise

    def _lost(self, error: OSError) -> ConnectionLost:
        self.close()
        if isinstance(error, TimeoutError):
            return ConnectionLost(str(self.address), "it gave no answer in time")
        return ConnectionLost(str(self.address), error.strerror or str(error))


def _secured(sock: socket.socket, tls: "SSLContext", host: str) -> socket.socket:
    try:
        return tls.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _with_pending(sock: socket.socket, data: bytes) -> bytes:
    """And what TLS has taken from the socket already, which nobody who waits for the socket would hear of."""
    pending = getattr(sock, "pending", None)
    if pending is None or not data or not pending():
        return data
    parts = [data]
    while waiting := pending():
        parts.append(sock.recv(waiting))
    return b"".join(parts)
