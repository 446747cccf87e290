"""Rows of a client's query until its end: its limit, its client, or whoever closes it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from ottla.http.streaming import closing
from ottla.sql.server.results import Row
from ottla.sql.server.selecting import Result


async def until_closed(result: Result) -> AsyncIterator[list[Row]]:
    """Some at a time, and no more than its limit."""
    left = result.limit
    if left == 0:
        return
    # Nobody closes a pull query but its client, who ends the iterator.
    async with closing(_watched(result) if result.is_push else result.rows) as batches:
        async for batch in batches:
            rows = batch if left is None else batch[:left]
            if rows:
                yield rows
            if left is not None:
                left -= len(rows)
                if left == 0:
                    return


async def _watched(result: Result) -> AsyncIterator[list[Row]]:
    closed = asyncio.ensure_future(result.closed.wait())
    coming: asyncio.Future[list[Row] | None] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(_next(result.rows))
            await asyncio.wait((coming, closed), return_when=asyncio.FIRST_COMPLETED)
            rows = coming.result() if coming.done() else None
            if rows is None:
                return
            coming = None
            yield rows
    finally:
        closed.cancel()
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait((coming,))
        close = getattr(result.rows, "aclose", None)
        if close is not None:
            await close()


async def _next(rows: AsyncIterator[list[Row]]) -> list[Row] | None:
    return await anext(rows, None)
