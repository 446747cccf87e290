"""A registry that a command talks to, and every failure in words."""

from __future__ import annotations

import http.client
import json
import os
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlencode

from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments, Option, UsageError
from ottla.cli.reach import COMMAND_CONFIG, JSON, OUTPUT, TIMEOUT, client_settings, seconds
from ottla.http.urls import service_url
from ottla.registry.line import Line, TooMuch, basic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEFAULT_URL: Final = "http://127.0.0.1:8081"
REGISTRY: Final = Option(
    "--registry",
    "-r",
    "--schema-registry",
    value="URL",
    help=f"The schema registry, as http://USER:PASSWORD@HOST:PORT; else OTTLA_REGISTRY, else {DEFAULT_URL}.",
)
REACH: Final = (REGISTRY, COMMAND_CONFIG, TIMEOUT)
SHOW: Final = (*REACH, OUTPUT, JSON)

MAX_ANSWER_BYTES: Final = 256 << 20
PAGE: Final = 1000
"""Schemas asked for at once: what registries give at most."""

_ADVICE: Final = {
    40401: "`ottla schemas list` shows what there is",
    40402: "`ottla schemas show SUBJECT` shows the latest version and the others' numbers",
    40404: "it is deleted softly; `ottla schemas delete SUBJECT --permanent` removes it for good",
    42205: "`ottla schemas list` shows the registry's mode; READONLY refuses writes, ids are taken in IMPORT only",
    42206: "another schema refers to it: delete that one first",
}


class Refused(Failure):
    """The registry's own words, with its code."""

    def __init__(self, status: int, code: int, message: str) -> None:
        advice = _ADVICE.get(code)
        super().__init__(f"{message} (error code {code})" + (f"\n  {advice}" if advice else ""))
        self.status = status
        self.code = code
        self.message = message


class Remote:
    def __init__(self, url: str, settings: Mapping[str, str], timeout_s: float) -> None:
        try:
            parts = service_url(url, "registry")
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._timeout_s = timeout_s
        shown = _authorization(parts.username, parts.password, settings)
        self._line = Line(url, shown, _authorities(settings), timeout_s, MAX_ANSWER_BYTES)

    def __str__(self) -> str:
        return str(self._line)

    def get(self, path: str, **query: object) -> Any:
        return self.ask("GET", path, None, **query)

    def find(self, path: str, **query: object) -> Any:
        """None if there is no such thing."""
        try:
            return self.get(path, **query)
        except Refused as refused:
            if refused.status == http.client.NOT_FOUND:
                return None
            raise

    def ask(self, method: str, path: str, body: object = None, **query: object) -> Any:
        given = {name: _spelt(value) for name, value in query.items() if value is not None}
        target = path + (f"?{urlencode(given)}" if given else "")
        status, answer = self._exchange(method, target, None if body is None else json.dumps(body).encode())
        try:
            found = json.loads(answer) if answer else None
        except ValueError:
            found = None
        if status < http.client.BAD_REQUEST:
            return found
        if isinstance(found, dict) and isinstance(found.get("error_code"), int):
            raise Refused(status, found["error_code"], str(found.get("message")))
        if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            raise Failure(f"{self} answers {status}: name a user that may do this in the URL or with --command-config")
        raise Failure(f"{self} answers {status} to {method} {path}, and not as a schema registry does")

    def pages(self, path: str, **query: object) -> Iterator[Any]:
        """All of a list, however long. Servers too old for pages give everything at once."""
        offset, seen = 0, None
        while True:
            page = self.get(path, **query, offset=offset, limit=PAGE)
            if not page or page == seen:
                return
            yield from page
            if len(page) != PAGE:
                return
            offset, seen = offset + PAGE, page

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        try:
            return self._line.exchange(method, target, data)
        except ConnectionRefusedError:
            raise Failure(
                f"nothing listens at {self}\n  start a node with `ottla start`, or name a registry with --registry URL"
            ) from None
        except TimeoutError:
            raise Failure(f"{self} did not answer within {self._timeout_s:g} s; --timeout waits longer") from None
        except TooMuch as error:
            raise Failure(str(error)) from None
        except http.client.RemoteDisconnected:
            hint = "; if it is one with TLS, say https:// instead" if str(self).startswith("http:") else ""
            raise Failure(f"{self} hung up without an answer{hint}") from None
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"{self}: {str(error) or type(error).__name__}") from None

    def close(self) -> None:
        self._line.close()


def registry(arguments: Arguments) -> Remote:
    """Not connected yet: the first request does that."""
    given = client_settings(arguments)
    named = arguments.optional("registry") or os.environ.get("OTTLA_REGISTRY") or given.get("schema.registry.url")
    return at(named or DEFAULT_URL, arguments)


def at(url: str, arguments: Arguments) -> Remote:
    return Remote(url, client_settings(arguments), seconds(arguments.text("timeout")))


def subject_path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def version_path(subject: str, version: object) -> str:
    return f"{subject_path(subject)}/versions/{quote(str(version), safe='')}"


def _spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _authorities(settings: Mapping[str, str]) -> str | None:
    """The file of those whose certificates are believed; None: the system's."""
    for prefix in ("schema.registry.", ""):
        if path := settings.get(f"{prefix}ssl.ca.location"):
            return path
        if settings.get(f"{prefix}ssl.truststore.type", "").upper() == "PEM":
            return settings.get(f"{prefix}ssl.truststore.location")
    return None


def _authorization(user: str | None, password: str | None, settings: Mapping[str, str]) -> str:
    """Of the URL, else by Confluent's client settings; empty: nothing is shown."""
    if user:
        return basic(unquote(user), unquote(password or ""))
    for name in ("schema.registry.basic.auth.user.info", "basic.auth.user.info"):
        if pair := settings.get(name):
            user, _, password = pair.partition(":")
            return basic(user, password)
    token = settings.get("bearer.auth.token") or settings.get("schema.registry.bearer.auth.token")
    return f"Bearer {token}" if token else ""
