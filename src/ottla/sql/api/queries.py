"""/query-stream, /query and /close-query: rows of a query, as they come."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from ottla.client.errors import ClientError
from ottla.http.answers import Answer, Stream
from ottla.http.call import Call
from ottla.http.media import JSON, TEXT
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.http.streaming import closing, with_heartbeats
from ottla.sql.api.bodies import (
    DELIMITED,
    KSQL_JSON,
    PROTOBUF,
    CloseQueryRequest,
    KsqlRequest,
    QueryStreamRequest,
    cluster_problem,
    problem_body,
    problem_of,
    variables,
)
from ottla.sql.api.doors import SqlDoor
from ottla.sql.errors import SqlError
from ottla.sql.functions.declare import Refused
from ottla.sql.plain import json_text
from ottla.sql.server.engine import Engine
from ottla.sql.server.entities import columns_text
from ottla.sql.server.printing import Printed
from ottla.sql.server.protobuf_rows import ProtobufRows
from ottla.sql.server.results import Row
from ottla.sql.server.rows import until_closed
from ottla.sql.server.selecting import Result
from ottla.sql.types import sql_text

_LAST: Final = ('{"finalMessage"', '{"errorMessage"')
_AT_ONCE: Final = 64 << 10
"""Bytes of an answer that go in one piece."""
_BLANK_LINE_S: Final = 1.0
"""How often /query says that a push query without rows goes on, as in ksqlDB: its clients read with a timeout, and
PyPI's `ksql` counts by these lines for how long nothing came."""


class Queries:
    def __init__(self, engine: Engine, door: SqlDoor) -> None:
        self._engine = engine
        self._door = door

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("POST", "/query-stream", self.stream, "Rows of a SELECT, a line each.", body=QueryStreamRequest),
            Route("POST", "/query", self.query, "Rows of a SELECT, as one array.", body=KsqlRequest),
            Route("POST", "/close-query", self.close, "Ends a push query.", body=CloseQueryRequest),
        )

    async def stream(self, call: Call) -> Any:
        request: QueryStreamRequest = call.body
        result = await self._selected(call, request.sql, request.properties, request.session_variables)
        if isinstance(result, Printed):
            return Stream(_ended(_single(result.lines)), TEXT)
        accept = call.headers.get("accept", "")
        kind = DELIMITED if not accept or accept.strip() == "*/*" else call.reply_type
        if kind == KSQL_JSON:
            return await _sent(result, _by_lines(self._as_objects(result)), KSQL_JSON)
        if kind == PROTOBUF:
            return await self._messages(result)
        lines = self._lines(result)
        if kind == JSON:
            return await _sent(result, _with_commas(lines), JSON)
        return await _sent(result, _ended(lines), DELIMITED)

    async def query(self, call: Call) -> Any:
        request: KsqlRequest = call.body
        result = await self._selected(call, request.ksql, request.streams_properties, request.session_variables)
        if isinstance(result, Printed):
            return Stream(_ended(_single(result.lines)), TEXT)
        if call.reply_type == PROTOBUF:
            return await self._messages(result)
        kind = JSON if call.reply_type == JSON else KSQL_JSON
        pieces = _by_lines(self._as_objects(result))
        return await _sent(result, with_heartbeats(pieces, _BLANK_LINE_S, b"\n") if result.is_push else pieces, kind)

    async def _messages(self, result: Result) -> Any:
        try:
            rows = ProtobufRows(result.columns)
        except Refused as error:
            self._engine.clients.ended(result)
            raise Problem(400, str(error), 40000) from None
        return await _sent(result, _by_lines(self._as_objects(result, rows)), PROTOBUF)

    async def close(self, call: Call) -> Any:
        request: CloseQueryRequest = call.body
        found = self._engine.clients.running.get(request.query_id)
        if found is None:
            raise Problem(400, f"there is no push query {request.query_id}", 40000)
        try:
            self._door.asker(call.caller, call.headers).check_ends(found.owner)
        except SqlError as error:
            raise problem_of(error) from None
        found.closed.set()
        return Answer({}, 200)

    async def _selected(
        self, call: Call, text: str, properties: dict[str, Any] | None, given: dict[str, Any] | None
    ) -> Result | Printed:
        asker = self._door.asker(call.caller, call.headers)
        try:
            return await self._engine.select(text, properties or {}, variables(given), asker)
        except SqlError as error:
            raise problem_of(error) from None
        except ClientError as error:
            raise cluster_problem(error) from error

    # ---- forms

    async def _lines(self, result: Result) -> AsyncIterator[list[str]]:
        """A head, then an array for each row; some lines at a time."""
        head = {
            "queryId": result.query_id if result.is_push else None,
            "columnNames": [name for name, _ in result.columns],
            "columnTypes": [sql_text(kind) for _, kind in result.columns],
        }
        yield [json.dumps(head)]
        async with closing(self._rows(result)) as batches:
            async for rows in batches:
                yield [rows] if isinstance(rows, str) else list(map(json_text, rows))

    async def _as_objects(self, result: Result, protobuf: ProtobufRows | None = None) -> AsyncIterator[list[str]]:
        head = {"queryId": result.query_id, "schema": columns_text(result.columns, result.keys)}
        if protobuf is not None:
            head["protoSchema"] = protobuf.schema
        yield [json.dumps({"header": head})]
        sent = 0
        async with closing(self._rows(result)) as batches:
            async for rows in batches:
                if isinstance(rows, str):
                    yield [f'{{"errorMessage":{rows}}}']
                    return
                sent += len(rows)
                if protobuf is not None:
                    yield [f'{{"row":{{"protobufBytes":"{protobuf.encoded(row)}"}}}}' for row in rows]
                else:
                    yield [f'{{"row":{{"columns":{json_text(row)}}}}}' for row in rows]
        if result.limit is not None and sent >= result.limit:
            yield ['{"finalMessage":"Limit Reached"}']
        else:
            yield ['{"finalMessage":"Query Completed"}']

    async def _rows(self, result: Result) -> AsyncIterator[list[Row] | str]:
        """Rows, and in the end the error as JSON, if one was the end."""
        try:
            async with closing(until_closed(result)) as batches:
                async for rows in batches:
                    yield rows
        except SqlError as error:
            yield json.dumps(problem_body(problem_of(error)))
        except ClientError as error:
            yield json.dumps(problem_body(cluster_problem(error)))
        finally:
            self._engine.clients.ended(result)


