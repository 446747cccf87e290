"""Where a service listens, as its settings say it: `http://127.0.0.1:8081`."""

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from ottla.model.properties.property import Value


class Address(NamedTuple):
    scheme: str
    host: str
    """Empty: every address of the machine."""
    port: int
    """0: any free one."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or (is_number(self.host) and ipaddress.ip_address(self.host).is_loopback)


def parse(text: str) -> Address:
    """Raises ValueError with what is wrong and what is expected."""
    try:
        url = urlsplit(text.strip())
        port = url.port
    except ValueError as error:
        raise ValueError(f"{text}: {error}; http://host:port is expected") from None
    if url.scheme not in ("http", "https") or port is None or url.path not in ("", "/") or url.query or url.username:
        raise ValueError(f"{text}: http://host:port or https://host:port is expected")
    return Address(url.scheme, url.hostname or "", port)


def why_wrong(value: Value) -> str | None:
    """Of a setting that lists addresses; None if it can be taken."""
    assert isinstance(value, tuple)
    try:
        for each in value:
            parse(each)
    except ValueError as error:
        return str(error)
    return None


def is_number(name: str) -> bool:
    """An address of IPv4 or IPv6, not a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def may_be_called(listening_on: Address, host_header: str) -> bool:
    """Whether a request that names this host is meant for us. A page in a browser can make a name of its own mean
    127.0.0.1 (DNS rebinding), so who listens on loopback only answers to addresses and to localhost."""
    if not listening_on.is_loopback:
        return True
    try:
        name = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return False
    return name in ("", "localhost", listening_on.host) or is_number(name)
