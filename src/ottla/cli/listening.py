"""Where the nodes that `ottla start` makes up listen."""

import socket
from typing import Final

DEFAULT_PORT: Final = 9092
_METRICS_PORT: Final = 9404
"""Where people look for the metrics of Kafka: the JMX exporter's usual port."""
PLATFORM_PORTS: Final = {"registry": 8081, "connect": 8083, "sql": 8088}
"""By service, where people look for it."""
_LAST_PORT: Final = 65535
_EVERY_INTERFACE: Final = ("0.0.0.0", "::")


def metrics_listener(port: int, at: int = 0) -> str:
    """On loopback, for the node whose cluster begins at `port`; it is the `at`-th one."""
    return _beside(_METRICS_PORT + at, port)


def platform_listeners(port: int, *, secured: bool = False) -> dict[str, str]:
    """Of every service, on loopback, beside the node or the cluster that begins at `port`."""
    scheme = "https" if secured else "http"
    return {f"{service}.listeners": _beside(usual, port, scheme) for service, usual in PLATFORM_PORTS.items()}


def _beside(usual: int, port: int, scheme: str = "http") -> str:
    """As far from its usual port as that of clients is from 9092, so that two on one machine do not meet."""
    wanted = usual + port - DEFAULT_PORT
    return f"{scheme}://127.0.0.1:{wanted if port and 0 < wanted <= _LAST_PORT else 0}"


def listeners(host: str, port: int, controller_port: int, name: str = "PLAINTEXT") -> dict[str, str]:
    """For clients on `host`; controllers stay on loopback: all there are, are on this machine."""
    shown = f"[{host}]" if ":" in host else host
    given = {"listeners": f"{name}://{shown}:{port},CONTROLLER://127.0.0.1:{controller_port}"}
    if host in _EVERY_INTERFACE:
        # Clients cannot connect to "every interface": they are told the host's name.
        given["advertised.listeners"] = f"{name}://{socket.gethostname()}:{port}"
    return given
