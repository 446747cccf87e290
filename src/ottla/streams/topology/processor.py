"""The Processor API: what a node of a topology does with one record, and what it may ask for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from ottla.streams.record import Record, RecordMetadata

if TYPE_CHECKING:
    from ottla.serdes.base import Serde


class PunctuationType(Enum):
    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


class Cancellable(Protocol):
    def cancel(self) -> None: ...


Punctuator = Callable[[int], None]
"""Called with the stream time or the wall clock, in milliseconds."""


class Sensor(Protocol):
    """A count of your own: <operation>-total and <operation>-rate in the group stream-<scope>-metrics."""

    def record(self, number: int = 1) -> None: ...


class LatencySensor(Protocol):
    """Beside them <operation>-latency-avg of what was recorded."""

    def record(self, latency: float) -> None: ...


class StreamsMetrics(Protocol):
    def add_rate_total_sensor(self, scope: str, entity: str, operation: str) -> Sensor: ...
    def add_latency_rate_total_sensor(self, scope: str, entity: str, operation: str) -> LatencySensor: ...


class ProcessorContext(Protocol):
    """What a processor is given at the start. One task at a time uses it."""

    @property
    def application_id(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def app_configs(self) -> Mapping[str, Any]: ...
    @property
    def key_serde(self) -> "Serde[Any] | None":
        """The application's default.key.serde."""

    @property
    def value_serde(self) -> "Serde[Any] | None": ...

    def forward(self, record: Record, child: str | None = None) -> None:
        """Hands a record to all children, or to the one named."""

    def state_store(self, name: str) -> Any: ...

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator, *, start_ms: int | None = None
    ) -> Cancellable: ...

    def commit(self) -> None:
        """Asks for a commit soon. On Spark every micro-batch commits, so this has no effect there."""

    def record_metadata(self) -> RecordMetadata | None:
        """None inside a punctuator."""

    def current_stream_time_ms(self) -> int: ...
    def current_system_time_ms(self) -> int: ...

    @property
    def metrics(self) -> StreamsMetrics: ...

    def dropped(self, reason: str) -> None:
        """Counts a record that is left out (dropped-records-total), as a late one is."""


class Processor(ABC):
    """Subclasses keep what `init` was given. A processor has to be deterministic: a batch may run twice."""

    def init(self, context: ProcessorContext) -> None:  # noqa: B027  most have nothing to do here
        pass

    @abstractmethod
    def process(self, record: Record) -> None: ...

    def close(self) -> None:  # noqa: B027
        pass


class FixedKeyProcessor(Processor):
    """One whose output has the key of its input (process_values): no repartition is needed behind it."""


class ValueTransformerWithKey(ABC):
    """Makes a new value for each row of a table (transform_values), with stores if need be.

    It is given deleted rows as well, with None as value. It must be deterministic, and of the rows and its stores only:
    without a store of its own the table is computed anew whenever it is looked up.
    """

    def init(self, context: ProcessorContext) -> None:  # noqa: B027  most have nothing to do here
        """`context.forward` is not allowed: what `transform` returns goes on."""

    @abstractmethod
    def transform(self, key: Any, value: Any) -> Any: ...

    def close(self) -> None:  # noqa: B027
        pass
