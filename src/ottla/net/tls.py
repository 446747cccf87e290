"""TLS contexts from settings: reads the stores and hands their contents to OpenSSL.

OpenSSL takes keys from files only, so a key goes to it through one that nobody else can open and that is gone at once.
A context is never changed: a new certificate makes a new context, and who has the old one keeps it.
"""

import os
import ssl
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ottla.net.handshakes import words
from ottla.security.tls import stores
from ottla.security.tls.certificate import Certificate
from ottla.security.tls.settings import Store, TlsRefused, TlsSettings
from ottla.security.tls.stores import Identity

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class Material:
    """What settings lead to: read once, good for as many contexts as are wanted."""

    settings: TlsSettings
    identity: Identity | None
    trusted: tuple[Certificate, ...]
    """None: those that the system trusts."""
    stamps: tuple[tuple[str, int], ...]
    """Files and when they were written, as they were read."""


def material(settings: TlsSettings) -> Material:
    """Raises TlsRefused with the file and what to do."""
    stamps = file_stamps(settings)
    identity = None if settings.key is None else stores.identity(settings.key, _contents(settings.key))
    trusted = () if settings.trust is None else stores.trusted(settings.trust, _contents(settings.trust))
    return Material(settings, identity, trusted, stamps)


def file_stamps(settings: TlsSettings) -> tuple[tuple[str, int], ...]:
    """What tells that a file was written anew; a file that is away for the moment has none."""
    return tuple((name, stamp) for name in settings.files if (stamp := _stamp(name)) is not None)


def _stamp(name: str) -> int | None:
    try:
        return os.stat(name).st_mtime_ns
    except OSError:
        return None


def _contents(store: Store) -> bytes | None:
    if store.location is None:
        return None
    try:
        # Stores are read by the loop: to open a pipe in place of a file, as a shell's <(...) is, would wait for ever.
        if not stat.S_ISREG(os.stat(store.location).st_mode):
            raise TlsRefused(f"{store.where}: it is no regular file")
        with open(store.location, "rb") as file:
            data = file.read(stores.MAX_STORE_BYTES + 1)
    except OSError as error:
        raise TlsRefused(f"{store.where}: {error.strerror or error}") from None
    if len(data) > stores.MAX_STORE_BYTES:
        raise TlsRefused(f"{store.where}: more than {stores.MAX_STORE_BYTES >> 20} MiB are no store")
    return data


def server_context(found: Material) -> ssl.SSLContext:
    """Raises TlsRefused."""
    if found.identity is None:
        raise TlsRefused("ssl.keystore.location: a listener with TLS needs a key and its certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _configure(context, found)
    context.verify_mode = _CLIENT_AUTH[found.settings.client_auth]
    return context


def client_context(found: Material) -> ssl.SSLContext:
    """Raises TlsRefused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _configure(context, found)
    context.check_hostname = found.settings.checks_host_names
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _configure(context: ssl.SSLContext, found: Material) -> None:
    settings = found.settings
    context.minimum_version = _VERSIONS[settings.versions[0]]
    context.maximum_version = _VERSIONS[settings.versions[-1]]
    # A client that asks for new keys again and again costs a server dearly, and no Kafka client ever does.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    if settings.openssl_ciphers:
        try:
            context.set_ciphers(settings.openssl_ciphers)
        except ssl.SSLError:
            raise TlsRefused(f"ssl.cipher.suites: OpenSSL has none of {settings.openssl_ciphers}") from None
    if found.trusted:
        context.load_verify_locations(cadata=b"".join(each.der for each in found.trusted))
    elif settings.trust is None:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH if context.protocol == ssl.PROTOCOL_TLS_SERVER else ssl.Purpose.SERVER_AUTH
        )
    if found.identity is not None:
        _load(context, found.identity)


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    try:
        with _unseen_file(identity.pem.encode()) as name:
            # A password is always given, as OpenSSL would ask for it at the terminal.
            context.load_cert_chain(name, password=identity.password or "")
    except ssl.SSLError as error:
        reason = error.reason or ""
        if reason == "KEY_VALUES_MISMATCH":
            why = "its certificate belongs to another key"
        elif identity.password is not None:
            why = "its private key cannot be opened: most likely ssl.key.password is another one"
        else:
            why = f"its private key cannot be read ({reason.replace('_', ' ').lower() or words(error)})"
        raise TlsRefused(f"{identity.where}: {why}") from None


@contextmanager
def _unseen_file(data: bytes) -> Iterator[str]:
    """In memory where the system can, else one that only this user can open; gone when the block ends."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("ottla-key", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:  # 0600
        file.write(data)
        file.flush()
        yield file.name


def refuse_strangers(server: Material, client: Material) -> None:
    """Nodes talk to each other: what one shows, the other has to accept. A handshake in memory tells, without
    asking for host names. Raises TlsRefused."""
    client_side = client_context(client)
    client_side.check_hostname = False
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        server_context(server).wrap_bio(to_server, to_client, server_side=True),
        client_side.wrap_bio(to_client, to_server),
    ]
    try:
        for _ in range(_MOST_FLIGHTS):
            ends = [end for end in ends if not _shaken(end)]
            if not ends:
                return
    except ssl.SSLError as error:
        raise TlsRefused(
            "the nodes of this cluster would not accept each other, as its key store is not accepted by its own trust "
            f"store: {words(error)}. {_remedy(error)}"
        ) from None


def _remedy(error: ssl.SSLError) -> str:
    if getattr(error, "verify_code", None) == _EXPIRED:
        return "Renew the certificate (`ottla certs check` tells of others)"
    return "Put the authority that signed the certificate into ssl.truststore"


_MOST_FLIGHTS: Final = 10
_EXPIRED: Final = 10
"""X509_V_ERR_CERT_HAS_EXPIRED."""


def _shaken(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
