"""TLS of a SQL server's https listeners."""

from typing import Any, Final

from ottla.model.properties.broker import STATIC
from ottla.registry.tls import ServiceTls
from ottla.security.tls import settings as tls
from ottla.sql.settings import SqlSettings

_PROTOCOLS: Final = ("h2", "http/1.1")


def server_tls(settings: SqlSettings) -> ServiceTls | None:
    """None: nothing listens on https. Raises ValueError."""
    if all(address.scheme != "https" for address in settings.listeners):
        return None
    given = settings.https
    read: dict[str, Any] = {name: STATIC[name].default for name in tls.NAMES}
    read |= {name: STATIC[name].parse(given[name]) for name in tls.NAMES if name in given}
    return ServiceTls(read, _PROTOCOLS)
