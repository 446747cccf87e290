"""Where the nodes that `ottla start` makes up listen."""

import socket
from typing import Final

_EVERY_INTERFACE: Final = ("0.0.0.0", "::")


def listeners(host: str, port: int, controller_port: int) -> dict[str, str]:
    """For clients on `host`; controllers stay on loopback: all there are, are on this machine."""
    shown = f"[{host}]" if ":" in host else host
    given = {"listeners": f"PLAINTEXT://{shown}:{port},CONTROLLER://127.0.0.1:{controller_port}"}
    if host in _EVERY_INTERFACE:
        # Clients cannot connect to "every interface": they are told the host's name.
        given["advertised.listeners"] = f"PLAINTEXT://{socket.gethostname()}:{port}"
    return given
