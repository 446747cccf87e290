"""What both faces say of a connection that could not be made."""

import errno
import socket
from typing import Final

_WANTED: Final = {"PLAINTEXT": "TLS or a login", "SASL_PLAINTEXT": "TLS (SASL_SSL)", "SSL": "a login (SASL_SSL)"}
"""What a listener may want of a client that speaks as its security.protocol says, and does not get."""


def why_lost(reason: str, protocol: str) -> str:
    """Of a connection that ended before the first answer."""
    wanted = _WANTED.get(protocol)
    return reason if wanted is None else f"{reason}, at the first request: does its listener want {wanted}?"


NO_WAY: Final = (OSError, UnicodeError)
"""What is raised where nothing can be reached: names that no name server could know have an error of their own."""


def why_unreachable(error: OSError | UnicodeError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and type(error).__module__ == "ssl":
        from ottla.net.handshakes import words  # noqa: PLC0415  who has no TLS does without

        return f"no TLS: {words(error)}"
    if isinstance(error, socket.gaierror | UnicodeError):
        return "the host name is not known"
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there"
    return error.strerror or str(error)
