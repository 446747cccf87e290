"""/query-stream, /query and /close-query: rows of a query, as they come."""

import json
from collections.abc import AsyncIterator
from typing import Any

from ottla.client.errors import ClientError
from ottla.http.answers import Answer, Stream
from ottla.http.call import Call
from ottla.http.media import JSON
from ottla.http.problems import Problem
from ottla.http.routes import Route
from ottla.http.streaming import closing
from ottla.sql.api.bodies import (
    DELIMITED,
    KSQL_JSON,
    CloseQueryRequest,
    KsqlRequest,
    QueryStreamRequest,
    problem_body,
    problem_of,
    variables,
)
from ottla.sql.errors import SqlError
from ottla.sql.plain import json_text
from ottla.sql.server.engine import Engine, Result
from ottla.sql.server.entities import columns_text
from ottla.sql.server.rows import until_closed
from ottla.sql.types import sql_text


class Queries:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("POST", "/query-stream", self.stream, "Rows of a SELECT, a line each.", body=QueryStreamRequest),
            Route("POST", "/query", self.query, "Rows of a SELECT, as one array.", body=KsqlRequest),
            Route("POST", "/close-query", self.close, "Ends a push query.", body=CloseQueryRequest),
        )

    async def stream(self, call: Call) -> Any:
        request: QueryStreamRequest = call.body
        result = await self._selected(request.sql, request.properties, request.session_variables)
        accept = call.headers.get("accept", "")
        kind = DELIMITED if not accept or accept.strip() == "*/*" else call.reply_type
        if kind == KSQL_JSON:
            return Stream(_by_lines(self._as_objects(result)), KSQL_JSON)
        lines = self._lines(result)
        if kind == JSON:
            return Stream(_with_commas(lines), JSON)
        return Stream(_ended(lines), DELIMITED)

    async def query(self, call: Call) -> Any:
        request: KsqlRequest = call.body
        result = await self._selected(request.ksql, request.streams_properties, request.session_variables)
        kind = JSON if call.reply_type == JSON else KSQL_JSON
        return Stream(_by_lines(self._as_objects(result)), kind)

    async def close(self, call: Call) -> Any:
        request: CloseQueryRequest = call.body
        found = self._engine.running.get(request.query_id)
        if found is None:
            raise Problem(400, f"there is no push query {request.query_id}", 40000)
        found.closed.set()
        return Answer({}, 200)

    async def _selected(self, text: str, properties: dict[str, Any] | None, given: dict[str, Any] | None) -> Result:
        try:
            return await self._engine.select(text, properties or {}, variables(given))
        except SqlError as error:
            raise problem_of(error) from None

    # ---- forms

    async def _lines(self, result: Result) -> AsyncIterator[str]:
        """A head, then an array for each row."""
        head = {
            "queryId": result.query_id if result.is_push else None,
            "columnNames": [name for name, _ in result.columns],
            "columnTypes": [sql_text(kind) for _, kind in result.columns],
        }
        yield json.dumps(head)
        async with closing(self._rows(result)) as rows:
            async for row in rows:
                yield row if isinstance(row, str) else json_text(row)

    async def _as_objects(self, result: Result) -> AsyncIterator[str]:
        schema = columns_text(result.columns, result.keys)
        yield json.dumps({"header": {"queryId": result.query_id, "schema": schema}})
        sent = 0
        async with closing(self._rows(result)) as rows:
            async for row in rows:
                if isinstance(row, str):
                    yield f'{{"errorMessage":{row}}}'
                    return
                sent += 1
                yield f'{{"row":{{"columns":{json_text(row)}}}}}'
        if result.limit is not None and sent >= result.limit:
            yield '{"finalMessage":"Limit Reached"}'
        else:
            yield '{"finalMessage":"Query Completed"}'

    async def _rows(self, result: Result) -> AsyncIterator[list[Any] | str]:
        """Rows, and in the end the error as JSON, if one was the end."""
        try:
            async with closing(until_closed(result)) as rows:
                async for row in rows:
                    yield row
        except SqlError as error:
            yield json.dumps(problem_body(problem_of(error)))
        except ClientError as error:
            yield json.dumps(problem_body(Problem(500, f"the topic cannot be read: {error}", 50000)))
        finally:
            self._engine.ended(result)


async def _ended(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    async with closing(lines):
        async for line in lines:
            yield line.encode() + b"\n"


async def _by_lines(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """One array, whose lines are whole as soon as they are sent: clients read them one by one."""
    begin = "["
    async with closing(lines):
        async for line in lines:
            last = line.startswith(('{"finalMessage"', '{"errorMessage"'))
            yield f"{begin}{line}{']' if last else ','}\n".encode()
            begin = ""


async def _with_commas(lines: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """One array, an element a line."""
    between = "["
    async with closing(lines):
        async for line in lines:
            yield f"{between}{line}".encode()
            between = ",\n"
    yield b"]\n"
