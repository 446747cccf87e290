"""PKCS12 stores, by `cryptography`, which is loaded only when somebody has one."""

from typing import NamedTuple


class Pkcs12Error(ValueError):
    """The bytes are no PKCS12 that can be read, or the password is another one."""


class Contents(NamedTuple):
    key: bytes | None
    """As PKCS#8."""
    certificate: bytes | None
    """That of the key, as DER."""
    others: tuple[bytes, ...]
    """The rest of the chain, or what is trusted, in the order of the file."""


def contents(data: bytes, password: str | None) -> Contents:
    """Raises Pkcs12Error."""
    try:
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  a native library, on first use
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # noqa: PLC0415
    except ImportError:
        raise Pkcs12Error(
            "PKCS12 needs the package cryptography: pip install 'ottla[security]', or use a PEM file"
        ) from None
    try:
        found = load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if "password" in str(error).lower() or "mac" in str(error).lower():
            raise Pkcs12Error("its password is another one, or the file was damaged") from error
        raise Pkcs12Error(f"it is no PKCS12 file that can be read ({error})") from error
    except Exception as error:
        raise Pkcs12Error(f"it is no PKCS12 file that can be read ({type(error).__name__})") from error
    own = None if found.cert is None else found.cert.certificate.public_bytes(Encoding.DER)
    others = tuple(each.certificate.public_bytes(Encoding.DER) for each in found.additional_certs)
    key = None
    if found.key is not None:
        key = found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return Contents(key, own, others)
