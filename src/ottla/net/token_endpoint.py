"""Tokens of OAUTHBEARER for our own logins: from a file, or by client credentials from an endpoint (RFC 6749, 4.4).

A token is asked for when a connection logs in, and kept until four fifths of its time are over (Kafka's
sasl.login.refresh.window.factor), so that many connections cost one request. What answers is bounded in size and time.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from ottla.model.properties.jaas import Jaas
from ottla.model.properties.sasl import is_safe
from ottla.net.reading_urls import read_url
from ottla.security.sasl.speaker import LoginRefused

URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
TIMEOUT: Final = "sasl.login.read.timeout.ms"
_FILE: Final = "file://"
_MOST_BYTES: Final = 1 << 20
_TIMEOUT_S: Final = 10.0
_SHARE_OF_LIFE: Final = 0.8


class TokenEndpoint(NamedTuple):
    url: str
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    timeout_s: float = _TIMEOUT_S

    def __repr__(self) -> str:
        return f"TokenEndpoint({self.url!r}, {self.client_id!r})"  # secrets never reach logs


def endpoint_of(said: Callable[[str], str | None], jaas: Jaas | None) -> TokenEndpoint:
    """From the settings, and, as before KIP-1139, the options of the JAAS text. Raises ValueError."""
    options: Mapping[str, str] = {} if jaas is None else jaas.options
    found = TokenEndpoint(
        said(URL) or "",
        said(CLIENT_ID) or options.get("clientId", ""),
        said(CLIENT_SECRET) or options.get("clientSecret", ""),
        said(SCOPE) or options.get("scope", ""),
        _timeout_s(said(TIMEOUT)),
    )
    if not found.url:
        raise ValueError(f"{URL}: a value is needed to log in by OAUTHBEARER: https://… or file:///path/of/token")
    if not is_safe(found.url):
        raise ValueError(f"{URL}: {found.url} is not allowed: https://… or file:///path/of/token is")
    if not found.url.startswith(_FILE) and not (found.client_id and found.client_secret):
        raise ValueError(
            f"{CLIENT_ID}: with {CLIENT_SECRET}, or clientId and clientSecret in sasl.jaas.config, it is needed to get "
            f"a token from {found.url}"
        )
    return found


def _timeout_s(said: str | None) -> float:
    if said is None:
        return _TIMEOUT_S
    if not said.strip().isdecimal() or not int(said):
        raise ValueError(f"{TIMEOUT}: a number of milliseconds is expected, not {said!r}")
    return int(said) / 1000


class Tokens:
    """Of one endpoint. Its `token` may be called by several threads at once."""

    def __init__(self, endpoint: TokenEndpoint, now_s: Callable[[], float] = time.time) -> None:
        self._endpoint = endpoint
        self._now_s = now_s
        self._lock = threading.Lock()
        self._token = b""
        self._until_s = 0.0

    def token(self) -> bytes | LoginRefused:
        """Waits for it. What went wrong is returned."""
        with self._lock:
            now_s = self._now_s()
            if not self._token or now_s >= self._until_s:
                try:
                    self._token, lives_s = fetched(self._endpoint)
                except (OSError, ValueError) as error:
                    return LoginRefused(f"no token is to be had from {self._endpoint.url}: {error}")
                self._until_s = now_s + lives_s * _SHARE_OF_LIFE
            return self._token


def fetched(endpoint: TokenEndpoint) -> tuple[bytes, float]:
    """A token, and for how many seconds it is good; 0: it is read again each time. Raises OSError, ValueError."""
    if endpoint.url.startswith(_FILE):
        with open(endpoint.url[len(_FILE) :], "rb") as file:
            return _checked(file.read(_MOST_BYTES).strip()), 0.0
    pair = base64.b64encode(f"{endpoint.client_id}:{endpoint.client_secret}".encode()).decode()
    asked = {"grant_type": "client_credentials", **({"scope": endpoint.scope} if endpoint.scope else {})}
    answer = read_url(
        endpoint.url,
        timeout_s=endpoint.timeout_s,
        max_bytes=_MOST_BYTES,
        data=urlencode(asked).encode(),
        headers={"Authorization": f"Basic {pair}", "Accept": "application/json"},
    )
    try:
        said: Any = json.loads(answer)
        token, lives_s = said["access_token"], float(said.get("expires_in") or 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("its answer is no JSON with an access_token") from None
    if not isinstance(token, str) or not token.isascii():
        raise ValueError("its access_token is no token")
    return _checked(token.encode()), max(0.0, lives_s)


def _checked(token: bytes) -> bytes:
    if not token or any(byte <= 0x20 or byte >= 0x7F for byte in token):
        raise ValueError("what is there is no token")
    return token
