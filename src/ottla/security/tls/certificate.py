"""What a node has to know of a certificate: its names, its dates, its key. OpenSSL verifies; nothing here does."""

from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from ottla.security.tls import der
from ottla.security.tls.distinguished_name import java_name

_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_BASIC_CONSTRAINTS: Final = "2.5.29.19"
_EXTENDED_KEY_USAGE: Final = "2.5.29.37"
_USES: Final = {
    "1.3.6.1.5.5.7.3.1": "server",
    "1.3.6.1.5.5.7.3.2": "client",
    "2.5.29.37.0": "any",
}
_KEYS: Final = {
    "1.2.840.113549.1.1.1": "RSA",
    "1.2.840.10045.2.1": "EC",
    "1.2.840.10040.4.1": "DSA",
    "1.3.101.112": "Ed25519",
    "1.3.101.113": "Ed448",
}
_VERSION, _EXTENSIONS = 0xA0, 0xA3


@dataclass(frozen=True, slots=True)
class Certificate:
    der: bytes
    subject: str
    """As Java spells it."""
    issuer: str
    not_before_s: int
    not_after_s: int
    """Seconds since 1970."""
    alternative_names: tuple[str, ...]
    """As DNS:localhost and IP:127.0.0.1."""
    key: str
    """As "RSA 4096" or "EC"."""
    is_authority: bool
    uses: tuple[str, ...]
    """Of server and client, those that the certificate is limited to; none: it is not limited."""

    @property
    def rsa_bits(self) -> int:
        kind, _, bits = self.key.partition(" ")
        return int(bits) if kind == "RSA" else 0

    @property
    def is_self_signed(self) -> bool:
        return self.subject == self.issuer


def certificate(data: bytes) -> Certificate:
    """Of its DER. Raises Malformed."""
    signed = der.only(data).expect(der.SEQUENCE).parts()
    if len(signed) != 3:
        raise der.Malformed("it is no signed certificate")
    fields = signed[0].expect(der.SEQUENCE).parts()
    if fields and fields[0].tag == _VERSION:
        fields = fields[1:]
    if len(fields) < 6:
        raise der.Malformed("a field of the certificate is missing")
    _, _, issuer, validity, subject, key = fields[:6]
    dates = validity.expect(der.SEQUENCE).parts()
    if len(dates) != 2:
        raise der.Malformed("the certificate has no two dates")
    extensions = _extensions(fields[6:])
    return Certificate(
        der=data,
        subject=java_name(subject.whole),
        issuer=java_name(issuer.whole),
        not_before_s=_seconds(dates[0]),
        not_after_s=_seconds(dates[1]),
        alternative_names=_alternative_names(extensions.get(_ALTERNATIVE_NAMES)),
        key=_key(key.expect(der.SEQUENCE)),
        is_authority=_is_authority(extensions.get(_BASIC_CONSTRAINTS)),
        uses=_uses(extensions.get(_EXTENDED_KEY_USAGE)),
    )


def _extensions(fields: list[der.Value]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for field in fields:
        if field.tag == _EXTENSIONS:
            for extension in der.only(field.body).expect(der.SEQUENCE).parts():
                parts = extension.expect(der.SEQUENCE).parts()
                if len(parts) < 2:
                    raise der.Malformed("an extension has no value")
                found[der.object_id(parts[0].expect(der.OBJECT_ID).body)] = parts[-1].expect(der.OCTET_STRING).body
    return found


def _seconds(date: der.Value) -> int:
    text = date.body.decode("ascii", errors="replace")
    try:
        if date.tag == der.UTC_TIME:  # RFC 5280: years from 1950 to 2049
            text = ("20" if text[:2] < "50" else "19") + text
        else:
            date.expect(der.GENERALIZED_TIME)
        return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError as error:
        raise der.Malformed(f"a date cannot be read: {text!r}") from error


def _alternative_names(extension: bytes | None) -> tuple[str, ...]:
    if extension is None:
        return ()
    found = []
    for name in der.only(extension).expect(der.SEQUENCE).parts():
        if name.tag == 0x87 and len(name.body) in (4, 16):
            found.append(f"IP:{ip_address(name.body)}")
        elif name.tag in (0x81, 0x82, 0x86):
            kind = {0x81: "email", 0x82: "DNS", 0x86: "URI"}[name.tag]
            found.append(f"{kind}:{name.body.decode('ascii', errors='replace')}")
        else:
            found.append(f"#{name.whole.hex()}")
    return tuple(found)


def _key(info: der.Value) -> str:
    parts = info.parts()
    if len(parts) != 2 or not parts[0].parts():
        raise der.Malformed("the certificate has no public key")
    number = der.object_id(parts[0].parts()[0].expect(der.OBJECT_ID).body)
    kind = _KEYS.get(number, number)
    if kind != "RSA":
        return kind
    numbers = der.only(parts[1].expect(der.BIT_STRING).body[1:]).expect(der.SEQUENCE).parts()
    if len(numbers) != 2:
        raise der.Malformed("the certificate's RSA key is no two numbers")
    return f"RSA {int.from_bytes(numbers[0].expect(der.INTEGER).body, 'big').bit_length()}"


def _is_authority(extension: bytes | None) -> bool:
    parts = [] if extension is None else der.only(extension).expect(der.SEQUENCE).parts()
    return bool(parts) and parts[0].tag == der.BOOLEAN and parts[0].body != b"\0"


def _uses(extension: bytes | None) -> tuple[str, ...]:
    if extension is None:
        return ()
    numbers = [der.object_id(each.expect(der.OBJECT_ID).body) for each in der.only(extension).parts()]
    found = [_USES.get(number, number) for number in numbers]
    return () if "any" in found else tuple(found)
