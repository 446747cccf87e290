"""A line to one address of a registry: a connection, one request after the other. What answers mean is for others."""

from __future__ import annotations

import base64
import http.client
from typing import TYPE_CHECKING, Final

from ottla.http.urls import service_url

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class TooMuch(Exception):
    """An answer that nobody could want."""


def basic(user: str, password: str) -> str:
    """The header that shows them."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class Line:
    def __init__(self, url: str, authorization: str, ca_file: str | None, timeout_s: float, most_bytes: int) -> None:
        """`ca_file`: whose certificates are believed; None: the system's. Raises ValueError."""
        self._parts = service_url(url, "registry")
        self._ca_file = ca_file
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._headers: Mapping[str, str] = {
            "Accept": MEDIA_TYPE,
            "Content-Type": MEDIA_TYPE,
            **({"Authorization": authorization} if authorization else {}),
        }
        self._connection: http.client.HTTPConnection | None = None

    def __str__(self) -> str:
        """Without user and password."""
        port = f":{self._parts.port}" if self._parts.port else ""
        return f"{self._parts.scheme}://{self._parts.hostname}{port}{self._parts.path.rstrip('/')}"

    def exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        """Status and body. Raises OSError, HTTPException, TooMuch; the line is then closed."""
        is_old = self._connection is not None
        try:
            try:
                return self._exchanged(method, path, data)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                if not is_old:
                    raise
                self.close()  # the server closed it while nobody asked anything
                return self._exchanged(method, path, data)
        except BaseException:
            self.close()
            raise

    def _exchanged(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        connection = self._connected()
        connection.request(method, self._parts.path.rstrip("/") + path, data, self._headers)
        reply = connection.getresponse()
        answer = reply.read(self._most_bytes + 1)
        if len(answer) > self._most_bytes:
            raise TooMuch(f"{self} gave more than {self._most_bytes} bytes for {path}")
        return reply.status, answer

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = str(self._parts.hostname), self._parts.port
            if self._parts.scheme == "https":
                import ssl  # noqa: PLC0415  start time is felt

                trusted = ssl.create_default_context(cafile=self._ca_file)
                self._connection = http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=trusted)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
