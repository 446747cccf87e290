"""Key and trust stores: from a file's bytes, or text in a setting, to a key with its chain and to trusted certificates.

PEM, PKCS12 and JKS. As Java does, a JKS setting takes a PKCS12 file and the other way round: keytool has written PKCS12
under both names for years. What a file really is, is said when it is something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.security.tls import der, jks, pem, pkcs12
from ottla.security.tls.certificate import Certificate, certificate
from ottla.security.tls.settings import JKS, PEM, Store, TlsRefused

MAX_STORE_BYTES: Final = 16 << 20
"""Ten times the largest collection of authorities there is."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A key and the certificates that vouch for it, its own first."""

    key: str = field(repr=False)
    """PEM, encrypted if it was."""
    password: str | None = field(repr=False)
    chain: tuple[Certificate, ...]
    where: str

    @property
    def certificate(self) -> Certificate:
        return self.chain[0]

    @property
    def pem(self) -> str:
        """Key and chain as OpenSSL reads them."""
        return self.key + "".join(pem.written("CERTIFICATE", each.der) for each in self.chain)


def identity(store: Store, data: bytes | None = None) -> Identity:
    """`data` is what its file holds, if it has one. Raises TlsRefused."""
    try:
        if store.type == PEM:
            return _of_pem(store, _decoded(store, data))
        assert data is not None, "a store that is not PEM has a file"
        return _of_jks(store, data) if _kind(store, data) == JKS else _of_pkcs12(store, data)
    except ValueError as error:
        raise _refused(store, error) from error


def trusted(store: Store, data: bytes | None = None) -> tuple[Certificate, ...]:
    """Raises TlsRefused."""
    try:
        found = _trusted(store, data)
    except ValueError as error:
        raise _refused(store, error) from error
    if not found:
        raise TlsRefused(f"{store.where}: no certificate is in it; put there those of the authorities you trust")
    return found


def _refused(store: Store, error: ValueError) -> TlsRefused:
    return error if isinstance(error, TlsRefused) else TlsRefused(f"{store.where}: {error}")


def _trusted(store: Store, data: bytes | None) -> tuple[Certificate, ...]:
    if store.type == PEM:
        text = store.certificates if store.certificates is not None else _decoded(store, data)
        assert text is not None
        return _certificates([block.data for block in pem.blocks(text) if block.label in pem.CERTIFICATES])
    assert data is not None
    if _kind(store, data) == JKS:
        entries = jks.entries(data, store.password)
        return _certificates([each.certificate for each in entries if isinstance(each, jks.TrustedEntry)])
    contents = pkcs12.contents(data, store.password)
    return _certificates(contents.others)


def _kind(store: Store, data: bytes) -> str:
    """What the bytes are, of those that Java takes for each other. Raises ValueError for what they are instead."""
    if data.startswith(jks.MAGIC):
        return JKS
    if data.startswith(jks.JCEKS_MAGIC):
        raise ValueError(
            "it is a JCEKS store, which is not read here; keytool -importkeystore -deststoretype PKCS12 makes a PKCS12 "
            "store of it"
        )
    if data[:1] == b"\x30":
        return "PKCS12"
    if b"-----BEGIN " in data:
        raise ValueError(f"it is a PEM file; say so with {store.setting}.type=PEM")
    raise ValueError(f"it is neither JKS nor PKCS12 nor PEM{'' if data else ': it is empty'}")


def _decoded(store: Store, data: bytes | None) -> str:
    if data is None:
        assert store.key is not None and store.certificates is not None
        return f"{store.key}\n{store.certificates}"
    for kind, is_it in (("JKS", data.startswith(jks.MAGIC)), ("PKCS12", data[:1] == b"\x30")):
        if is_it:
            raise ValueError(f"it is no PEM file, but {kind} (or DER); say so with {store.setting}.type={kind}")
    text = data.decode("utf-8", errors="replace")
    if "-----BEGIN " not in text:
        raise ValueError("nothing in it begins with -----BEGIN: it is no PEM file")
    return text


def _of_pem(store: Store, text: str) -> Identity:
    found = pem.blocks(text)
    keys = [block for block in found if block.is_key]
    if len(keys) != 1:
        raise ValueError(f"it has {len(keys) or 'no'} private keys, and one is expected" if keys else _NO_KEY)
    key = keys[0]
    if key.is_encrypted and store.key_password is None:
        raise ValueError("its private key is encrypted: ssl.key.password is needed")
    if not key.is_encrypted and store.key_password is not None:
        raise ValueError("its private key is not encrypted: take ssl.key.password away, or encrypt it")
    chain = _certificates([block.data for block in found if block.label in pem.CERTIFICATES])
    return _whole(store, key.text, store.key_password, chain)


_NO_KEY: Final = "no private key is in it: key and certificates stand in one file, one after the other"


def _of_jks(store: Store, data: bytes) -> Identity:
    assert store.password is not None
    keys = [each for each in jks.entries(data, store.password) if isinstance(each, jks.KeyEntry)]
    if not keys:
        raise ValueError("no private key is in it; is it a trust store?")
    first = keys[0]
    key = jks.unprotected(first.protected, store.key_password or store.password)
    return _whole(store, pem.written("PRIVATE KEY", key), None, _certificates(first.chain))


def _of_pkcs12(store: Store, data: bytes) -> Identity:
    if store.key_password is not None and store.key_password != store.password:
        raise ValueError("ssl.key.password differs from ssl.keystore.password, and a PKCS12 store has one password")
    found = pkcs12.contents(data, store.password)
    if found.key is None or found.certificate is None:
        raise ValueError("no private key is in it; is it a trust store?")
    chain = _certificates([found.certificate, *found.others])
    return _whole(store, pem.written("PRIVATE KEY", found.key), None, chain)


def _certificates(found: Sequence[bytes]) -> tuple[Certificate, ...]:
    try:
        return tuple(certificate(each) for each in found)
    except der.Malformed as error:
        raise ValueError(f"a certificate in it cannot be read: {error}") from error


def _whole(store: Store, key: str, password: str | None, chain: tuple[Certificate, ...]) -> Identity:
    if not chain:
        raise ValueError("no certificate for its key is in it")
    return Identity(key, password, _in_order(chain), store.where)


def _in_order(chain: tuple[Certificate, ...]) -> tuple[Certificate, ...]:
    """The key's own first, then each one's issuer: files may have the rest in any order."""
    ordered, left = [chain[0]], list(chain[1:])
    while left:
        issuer = next((each for each in left if each.subject == ordered[-1].issuer), None)
        if issuer is None or ordered[-1].is_self_signed:
            break
        ordered.append(issuer)
        left.remove(issuer)
    return tuple(ordered)
