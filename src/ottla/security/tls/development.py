"""Certificates for development: an authority of one's own, and what it signs for nodes and clients.

P-256 throughout: its handshakes cost a tenth of what large RSA keys cost, and every client there is speaks it. Made by
`cryptography`, which is loaded when somebody asks. What comes out is text and bytes; who keeps them is for the caller.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from ottla.security.tls.settings import TlsRefused

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

_ORGANIZATION: Final = "ottla development"
_CLOCKS_DIFFER: Final = timedelta(hours=1)
"""A certificate is good a little before it was made, for those whose clocks are behind."""


@dataclass(frozen=True, slots=True)
class Authority:
    key: "EllipticCurvePrivateKey" = field(repr=False)
    certificate: "Certificate"

    @classmethod
    def made(cls, now: datetime, days: int) -> "Authority":
        from cryptography import x509  # noqa: PLC0415  a native library, on first use
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("ottla development CA")
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = (
            _begun(now, days)
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(key, builder.sign(key, _sha256()))

    @classmethod
    def read(cls, key_pem: bytes, certificate_pem: bytes) -> "Authority":
        """One that was made before. Raises TlsRefused."""
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        try:
            key, certificate = load_pem_private_key(key_pem, None), x509.load_pem_x509_certificate(certificate_pem)
        except (ValueError, TypeError) as error:
            raise TlsRefused(f"the authority that is there already cannot be read: {error}") from error
        if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise TlsRefused("the authority that is there already is no key and certificate of one another")
        return cls(key, certificate)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self.key)

    @property
    def certificate_pem(self) -> bytes:
        return _certificate_pem(self.certificate)

    def trust_store(self, password: str) -> bytes:
        """As PKCS12, with the mark that Java wants to see on what it trusts."""
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12  # noqa: PLC0415

        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def has_signed(self, certificate_der: bytes) -> bool:
        """Whether it is from here, and not from an authority of the same name."""
        from cryptography import x509  # noqa: PLC0415
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

        try:
            x509.load_der_x509_certificate(certificate_der).verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def issued(self, common_name: str, names: list[str], now: datetime, days: int) -> "Issued":
        """`names` are host names and addresses: with any it is for servers and clients, without for clients."""
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
        from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if names else [])]
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=False, crl_sign=False, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
            decipher_only=False,
        )  # fmt: skip
        builder = (
            _begun(now, days)
            .subject_name(_name(common_name))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False
            )
        return Issued(key, builder.sign(self.key, _sha256()), self.certificate)


@dataclass(frozen=True, slots=True)
class Issued:
    """A key, its certificate, and the authority's."""

    key: "EllipticCurvePrivateKey" = field(repr=False)
    certificate: "Certificate"
    authority: "Certificate"

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self.key)

    @property
    def certificate_pem(self) -> bytes:
        return _certificate_pem(self.certificate)

    @property
    def pem(self) -> bytes:
        """Key and certificate in one file, as Kafka wants PEM."""
        return self.key_pem + self.certificate_pem

    def pkcs12(self, name: str, password: str) -> bytes:
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12  # noqa: PLC0415

        return pkcs12.serialize_key_and_certificates(
            name.encode(), self.key, self.certificate, [self.authority], BestAvailableEncryption(password.encode())
        )


def _name(common_name: str) -> "x509.Name":
    from cryptography import x509  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _begun(now: datetime, days: int) -> "x509.CertificateBuilder":
    from cryptography import x509  # noqa: PLC0415

    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + timedelta(days=days))
    )


def _alternative(name: str) -> "x509.GeneralName":
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _certificate_pem(certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    return certificate.public_bytes(Encoding.PEM)


def _sha256() -> "hashes.SHA256":
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415

    return hashes.SHA256()
