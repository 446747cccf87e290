"""Certificates for tests: one authority for a run, and whatever it is asked to sign."""

import ssl
from functools import cache
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12


@cache
def authority() -> trustme.CA:
    return trustme.CA(organization_name="ottla tests", key_type=trustme.KeyType.ECDSA)


@cache
def stranger() -> trustme.CA:
    """An authority that nobody trusts."""
    return trustme.CA(organization_name="a stranger", key_type=trustme.KeyType.ECDSA)


def issued(*names: str, common_name: str = "node", ca: trustme.CA | None = None, **how: Any) -> trustme.LeafCert:
    return (ca or authority()).issue_cert(
        *(names or ("localhost", "127.0.0.1")),
        common_name=common_name,
        organization_name="ottla",
        organization_unit_name="tests",  # else it is drawn by lot
        key_type=trustme.KeyType.ECDSA,
        **how,
    )


@cache
def _node() -> trustme.LeafCert:
    return issued()


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _node().configure_cert(context)
    return context


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority().configure_trust(context)
    return context


def written(directory: Path, leaf: trustme.LeafCert, name: str) -> Path:
    """Key and chain in one PEM file."""
    path = directory / f"{name}.pem"
    path.write_bytes(leaf.private_key_and_cert_chain_pem.bytes())
    return path


def authority_file(directory: Path, ca: trustme.CA | None = None) -> Path:
    path = directory / ("ca.pem" if ca is None else "stranger.pem")
    path.write_bytes((ca or authority()).cert_pem.bytes())
    return path


def as_pkcs12(leaf: trustme.LeafCert, password: str) -> bytes:
    """Key and chain as Java's tools write them."""
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    first, *others = [x509.load_pem_x509_certificate(each.bytes()) for each in leaf.cert_chain_pems]
    encryption = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(b"own", key, first, others, encryption)
