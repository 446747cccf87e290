"""A Connect worker that a command talks to: requests, and every failure in words."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from ottla.cli.failures import Failure
from ottla.cli.files import text_of
from ottla.cli.parser import Arguments, Option, UsageError
from ottla.cli.reach import COMMAND_CONFIG, JSON, OUTPUT, TIMEOUT, client_settings, seconds
from ottla.cli.web import connection_to, shown
from ottla.http.urls import service_url

DEFAULT_URL: Final = "http://127.0.0.1:8083"
WORKER: Final = Option(
    "--url",
    "-u",
    value="URL",
    help=f"Any worker of the Connect cluster, as http://HOST:PORT; else OTTLA_CONNECT, else {DEFAULT_URL}.",
)
REACH: Final = (WORKER, COMMAND_CONFIG, TIMEOUT)
SHOW: Final = (*REACH, OUTPUT, JSON)
_MOST_BYTES: Final = 64 << 20


class Remote:
    """Java's workers answer as well as ours."""

    def __init__(self, url: str, timeout_s: float, settings: Mapping[str, str] | None = None) -> None:
        """`settings`: whose certificate is trusted (ssl.truststore.*), and who asks (basic.auth.user.info)."""
        self._settings = settings or {}
        try:
            self._parts = service_url(url, "worker")
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._timeout_s = timeout_s

    @staticmethod
    def of(arguments: Arguments) -> Remote:
        return Remote(
            arguments.optional("url") or os.environ.get("OTTLA_CONNECT") or DEFAULT_URL,
            seconds(arguments.text("timeout")),
            client_settings(arguments),
        )

    def __str__(self) -> str:
        return f"{self._parts.scheme}://{self._parts.hostname}:{self._parts.port or ''}"

    def ask(self, method: str, path: str, body: object = None, **query: object) -> Any:
        """Raises Failure with the worker's own words."""
        given = {name: str(value).lower() for name, value in query.items() if value is not None}
        target = self._parts.path.rstrip("/") + path + (f"?{urlencode(given)}" if given else "")
        status, answer = self._exchange(method, target, None if body is None else json.dumps(body).encode())
        try:
            found = json.loads(answer) if answer else None
        except ValueError:
            found = None
        if status < http.client.BAD_REQUEST:
            return found
        if isinstance(found, dict) and "message" in found:
            raise Failure(f"{found['message']} ({status})")
        raise Failure(f"{self} answers {status} to {method} {path}, and not as a Connect worker does")

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        connection = connection_to(self._parts, self._settings, self._timeout_s)
        who = shown(self._parts, self._settings)
        headers = {"Content-Type": "application/json", "Accept": "application/json", **who}
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            return response.status, response.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Failure(
                f"{self} does not answer: {str(error) or type(error).__name__}\n"
                "  `ottla start` has a worker on port 8083, and --url names another one"
            ) from error
        finally:
            connection.close()


def connector_path(name: str, rest: str = "") -> str:
    return f"/connectors/{quote(name, safe='')}{rest}"


def connector_file(path: str) -> tuple[str | None, dict[str, Any]]:
    """Name and config out of a file: what a POST takes, what a PUT takes, or a properties file. Raises Failure."""
    text = text_of(path)
    if path.endswith(".properties"):
        from ottla.model.properties.file import parse_properties

        try:
            config: dict[str, Any] = dict(parse_properties(text))
        except ValueError as error:
            raise Failure(f"{path}: {error}") from error
        return config.get("name"), config
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Failure(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Failure(f'{path}: {{"name": ..., "config": {{...}}}}, or the config alone, is expected')
    inner = found.get("config")
    if isinstance(inner, dict):
        return found.get("name") or inner.get("name"), inner
    return found.get("name"), found
