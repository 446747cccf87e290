"""Addresses as Java writes them, for ACLs hold that text and are compared with it, letter by letter.

IPv4 is as everywhere. IPv6 has eight groups, none left out: the local host is 0:0:0:0:0:0:0:1, and an entry for `::1`
never counts in Kafka.
"""

from typing import Final

_GROUPS: Final = 8


def as_java(host: str) -> str:
    """Of an address as sockets tell it; what is none stays as it is."""
    address, percent, zone = host.partition("%")
    if ":" not in address or "." in address:
        return host
    head, gap, tail = address.partition("::")
    before, after = [[group for group in part.split(":") if group] for part in (head, tail)]
    zeros = ["0"] * (_GROUPS - len(before) - len(after)) if gap else []
    try:
        groups = [format(int(group, 16), "x") for group in (*before, *zeros, *after)]
    except ValueError:
        return host
    return ":".join(groups) + percent + zone if len(groups) == _GROUPS else host


def address_text(packed: bytes) -> str:
    """Of 4 or 16 bytes. Raises ValueError."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    if len(packed) == 2 * _GROUPS:
        return ":".join(format(int.from_bytes(packed[at : at + 2]), "x") for at in range(0, 2 * _GROUPS, 2))
    raise ValueError(f"an address has 4 or 16 bytes, not {len(packed)}")


def address_bytes(host: str) -> bytes:
    """The reverse, of either spelling. Raises ValueError."""
    address = as_java(host).partition("%")[0]
    if ":" in address:
        groups = [int(group, 16) for group in address.split(":")]
        return b"".join(group.to_bytes(2) for group in groups)
    return bytes(map(int, address.split(".")))
