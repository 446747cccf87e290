"""What both faces say of a connection that could not be made."""

import errno
import socket


def why_unreachable(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there"
    return error.strerror or str(error)
