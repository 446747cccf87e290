"""Reads what a URL has, bounded in size and time: keys and tokens of whoever issues them. Waits, so for a thread."""

import time
from collections.abc import Mapping
from typing import Final

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
        with urllib.request.build_opener(NoRedirect).open(request, timeout=timeout_s) as answer:
            while piece := answer.read1(_PIECE) if hasattr(answer, "read1") else answer.read(_PIECE):
                size += len(piece)
                if size > max_bytes:
                    raise ValueError(f"it is larger than {max_bytes} bytes ({limit})")
                if time.monotonic() > end:
                    raise ValueError(f"it takes longer than {timeout_s:g} s")
                pieces.append(piece)
    except HTTPException as error:  # neither of the two, and it comes through urllib as it is
        raise ValueError(f"what answers there does not speak HTTP ({error!r})") from error
    return b"".join(pieces)
