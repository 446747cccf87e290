"""The TLS of a node's listeners and of its connections to other nodes: made at the start, renewed while it runs.

A certificate changes by a dynamic setting of this broker (KIP-226) or because its file was written anew, which is
looked for now and then. Either way the same rules decide (`security.tls.renewal`), and on the listener that nodes reach
each other by, old and new have to accept each other. What is refused is told, and the old one stays.
"""

import asyncio
import logging
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ottla.model.ports import Clock
from ottla.model.properties import Settings
from ottla.model.properties.property import Value
from ottla.net.peer import PLAIN, ClientTls, Way
from ottla.net.tls import Material, client_context, file_stamps, material, refuse_strangers, server_context
from ottla.net.tls_listener import ListenerTls
from ottla.security.tls.principal_mapping import PrincipalMapping
from ottla.security.tls.renewal import days_left, refuse_other_names, refuse_other_stores
from ottla.security.tls.settings import TlsRefused, TlsSettings, tls_settings

logger = logging.getLogger(__name__)

HTTPS: Final = "HTTPS"
"""What the addresses of http.listeners are called, as far as TLS goes."""
_SLOW_RSA_BITS: Final = 3072
"""A handshake with such a key holds up everybody for milliseconds."""


class _Endpoint:
    """One listener's TLS, from both sides."""

    __slots__ = ("is_inter_node", "material", "name", "server", "told_days", "way")

    def __init__(self, name: str, found: Material, *, is_inter_node: bool) -> None:
        self.name = name
        self.material = found
        self.is_inter_node = is_inter_node
        self.server: ListenerTls | None = None
        """None if this node does not listen there."""
        self.way: Way = PLAIN
        self.told_days: int | None = None


