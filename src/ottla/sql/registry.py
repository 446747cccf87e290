"""The schema registry that statements mean, reached as the settings say."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

URL: Final = "ksql.schema.registry.url"
USER_INFO: Final = "ksql.schema.registry.basic.auth.user.info"
TRUSTED: Final = "ksql.schema.registry.ssl.truststore.location"


def registry_at(url: str | None, settings: Mapping[str, Any] | None = None) -> "Registry | None":
    """`url`: several, with commas between them. Raises ValueError for what is none."""
    if not url:
        return None
    from ottla.registry.client import RegistryClient  # noqa: PLC0415  few need it

    given = settings or {}
    user, _, password = str(given.get(USER_INFO) or "").partition(":")
    return RegistryClient(*url.split(","), user=user, password=password, ca_file=str(given.get(TRUSTED) or ""))
