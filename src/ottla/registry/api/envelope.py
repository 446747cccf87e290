"""Around every request: its id, a compressed answer, the context that its path begins with; and it is counted."""

import gzip
import secrets
import time
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ottla.http.asgi import AsgiApplication, Receive, Scope, Send
from ottla.http.limits import Limits
from ottla.registry.machine.names import DEFAULT_CONTEXT, WILDCARD, context_key, normal_context
from ottla.registry.monitoring import RequestCounts

METRICS: Final = b"/metrics"
_WORTH_COMPRESSING: Final = 1 << 10
_LONGEST_ID: Final = 200


class Envelope:
    def __init__(self, application: AsgiApplication, counts: RequestCounts, pages: AsgiApplication) -> None:
        """`pages` is what answers to who watches the registry: its requests are not counted."""
        self._application = application
        self._counts = counts
        self._pages = pages

    @property
    def limits(self) -> Limits:
        return self._application.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["raw_path"] == METRICS:
            await self._pages(scope, receive, send)
            return
        began_ns = time.perf_counter_ns()
        counts = self._counts
        headers = dict(scope["headers"])
        said = headers.get(b"x-request-id", b"")
        number = said if 0 < len(said) <= _LONGEST_ID else secrets.token_hex(16).encode()
        squeeze = b"gzip" in headers.get(b"accept-encoding", b"").lower() and scope["method"] != "HEAD"
        begun: dict[str, Any] = {}

        async def sending(event: dict[str, Any]) -> None:
            nonlocal begun
            if event["type"] == "http.response.start":
                counts.answered(event["status"], (time.perf_counter_ns() - began_ns) // 1_000)
                event["headers"].append((b"x-request-id", number))
                begun = event
                return
            if begun:
                if squeeze and not event.get("more_body") and len(event["body"]) >= _WORTH_COMPRESSING:
                    event["body"] = gzip.compress(event["body"], compresslevel=5, mtime=0)
                    begun["headers"] = _compressed(begun["headers"], len(event["body"]))
                await send(begun)
                begun = {}
            counts.response_bytes += len(event["body"])
            await send(event)

        await self._application(in_context(scope), receive, sending)


def _compressed(headers: list[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name != b"content-length"]
    length_header = (b"content-length", str(length).encode())
    return [*kept, (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"), length_header]


def in_context(scope: Scope) -> Scope:
    """`/contexts/.ctx/subjects/s` is `/subjects/:.ctx:s`, and the like: names that say no context themselves get it."""
    raw: bytes = scope["raw_path"]
    parts = raw.decode("latin-1").strip("/").split("/")
    if len(parts) < 3 or parts[0] != "contexts":
        return scope
    context = normal_context(unquote(parts[1]))
    prefix = "" if context == DEFAULT_CONTEXT else context_key(context)
    path = [*_qualified(parts[2:], prefix)]
    query = scope["query_string"].decode("latin-1")
    changed = dict(scope)
    changed["raw_path"] = ("/" + "/".join(path)).encode("latin-1")
    changed["query_string"] = _qualified_query(path, query, prefix).encode("latin-1")
    return changed


def _qualified(parts: list[str], prefix: str) -> list[str]:
    found = list(parts)
    if parts[0] in ("config", "mode") and len(parts) == 1:
        return [*found, quote(prefix, safe="")] if prefix else found
    for index, part in enumerate(parts[:-1]):
        if part == "subjects" or (index == 0 and part in ("config", "mode")):
            if not _names_context(unquote(parts[index + 1])):
                found[index + 1] = quote(prefix, safe="") + parts[index + 1]
            break
    return found


def _qualified_query(path: list[str], query: str, prefix: str) -> str:
    name = (
        "subject" if path[:2] == ["schemas", "ids"] else "subjectPrefix" if path in (["schemas"], ["subjects"]) else ""
    )
    if not name:
        return query
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(key == name for key, _ in pairs):
        pairs.append((name, ""))
    return urlencode(
        [(key, prefix + value if key == name and not _names_context(value) else value) for key, value in pairs]
    )


def _names_context(subject: str) -> bool:
    return subject.startswith((":.", WILDCARD))
