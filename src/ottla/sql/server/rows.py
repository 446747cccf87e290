"""Rows of a client's query until its end: its limit, its client, or whoever closes it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from ottla.http.streaming import closing
from ottla.sql.server.selecting import Result


def until_closed(result: Result) -> AsyncIterator[list[Any]]:
    """Nobody closes a pull query but its client, who ends the iterator."""
    return _until_closed(result) if result.is_push else _up_to_limit(result)


async def _up_to_limit(result: Result) -> AsyncIterator[list[Any]]:
    async with closing(result.rows) as rows:
        sent = 0
        while result.limit is None or sent < result.limit:
            row = await anext(rows, None)
            if row is None:
                return
            sent += 1
            yield row


async def _until_closed(result: Result) -> AsyncIterator[list[Any]]:
    rows = result.rows
    closed = asyncio.ensure_future(result.closed.wait())
    coming: asyncio.Future[Any] | None = None
    sent = 0
    try:
        while result.limit is None or sent < result.limit:
            coming = asyncio.ensure_future(_next(rows))
            await asyncio.wait((coming, closed), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                return
            row = coming.result()
            coming = None
            if row is None:
                return
            sent += 1
            yield row
    finally:
        closed.cancel()
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait((coming,))
        close = getattr(rows, "aclose", None)
        if close is not None:
            await close()


async def _next(rows: AsyncIterator[list[Any]]) -> list[Any] | None:
    return await anext(rows, None)
