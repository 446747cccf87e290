"""TLS handshakes on raw sockets, from either side: who is not done in time, or does not speak TLS, is let go.

A server's half-open handshakes are bounded in time and number. When there are too many the oldest is given up: whoever
means it is done within milliseconds, so what has waited longest is what nobody will miss. However many come at once,
who is in already is served between them: a turn of the loop has so much time for handshakes, and who comes too late for
it is in the next.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import Final

from ottla.net.foreign import is_http, is_kafka
from ottla.net.secured import Secured

_RECEIVED_BYTES: Final = 16 * 1024
_TURN_S: Final = 0.002
"""A handshake takes a third of a millisecond, with a large RSA key several."""
_HUNG_UP: Final = "it hung up in the middle of the handshake"
_NO_TLS_THERE: Final = f"{_HUNG_UP}; does its listener have TLS?"
_HANGING_UP: Final = (ssl.SSLEOFError, ConnectionError)


class Spoke(Enum):
    """What came instead of a handshake that succeeds."""

    TLS = "TLS"
    HTTP = "HTTP"
    KAFKA = "Kafka without TLS"
    UNKNOWN = "neither TLS nor Kafka's protocol"
    NOTHING = "nothing"


class HandshakeFailed(Exception):
    """The socket is closed. The text says why, for people."""

    def __init__(self, why: str, spoke: Spoke = Spoke.TLS, *, late: bool = False) -> None:
        super().__init__(why)
        self.spoke = spoke
        self.late = late
        """It was given up here, and might have gone on."""


Done = Callable[[Secured], None]
Failed = Callable[[HandshakeFailed], None]


class Turn:
    """What a turn of the loop may spend. Who comes when it is spent waits, in the order of coming."""

    __slots__ = ("_loop", "_seconds", "_until", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._until: float | None = None
        """None: nothing of it is spent."""
        self._waiting: deque[Callable[[], None]] = deque()

    def has_room(self, do: Callable[[], None]) -> bool:
        """Without room it is done in a later turn."""
        if self._until is None:
            self._begin()
            return True
        if monotonic() < self._until:
            return True
        self._waiting.append(do)
        return False

    def _begin(self) -> None:
        self._until = monotonic() + self._seconds
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._until = None
        if self._waiting:
            self._begin()
        while self._waiting:
            self._waiting.popleft()()
            assert self._until is not None
            if monotonic() >= self._until:
                return


class Handshake:
    """One, from when it begins until one of `done` and `failed` is called, on the loop and never from inside `begin`. A
    socket that fails is closed."""

    __slots__ = ("_done", "_failed", "_fd", "_first", "_loop", "_secured", "_timer", "_turn", "_unsent")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        context: ssl.SSLContext,
        host: str | None = None,
        turn: Turn | None = None,
    ) -> None:
        """As a client of `host`, the name that was dialled; without one as a server. Raises ValueError for a name that
        cannot be checked."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=host is None, server_hostname=host or None)
        self._loop = loop
        self._fd = sock.fileno()
        self._secured: Secured | None = Secured(sock, tls, incoming, outgoing)
        self._first: bytes | None = b"" if host is None else None
        """The beginning of what came, until it is known what it is."""
        self._turn = turn
        """Shared with others; without one it never waits."""
        self._unsent = b""
        self._timer: asyncio.TimerHandle | None = None
        self._done: Done | None = None
        self._failed: Failed | None = None

    def begin(self, done: Done, failed: Failed, timeout_s: float) -> None:
        self._done, self._failed = done, failed
        self._timer = self._loop.call_later(timeout_s, self._timed_out, timeout_s)
        self._loop.add_reader(self._fd, self._readable)
        if self._first is None:
            self._loop.call_soon(self._step)

    def give_up(self, why: str) -> None:
        """`failed` hears of it, if nothing was decided yet."""
        self._fail(HandshakeFailed(why, Spoke.NOTHING, late=True))

    def abandon(self) -> None:
        """Nobody hears of it."""
        self._settle()
        if self._secured is not None:
            self._secured.close()
            self._secured = None

    def _readable(self) -> None:
        if self._turn is None or self._turn.has_room(self._go_on):
            self._read()
        else:
            self._loop.remove_reader(self._fd)

    def _go_on(self) -> None:
        if self._secured is not None:  # else it was given up while it waited
            self._loop.add_reader(self._fd, self._readable)
            self._read()

    def _read(self) -> None:
        assert self._secured is not None
        try:
            data = self._secured.sock.recv(_RECEIVED_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(HandshakeFailed(self._words(error), Spoke.NOTHING))
            return
        if not data:
            if self._first is None:
                self._fail(HandshakeFailed(self._words(ConnectionResetError())))
            else:
                self._fail(HandshakeFailed("it closed the connection", Spoke.NOTHING))
        elif self._first is None or self._is_tls(data):
            self._secured.incoming.write(data)
            self._step()

    def _words(self, error: OSError) -> str:
        assert self._secured is not None
        is_server = self._secured.tls.server_side
        return _HUNG_UP if is_server and isinstance(error, _HANGING_UP) else words(error)

    def _is_tls(self, data: bytes) -> bool:
        """Looks at the first bytes before OpenSSL gets them: it could only say that they are wrong."""
        assert self._first is not None and self._secured is not None
        self._first += data
        spoke = _recognised(self._first)
        if spoke is Spoke.TLS:
            self._secured.incoming.write(self._first[: -len(data)])
            self._first = None
            return True
        if spoke is not None:
            self._fail(HandshakeFailed(f"it speaks {spoke.value}", spoke))
        return False

    def _step(self) -> None:
        if self._secured is None:
            return  # given up before it began
        is_done, failure = False, None
        try:
            self._secured.tls.do_handshake()
            is_done = True
        except ssl.SSLWantReadError:
            pass
        except (OSError, ValueError) as error:
            failure = HandshakeFailed(self._words(error) if isinstance(error, OSError) else str(error))
        try:
            self._flush()  # the reason, if it failed
        except OSError as error:
            failure = failure or HandshakeFailed(self._words(error))
        if failure is not None:
            self._fail(failure)
        elif is_done and not self._unsent:
            self._succeed()

    def _flush(self) -> None:
        assert self._secured is not None
        data = self._unsent + self._secured.outgoing.read()
        if not data:
            return
        try:
            sent = self._secured.sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        self._unsent = data[sent:]
        if self._unsent:
            self._loop.add_writer(self._fd, self._step)
        else:
            self._loop.remove_writer(self._fd)

    def _succeed(self) -> None:
        done, secured = self._done, self._secured
        self._secured = None
        self._settle()
        assert done is not None and secured is not None
        done(secured)

    def _timed_out(self, timeout_s: float) -> None:
        self._fail(HandshakeFailed(f"its handshake was not done within {timeout_s:g} s", Spoke.NOTHING, late=True))

    def _fail(self, failure: HandshakeFailed) -> None:
        failed = self._failed
        if failed is not None:
            self.abandon()
            failed(failure)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._timer = self._done = self._failed = None


async def connected(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, context: ssl.SSLContext, host: str, timeout_s: float
) -> Secured:
    """The client's side; `host` is the name that was dialled. Raises HandshakeFailed; the socket is closed then, and
    when this is cancelled."""
    outcome: asyncio.Future[Secured] = loop.create_future()

    def done(secured: Secured) -> None:
        if outcome.done():
            secured.close()
        else:
            outcome.set_result(secured)

    def failed(failure: HandshakeFailed) -> None:
        if not outcome.done():
            outcome.set_exception(failure)

    try:
        handshake = Handshake(loop, sock, context, host)
    except ValueError as error:
        sock.close()
        raise HandshakeFailed(str(error)) from error
    handshake.begin(done, failed, timeout_s)
    try:
        return await outcome
    except asyncio.CancelledError:
        handshake.abandon()
        if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
            outcome.result().close()  # it was done in the same turn
        raise


def _recognised(first: bytes) -> Spoke | None:
    """None: too little to tell."""
    if first[:1] == b"\x16":
        return Spoke.TLS
    if len(first) < 4:
        return None
    size = int.from_bytes(first[:4], "big", signed=True)
    if is_http(size):
        return Spoke.HTTP
    return Spoke.KAFKA if is_kafka(size) else Spoke.UNKNOWN


class Handshakes:
    """The half-open ones of a server."""

    __slots__ = ("_loop", "_most", "_timeout_s", "_turn", "_under_way")

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float, most: int, turn_s: float = _TURN_S) -> None:
        self._loop = loop
        self._turn = Turn(loop, turn_s)
        self._timeout_s = timeout_s
        self._most = most
        self._under_way: dict[Handshake, None] = {}
        """In the order in which they began."""

    def begin(self, sock: socket.socket, context: ssl.SSLContext, done: Done, failed: Failed) -> None:
        if len(self._under_way) >= self._most:
            next(iter(self._under_way)).give_up("too many handshakes are half open, and it was the oldest")
        handshake = Handshake(self._loop, sock, context, turn=self._turn)

        def succeeded(secured: Secured) -> None:
            del self._under_way[handshake]
            done(secured)

        def ended(failure: HandshakeFailed) -> None:
            del self._under_way[handshake]
            failed(failure)

        self._under_way[handshake] = None
        handshake.begin(succeeded, ended, self._timeout_s)

    @property
    def half_open(self) -> int:
        return len(self._under_way)

    def close(self) -> None:
        for handshake in self._under_way:
            handshake.abandon()
        self._under_way.clear()


