"""Which broker settings may change while the node runs (KIP-226), and the names listeners give them."""

from ottla.model.properties.broker import BROKER, DYNAMIC_ONLY, OWN
from ottla.model.properties.property import PER_BROKER, READ_ONLY, Property

_PER_LISTENER_ONLY = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
)
"""Key material changes per listener, or a mistake would cut every connection at once (KIP-226)."""


_NOT_ZERO = ("max.connections", "max.connection.creation.rate")


def dynamic_property(name: str) -> Property | None:
    """The entry behind a broker config name, listener prefixes taken off; None for names no table knows."""
    found = BROKER.get(name) or DYNAMIC_ONLY.get(name) or OWN.get(name)
    if found is None and name.startswith("listener.name."):
        found = BROKER.get(base_name(name))
    return found


_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def base_name(name: str) -> str:
    """`listener.name.internal.ssl.client.auth` is `ssl.client.auth`; a mechanism may stand before the SASL names."""
    _, _, rest = name.removeprefix("listener.name.").partition(".")
    return next((known for known in _PER_MECHANISM if rest.endswith(known)), rest)


def dynamic_problem(name: str, text: str, *, per_broker: bool) -> str | None:
    """Why a broker config cannot be set while the node runs, or None. Names no table knows are let through, for
    plugins, as Kafka does."""
    entry = dynamic_property(name)
    if entry is None:
        return None
    if name in BROKER and entry.update is READ_ONLY:
        return f"{name}: read-only; set it in the file and restart the node"
    if name in _PER_LISTENER_ONLY:
        return f"{name}: can be changed per listener only, as listener.name.<listener>.{name}"
    if not per_broker and (entry.update is PER_BROKER or _is_per_broker_prefix(name)):
        return f"{name}: can be changed per broker only; name a broker id"
    try:
        value = entry.parse(text)
    except ValueError as error:
        return str(error)
    if entry.name in _NOT_ZERO and value == 0:
        return f"{name}: 0 is not allowed while the node runs: nobody could connect to take it back"
    return None


def _is_per_broker_prefix(name: str) -> bool:
    return name.startswith("listener.name.") and not name.endswith(
        (".max.connections", ".max.connection.creation.rate", ".num.network.threads")
    )
