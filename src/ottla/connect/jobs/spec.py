"""What the job of a connector is given: its config, what the worker adds, and a folder. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ottla.client.blocking.cluster import Cluster
from ottla.client.reach import Reach
from ottla.client.security import SecurityRefused
from ottla.connect.catalogue import catalogue
from ottla.connect.dead_letters import LetterPolicy
from ottla.connect.plugins import Catalogue, PluginType
from ottla.connect.spi import ConfigRefused, Sink, Source, parse

Role = Literal["consumer", "producer", "admin"]

GROUP_PREFIX: Final = "connect-"
"""Of a sink's consumer group."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    name: str
    config: Mapping[str, str | None] = field(repr=False)
    """References to secrets are resolved in it."""
    bootstrap: str
    group_id: str
    """The worker's."""
    offsets_topic: str
    directory: str
    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Worker settings that connectors inherit: converters, producer.*, consumer.*, admin.*."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The worker's own client settings: security.protocol and the like."""
    tasks: int = 1
    epoch: int = 0
    once: bool = False
    """Ends when all that is there now is done."""
    topic_creation: bool = True
    """Whether a source may make topics as its config says."""
    last_batch_s: float = 10.0
    """A batch that takes longer than this after a stop is cut off: it is done again at the next start."""
    modules: Sequence[str] = ()
    """Whose classes the config may name as `module:Class`."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """Texts of the config that nobody may read in a log, a trace or a dead letter."""

    @staticmethod
    def of(arguments: Mapping[str, Any]) -> JobSpec:
        return JobSpec(**arguments)

    @property
    def policy(self) -> LetterPolicy:
        return LetterPolicy.of(self.config)

    @property
    def group(self) -> str:
        """Of a sink; `consumer.override.group.id` names another one."""
        return self.config.get("consumer.override.group.id") or f"{GROUP_PREFIX}{self.name}"

    def transactional_id(self, task: int) -> str:
        """As KIP-618 names it."""
        return f"{self.group_id}-{self.name}-{task}"

    @property
    def committing(self) -> Role:
        """As whom a sink commits: dead letters and offsets are one transaction."""
        return "producer" if self.policy.topic else "consumer"

    def client_settings(self, role: Role) -> dict[str, str]:
        """Of one of the connector's clients, under the names that Kafka's clients give them. The nearest wins: what the
        connector overrides, what the worker says of such clients, what it has itself. Java's connectors do not have
        the last one from their worker, so that a file has to say all of it three times more."""
        found = dict(self.client)
        for prefix, said in ((f"{role}.", self.defaults), (f"{role}.override.", self.config)):
            found.update(
                {
                    name.removeprefix(prefix): value
                    for name, value in said.items()
                    if value is not None and name.startswith(prefix)
                }
            )
        return found

    def reach(self, role: Role) -> Reach:
        """How that client reaches its cluster. Raises ConfigRefused."""
        settings = self.client_settings(role)
        try:
            return Reach.of(settings.get("bootstrap.servers") or self.bootstrap, settings)
        except SecurityRefused as error:
            raise ConfigRefused(f"{role}.override.*", f"its {role} cannot be made: {error}") from error

    def cluster(self, role: Role, timeout_s: float) -> Cluster:
        """Not connected yet. Raises ConfigRefused."""
        return self.reach(role).cluster(client_id=f"connect-{self.name}", timeout_s=timeout_s)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """`key.converter.schemas.enable` for the prefix `key.converter.`; those of the worker hold as long as the
        connector names no converter of its own."""
        named = prefix.rstrip(".")
        base = {} if self.config.get(named) else self.defaults
        found = {**base, **{name: value for name, value in self.config.items() if value is not None}}
        return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}

    def setting(self, name: str) -> str | None:
        return self.config.get(name) or self.defaults.get(name)

    def plugin(self) -> type[Source[Any]] | type[Sink[Any]]:
        """The connector's class. Raises ConfigRefused."""
        wanted = self.config.get("connector.class") or ""
        plugins = self.plugins()
        row = plugins.find(wanted, PluginType.SOURCE, PluginType.SINK)
        if row is None:
            why = plugins.why_not(wanted, PluginType.SOURCE, PluginType.SINK)
            raise ConfigRefused("connector.class", f"{wanted or 'nothing'} is no connector here.{why}")
        try:
            found: Any = row.load()
        except (ImportError, AttributeError) as error:
            raise ConfigRefused("connector.class", f"{wanted} cannot be loaded: {error}") from error
        if not isinstance(found, type) or not issubclass(found, Source | Sink):
            raise ConfigRefused("connector.class", f"{wanted} is neither a Source nor a Sink")
        return found

    def plugins(self) -> Catalogue:
        """All that there are, and what its worker lets configs name by `module:Class`."""
        return catalogue(tuple(self.modules))


def opened_sink(spec: JobSpec) -> Sink[Any]:
    """Raises ConfigRefused."""
    kind = spec.plugin()
    assert issubclass(kind, Sink)
    sink = kind(parse(kind.model, spec.config), spec.name)
    sink.validate()
    return sink


def opened_source(spec: JobSpec, partition: Mapping[str, Any] | None = None) -> Source[Any]:
    """Raises ConfigRefused."""
    kind = spec.plugin()
    assert issubclass(kind, Source)
    source = kind(parse(kind.model, spec.config), spec.name, partition or {})
    source.validate()
    return source
