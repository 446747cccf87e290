"""Hosts that settings and quotas name, as addresses: what clients come from. Looked up beside the loop, not by it."""

import asyncio
import socket
from typing import Final

_LOOKUP_S: Final = 10.0


def address_in(text: str) -> str | None:
    """As connections tell it; None if it is a name."""
    import ipaddress  # noqa: PLC0415  few addresses have limits

    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return None


async def addresses_of(host: str) -> tuple[str, ...]:
    """Raises OSError."""
    try:
        async with asyncio.timeout(_LOOKUP_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise OSError(f"nobody has told it within {_LOOKUP_S:g} s") from None
    except UnicodeError as error:
        raise OSError(f"no name of a host: {error}") from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))
