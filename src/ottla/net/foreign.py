"""Other protocols by their first bytes: whoever takes the port for another one is told so, instead of being told of a
request of a gigabyte."""

from typing import Final

_HTTP: Final = frozenset(
    (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"CONN", b"OPTI", b"TRAC", b"PATC", b"PRI ")  # the last is HTTP/2's
)
_TLS_HANDSHAKE: Final = b"\x16\x03"
_FIRST_REQUEST_BYTES: Final = 1 << 16
_TEXT: Final = b"This port speaks Kafka's protocol, not HTTP.\n"
HTTP_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
    % (len(_TEXT), _TEXT)
)


def is_http(size: int) -> bool:
    """`size` is what the first four bytes would say as the size of a Kafka request."""
    return _bytes(size) in _HTTP


def is_tls(size: int) -> bool:
    return _bytes(size).startswith(_TLS_HANDSHAKE)


def is_kafka(size: int) -> bool:
    """A size that a first request may have: no client greets with more."""
    return 0 < size < _FIRST_REQUEST_BYTES


def _bytes(size: int) -> bytes:
    return size.to_bytes(4, "big", signed=True)
