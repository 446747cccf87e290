"""Which certificate may take the place of which while a node runs (KIP-226), and when to warn of one that ends."""

from typing import Final

from ottla.security.tls.certificate import Certificate
from ottla.security.tls.settings import TlsRefused, TlsSettings

DAY_S: Final = 86_400
WARNED_DAYS: Final = (30, 7, 1)


def refuse_other_stores(old: TlsSettings, new: TlsSettings) -> None:
    """A store cannot come where none was, nor the key store go. Raises TlsRefused."""
    if (old.key is None) != (new.key is None):
        raise TlsRefused("ssl.keystore: a key store can be replaced while the node runs, neither added nor taken away")
    if old.trust is None and new.trust is not None:
        raise TlsRefused("ssl.truststore: a trust store can be replaced while the node runs, not added")


def refuse_other_names(old: Certificate, new: Certificate, *, other_subject: bool, fewer_names: bool) -> None:
    """Raises TlsRefused. The two switches are ssl.allow.dn.changes and ssl.allow.san.changes."""
    if old.subject != new.subject and not other_subject:
        raise TlsRefused(
            f"the new certificate is for {new.subject} and the old one for {old.subject}; ssl.allow.dn.changes=true "
            "would let it pass"
        )
    lost = [name for name in old.alternative_names if name not in new.alternative_names]
    if lost and not fewer_names:
        raise TlsRefused(
            f"the new certificate lacks {', '.join(lost)}, for which the old one is good; ssl.allow.san.changes=true "
            "would let it pass"
        )


def days_left(certificate: Certificate, now_s: float) -> int | None:
    """The nearest of `WARNED_DAYS` that it has left at most, 0 if it has ended, None if there is time yet."""
    left = certificate.not_after_s - now_s
    if left <= 0:
        return 0
    return min((days for days in WARNED_DAYS if left <= days * DAY_S), default=None)
