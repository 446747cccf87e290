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


def of_clients(url: str | None, given: Mapping[str, str]) -> "Registry | None":
    """As Kafka's client settings say it, with `schema.registry.` before them or without; else the address has to have
    the login in it. Raises ValueError."""
    found = {name: _first(given, words) for name, words in _WORDS.items()}
    return registry_at(url or given.get("schema.registry.url"), {name: each for name, each in found.items() if each})


_WORDS: Final = {
    USER_INFO: ("basic.auth.user.info",),
    TRUSTED: ("ssl.ca.location", "ssl.truststore.location"),
}


def _first(given: Mapping[str, str], words: tuple[str, ...]) -> str | None:
    return next((given[name] for word in words for name in (f"schema.registry.{word}", word) if name in given), None)
