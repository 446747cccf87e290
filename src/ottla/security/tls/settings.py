"""Kafka's `ssl.*` settings of one listener or client, read and held against each other as Kafka does.

Where a value comes from is for the caller: a listener's prefix, a plain name, a properties file of a client.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ottla.security.tls import ciphers

STORE_NAMES: Final = (
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
)
NAMES: Final = (
    *STORE_NAMES,
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.endpoint.identification.algorithm",
)
DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
    {
        "ssl.keystore.type": "JKS",
        "ssl.truststore.type": "JKS",
        "ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
        "ssl.cipher.suites": (),
        "ssl.client.auth": "none",
        "ssl.endpoint.identification.algorithm": "https",
    }
)
"""Kafka's; what is not here is not set."""
VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
_TYPES: Final = (PEM, JKS, PKCS12)


class TlsRefused(ValueError):
    """What is wrong with settings, stores or certificates, and what to do. Never holds a secret."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where a key with its chain, or trusted certificates, are: in a file or written out."""

    setting: str
    """ssl.keystore or ssl.truststore, for messages."""
    type: str
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    """PEM text: the chain of the key, or what is trusted."""
    key_password: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """For people."""
        if self.location is not None:
            return f"{self.setting}.location: {self.location}"
        return f"{self.setting}.{'key' if self.key is not None else 'certificates'}"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    key: Store | None
    trust: Store | None
    versions: tuple[str, ...] = VERSIONS
    openssl_ciphers: str = ""
    client_auth: str = "none"
    checks_host_names: bool = True

    @property
    def files(self) -> tuple[str, ...]:
        """Those that may change while a node runs."""
        stores = (self.key, self.trust)
        return tuple(store.location for store in stores if store is not None and store.location is not None)


Read = Callable[[str], object]
"""The value of an `ssl.*` name, typed; None for none."""


def tls_settings(read: Read) -> TlsSettings:
    """Raises TlsRefused naming the setting."""
    versions = _versions(read)
    try:
        chosen = ciphers.chosen(_words(read, "ssl.cipher.suites"), versions)
    except ValueError as error:
        raise TlsRefused(f"ssl.cipher.suites: {error}") from None
    identification = (_text(read, "ssl.endpoint.identification.algorithm") or "").lower()
    if identification not in ("", "https"):
        raise TlsRefused(
            f"ssl.endpoint.identification.algorithm: {identification!r} is not known; https checks host names, and "
            "nothing (empty) does not"
        )
    return TlsSettings(
        key=_key_store(read),
        trust=_trust_store(read),
        versions=chosen.versions,
        openssl_ciphers=chosen.openssl,
        client_auth=_text(read, "ssl.client.auth") or "none",
        checks_host_names=identification == "https",
    )


def _versions(read: Read) -> tuple[str, ...]:
    asked = _words(read, "ssl.enabled.protocols") or VERSIONS
    for version in asked:
        if version not in VERSIONS:
            raise TlsRefused(
                f"ssl.enabled.protocols: {version} is not spoken here; {' and '.join(VERSIONS)} are, and what is older "
                "is broken"
            )
    return tuple(version for version in VERSIONS if version in asked)


def _key_store(read: Read) -> Store | None:
    kind, location = _type(read, "ssl.keystore.type"), _text(read, "ssl.keystore.location")
    password, key_password = _text(read, "ssl.keystore.password"), _text(read, "ssl.key.password")
    key, chain = _text(read, "ssl.keystore.key"), _text(read, "ssl.keystore.certificate.chain")
    if key is not None or chain is not None:
        if kind != PEM:
            raise TlsRefused(f"ssl.keystore.key: a key as text needs ssl.keystore.type=PEM; it is {kind}")
        if chain is None:
            raise TlsRefused("ssl.keystore.certificate.chain: the key in ssl.keystore.key needs its certificates here")
        if key is None:
            raise TlsRefused("ssl.keystore.key: the certificates in ssl.keystore.certificate.chain need their key here")
        if location is not None:
            raise TlsRefused("ssl.keystore.location: give a file or ssl.keystore.key, not both")
        if password is not None:
            raise TlsRefused(_NO_PEM_PASSWORD)
        return Store("ssl.keystore", kind, key=key, certificates=chain, key_password=key_password)
    if location is None:
        if password is not None:
            raise TlsRefused("ssl.keystore.password: there is no ssl.keystore.location that it could be for")
        return None
    if kind == PEM and password is not None:
        raise TlsRefused(_NO_PEM_PASSWORD)
    if kind != PEM and password is None:
        raise TlsRefused(f"ssl.keystore.password: a {kind} key store needs its password; {location} has none here")
    return Store("ssl.keystore", kind, location, password, key_password=key_password)


_NO_PEM_PASSWORD: Final = (
    "ssl.keystore.password: PEM has no password of the store; that of an encrypted key is ssl.key.password"
)


def _trust_store(read: Read) -> Store | None:
    kind, location = _type(read, "ssl.truststore.type"), _text(read, "ssl.truststore.location")
    password, trusted = _text(read, "ssl.truststore.password"), _text(read, "ssl.truststore.certificates")
    if trusted is not None:
        if kind != PEM:
            raise TlsRefused(
                f"ssl.truststore.certificates: certificates as text need ssl.truststore.type=PEM, not {kind}"
            )
        if location is not None:
            raise TlsRefused("ssl.truststore.location: give a file or ssl.truststore.certificates, not both")
    elif location is None:
        if password is not None:
            raise TlsRefused("ssl.truststore.password: there is no ssl.truststore.location that it could be for")
        return None
    if kind == PEM and password is not None:
        raise TlsRefused("ssl.truststore.password: a PEM trust store has no password; leave it out")
    return Store("ssl.truststore", kind, location, password, certificates=trusted)


def _type(read: Read, name: str) -> str:
    kind = (_text(read, name) or JKS).upper()
    if kind not in _TYPES:
        raise TlsRefused(
            f"{name}: {kind} is not known; {', '.join(_TYPES)} are. keytool -importkeystore -deststoretype PKCS12 "
            "makes a PKCS12 store of any that Java can read"
        )
    return kind


def _text(read: Read, name: str) -> str | None:
    value = read(name)
    return value if isinstance(value, str) and (value or name.endswith("algorithm")) else None


def _words(read: Read, name: str) -> tuple[str, ...]:
    value = read(name)
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value if isinstance(value, tuple) else ()
