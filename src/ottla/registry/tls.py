"""TLS of a service (the registry, a Connect worker, a SQL server): of its https listeners, and of its own requests to
another one that has them.

The stores are looked at now and then: a certificate that was written anew is shown from the next handshake on; one that
cannot be used is told, and the old one stays.
"""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from typing import Any, Final, Protocol

from ottla.net.tls import Material, client_context, file_stamps, material, server_context
from ottla.net.tls_listener import ListenerTls, followed
from ottla.security.tls.settings import TlsRefused, tls_settings

logger = logging.getLogger(__name__)

LOOK_S: Final = 10.0
_CLIENT_AUTH: Final = {"true": "required", "false": "none"}
"""Confluent's ssl.client.auth was a boolean once."""


class Reads(Protocol):
    """Settings of a service, those of TLS among them."""

    def __getitem__(self, name: str, /) -> Any: ...


class ServiceTls:
    def __init__(self, settings: Reads, protocols: Sequence[str] = ("http/1.1",)) -> None:
        """`protocols`: what it speaks, which clients choose from. Raises TlsRefused."""

        def read(name: str) -> object:
            value = settings[name]
            return _CLIENT_AUTH.get(value.lower(), value.lower()) if name == "ssl.client.auth" else value

        self._settings = tls_settings(read)
        self._protocols = list(protocols)
        self._stamps = file_stamps(self._settings)
        found = material(self._settings)
        self._listener = ListenerTls(self._server(found), None)
        self.client = client_context(found)
        """For requests to others of its kind."""

    def server(self) -> ssl.SSLContext:
        return followed(self._listener)

    async def follow(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.renew()

    def renew(self) -> None:
        """If a file has changed."""
        stamps = file_stamps(self._settings)
        if stamps == self._stamps:
            return
        self._stamps = stamps  # what is refused now is not said again before something changes again
        try:
            found = material(self._settings)
            self._listener.context, self.client = self._server(found), client_context(found)
        except TlsRefused as error:
            logger.error("the old certificate stays in use: %s", error)
            return
        logger.info("a new certificate is in use")

    def _server(self, found: Material) -> ssl.SSLContext:
        context = server_context(found)
        context.set_alpn_protocols(self._protocols)
        return context