class NodeTls:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Raises TlsRefused: what is asked for and cannot be had keeps a node from starting."""
        self._clock = clock
        self._settings = settings
        self._endpoints: dict[str, _Endpoint] = {}
        self._watching: asyncio.TimerHandle | None = None
        inter_node = (settings.inter_broker_listener, *settings.controller_listener_names[:1])
        heard = [each.name for each in settings.listeners if "SSL" in each.protocol]
        if any(address.startswith("https:") for address in settings.get_list("http.listeners")):
            heard.append(HTTPS)
        for name in dict.fromkeys((*heard, *(name for name in inter_node if _encrypted(settings, name)))):
            self._endpoints[name] = self._made(name, listens=name in heard, is_inter_node=name in inter_node)
        self._warn_of_endings()

    def _made(self, name: str, *, listens: bool, is_inter_node: bool) -> _Endpoint:
        settings = self._settings
        with _naming(name):
            endpoint = _Endpoint(name, material(_read(settings, name)), is_inter_node=is_inter_node)
            if listens:
                is_by_certificate = settings.protocol_of(name) == "SSL"
                mapping = PrincipalMapping(_rules(settings, name)) if is_by_certificate else None
                endpoint.server = ListenerTls(server_context(endpoint.material), mapping)
                _warn_of_slow_keys(name, endpoint.material)
            if is_inter_node:
                endpoint.way = Way(ClientTls(client_context(endpoint.material)))
                if listens and settings.is_broker:
                    refuse_strangers(endpoint.material, endpoint.material)
        return endpoint

    def listener(self, name: str) -> ListenerTls | None:
        found = self._endpoints.get(name)
        return None if found is None else found.server

    def way(self, name: str) -> Way:
        """How a connection to that listener of another node is made."""
        found = self._endpoints.get(name)
        return PLAIN if found is None else found.way

    # ---- renewal

    def check(self, settings: Settings) -> None:
        """Whether these settings could be taken on now. Raises TlsRefused."""
        for endpoint in self._endpoints.values():
            self._renewed(endpoint, settings)

    def reconfigure(self, settings: Settings) -> None:
        """The broker's own settings changed: whatever differs, files included, is taken on."""
        self._settings = settings
        for endpoint in self._endpoints.values():
            self._renew(endpoint)

    def watch(self, loop: asyncio.AbstractEventLoop, interval_s: float) -> None:
        self._watching = loop.call_later(interval_s, self._look, loop, interval_s)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def _look(self, loop: asyncio.AbstractEventLoop, interval_s: float) -> None:
        self.watch(loop, interval_s)
        for endpoint in self._endpoints.values():
            self._renew(endpoint)
        self._warn_of_endings()

    def _renew(self, endpoint: _Endpoint) -> None:
        stamps = file_stamps(endpoint.material.settings)  # before they are read: they may be written at this moment
        try:
            renewed = self._renewed(endpoint, self._settings)
        except TlsRefused as error:
            logger.error("the old certificate stays in use: %s", error)
            # Not said again before something changes again.
            endpoint.material = replace(endpoint.material, stamps=stamps)
            return
        if renewed is None:
            return
        endpoint.material, endpoint.told_days = renewed, None
        if endpoint.server is not None:
            endpoint.server.context = server_context(renewed)
        if endpoint.way.tls is not None:
            endpoint.way.tls.context = client_context(renewed)
        if renewed.identity is not None:
            shown = renewed.identity.certificate
            logger.info(
                "listener %s: a new certificate is in use for %s, good until %s",
                endpoint.name,
                shown.subject,
                _date(shown.not_after_s),
            )

    def _renewed(self, endpoint: _Endpoint, settings: Settings) -> Material | None:
        """What would be in use, or None if nothing differs. Raises TlsRefused."""
        old = endpoint.material
        with _naming(endpoint.name):
            wanted = _read(settings, endpoint.name)
            if wanted == old.settings and file_stamps(wanted) == old.stamps:
                return None
            refuse_other_stores(old.settings, wanted)
            new = material(wanted)
            if old.identity is not None and new.identity is not None:
                refuse_other_names(
                    old.identity.certificate,
                    new.identity.certificate,
                    other_subject=settings.for_listener(endpoint.name, "ssl.allow.dn.changes") is True,
                    fewer_names=settings.for_listener(endpoint.name, "ssl.allow.san.changes") is True,
                )
            if endpoint.server is not None:
                server_context(new)
            if endpoint.is_inter_node and endpoint.server is not None and settings.is_broker:
                refuse_strangers(new, new)
                refuse_strangers(old, new)
                refuse_strangers(new, old)
        return new

    def _warn_of_endings(self) -> None:
        now_s = self._clock.wall() / 1000
        for endpoint in self._endpoints.values():
            identity = endpoint.material.identity
            if identity is None:
                continue
            days = days_left(identity.certificate, now_s)
            if days is None or days == endpoint.told_days:
                continue
            endpoint.told_days = days
            end = _date(identity.certificate.not_after_s)
            what = f"ended on {end}: clients refuse it" if days == 0 else f"ends on {end}"
            logger.warning(
                "listener %s: the certificate in %s %s. Write a new one there, it is taken up within a minute",
                endpoint.name,
                identity.where,
                what,
            )


def _encrypted(settings: Settings, listener: str) -> bool:
    return "SSL" in (settings.protocol_of(listener) or "")


def _read(settings: Settings, listener: str) -> TlsSettings:
    is_sasl = (settings.protocol_of(listener) or "").startswith("SASL")

    def read(name: str) -> Value:
        if name == "ssl.client.auth" and is_sasl and not settings.is_set_for(listener, name):
            return "none"  # under SASL it counts with the listener's prefix only
        return settings.for_listener(listener, name)

    return tls_settings(read)


def _rules(settings: Settings, listener: str) -> str:
    found = settings.for_listener(listener, "ssl.principal.mapping.rules")
    return found if isinstance(found, str) else "DEFAULT"


def _warn_of_slow_keys(name: str, found: Material) -> None:
    assert found.identity is not None
    if found.identity.certificate.rsa_bits >= _SLOW_RSA_BITS:
        logger.warning(
            "listener %s: its key is %s, whose handshakes hold up everybody for milliseconds; EC (P-256) is as safe "
            "and costs a twentieth",
            name,
            found.identity.certificate.key,
        )


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


class _naming:
    """Says in a refusal which listener it is about."""

    def __init__(self, listener: str) -> None:
        self._listener = listener

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, ValueError | ssl.SSLError):
            raise TlsRefused(f"listener {self._listener}: {error}") from None
