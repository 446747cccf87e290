"""Why an address cannot be listened on, in words that say what to do."""

import errno
import socket


def refusal(error: OSError, host: str, port: int) -> str:
    where = f"cannot listen on {host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: another process does. Stop it, or choose another port with --port N "
            "(with a file: in its listeners)"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            f"{where}: {host} is not an address of this machine. Choose one that is with --host ADDRESS (with a file: "
            "in its listeners; what clients are to call it stands in advertised.listeners)"
        )
    if error.errno == errno.EACCES:
        return f"{where}: this user may not take port {port}. Choose one from 1024 on with --port N or in listeners"
    return f"{where}: {error.strerror or error}"
