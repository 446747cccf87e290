"""Java's own key store format, JKS: its entries, checked against their SHA-1 and opened with Sun's key protector.

All numbers are big-endian; passwords count as UTF-16. Nothing is read beyond the end, whatever a length says.
"""

from hashlib import sha1
from hmac import compare_digest
from typing import Final, NamedTuple

from ottla.security.tls import der

MAGIC: Final = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
_KEY, _TRUSTED = 1, 2
_PROTECTOR: Final = "1.3.6.1.4.1.42.2.17.1.1"
_WHITENER: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20


class JksError(ValueError):
    """The bytes are no JKS that can be read, or the password is another one."""


class KeyEntry(NamedTuple):
    alias: str
    protected: bytes
    """Of PKCS#8's form for encrypted keys: `unprotected` opens it."""
    chain: tuple[bytes, ...]
    """Certificates as DER, the key's own first."""


class TrustedEntry(NamedTuple):
    alias: str
    certificate: bytes


Entry = KeyEntry | TrustedEntry


def entries(data: bytes, password: str | None) -> list[Entry]:
    """Without a password nothing vouches for what is read, as in Java. Raises JksError."""
    reader = _Reader(data)
    if reader.take(4) != MAGIC:
        raise JksError("it is no JKS file")
    version = reader.number()
    if version not in (1, 2):
        raise JksError(f"it is a JKS file of version {version}; 1 and 2 are known")
    found = [_entry(reader, version) for _ in range(reader.count())]
    body = data[: reader.position]
    digest = reader.take(_DIGEST_BYTES)
    if reader.position != len(data):
        raise JksError(f"{len(data) - reader.position} bytes stand behind its end")
    if password is not None and not compare_digest(sha1(_utf16(password) + _WHITENER + body).digest(), digest):
        raise JksError("its password is another one, or the file was damaged")
    return found


def unprotected(protected: bytes, password: str) -> bytes:
    """The key as PKCS#8. Raises JksError."""
    try:
        algorithm, encrypted = der.only(protected).expect(der.SEQUENCE).parts()
        number = der.object_id(algorithm.parts()[0].expect(der.OBJECT_ID).body)
        sealed = encrypted.expect(der.OCTET_STRING).body
    except (ValueError, IndexError) as error:
        raise JksError(f"its private key cannot be read: {error}") from error
    if number != _PROTECTOR:
        raise JksError(f"its private key is protected by {number}, which is not JKS's own way")
    salt, hidden, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    if len(sealed) < 2 * _DIGEST_BYTES:
        raise JksError("its private key ends in the middle")
    secret = _utf16(password)
    stream, previous = bytearray(), salt
    while len(stream) < len(hidden):
        previous = sha1(secret + previous).digest()
        stream += previous
    key = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not compare_digest(sha1(secret + key).digest(), check):
        raise JksError("the password of its private key is another one (ssl.key.password)")
    return key


def _entry(reader: "_Reader", version: int) -> Entry:
    kind = reader.number()
    if kind not in (_KEY, _TRUSTED):
        raise JksError(f"it has an entry of type {kind}; keys (1) and trusted certificates (2) are known")
    alias = reader.text()
    reader.take(8)  # when it was made
    if kind == _TRUSTED:
        return TrustedEntry(alias, _certificate(reader, version))
    protected = reader.take(reader.number())
    return KeyEntry(alias, protected, tuple(_certificate(reader, version) for _ in range(reader.count())))


def _certificate(reader: "_Reader", version: int) -> bytes:
    kind = reader.text() if version == 2 else "X.509"
    if kind != "X.509":
        raise JksError(f"it has a certificate of type {kind}; X.509 is known")
    return reader.take(reader.number())


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self._data):
            raise JksError("it ends in the middle: the file was cut off")
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def count(self) -> int:
        """Of things of four bytes and more each."""
        found = self.number()
        if found > (len(self._data) - self.position) // 4:
            raise JksError("it ends in the middle: the file was cut off")
        return found

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2), "big")).decode(errors="replace")
