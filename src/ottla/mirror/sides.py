"""The two clusters of a flow, as a connector's configuration names them, and how each is reached.

A client of MirrorMaker takes its settings from `source.cluster.*` (or `target.cluster.*`), then from `consumer.*`,
`producer.*` or `admin.*`, then from those behind the side (`source.consumer.*`): the nearest wins.
"""

from collections.abc import Mapping
from typing import Final, Literal

from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.security import security

Side = Literal["source", "target"]
Client = Literal["consumer", "producer", "admin"]

_SECURITY: Final = ("security.", "ssl.", "sasl.")


class SideError(ValueError):
    """A configuration that does not say how a cluster is reached."""


def client_settings(config: Mapping[str, str], side: Side, client: Client) -> dict[str, str]:
    """Under the names that Kafka's own clients give them."""
    found: dict[str, str] = {}
    for prefix in (f"{side}.cluster.", f"{client}.", f"{side}.{client}."):
        for name, value in config.items():
            if name.startswith(prefix) and name != f"{side}.cluster.alias":
                found[name.removeprefix(prefix)] = value
    return found


def connected(config: Mapping[str, str], side: Side, client: Client = "admin") -> Cluster:
    """Not connected yet: the first request does that. Raises SideError, SecurityRefused."""
    settings = client_settings(config, side, client)
    servers = settings.get("bootstrap.servers")
    if not servers:
        raise SideError(f"{side}.cluster.bootstrap.servers is missing: where the {side} cluster is reached")
    try:
        addresses = parse_bootstrap(servers)
    except ValueError as error:
        raise SideError(f"{side}.cluster.bootstrap.servers: {error}") from error
    return Cluster(
        addresses,
        client_id=_client_id(config, settings, side, client),
        timeout_s=int(config.get("admin.timeout.ms", "60000")) / 1000,
        security=security({name: value for name, value in settings.items() if name.startswith(_SECURITY)}),
    )


def isolation_of(config: Mapping[str, str]) -> str:
    """Of the reads from the source."""
    return client_settings(config, "source", "consumer").get("isolation.level", "read_uncommitted")


def _client_id(config: Mapping[str, str], settings: Mapping[str, str], side: Side, client: Client) -> str:
    source, target = config.get("source.cluster.alias", "source"), config.get("target.cluster.alias", "target")
    label = f"{source}->{target}|{config.get('name', 'mirror')}|{side}-{client}"
    given = settings.get("client.id")
    return f"{given}|{label}" if given else label