async def _sent(result: Result, pieces: AsyncIterator[bytes], kind: str) -> Answer | Stream:
    """What is short and has an end goes as a whole: one write instead of one for each row."""
    if result.is_push:
        return Stream(pieces, kind)
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        begun.append(piece)
        size += len(piece)
        if size > _AT_ONCE:
            return Stream(_resumed(b"".join(begun), pieces), kind)
    return Answer(b"".join(begun), media_type=kind)


async def _resumed(begun: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What is there goes together; rows of slices that are computed at once, too."""
    async with closing(pieces):
        yield begun
        some: list[bytes] = []
        size = 0
        async for piece in pieces:
            some.append(piece)
            size += len(piece)
            if size > _AT_ONCE:
                yield b"".join(some)
                some, size = [], 0
        yield b"".join(some)


async def _single(lines: AsyncIterator[str]) -> AsyncIterator[list[str]]:
    async with closing(lines):
        async for line in lines:
            yield [line]


async def _ended(batches: AsyncIterator[list[str]]) -> AsyncIterator[bytes]:
    async with closing(batches):
        async for lines in batches:
            yield ("\n".join(lines) + "\n").encode()


async def _by_lines(batches: AsyncIterator[list[str]]) -> AsyncIterator[bytes]:
    """One array, whose lines are whole as soon as they are sent: clients read them one by one."""
    begin = "["
    async with closing(batches):
        async for lines in batches:
            ended = [f"{line}{']' if line.startswith(_LAST) else ','}\n" for line in lines]
            yield (begin + "".join(ended)).encode()
            begin = ""


async def _with_commas(batches: AsyncIterator[list[str]]) -> AsyncIterator[bytes]:
    """One array, an element a line."""
    between = "["
    async with closing(batches):
        async for lines in batches:
            yield (between + ",\n".join(lines)).encode()
            between = ",\n"
    yield b"]\n"
