"""TLS handshakes on raw sockets, from either side: who is not done in time, or does not speak TLS, is let go.

A server's half-open handshakes are bounded in time and number. When there are too many the oldest is given up: whoever
means it is done within milliseconds, so what has waited longest is what nobody will miss.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from enum import Enum
from typing import Final

from ottla.net.foreign import is_http, is_kafka, is_tls

_FIRST_BYTES: Final = 5


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


Done = Callable[[ssl.SSLSocket], None]
Failed = Callable[[HandshakeFailed], None]


class Handshake:
    """One, from when it begins until one of `done` and `failed` is called, on the loop and never from inside `begin`. A
    socket that fails is closed."""

    __slots__ = ("_context", "_done", "_failed", "_fd", "_host", "_loop", "_secured", "_sock", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, context: ssl.SSLContext, host: str | None = None
    ) -> None:
        """As a client of `host`, the name that was dialled; without one as a server."""
        self._loop = loop
        self._sock: socket.socket | None = sock
        self._fd = sock.fileno()
        self._context = context
        self._host = host
        self._secured: ssl.SSLSocket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done: Done | None = None
        self._failed: Failed | None = None

    def begin(self, done: Done, failed: Failed, timeout_s: float) -> None:
        self._done, self._failed = done, failed
        self._timer = self._loop.call_later(timeout_s, self._timed_out, timeout_s)
        if self._host is None:
            self._loop.add_reader(self._fd, self._first_came)
        else:
            self._loop.call_soon(self._wrap)

    def give_up(self, why: str) -> None:
        """`failed` hears of it, if nothing was decided yet."""
        self._fail(HandshakeFailed(why, Spoke.NOTHING, late=True))

    def abandon(self) -> None:
        """Nobody hears of it."""
        self._settle()
        for sock in (self._secured, self._sock):
            if sock is not None:
                sock.close()
        self._secured = self._sock = None

    def _first_came(self) -> None:
        """Looks at the first bytes before OpenSSL takes them: it could only say that they are wrong."""
        assert self._sock is not None
        try:
            first = self._sock.recv(_FIRST_BYTES, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(HandshakeFailed(f"the connection broke: {error.strerror or error}", Spoke.NOTHING))
            return
        spoke = _recognised(first)
        if spoke is Spoke.TLS:
            self._wrap()
        else:
            why = "it closed the connection" if spoke is Spoke.NOTHING else f"it speaks {spoke.value}"
            self._fail(HandshakeFailed(why, spoke))

    def _wrap(self) -> None:
        if self._sock is None:
            return  # given up before it began
        try:
            self._secured = self._context.wrap_socket(
                self._sock,
                server_side=self._host is None,
                server_hostname=self._host or None,
                do_handshake_on_connect=False,
            )
        except (OSError, ValueError) as error:
            self._fail(HandshakeFailed(str(error)))
            return
        self._sock = None  # detached: the descriptor is the other's now
        self._step()

    def _step(self) -> None:
        secured = self._secured
        assert secured is not None
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(self._fd, self._step)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(self._fd, self._step)
        except OSError as error:
            self._fail(HandshakeFailed(words(error)))
        except ValueError as error:  # a name that cannot be checked
            self._fail(HandshakeFailed(str(error)))
        else:
            done, self._secured = self._done, None
            self._settle()
            assert done is not None
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
) -> ssl.SSLSocket:
    """The client's side; `host` is the name that was dialled. Raises HandshakeFailed; the socket is closed then, and
    when this is cancelled."""
    outcome: asyncio.Future[ssl.SSLSocket] = loop.create_future()

    def done(secured: ssl.SSLSocket) -> None:
        if outcome.done():
            secured.close()
        else:
            outcome.set_result(secured)

    def failed(failure: HandshakeFailed) -> None:
        if not outcome.done():
            outcome.set_exception(failure)

    handshake = Handshake(loop, sock, context, host)
    handshake.begin(done, failed, timeout_s)
    try:
        return await outcome
    except asyncio.CancelledError:
        handshake.abandon()
        raise


def _recognised(first: bytes) -> Spoke:
    if not first:
        return Spoke.NOTHING
    size = int.from_bytes(first[:4].ljust(4, b"\0"), "big", signed=True)
    if is_tls(size) or first == b"\x16":
        return Spoke.TLS
    if is_http(size):
        return Spoke.HTTP
    return Spoke.KAFKA if is_kafka(size) else Spoke.UNKNOWN


class Handshakes:
    """The half-open ones of a server."""

    __slots__ = ("_loop", "_most", "_timeout_s", "_under_way")

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float, most: int) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._most = most
        self._under_way: dict[Handshake, None] = {}
        """In the order in which they began."""

    def begin(self, sock: socket.socket, context: ssl.SSLContext, done: Done, failed: Failed) -> None:
        if len(self._under_way) >= self._most:
            next(iter(self._under_way)).give_up("too many handshakes are half open, and it was the oldest")
        handshake = Handshake(self._loop, sock, context)

        def succeeded(secured: ssl.SSLSocket) -> None:
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
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust the authority that signed our certificate",
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
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return "it hung up in the middle of the handshake; does its listener have TLS?"
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
