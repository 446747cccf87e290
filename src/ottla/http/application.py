"""The ASGI application of a service: from the table of its routes to answers."""

import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
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
from ottla.http.sending import BODILESS, send_stream, start

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
    empty_body_status: int = 400
    """Of the answer to who sends nothing where a body is read."""


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
                await send_stream(answer, scope, receive, send)
                return
            body = _written(answer)
        except Problem as problem:
            answer = self._problem(problem, reply_type)
            body = _written(answer)
        except Exception:
            # Whatever a coroutine raises belongs to one request: the others go on.
            number = secrets.token_hex(4)
            logger.exception("%s %s failed; the client was told number %s", scope["method"], _raw_path(scope), number)
            told = Problem(500, f"The server failed. Its log says more under the number {number}.")
            answer = self._problem(told, reply_type)
            body = _written(answer)
        # Nothing is of no type: who parses an empty body as JSON fails.
        kind = None if not body or answer.status in BODILESS else answer.media_type or reply_type
        length = None if answer.status in BODILESS else len(body)
        await send(start(answer.status, kind, answer.headers, length=length))
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    @property
    def limits(self) -> Limits:
        return self._manners.limits

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
        body, raw_body = None, b""
        if route.body is not None:
            self._check_body_type(headers)
            raw_body = await self._body(headers, receive)
            body = bodies.read(raw_body, route.body, empty_status=self._manners.empty_body_status)
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
            raw_body=raw_body,
        )
        if route.needs is not None and not self._manners.doorkeeper.may(caller, route.needs, call):
            raise Problem(403, f"{caller.principal} may not do this: it needs {route.needs}.")
        found = await route.answer(call)
        return found if isinstance(found, Answer | Stream) else Answer(found)

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Pages of strangers, in a browser on this machine, are not clients of a service on loopback."""
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            raise Problem(400, "The request has more than one Host header.")
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


def _written(answer: Answer) -> bytes:
    return b"" if answer.status in BODILESS else bodies.written(answer.value)


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
