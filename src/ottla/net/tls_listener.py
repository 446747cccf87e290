"""The TLS of one listener: its context, which may be replaced at any time, and who its clients are."""

import ssl

from ottla.net.secured import Secured
from ottla.security.tls.certificate import certificate
from ottla.security.tls.principal_mapping import PrincipalMapping

ANONYMOUS = "User:ANONYMOUS"


class ListenerTls:
    __slots__ = ("_mapping", "context")

    def __init__(self, context: ssl.SSLContext, mapping: PrincipalMapping | None) -> None:
        """Without a `mapping` a certificate is checked and names nobody: SASL does."""
        self.context = context
        """For the next handshake; connections that are open keep what they have."""
        self._mapping = mapping

    def principal(self, secured: Secured) -> str:
        """Whom the certificate of a client names. Raises ValueError if no rule is for its name."""
        if self._mapping is None:
            return ANONYMOUS
        shown = secured.certificate
        return ANONYMOUS if shown is None else f"User:{self._mapping.user(certificate(shown).subject)}"


def followed(tls: ListenerTls) -> ssl.SSLContext:
    """For a server that takes one context for good: each handshake is done with the one that is in use then."""

    def choose(sock: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> None:
        sock.context = tls.context

    tls.context.sni_callback = choose
    return tls.context
