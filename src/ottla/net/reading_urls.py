"""Reads what a URL has, bounded in size and time: keys and tokens of whoever issues them. Waits, so for a thread."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from urllib.request import BaseHandler

_PIECE: Final = 64 * 1024


def read_url(
    url: str,
    *,
    timeout_s: float,
    max_bytes: int,
    limit: str = "what is allowed",
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """With one deadline for all of it: a server that sends a byte now and then must not hold the thread. `limit` is the
    setting that says how large it may be. Raises OSError, ValueError."""
    import urllib.request  # noqa: PLC0415  for who has OAUTHBEARER
    from http.client import HTTPException  # noqa: PLC0415

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        """It is where the settings say, and secrets go nowhere else."""

        def redirect_request(self, *_: object) -> None:
            return None

    end = time.monotonic() + timeout_s
    pieces: list[bytes] = []
    size = 0
    request = urllib.request.Request(url, data, dict(headers or {}))
    try:
        with (
            _cut_off(timeout_s) as connecting,
            urllib.request.build_opener(NoRedirect, *connecting).open(request, timeout=timeout_s) as answer,
        ):
            while piece := answer.read1(_PIECE) if hasattr(answer, "read1") else answer.read(_PIECE):
                size += len(piece)
                if size > max_bytes:
                    raise ValueError(f"it is larger than {max_bytes} bytes ({limit})")
                pieces.append(piece)
                if time.monotonic() > end:
                    break
            if time.monotonic() > end:  # and what has come looks whole, perhaps: the connection was cut off
                raise ValueError(f"it takes longer than {timeout_s:g} s")
    except HTTPException as error:  # neither of the two, and it comes through urllib as it is
        raise ValueError(f"what answers there does not speak HTTP ({error!r})") from error
    return b"".join(pieces)


@contextmanager
def _cut_off(after_s: float) -> "Iterator[list[BaseHandler]]":
    """Ways to connect that end after so long. The library's own timeout is for each piece of an answer, so that headers
    that drip in would be waited for as long as they drip."""
    import urllib.request  # noqa: PLC0415
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415

    made: list[HTTPConnection] = []

    def noted(connection: HTTPConnection) -> HTTPConnection:
        made.append(connection)
        return connection

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(lambda *to, **how: noted(HTTPConnection(*to, **how)), req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(lambda *to, **how: noted(HTTPSConnection(*to, **how)), req)

    def cut() -> None:
        for connection in made:
            if isinstance(connection.sock, socket.socket):
                with suppress(OSError):
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # of the bare socket, TLS or not

    timer = threading.Timer(after_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield [Http(), Https()]
    finally:
        timer.cancel()
