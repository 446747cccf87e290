"""From an answer to the messages of ASGI: its head, and streams piece by piece."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from ottla.http.answers import Stream
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.streaming import closing

logger = logging.getLogger(__name__)

BODILESS: Final = (204, 304)
"""Statuses of answers that are heads only."""


def start(status: int, kind: str | None, headers: Mapping[str, str], *, length: int | None) -> dict[str, Any]:
    sent = [(b"x-content-type-options", b"nosniff")]
    if kind is not None:
        sent.append((b"content-type", kind.encode("latin-1")))
    if length is not None:
        sent.append((b"content-length", str(length).encode()))
    sent += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": sent}


async def send_stream(stream: Stream, scope: Scope, receive: Receive, send: Send) -> None:
    """Ends with the stream, or with its client: uvicorn takes what is sent to nobody without a word, so a stream that
    has no end would go on for ever. Raises what goes wrong before the first piece."""
    sending = asyncio.ensure_future(_send_pieces(stream, scope, send))
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        leaving.cancel()
        await asyncio.wait((sending, leaving))
    if not sending.cancelled():
        sending.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_pieces(stream: Stream, scope: Scope, send: Send) -> None:
    async with closing(stream.pieces) as pieces:
        first = await anext(pieces, None)
        await send(start(200, stream.media_type, stream.headers, length=None))
        if first is not None and scope["method"] != "HEAD":
            await send({"type": "http.response.body", "body": first, "more_body": True})
            try:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    # A stream that is always ready must not keep the loop from others.
                    await asyncio.sleep(0)
            except Exception:
                # Too late for a status. Without its last message the server breaks the connection off.
                logger.exception("%s %s broke off in the midst of its answer", scope["method"], scope["raw_path"])
                return
    await send({"type": "http.response.body", "body": b""})
