"""A socket whose handshake is done, and the TLS that stands between it and everybody else.

OpenSSL works on memory: bytes of the socket go into `incoming`, and what is to be sent comes out of `outgoing`. It
could work on the socket itself, but then it reads each record by two calls of the system, and some clients send records
of a few bytes: librdkafka makes two of each message. Whoever has this has no socket to send by.
"""

import socket
import ssl


class Secured:
    __slots__ = ("incoming", "outgoing", "sock", "tls")

    def __init__(
        self, sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self.sock = sock
        self.tls = tls
        self.incoming = incoming
        """May hold what came right behind the handshake."""
        self.outgoing = outgoing

    @property
    def certificate(self) -> bytes | None:
        """What the other side has shown and what was accepted, as DER."""
        return self.tls.getpeercert(binary_form=True) or None

    def close(self) -> None:
        self.sock.close()
