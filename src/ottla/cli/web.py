"""How a command reaches a service over HTTP: by TLS where its address says https, as the user that the address or the
client settings name."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

import base64
import http.client
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote

from ottla.cli.failures import Failure

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


def connection_to(parts: SplitResult, settings: Mapping[str, str], timeout_s: float) -> http.client.HTTPConnection:
    """Not connected yet. `settings`: whose certificates are believed (ssl.truststore.*). Raises Failure."""
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = _trusted(settings)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def shown(parts: SplitResult, settings: Mapping[str, str]) -> dict[str, str]:
    """Who asks, as a header: as the address says, else basic.auth.user.info of the settings."""
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    said = f"{user}:{password}" if user else settings.get("basic.auth.user.info", "")
    return {"Authorization": f"Basic {base64.b64encode(said.encode()).decode()}"} if said else {}


def _trusted(settings: Mapping[str, str]) -> ssl.SSLContext | None:
    from ottla.client.security import SecurityRefused, security

    named = {name: value for name, value in settings.items() if name.startswith("ssl.")}
    try:
        return security({**named, "security.protocol": "SSL"}).tls if named else None
    except SecurityRefused as error:
        raise Failure(str(error)) from error