# ---- why a handshake failed, in words

_REASONS: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust the authority that signed our certificate: that has to be "
    "in its trust store (ssl.truststore.location, of librdkafka ssl.ca.location)",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side does not accept our certificate (its authority, name or dates)",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the other side does not accept our certificate (its authority, name or dates)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the other side says that our certificate has expired",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the two sides have no protocol version or cipher suite in common, or the other "
    "side asks for a certificate that it did not get",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the other side asks for a certificate (ssl.client.auth=required): give one "
    "in ssl.keystore.location",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate, and ssl.client.auth=required asks for one",
    "NO_SHARED_CIPHER": "the two sides have no cipher suite in common",
    "UNSUPPORTED_PROTOCOL": "it offers protocol versions only that ssl.enabled.protocols leaves out",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the other side does not accept our protocol versions (ssl.enabled.protocols)",
    "WRONG_VERSION_NUMBER": "what comes back is no TLS: most likely the port is for connections without it",
}


def words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_words(error)
    if isinstance(error, _HANGING_UP):
        return _NO_TLS_THERE
    reason = getattr(error, "reason", None) or ""
    return _REASONS.get(reason) or reason.replace("_", " ").lower() or error.strerror or str(error)


def _certificate_words(error: ssl.SSLCertVerificationError) -> str:
    text = error.verify_message
    if error.verify_code in (18, 19, 20, 21):  # self-signed, unknown issuer
        return f"its certificate comes from an authority that is not in the trust store ({text})"
    if error.verify_code == 10:
        return f"its certificate has expired ({text})"
    if error.verify_code == 9:
        return f"its certificate is not valid yet ({text}): is a clock wrong?"
    if error.verify_code in (62, 64):
        return f"its certificate is for other names ({text})"
    return f"its certificate is not accepted ({text})"
