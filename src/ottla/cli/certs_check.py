"""What a server shows of itself over TLS, and what a client with given settings would say to it."""

import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ottla.client.security import security
from ottla.client.sockets import NO_WAY, why_unreachable
from ottla.net.handshakes import words
from ottla.security.tls.certificate import Certificate, certificate
from ottla.security.tls.renewal import days_left

_PATIENCE_S: Final = 10.0
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Found(NamedTuple):
    lines: list[str]
    """To be read by people."""
    troubles: list[str]
    """Why a client would not connect; none: it would."""


def looked_at(host: str, port: int, given: Mapping[str, str], now_s: float) -> Found:
    """Raises ValueError for settings that cannot be used, and for a server that cannot be reached or has no TLS."""
    asked = security(given).tls
    assert asked is not None
    chain, shaken = _shown(host, port)
    lines = [f"{host}:{port} speaks {shaken}"]
    for number, each in enumerate(chain):
        lines += _told(each, "certificate" if number == 0 else "signed by", now_s)
    lines.append(f"versions it takes: {', '.join(_versions(host, port)) or 'none'}")
    troubles = _refusal(host, port, asked)
    return Found(lines, [*troubles, *_advice(chain, host, troubles, now_s)])


def _shown(host: str, port: int) -> tuple[list[Certificate], str]:
    """Whatever it shows, believed or not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with _connected(host, port, context) as secured:
            cipher = secured.cipher()
            spoken = f"{secured.version()}, {cipher[0] if cipher else 'no cipher'}"
            return [certificate(each) for each in _chain(secured)], spoken
    except ssl.SSLError as error:
        raise ValueError(f"{host}:{port}: {words(error)}") from error
    except NO_WAY as error:
        raise ValueError(f"{host}:{port}: {why_unreachable(error)}") from error


def _connected(host: str, port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    sock = socket.create_connection((host, port), timeout=_PATIENCE_S)
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _chain(secured: ssl.SSLSocket) -> list[bytes]:
    """All that the server sent; Python tells of more than the first from 3.13 on, and its own parts do before."""
    public: Any = getattr(secured, "get_unverified_chain", None)
    if public is not None:
        return list(public())
    inner: Any = getattr(getattr(secured, "_sslobj", None), "get_unverified_chain", None)
    found = inner() if inner is not None else None
    if found:
        return [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in found]
    first = secured.getpeercert(binary_form=True)
    return [first] if first else []


def _told(each: Certificate, what: str, now_s: float) -> list[str]:
    days = int((each.not_after_s - now_s) // 86_400)
    rest = f"{days} days left" if each.not_after_s > now_s else "it has ended"
    dates = f"good from {_date(each.not_before_s)} to {_date(each.not_after_s)}"
    found = [f"{what}: {each.subject}", f"  {each.key}, {dates}, {rest}"]
    if each.alternative_names:
        found.append(f"  names: {', '.join(each.alternative_names)}")
    if each.is_self_signed:
        found.append("  it is signed by itself")
    return found


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _versions(host: str, port: int) -> list[str]:
    taken = []
    for name, version in _VERSIONS.items():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        try:
            with _connected(host, port, context):
                taken.append(name)
        except ssl.SSLError as error:
            if error.reason not in ("TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"):
                taken.append(name)  # it takes the version and wants something else, such as a certificate
        except OSError:
            continue
    return taken


def _refusal(host: str, port: int, asked: ssl.SSLContext) -> list[str]:
    try:
        with _connected(host, port, asked) as secured:
            # With TLS 1.3 a server says what it thinks of the client's certificate after the client is done.
            secured.settimeout(0.3)
            try:
                secured.recv(1)
            except TimeoutError:
                return []
            except ssl.SSLError as error:
                return [words(error)]
            return ["the server hung up right after the handshake: does it ask for a certificate (ssl.keystore)?"]
    except OSError as error:
        return [words(error) if isinstance(error, ssl.SSLError) else why_unreachable(error)]


def _advice(chain: list[Certificate], host: str, troubles: list[str], now_s: float) -> list[str]:
    if not troubles or not chain:
        return []
    first = chain[0]
    found = []
    if days_left(first, now_s) == 0:
        found.append("a new certificate is needed: `ottla certs dev` makes one for development")
    elif "other names" in troubles[0]:
        names = ", ".join(first.alternative_names) or "none"
        found.append(f"it is for {names}, and {host} was asked for: dial one of these, or have it signed for {host}")
    elif "trust store" in troubles[0]:
        found.append(f"{chain[-1].issuer} has to be trusted: put its certificate into ssl.truststore.location, or --ca")
        if len(chain) == 1 and not first.is_self_signed and not chain[-1].is_authority:
            found.append("if that authority is not the root: the server has to send the ones in between, too")
    return found
