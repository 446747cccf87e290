"""Streams of lines and of server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from ottla.http import bodies, media
from ottla.http.answers import Stream

HEARTBEAT: Final = b": \n\n"
"""A comment: it keeps proxies from closing a stream on which nothing happens."""


@asynccontextmanager
async def closing(pieces: AsyncIterator[Any]) -> AsyncIterator[AsyncIterator[Any]]:
    """A generator that is not read to its end is ended here, and not whenever its memory is wanted."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def lines(values: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    """One JSON value a line."""
    async with closing(values):
        async for value in values:
            yield bodies.written(value) + b"\n"


def event(data: Any, *, name: str | None = None, number: str | None = None) -> bytes:
    """One server-sent event. `number` comes back as Last-Event-ID when the client resumes."""
    head = (f"event: {name}\n" if name else "") + (f"id: {number}\n" if number else "")
    return head.encode() + b"data: " + bodies.written(data).replace(b"\n", b"\ndata: ") + b"\n\n"


def events(pieces: AsyncIterator[bytes], *, heartbeat_s: float = 15.0) -> Stream:
    return Stream(with_heartbeats(pieces, heartbeat_s), media.EVENTS, {"cache-control": "no-store"})


async def with_heartbeats(
    pieces: AsyncIterator[bytes], every_s: float, beat: bytes = HEARTBEAT
) -> AsyncIterator[bytes]:
    """What comes, and something without meaning whenever nothing came for so long."""
    ended = object()

    async def following() -> bytes | object:
        return await anext(pieces, ended)

    async with closing(pieces):
        coming = asyncio.ensure_future(following())
        try:
            while True:
                done, _ = await asyncio.wait((coming,), timeout=every_s)
                if not done:
                    yield beat
                    continue
                piece = coming.result()
                if piece is ended:
                    return
                assert isinstance(piece, bytes)
                yield piece
                coming = asyncio.ensure_future(following())
        finally:
            coming.cancel()
            await asyncio.wait((coming,))
