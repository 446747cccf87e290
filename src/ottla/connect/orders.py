"""What a worker asks of whoever runs connectors, and what it is told back. Plain values: they cross a process.

`jobs` runs them in the Spark host; the worker knows nothing of Spark.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What every connector of a worker has in common."""

    bootstrap: str
    group_id: str
    offsets_topic: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of clients: security.protocol and the like. Secrets are among them."""
    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Worker settings that connectors inherit: key.converter, value.converter.schemas.enable, producer.* and more."""
    exactly_once_sources: bool = False
    topic_creation: bool = True
    last_batch_s: float = 10.0
    """How long a batch may take that is under way when its connector is stopped."""
    modules: Sequence[str] = ()
    """Whose classes configs may name as `module:Class`."""


@dataclass(frozen=True, slots=True)
class Order:
    """One connector to be run."""

    connector: str
    config: Mapping[str, str | None] = field(repr=False)
    """As it stands in `connect-configs`, with references (`${file:...}`) in place of secrets; they are resolved by
    `resolve` where it runs, and never written down."""
    kind: str
    """`source` or `sink`."""
    tasks: int
    """At most so many partitions side by side."""
    generation: int
    """Of the worker group: who has a higher one takes over."""
    epoch: int
    """Numbers the lives of its jobs on this worker; given back with every report."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config with the secrets in it, for whoever runs the connector."""

    config: Mapping[str, str | None] = field(repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    """Texts that no log, no trace and no dead letter may show."""


class Event(Enum):
    RUNNING = "running"
    FAILED = "failed"
    ENDED = "ended"
    """Nothing is left to do, and nothing went wrong."""


@dataclass(frozen=True, slots=True)
class Report:
    connector: str
    epoch: int
    event: Event
    trace: str = ""
    topics: Sequence[str] = ()
    """That it has read or written."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Under Connect's names: sink-record-read-total, source-record-write-total, total-record-errors, ..."""


Listener = Callable[[Report], None]


class ConnectorRunner(Protocol):
    """Runs connectors for one worker. Called on the worker's loop; reports come from any thread."""

    def listen(self, listener: Listener) -> None: ...

    async def start(self, order: Order, resolved: Resolved) -> None:
        """Returns when it is taken, not when it runs. Never raises for what is wrong
        with the connector: that is a report."""

    async def stop(self, connector: str) -> None:
        """Returns when its last batch has ended."""

    async def forget(self, connector: str) -> None:
        """Its checkpoint is dropped: where it begins is told by the offsets topic, or by its group."""

    def stand_by(self) -> None:
        """Connectors may come at any moment: gets ready behind the caller's back, as far as that takes long."""

    async def progress(self) -> Mapping[str, Mapping[str, Any]]:
        """By connector: `tasks`, the numbers of each under Connect's names, and `measures` of its own."""

    def set_level(self, namespace: str, level: int) -> None:
        """Of loggers where connectors run, now and whenever that is started anew; Python's number."""

    async def close(self) -> None: ...
