"""Addresses, as Java reads them: RFC 2396, and form encoding for parameters."""

import re
from typing import Any, Final, NamedTuple

from ottla.serdes.types import INT, STRING
from ottla.streams.expressions.functions.declare import family, takes, text

__all__ = [
    "url_decode",
    "url_encode",
    "url_fragment",
    "url_host",
    "url_parameter",
    "url_path",
    "url_port",
    "url_protocol",
    "url_query",
]
declare: Final = family("urls")

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_ILLEGAL: Final = re.compile(r"""[\x00-\x20\x7f-\xa0<>"{}|\\^`]|#.*#""")
_PARTS: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*")
_AUTHORITY: Final = re.compile(r"(?:[^@]*@)?(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9.-]*)(?::(\d*))?")
_HOST: Final = re.compile(
    r"\[.*\]|\d{1,3}(?:\.\d{1,3}){3}|(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)*[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.?"
)


class _Url(NamedTuple):
    protocol: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


def _unescaped(part: str | None) -> str | None:
    return None if part is None else _bytes_of(part).decode(errors="replace")


def _bytes_of(part: str) -> bytes:
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415  it loads much, and few need it

    return unquote_to_bytes(part)


def _form_encoded(given: str) -> str:
    from urllib.parse import quote_plus  # noqa: PLC0415  as above

    return quote_plus(given, safe="*").replace("~", "%7E")


def _read(url: str) -> _Url:
    if _ILLEGAL.search(url) or _BAD_ESCAPE.search(url):
        raise ValueError("it has characters that no URL has")
    found = _PARTS.fullmatch(url)
    assert found is not None
    protocol, authority, path, query, fragment = found.groups()
    if protocol is not None and not _SCHEME.fullmatch(protocol):
        raise ValueError(f"{protocol!r} is no protocol")
    if protocol is not None and authority is None and not path.startswith("/"):
        if not path:
            raise ValueError("there is nothing behind the protocol")
        return _Url(protocol, None, None, None, None, _unescaped(fragment))  # opaque, as mailto:
    host, port = _server(authority)
    return _Url(protocol, host, port, _unescaped(path), query, _unescaped(fragment))


def _server(authority: str | None) -> tuple[str | None, int | None]:
    """Host and port; none where the authority is some other kind of name."""
    found = None if authority is None else _AUTHORITY.fullmatch(authority)
    if found is None or not _HOST.fullmatch(found[1]):
        return None, None
    return found[1], int(found[2]) if found[2] else None


def _parameter(url: str, name: str) -> str | None:
    query = _read(url).query
    for pair in (query or "").split("&"):
        key, _, given = pair.partition("=")
        if _form_decoded(key) == name and pair:
            return _form_decoded(given)
    return None


def _form_decoded(given: str) -> str:
    if _BAD_ESCAPE.search(given):
        raise ValueError("there is a % without two digits behind it")
    return _bytes_of(given.replace("+", " ")).decode(errors="replace")


url_encode: Final = declare(
    "url_encode",
    "text",
    takes(text, gives=STRING),
    _form_encoded,
    column=lambda F, given: F.url_encode(given),
    fails=True,
    about="As a parameter of a URL: a blank becomes +. ksqlDB's URL_ENCODE_PARAM.",
)
url_decode: Final = declare(
    "url_decode",
    "text",
    takes(text, gives=STRING),
    _form_decoded,
    column=lambda F, given: F.when(~F.rlike(given, F.lit("%(?![0-9a-fA-F]{2})")), F.try_url_decode(given)),
    fails=True,
    about="What a parameter of a URL stands for; null if it cannot be read. ksqlDB's URL_DECODE_PARAM.",
)


def _part(name: str, part: str, gives: Any, about: str) -> Any:
    return declare(
        name,
        "url",
        takes(text, gives=gives),
        lambda given: getattr(_read(given), part),
        fails=True,
        about=f"{about}; null if it has none, or is no URL.",
    )


url_protocol: Final = _part("url_protocol", "protocol", STRING, "What stands before the first colon")
url_host: Final = _part("url_host", "host", STRING, "The host")
url_port: Final = _part("url_port", "port", INT, "The port, an int")
url_path: Final = _part("url_path", "path", STRING, "The path, decoded")
url_fragment: Final = _part("url_fragment", "fragment", STRING, "What stands behind #, decoded")
url_query: Final = declare(
    "url_query",
    "url",
    takes(text, gives=STRING),
    lambda given: _unescaped(_read(given).query),
    fails=True,
    about="What stands behind ?, decoded; null if it has none, or is no URL.",
)
url_parameter: Final = declare(
    "url_parameter",
    "url, name",
    takes(text, gives=STRING),
    _parameter,
    fails=True,
    about="The first parameter of that name in the query, decoded; null if it has none, or is no URL.",
)
