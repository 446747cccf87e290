"""The ASGI application of a service: from the table of its routes to answers."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from ottla.http import bodies
from ottla.http import media as media_types
from ottla.http.addresses import Address, may_be_called
from ottla.http.answers import Answer, Stream
from ottla.http.asgi import Receive, Scope, Send
from ottla.http.auth import OPEN_DOOR, Doorkeeper
from ottla.http.call import Call
from ottla.http.limits import DEFAULT_LIMITS, Limits
from ottla.http.problems import Problem, ProblemBody, plain_body
from ottla.http.routes import Route, Routes

logger = logging.getLogger(__name__)

_MOST_PARAMETERS: Final = 1_000
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Manners:
    """How a service speaks, besides what it says."""

    media: media_types.Media = media_types.PLAIN
    problem_body: ProblemBody = plain_body
    doorkeeper: Doorkeeper = OPEN_DOOR
    limits: Limits = DEFAULT_LIMITS


class Application:
    def __init__(self, routes: Iterable[Route], address: Address, manners: Manners | None = None) -> None:
        self._routes = Routes(routes)
        self._address = address
        self._manners = manners or Manners()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reply_type = media_types.chosen(headers.get("accept", ""), self._manners.media.offered)
        try:
            answer = await self._answered(scope, headers, reply_type, receive)
            if isinstance(answer, Stream):
                await self._send_stream(scope, answer, send)
                return
        except Problem as problem:
            answer = self._problem(problem, reply_type)
        except Exception:
            # Whatever a coroutine raises belongs to one request: the others go on.
            number = secrets.token_hex(4)
            logger.exception("%s %s failed; the client was told number %s", scope["method"], scope["path"], number)
            told = Problem(500, f"The server failed. Its log says more under the number {number}.")
            answer = self._problem(told, reply_type)
        await self._send(scope, answer, reply_type, send)

    # ---- from a request to an answer

    async def _answered(
        self, scope: Scope, headers: Mapping[str, str], reply_type: str | None, receive: Receive
    ) -> Answer | Stream:
        self._check_origin(scope, headers)
        host = scope["client"][0] if scope["client"] else ""
        caller = await self._manners.doorkeeper.admit(headers, host)
        route, path = self._route(scope)
        if reply_type is None:
            raise Problem(406, f"Accept: {headers['accept']} leaves none of {', '.join(self._manners.media.offered)}")
        body = None
        if route.body is not None:
            self._check_body_type(headers)
            body = bodies.read(await self._body(headers, receive), route.body)
        raw_query = scope["query_string"].decode("latin-1")
        call = Call(
            method=scope["method"],
            path=path,
            query=_query(raw_query),
            headers=headers,
            body=body,
            caller=caller,
            reply_type=reply_type,
            url=_raw_path(scope) + (f"?{raw_query}" if raw_query else ""),
        )
        if route.needs is not None and not self._manners.doorkeeper.may(caller, route.needs, call):
            raise Problem(403, f"{caller.principal} may not do this: it needs {route.needs}.")
        found = await route.answer(call)
        return found if isinstance(found, Answer | Stream) else Answer(found)

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Pages of strangers, in a browser on this machine, are not clients of a service on loopback."""
        if not may_be_called(self._address, headers.get("host", "")):
            raise Problem(403, "The Host header names another machine than this one.")
        cross_site = headers.get("sec-fetch-site") == "cross-site"
        if cross_site and self._address.is_loopback and scope["method"] not in _SAFE_METHODS:
            raise Problem(403, "A page of another site may not change anything here.")

    def _route(self, scope: Scope) -> tuple[Route, dict[str, str]]:
        found = self._routes.found(_raw_path(scope))
        method = scope["method"]
        here = found.get("GET" if method == "HEAD" and "HEAD" not in found else method)
        if here is not None:
            return here
        if not found:
            raise Problem(404, f"{scope['path']} is nothing here; there are {', '.join(self._routes.beginnings)}.")
        allowed = ", ".join(sorted({*found, *(("HEAD",) if "GET" in found else ())}))
        raise Problem(405, f"{method} is not offered here; {allowed} is.", headers={"allow": allowed})

    def _check_body_type(self, headers: Mapping[str, str]) -> None:
        said = headers.get("content-type", "")
        accepted = self._manners.media.accepted
        if said and media_types.name_of(said) not in accepted:
            raise Problem(415, f"Content-Type: {said} is not read here; {', '.join(accepted)} is.")

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        most = self._manners.limits.body_bytes
        too_long = Problem(413, f"The body is longer than {most} bytes.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > most:
            raise too_long
        body = bytearray()
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Problem(400, "The connection ended in the midst of the body.")
            body += event.get("body", b"")
            if len(body) > most:
                raise too_long
            if not event.get("more_body", False):
                return bytes(body)

    # ---- from an answer to bytes

    def _problem(self, problem: Problem, reply_type: str | None) -> Answer:
        manners = self._manners.media
        kind = manners.problems or reply_type or manners.offered[0]
        return Answer(self._manners.problem_body(problem), problem.status, kind, problem.headers)

    async def _send(self, scope: Scope, answer: Answer, reply_type: str | None, send: Send) -> None:
        empty = answer.status in (204, 304)
        body = b"" if empty else bodies.written(answer.value)
        kind = None if empty else answer.media_type or reply_type
        await send(_start(answer.status, kind, answer.headers, length=None if empty else len(body)))
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _send_stream(self, scope: Scope, stream: Stream, send: Send) -> None:
        async with aclosing(_generator(stream.pieces)) as pieces:
            first = await anext(pieces, None)  # may still raise Problem
            await send(_start(200, stream.media_type, stream.headers, length=None))
            if first is not None and scope["method"] != "HEAD":
                await send({"type": "http.response.body", "body": first, "more_body": True})
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _generator(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Any iterator as one that can be closed."""
    async for piece in pieces:
        yield piece
        # A stream that is always ready must not keep the loop from others.
        await asyncio.sleep(0)


def _start(status: int, kind: str | None, headers: Mapping[str, str], *, length: int | None) -> dict[str, Any]:
    sent = [(b"x-content-type-options", b"nosniff")]
    if kind is not None:
        sent.append((b"content-type", kind.encode("latin-1")))
    if length is not None:
        sent.append((b"content-length", str(length).encode()))
    sent += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": sent}


def _raw_path(scope: Scope) -> str:
    return str(scope["raw_path"].decode("latin-1"))


def _query(raw: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise Problem(400, f"More than {_MOST_PARAMETERS} query parameters.") from None
    for name, value in pairs:
        found.setdefault(name, value)
    return found
