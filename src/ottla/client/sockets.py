"""What both faces say of a connection that could not be made."""

import errno
import socket


def why_lost(reason: str, *, is_plain: bool) -> str:
    """Of a connection that ended before the first answer."""
    return f"{reason}, at the first request: does its listener want TLS or a login?" if is_plain else reason


def why_unreachable(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if type(error).__module__ == "ssl":
        from ottla.net.handshakes import words  # noqa: PLC0415  who has no TLS does without

        return f"no TLS: {words(error)}"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there"
    return error.strerror or str(error)
