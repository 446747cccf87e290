"""Who a client is to a cluster: Kafka's client settings (`sasl.*`) into credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.model.properties.jaas import Jaas, parse_jaas
from ottla.security.sasl.speaker import Credentials

_BY_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_BEARER: Final = "OAUTHBEARER"


def credentials_of(given: Mapping[str, str]) -> Credentials:
    """Raises ValueError, which never tells a secret."""
    mechanism = (given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "GSSAPI").strip().upper()
    if mechanism == _BEARER:
        from ottla.net.token_endpoint import Tokens, endpoint_of  # noqa: PLC0415  for who has OAUTHBEARER

        tokens = Tokens(endpoint_of(given.get, _jaas(given, mechanism)))
        return Credentials(mechanism, token=tokens.token)
    if mechanism not in _BY_PASSWORD:
        default = ", which is Kafka's default," if "sasl.mechanism" not in given else ""
        known = ", ".join((*_BY_PASSWORD, _BEARER))
        raise ValueError(f"sasl.mechanism: {mechanism}{default} is not built; there are {known}")
    jaas = _jaas(given, mechanism)
    name = jaas.options.get("username") if jaas else given.get("sasl.username")
    password = jaas.options.get("password") if jaas else given.get("sasl.password")
    if not name or not password:
        raise ValueError(
            "sasl.jaas.config: username and password are needed there (or as sasl.username and sasl.password) for "
            f"{mechanism}"
        )
    by_token = jaas is not None and jaas.options.get("tokenauth", "").lower() == "true"
    return Credentials(mechanism, name, password, by_token)


def _jaas(given: Mapping[str, str], mechanism: str) -> Jaas | None:
    text = given.get("sasl.jaas.config")
    if text is None:
        return None
    try:
        jaas = parse_jaas(text)
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config: {error}") from None
    if mechanism not in jaas.mechanisms:
        raise ValueError(f"sasl.jaas.config: {jaas.module} is for {' and '.join(jaas.mechanisms)}, not for {mechanism}")
    return jaas
