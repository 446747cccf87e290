"""Where somebody else's service is, as people write it: `https://user:password@host:8083/path`."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_LOGIN: Final = re.compile(r"//[^/@]*@")


def service_url(url: str, whose: str) -> SplitResult:
    """`whose`: as in "registry". Raises ValueError for what can be no address of one, without the password in it."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")  # as sockets do, to which it would be a UnicodeError
    except ValueError:
        is_one = False
    if not is_one:
        said = _LOGIN.sub("//", url)
        raise ValueError(f"{said!r} is no {whose}'s address: http://HOST:PORT or https://HOST:PORT is expected")
    return parts
