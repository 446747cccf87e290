"""mm2.properties: clusters, the flows between them, and the configuration of each flow's connectors and worker.

A name may stand alone (all flows), behind a cluster (`us.bootstrap.servers`) or behind a flow (`us->eu.topics`); the
nearest wins. `A->B.enabled` turns copying on. Heartbeats of a flow that copies are emitted on its source, by the flow
the other way: so that flow has a heartbeat connector though it copies nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_CLIENTS: Final = ("producer.", "consumer.", "admin.")
_CLIENT_SETTING_PREFIXES: Final = ("ssl.", "sasl.")
_CLIENT_SETTINGS: Final = frozenset({"bootstrap.servers", "security.protocol", "config.providers", "client.dns.lookup"})
_FOR_WORKERS: Final = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    "replication.policy",
    "config.providers",
)
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
SOURCE: Final = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
CHECKPOINT: Final = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
HEARTBEAT: Final = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"
CONNECTORS: Final = (SOURCE, HEARTBEAT, CHECKPOINT)


class FlowsError(ValueError):
    """A file that describes no flows, with the name that is wrong and what it may be."""


@dataclass(frozen=True, slots=True)
class Flow:
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Mirroring:
    """What a file says. Values are as they stand there: secrets of config providers are looked up by who uses them."""

    properties: Mapping[str, str]
    clusters: tuple[str, ...]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "Mirroring":
        clusters = tuple(dict.fromkeys(_listed(properties.get("clusters", ""))))
        if not clusters:
            raise FlowsError("clusters is missing: the aliases of the clusters, as in clusters=A,B")
        for cluster in clusters:
            if f"{cluster}.bootstrap.servers" not in properties and "bootstrap.servers" not in properties:
                raise FlowsError(f"{cluster}.bootstrap.servers is missing: where cluster {cluster} is reached")
        mirroring = cls(properties, clusters)
        mirroring._check_flows()
        return mirroring

    def flows(self, targets: Iterable[str] = ()) -> list[Flow]:
        """Those that have something to do, towards `targets` or, if none are named, all."""
        wanted = tuple(targets) or self.clusters
        return [
            flow
            for source in self.clusters
            for target in self.clusters
            if source != target
            and target in wanted
            and (self._copies(flow := Flow(source, target)) or self._says(flow, "emit.heartbeats.enabled", True))
        ]

    def connector(self, flow: Flow, connector_class: str) -> dict[str, str]:
        """The configuration of one of a flow's three connectors, under the names that MirrorMaker gives them."""
        # Names behind a cluster or a flow (`us.bootstrap.servers`) are no connector's.
        config = {name: value for name, value in self.properties.items() if not self._is_scoped(name)}
        for name in ("clusters", "dedicated.mode.enable.internal.rest"):
            config.pop(name, None)
        for role, alias in (("source", flow.source), ("target", flow.target)):
            for name, value in self._of_cluster(alias).items():
                prefix = f"{role}." if name.startswith(_CLIENTS) else f"{role}.cluster."
                config[prefix + name] = value
        config.setdefault("name", connector_class.rpartition(".")[2])
        config.setdefault("connector.class", connector_class)
        config.setdefault("source.cluster.alias", flow.source)
        config.setdefault("target.cluster.alias", flow.target)
        config.update(_behind(self.properties, f"{flow}."))
        config.setdefault("enabled", "false")
        return config

    def worker(self, flow: Flow) -> dict[str, str]:
        """The configuration of the Connect worker that runs a flow: its topics are on the target."""
        config = self._of_cluster(flow.target)
        for name, value in self.properties.items():
            if name.startswith(_FOR_WORKERS):
                config[name] = value
        config.setdefault("client.id", str(flow))
        config.setdefault("group.id", f"{flow.source}-mm2")
        for kind in ("offset", "status", "config"):
            plural = f"{kind}s" if kind != "status" else kind
            config.setdefault(f"{kind}.storage.topic", f"mm2-{plural}.{flow.source}.internal")
        for converter in ("key", "value", "header"):
            config.setdefault(f"{converter}.converter", _BYTES)
        return config

    def client(self, cluster: str) -> dict[str, str]:
        """How a cluster is reached."""
        return {name: value for name, value in self._of_cluster(cluster).items() if not name.startswith(_CLIENTS)}

    def _of_cluster(self, cluster: str) -> dict[str, str]:
        own = _behind(self.properties, f"{cluster}.")
        shared = {name: value for name, value in self.properties.items() if _is_client_setting(name)}
        config = dict(own)
        for settings in ({name: value for name, value in own.items() if _is_client_setting(name)}, shared):
            for name, value in settings.items():
                for client in _CLIENTS:
                    config.setdefault(client + name, value)
                config.setdefault(name, value)
        return config

    def _copies(self, flow: Flow) -> bool:
        return self.properties.get(f"{flow}.enabled", "false").lower() == "true"

    def _says(self, flow: Flow, name: str, default: bool) -> bool:
        said = self.properties.get(f"{flow}.{name}", self.properties.get(name))
        return default if said is None else said.lower() == "true"

    def _is_scoped(self, name: str) -> bool:
        return "->" in name or any(name.startswith(f"{cluster}.") for cluster in self.clusters)

    def _check_flows(self) -> None:
        for name in self.properties:
            flow, arrow, rest = name.partition("->")
            if not arrow:
                continue
            target = next((cluster for cluster in self.clusters if rest.startswith(f"{cluster}.")), None)
            if flow not in self.clusters or target is None:
                raise FlowsError(f"{name}: a flow goes between two of clusters={','.join(self.clusters)}")
        if not any(self._copies(Flow(a, b)) for a in self.clusters for b in self.clusters if a != b):
            pairs = " or ".join(f"{a}->{b}.enabled=true" for a in self.clusters for b in self.clusters if a != b)
            raise FlowsError(f"no flow is enabled: say {pairs or 'a second cluster'}")


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _behind(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def _is_client_setting(name: str) -> bool:
    return name in _CLIENT_SETTINGS or name.startswith(_CLIENT_SETTING_PREFIXES)
