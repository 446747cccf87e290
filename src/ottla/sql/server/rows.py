"""Rows of a client's query until its end: its limit, its client, or whoever closes it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from ottla.sql.server.engine import Result


async def until_closed(result: Result) -> AsyncIterator[list[Any]]:
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
