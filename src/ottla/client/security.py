"""How a client's connections are made safe: Kafka's client settings (`security.protocol`, `ssl.*`, `sasl.*`).

One reader for every client of the house: tools (`--command-config FILE`), services, pipelines. What is asked for and
cannot be given is refused by name, as is what looks misspelt; settings that have nothing to do with security are left
to others. Everything heavy is loaded when a file asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path
    from ssl import SSLContext

    from ottla.security.sasl.speaker import Credentials

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OF_CLIENTS: Final = (
    "security.protocol",
    "ssl.protocol",
    "ssl.provider",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.endpoint.identification.algorithm",
    "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
)
"""Names of Kafka's clients that this reads or that mean nothing here."""
_OF_LOGINS: Final = ("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password")
"""The first is Kafka's; the others are librdkafka's, and mean what they mean there. The rest is as nodes have it."""
_HANDLERS: Final = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
)
_KAFKAS_OWN: Final = "org.apache.kafka.common.security."
"""Kafka's own classes mean what is built in."""
_ENGINE: Final = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
_OF_LIBRDKAFKA: Final = {
    "ssl.ca.location": "ssl.truststore.location (with ssl.truststore.type=PEM)",
    "ssl.ca.pem": "ssl.truststore.certificates (with ssl.truststore.type=PEM)",
    "ssl.certificate.location": "ssl.keystore.location (with ssl.keystore.type=PEM; certificate and key in one file)",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain (with ssl.keystore.type=PEM)",
    "ssl.key.location": "ssl.keystore.location (with ssl.keystore.type=PEM; certificate and key in one file)",
    "ssl.key.pem": "ssl.keystore.key (with ssl.keystore.type=PEM)",
    "enable.ssl.certificate.verification": "ssl.truststore.location (a certificate is always checked)",
}
"""What people paste out of settings for other clients, and Kafka's name of it."""


class SecurityRefused(ValueError):
    """What is wrong with a client's settings, and what to do. Never holds a secret."""


class Security(NamedTuple):
    """How a connection is made safe before anybody uses it."""

    protocol: str = "PLAINTEXT"
    tls: SSLContext | None = None
    credentials: Credentials | None = None
    """By which each new connection logs in (SASL), and again before its session ends."""


PLAINTEXT: Final = Security()


def settings_of(path: Path) -> dict[str, str]:
    """What a properties file says. Raises SecurityRefused."""
    from ottla.model.properties.file import parse_properties  # noqa: PLC0415

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SecurityRefused(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SecurityRefused(f"{path}: {error}") from error


def security(given: Mapping[str, str]) -> Security:
    """From Kafka's client settings. Raises SecurityRefused."""
    _refuse_misspelt(given)
    protocol = given.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise SecurityRefused(f"security.protocol: {protocol!r} is none of {', '.join(PROTOCOLS)}")
    credentials = _credentials(given) if protocol.startswith("SASL") else None
    return Security(protocol, _context(given) if protocol.endswith("SSL") else None, credentials)


def _credentials(given: Mapping[str, str]) -> Credentials:
    from ottla.client.logins import credentials_of  # noqa: PLC0415  for who logs in

    try:
        return credentials_of(given)
    except ValueError as error:
        raise SecurityRefused(str(error)) from error


def _refuse_misspelt(given: Mapping[str, str]) -> None:
    for name in given:
        if name in _OF_LIBRDKAFKA:
            raise SecurityRefused(f"{name}: a name of librdkafka's; Kafka's is {_OF_LIBRDKAFKA[name]}")
        if name.startswith(("ssl.", "security.")) and name not in _OF_CLIENTS:
            from ottla.model.properties.property import closest  # noqa: PLC0415

            meant = closest(name, _OF_CLIENTS)
            raise SecurityRefused(f"{name}: not a setting of clients" + (f"; did you mean {meant}?" if meant else ""))
    _refuse_misspelt_logins(given)


def _refuse_misspelt_logins(given: Mapping[str, str]) -> None:
    asked = [name for name in given if name.startswith("sasl.")]
    if not asked:
        return
    from ottla.model.properties.broker import STATIC  # noqa: PLC0415  for who logs in
    from ottla.model.properties.property import closest  # noqa: PLC0415

    known = (*_OF_LOGINS, *(name for name in STATIC if name.startswith("sasl.")))
    for name in asked:
        if name not in known:
            meant = closest(name, known)
            raise SecurityRefused(f"{name}: not a setting of clients" + (f"; did you mean {meant}?" if meant else ""))
        if name in _HANDLERS and given[name].strip() and not given[name].strip().startswith(_KAFKAS_OWN):
            raise SecurityRefused(f"{name}: classes of others are not run here; leave it out")


def _context(given: Mapping[str, str]) -> SSLContext:
    from ottla.model.properties.broker import STATIC  # noqa: PLC0415  of the names they share, the types are the same
    from ottla.net.tls import client_context, material  # noqa: PLC0415
    from ottla.security.tls.settings import tls_settings  # noqa: PLC0415

    if given.get("ssl.engine.factory.class", "") not in ("", _ENGINE):
        raise SecurityRefused("ssl.engine.factory.class: classes of others are not run here; leave it out")

    def read(name: str) -> object:
        entry = STATIC[name]
        return entry.parse(given[name]) if name in given else entry.default

    try:
        return client_context(material(tls_settings(read)))
    except ValueError as error:
        raise SecurityRefused(str(error)) from error
