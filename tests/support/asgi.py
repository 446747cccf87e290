"""Asks an ASGI application without a socket."""

import json
from typing import Any


async def answered(
    application: Any, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Status, and the body read as JSON if there is one."""
    status, _, content = await exchanged(application, method, target, body, headers)
    return status, json.loads(content) if content else None


async def exchanged(
    application: Any, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    path, _, query = target.partition("?")
    events: list[dict[str, Any]] = []
    said = {"host": "127.0.0.1", "content-length": str(len(body)), **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said.items()],
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    await application(scope, receive, send)
    told = {name.decode(): value.decode() for name, value in events[0]["headers"]}
    return events[0]["status"], told, b"".join(event.get("body", b"") for event in events[1:])
