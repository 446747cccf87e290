"""Where brokers listen, as people write it."""

from typing import Final, NamedTuple

DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(text: str) -> list[Address]:
    """`host:port,host:port`; the port may be left out, IPv6 stands in brackets. Raises ValueError."""
    addresses = [_parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no address is given: HOST:PORT is expected, several separated by commas")
    return addresses


def _parse_address(text: str) -> Address:
    # PLAINTEXT://host:port is what people paste out of server.properties.
    bare = text.rsplit("://", 1)[-1]
    if bare.startswith("["):
        host, _, rest = bare[1:].partition("]")
        port = rest.removeprefix(":")
    elif bare.count(":") > 1:
        host, port = bare, ""
    else:
        host, _, port = bare.partition(":")
    if not host or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(f"{text!r} is not an address: HOST:PORT is expected, such as 127.0.0.1:9092")
    return Address(host, int(port) if port else DEFAULT_PORT)
