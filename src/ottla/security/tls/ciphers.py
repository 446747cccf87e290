"""Cipher suites: Java's names of them, which Kafka's settings use, into OpenSSL's.

OpenSSL 3 as Python binds it chooses among suites of TLS 1.2 only. Those of TLS 1.3 are three, all of them on: a list
that names some of them and not the others cannot be honoured.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_EXCHANGES: Final = {
    "TLS_ECDHE_ECDSA": "ECDHE-ECDSA-",
    "TLS_ECDHE_RSA": "ECDHE-RSA-",
    "TLS_DHE_RSA": "DHE-RSA-",
    "TLS_DHE_DSS": "DHE-DSS-",
    "TLS_RSA": "",
}
_BULK: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}
_DO_NOT_EXIST: Final = frozenset(
    (
        *(f"{exchange}_WITH_AES_256_CBC_SHA384" for exchange in ("TLS_RSA", "TLS_DHE_RSA", "TLS_DHE_DSS")),
        *(f"{exchange}_WITH_AES_256_CBC_SHA256" for exchange in ("TLS_ECDHE_ECDSA", "TLS_ECDHE_RSA")),
        *(f"{exchange}_WITH_CHACHA20_POLY1305_SHA256" for exchange in ("TLS_RSA", "TLS_DHE_DSS")),
    )
)


def _names() -> dict[str, str]:
    table = {
        f"{exchange}_WITH_{bulk}": f"{prefix}{name}"
        for exchange, prefix in _EXCHANGES.items()
        for bulk, name in _BULK.items()
    }
    return {name: ours for name, ours in table.items() if name not in _DO_NOT_EXIST}


OPENSSL_NAMES: Final = _names()


class Chosen(NamedTuple):
    openssl: str
    """For `SSLContext.set_ciphers`; empty: as OpenSSL likes."""
    versions: tuple[str, ...]
    """TLS versions that have any of the suites."""


def chosen(suites: Sequence[str], versions: Sequence[str]) -> Chosen:
    """Raises ValueError with what cannot be honoured."""
    if not suites:
        return Chosen("", tuple(versions))
    newest = [name for name in suites if name in TLS_1_3]
    older = [name for name in suites if name not in TLS_1_3]
    for name in older:
        if name not in OPENSSL_NAMES:
            raise ValueError(
                f"{name} is no cipher suite that is known here; names are Java's, such as "
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
            )
    if newest and "TLSv1.3" in versions and len(newest) < len(TLS_1_3):
        missing = ", ".join(name for name in TLS_1_3 if name not in newest)
        raise ValueError(
            f"the suites of TLS 1.3 are all on or all off here: add {missing}, or leave TLSv1.3 out of "
            "ssl.enabled.protocols"
        )
    left = tuple(version for version in versions if (newest if version == "TLSv1.3" else older))
    if not left:
        raise ValueError("no suite of the list belongs to a version in ssl.enabled.protocols")
    return Chosen(":".join(OPENSSL_NAMES[name] for name in older), left)
