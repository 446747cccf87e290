"""/ws/query: a query over a WebSocket. The question stands in the path, rows come as text frames.

    ws://127.0.0.1:8088/ws/query?request={"ksql": "SELECT * FROM orders EMIT CHANGES;", "streamsProperties": {}}

The first frame is the schema, each further one a row; of PRINT each is a line. The server closes with 1000 and "done";
what is wrong closes with 1003 (the statement) or 1011 (the server) and the reason.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from ottla.client.errors import ClientError
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.problems import Problem
from ottla.http.streaming import closing
from ottla.sql.api.bodies import KsqlRequest, variables
from ottla.sql.api.doors import SqlDoor
from ottla.sql.errors import SqlError
from ottla.sql.plain import json_text
from ottla.sql.server.askers import Asker
from ottla.sql.server.engine import Engine
from ottla.sql.server.entities import schema_of
from ottla.sql.server.printing import Printed
from ottla.sql.server.rows import until_closed

logger = logging.getLogger(__name__)

PATH: Final = "/ws/query"
_DONE: Final = 1000
_CANNOT_ACCEPT: Final = 1003
_SERVER_ERROR: Final = 1011
_LONGEST_REASON: Final = 120
"""Bytes of UTF-8 that a closing frame has room for, and a few less."""


class WebSocketQueries:
    def __init__(self, engine: Engine, door: SqlDoor) -> None:
        self._engine = engine
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # that it wants to connect
        try:
            asker = await self._door.admitted(scope)
        except Problem as problem:
            logger.info("a WebSocket is not opened: %s", problem)
            await send({"type": "websocket.close"})  # before it was accepted: 403
            return
        await send({"type": "websocket.accept"})
        sending = asyncio.ensure_future(self._answer(scope, send, asker))
        leaving = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))
        if not sending.cancelled():
            sending.result()

    async def _answer(self, scope: Scope, send: Send, asker: Asker) -> None:
        code, reason = _DONE, "done"
        try:
            request = _request(scope)
            async with closing(self._frames(request, asker)) as frames:
                async for frame in frames:
                    await send({"type": "websocket.send", "text": frame})
                    await asyncio.sleep(0)
        except SqlError as error:
            code, reason = _CANNOT_ACCEPT if error.code < 50000 else _SERVER_ERROR, str(error)
        except ClientError as error:
            code, reason = _SERVER_ERROR, str(error)
        cut = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
        with suppress(RuntimeError):  # the client has closed already
            await send({"type": "websocket.close", "code": code, "reason": cut})

    async def _frames(self, request: KsqlRequest, asker: Asker) -> AsyncIterator[str]:
        given = variables(request.session_variables)
        result = await self._engine.select(request.ksql, request.streams_properties or {}, given, asker)
        if isinstance(result, Printed):
            async with closing(result.lines) as lines:
                async for line in lines:
                    yield line
            return
        yield json.dumps([{"name": name, "schema": schema_of(kind)} for name, kind in result.columns])
        try:
            async with closing(until_closed(result)) as batches:
                async for rows in batches:
                    for row in rows:
                        yield f'{{"row":{{"columns":{json_text(row)}}}}}'
        finally:
            self._engine.clients.ended(result)


def _request(scope: Scope) -> KsqlRequest:
    """Raises SqlError."""
    try:
        given: Any = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=10)
        return msgspec.json.decode(given["request"][0], type=KsqlRequest)
    except (ValueError, LookupError, msgspec.MsgspecError):
        raise SqlError(40000, 'the path ends with ?request={"ksql": "SELECT ..."}') from None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass
