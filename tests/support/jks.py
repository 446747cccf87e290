"""Writes JKS files, the way Java does: for tests of the reader without a JVM."""

from collections.abc import Sequence
from hashlib import sha1

from tests.support.names import oid_der, tlv

SALT = bytes(range(20))


def key_entry(alias: str, key: bytes, chain: Sequence[bytes], password: str) -> bytes:
    sealed = protected(key, password)
    return _head(1, alias) + _sized(sealed) + len(chain).to_bytes(4, "big") + b"".join(map(_certificate, chain))


def trusted_entry(alias: str, certificate: bytes) -> bytes:
    return _head(2, alias) + _certificate(certificate)


def store(entries: Sequence[bytes], password: str) -> bytes:
    body = b"\xfe\xed\xfe\xed" + (2).to_bytes(4, "big") + len(entries).to_bytes(4, "big") + b"".join(entries)
    return body + sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def protected(key: bytes, password: str) -> bytes:
    secret = password.encode("utf-16-be")
    stream, previous = b"", SALT
    while len(stream) < len(key):
        previous = sha1(secret + previous).digest()
        stream += previous
    hidden = bytes(a ^ b for a, b in zip(key, stream, strict=False))
    sealed = SALT + hidden + sha1(secret + key).digest()
    return tlv(0x30, tlv(0x30, oid_der("1.3.6.1.4.1.42.2.17.1.1") + b"\x05\x00") + tlv(0x04, sealed))


def _head(kind: int, alias: str) -> bytes:
    return kind.to_bytes(4, "big") + _text(alias) + bytes(8)


def _certificate(data: bytes) -> bytes:
    return _text("X.509") + _sized(data)


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
