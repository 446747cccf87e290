"""The small languages inside setting values: endpoints, voters, throttled replicas, offsets by duration.

Parsers raise ValueError; checks, for the property table, say what is allowed or return None.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.model.patterns import compiled
from ottla.model.properties.property import Value

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    name: str
    protocol: str
    host: str  # empty: every interface
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class HostPort(NamedTuple):
    host: str
    port: int


class Voter(NamedTuple):
    id: int
    host: str
    port: int


# The patterns are handed to `re` on use, which compiles and keeps them: a start without voters pays for none.
_LISTENER = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"
_HOST_PORT = r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)"
_HTTP = r"(https?)://(?:\[([0-9a-fA-F:.]+)\]|([0-9a-zA-Z\-._]*)):([0-9]{1,5})"
_DURATION = r"(?i)[+]?P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?"


def split_listener(text: str) -> tuple[str, str, int]:
    """Name (in capitals, as Kafka compares them), host and port of NAME://host:port."""
    match = re.fullmatch(_LISTENER, text)
    if match is None:
        raise ValueError(f"{text!r} is not a listener: NAME://host:port is expected")
    port = int(match[3])
    if not -1 <= port <= 65535:
        raise ValueError(f"{text!r} is not a listener: port {port} is not between 0 and 65535")
    return match[1].upper(), match[2], port


def host_port(text: str) -> HostPort:
    match = re.fullmatch(_HOST_PORT, text)
    if match is None or not 0 <= int(match[2]) <= 65535:
        raise ValueError(f"{text!r} is not an address: host:port is expected")
    return HostPort(match[1], int(match[2]))


def http_address(text: str, schemes: Sequence[str] = ("http",)) -> HostPort:
    """Strict: what passes here is read as a URL when the node starts, which is too late for a complaint."""
    match = re.fullmatch(_HTTP, text)
    if match is None or match[1] not in schemes or int(match[4]) > 65535 or (match[2] and not _is_ipv6(match[2])):
        expected = " or ".join(f"{scheme}://host:port" for scheme in schemes)
        raise ValueError(f"{text!r} is not an address: {expected} is expected")
    return HostPort(match[2] or match[3], int(match[4]))


def _is_ipv6(text: str) -> bool:
    from ipaddress import IPv6Address  # noqa: PLC0415  few settings have one

    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def voter(text: str) -> Voter:
    number, at, address = text.partition("@")
    if not at or not number.strip().lstrip("+").isdecimal():
        raise ValueError(f"{text!r} is not a voter: id@host:port is expected")
    return Voter(int(number), *host_port(address))


def pairs(text: str) -> dict[str, str]:
    """A map written as key:value pairs; the last colon divides, since keys may be IPv6 addresses."""
    found: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        key, colon, value = part.rpartition(":")
        if not colon:
            raise ValueError(f"{part.strip()!r} is not a pair: key:value is expected")
        found[key.strip()] = value.strip()
    return found


def assignor_name(text: str) -> str:
    """Kafka's own assignors go by their short names and by the names of their classes."""
    package, _, name = text.rpartition(".")
    return name.removesuffix("Assignor").lower() if package == "org.apache.kafka.coordinator.group.assignor" else text


def gzip_level(value: Value) -> str | None:
    return None if isinstance(value, int) and (value == -1 or 1 <= value <= 9) else "allowed is 1 to 9, or -1"


def quorum_voters(value: Value) -> str | None:
    return _first_problem(value, voter)


def host_ports(value: Value) -> str | None:
    return _first_problem(value, host_port)


def http_addresses(value: Value) -> str | None:
    return _first_problem(value, http_address)


def http_or_https_addresses(value: Value) -> str | None:
    return _first_problem(value, lambda text: http_address(text, ("http", "https")))


def _first_problem(value: Value, parse: Callable[[str], object]) -> str | None:
    assert isinstance(value, tuple)
    for entry in value:
        try:
            parse(entry)
        except ValueError as error:
            return str(error)
    return None


def throttled_replicas(value: Value) -> str | None:
    assert isinstance(value, tuple)
    if "".join(value) == "*" or all(re.fullmatch(r"([0-9]+:[0-9]+)?", entry) for entry in value):
        return None
    return "allowed is * or a list of partition:broker pairs"


def duration_ms(text: str) -> int | None:
    """Of PnDTnHnMnS, as Java's Duration reads it; None when it is something else."""
    found = re.fullmatch(_DURATION, text)
    if found is None:
        return None
    days, hours, minutes, seconds = (found.group(each) for each in (1, 3, 4, 5))
    whole = sum(
        int(part[:-1]) * unit
        for part, unit in ((days, 86_400_000), (hours, 3_600_000), (minutes, 60_000))
        if part is not None
    )
    return whole + (0 if seconds is None else int(float(seconds[:-1].replace(",", ".")) * 1000))


def share_offset_reset(value: Value) -> str | None:
    assert isinstance(value, str)
    how, colon, duration = value.partition(":")
    if how in ("latest", "earliest") and not colon:
        return None
    if how == "by_duration" and re.fullmatch(_DURATION, duration):
        return None
    return "allowed is latest, earliest or by_duration:PnDTnHnMnS"


_MATCH_NAMES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def client_match(value: Value) -> str | None:
    """KIP-714's selectors."""
    assert isinstance(value, tuple)
    for entry in value:
        name, equals, pattern = entry.partition("=")
        if not equals or not pattern.strip() or "=" in pattern or name.strip() not in _MATCH_NAMES:
            return f"allowed are name=pattern pairs, the name being one of {', '.join(_MATCH_NAMES)}"
        try:
            compiled(pattern.strip())
        except ValueError as error:
            return f"{pattern.strip()} is no regular expression: {error}"
    return None
