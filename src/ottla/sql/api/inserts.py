"""/inserts-stream: rows in, acknowledgements out, on one stream of HTTP/2 that both sides keep open.

The first line names the target, each further one is a row as a JSON object. An acknowledgement comes when its row is
written; rows are under way together, so that acknowledgements need not come in order. The first row that cannot be
written is answered with its error, which ends the stream.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, Final

import msgspec

from ottla.client.aio.producer import Written
from ottla.client.errors import ClientError
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.problems import Problem
from ottla.http.sending import start
from ottla.model.permissions import WRITE_TOPIC
from ottla.serdes.lenient_json import reader
from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.api.bodies import DELIMITED, problem_body, problem_of
from ottla.sql.api.doors import SqlDoor
from ottla.sql.errors import BAD_REQUEST, BAD_STATEMENT, SqlError
from ottla.sql.model import DataSource
from ottla.sql.server.engine import Engine
from ottla.sql.server.writing import Writer

PATH: Final = "/inserts-stream"
HTTP2_ONLY: Final = 40004
LONGEST_LINE: Final = 4 << 20
MOST_UNDER_WAY: Final = 10_000


class _Lines:
    """Of a body that comes piece by piece."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = b""
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            *whole, self._left = self._left.split(b"\n")
            for line in whole:
                if line.strip():
                    yield line
            if self._ended:
                if self._left.strip():
                    yield self._left
                return
            if len(self._left) > LONGEST_LINE:
                raise SqlError(BAD_REQUEST, f"a line is longer than {LONGEST_LINE} bytes")
            event = await self._receive()
            self._left += event.get("body", b"")
            self._ended = event["type"] == "http.disconnect" or not event.get("more_body", False)


class Inserts:
    def __init__(self, engine: Engine, door: SqlDoor) -> None:
        self._engine = engine
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await _refused(send, 405, SqlError(BAD_REQUEST, "POST is expected"))
            return
        if scope.get("http_version") != "2":
            await _refused(send, 400, SqlError(HTTP2_ONLY, "this path speaks HTTP/2 alone, on this very port"))
            return
        lines = aiter(_Lines(receive))
        try:
            asker = await self._door.admitted(scope)
            target = self._target(await anext(lines, None))
            asker.check(WRITE_TOPIC, target.topic)
        except Problem as problem:
            await _told(send, problem)
            return
        except SqlError as error:
            await _refused(send, error.code // 100, error)
            return
        await send(start(200, DELIMITED, {}, length=None))
        await self._rows(target, lines, send)
        await send({"type": "http.response.body", "body": b""})

    def _target(self, first: bytes | None) -> DataSource:
        try:
            given = json.loads(first or b"null")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict) or not isinstance(given.get("target"), str):
            raise SqlError(BAD_REQUEST, 'the first line is {"target": "STREAM"}, and rows follow it')
        name = given["target"]
        name = name[1:-1].replace("``", "`") if name.startswith("`") and len(name) > 1 else name.upper()
        target = self._engine.catalog.find(t.Source(name))
        if target.is_source or target.window is not None:
            raise SqlError(BAD_STATEMENT, f"{target.name} cannot be written: it is read-only, or its keys are windowed")
        return target

    async def _rows(self, target: DataSource, lines: AsyncIterator[bytes], send: Send) -> None:
        answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        room = asyncio.Semaphore(MOST_UNDER_WAY)
        writing = asyncio.create_task(_sent(answers, send))
        writer = await self._engine.writer(target)
        decode = msgspec.json.Decoder(float_hook=Decimal).decode
        read = reader(Type("struct", fields=(*target.keys, *target.values)))
        under_way: set[asyncio.Future[Written]] = set()
        failed = asyncio.Event()

        def acknowledged(sequence: int, promise: asyncio.Future[Written]) -> None:
            under_way.discard(promise)
            room.release()
            if promise.cancelled():
                return
            error = promise.exception()
            if error is None:
                answers.put_nowait(b'{"status":"ok","seq":%d}\n' % sequence)
            else:
                failed.set()
                answers.put_nowait(_error(sequence, error))

        sequence = 0
        try:
            async for line in lines:
                if failed.is_set():
                    break
                try:
                    row = read(decode(line))
                    if row is None:
                        raise ValueError("a JSON object is expected")
                except (ValueError, ArithmeticError, RecursionError) as error:
                    answers.put_nowait(_error(sequence, SqlError(BAD_REQUEST, f"row {sequence}: {error}")))
                    break
                await room.acquire()
                promise = await self._posted(writer, row)
                under_way.add(promise)
                promise.add_done_callback(partial(acknowledged, sequence))
                sequence += 1
        except (SqlError, ClientError) as error:
            answers.put_nowait(_error(sequence, error))
        finally:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*under_way, return_exceptions=True)
            answers.put_nowait(None)
            await writing

    async def _posted(self, writer: Writer, row: dict[str, Any]) -> "asyncio.Future[Written]":
        target = writer.target
        keys = {name: row.pop(name) for name, _ in target.keys}
        absent = not keys or all(each is None for each in keys.values())
        if target.is_table and (absent or None in keys.values()):
            raise SqlError(BAD_STATEMENT, f"the PRIMARY KEY of {target.name} needs a value that is not null")
        key = None if absent else next(iter(keys.values())) if len(keys) == 1 else keys
        return await self._engine.post(writer, key, row)


async def _sent(answers: "asyncio.Queue[bytes | None]", send: Send) -> None:
    """What is there goes together."""
    while (answer := await answers.get()) is not None:
        some = [answer]
        while not answers.empty():
            more = answers.get_nowait()
            if more is None:
                answers.put_nowait(None)
                break
            some.append(more)
        await send({"type": "http.response.body", "body": b"".join(some), "more_body": True})


def _error(sequence: int, error: BaseException) -> bytes:
    code = error.code if isinstance(error, SqlError) else 50000
    told = {"status": "error", "seq": sequence, "error_code": code, "message": str(error)}
    return json.dumps(told).encode() + b"\n"


async def _refused(send: Send, status: int, error: SqlError) -> None:
    await _told(send, replace(problem_of(error), status=status))


async def _told(send: Send, problem: Problem) -> None:
    body = json.dumps(problem_body(problem)).encode()
    await send(start(problem.status, "application/json", problem.headers, length=len(body)))
    await send({"type": "http.response.body", "body": body})
