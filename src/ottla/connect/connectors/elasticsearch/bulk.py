"""Requests to the cluster: `_bulk` with a verdict for each document, and indices made before their first document."""

import base64
import http.client
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from ottla.connect import spi
from ottla.connect.connectors.elasticsearch.config import ElasticsearchConfig

MOST_ANSWER_BYTES: Final = 256 << 20
_TOO_BUSY: Final = 429
_UNAVAILABLE: Final = (502, 503, 504)
_DONE: Final = range(200, 300)
_TOLD: Final = "error,status,items.*.status,items.*.error"
"""Of an answer, which else has two hundred bytes for each document."""
_EXISTS: Final = "resource_already_exists_exception"


class Verdict(NamedTuple):
    """On one document. `reason` is None for one that was written."""

    status: int
    reason: str | None = None

    @property
    def passing(self) -> bool:
        """Worth another try."""
        return self.status == _TOO_BUSY or self.status in _UNAVAILABLE


_WRITTEN: Final = Verdict(201)
_PLAINLY: Final = tuple({"index": {"status": status}} for status in (201, 200))
"""What nearly every answer is."""


class Unreachable(Exception):
    """No address answered as a server does."""


class Connection:
    """To one of the addresses; the next one is taken where one fails."""

    __slots__ = ("_config", "_context", "_headers", "_open", "_place")

    def __init__(self, config: ElasticsearchConfig, context: ssl.SSLContext | None) -> None:
        self._config = config
        self._context = context
        self._headers = {"Content-Type": "application/x-ndjson"}
        if config.connection_username is not None:
            login = f"{config.connection_username}:{config.connection_password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._open: http.client.HTTPConnection | None = None
        self._place = 0

    def bulk(self, actions: Sequence[bytes]) -> list[Verdict]:
        """One for each action. Raises Unreachable, or ConnectorFailed where the server refuses the whole."""
        status, answer = self._ask("POST", f"/_bulk?filter_path={_TOLD}", b"".join(actions))
        if status != http.client.OK:
            self._refuse("a bulk request", status, answer)
        items = answer.get("items")
        if not isinstance(items, list) or len(items) != len(actions):
            answered = len(items) if isinstance(items, list) else 0
            raise Unreachable(f"the server answered for {answered} of {len(actions)} documents")
        return [_WRITTEN if item in _PLAINLY else _verdict(item) for item in items]

    def make_index(self, name: str, mapping: Mapping[str, Any] | None) -> None:
        """Unless it is there. Without a mapping the server finds out itself."""
        body = msgspec.json.encode({"mappings": mapping} if mapping else {})
        status, answer = self._ask("PUT", f"/{quote(name, safe='')}", body, "application/json")
        if status != http.client.OK and _kind(answer) != _EXISTS:
            self._refuse(f"index {name}", status, answer)

    def has_index(self, name: str) -> bool:
        status, _ = self._ask("HEAD", f"/{quote(name, safe='')}", b"")
        return status == http.client.OK

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _refuse(self, what: str, status: int, answer: Mapping[str, Any]) -> None:
        if status == _TOO_BUSY or status in _UNAVAILABLE:
            raise Unreachable(f"the server is busy ({status})")
        reason = _reason(answer.get("error")) or http.client.responses.get(status, "")
        hint = ": see connection.username and connection.password" if status in (401, 403) else ""
        raise spi.ConnectorFailed(f"the server refused {what} with {status}: {reason}{hint}")

    def _ask(
        self, method: str, path: str, body: bytes, media: str = "application/x-ndjson"
    ) -> tuple[int, dict[str, Any]]:
        why = "no address"
        for _ in self._config.connection_url:
            try:
                return self._exchange(method, path, body, media)
            except (OSError, http.client.HTTPException, msgspec.DecodeError, RecursionError) as failed:
                why = str(failed) or type(failed).__name__
                self.close()
                self._place += 1
        raise Unreachable(f"{self._address} does not answer: {why}")

    def _exchange(self, method: str, path: str, body: bytes, media: str) -> tuple[int, dict[str, Any]]:
        if self._open is None:
            self._open = self._connected()
        prefix = urlsplit(self._address).path.rstrip("/")
        self._open.request(method, prefix + path, body, {**self._headers, "Content-Type": media})
        response = self._open.getresponse()
        data = response.read(MOST_ANSWER_BYTES)
        if response.will_close:
            self.close()
        found = msgspec.json.decode(data) if data and method != "HEAD" else {}
        return response.status, found if isinstance(found, dict) else {}

    @property
    def _address(self) -> str:
        urls = self._config.connection_url
        return urls[self._place % len(urls)]

    def _connected(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._address)
        connect_s, read_s = self._config.connection_timeout_ms / 1000, self._config.read_timeout_ms / 1000
        made: http.client.HTTPConnection
        if parts.scheme == "https":
            context = self._context or ssl.create_default_context()
            made = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=connect_s, context=context)
        else:
            made = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=connect_s)
        made.connect()
        assert made.sock is not None
        made.sock.settimeout(read_s)
        return made


def _verdict(item: object) -> Verdict:
    """Of `{"index": {"status": 201, …}}` or with an `error`. Raises Unreachable where it is neither: what such a server
    has done is not known, and a document that comes again changes nothing."""
    match item:
        case {**actions} if len(actions) == 1:
            match next(iter(actions.values())):
                case {"status": int() as status, "error": error} if error is not None:
                    return Verdict(status, _reason(error) or "refused")
                case {"status": int() as status}:
                    return Verdict(status, None if status in _DONE else f"the server answered {status}")
    raise Unreachable(f"the server's answer cannot be read: {str(item)[:200]}")


def _kind(answer: Mapping[str, Any]) -> str | None:
    error = answer.get("error")
    return error.get("type") if isinstance(error, dict) else None


def _reason(error: object) -> str:
    """The type and the reason, with what caused it, which is where a field is named."""
    match error:
        case {"type": str() as kind, **rest}:
            text = f"{kind}: {rest.get('reason', '')}"
            cause = rest.get("caused_by")
            return f"{text} ({_reason(cause)})" if isinstance(cause, dict) else text
        case str() as text:
            return text
    return ""
