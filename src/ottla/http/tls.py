"""The TLS context of a service that listens on https."""

import ssl
from pathlib import Path


def server_context(
    certificates: Path, key: Path, *, password: str | None = None, client_authorities: Path | None = None
) -> ssl.SSLContext:
    """From PEM files. With `client_authorities` clients have to show a certificate of one of them. Raises ValueError
    with the file and what is wrong with it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # A password is always given, as OpenSSL would ask for it at the terminal.
        context.load_cert_chain(certificates, key, password=password or "")
    except FileNotFoundError:
        missing = certificates if not certificates.exists() else key
        raise ValueError(f"{missing} is not there") from None
    except ssl.SSLError as error:
        raise ValueError(f"{certificates} and {key} cannot be used: {error.reason or error}") from None
    if client_authorities is not None:
        context.load_verify_locations(client_authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
