"""What whoever started an application can ask of it while it runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Metric(NamedTuple):
    """A number under Kafka Streams' name, such as stream-thread-metrics, process-rate."""

    group: str
    name: str
    value: float
    tags: Mapping[str, str] = {}
    help: str = ""


class Running(Protocol):
    """What `ottla.streams.run.application.Runner(app, once=..., master=...)` offers to whoever started it.

    Its folders are those of `StateDirectory.of(app)`: `checkpoint(name)` and `stream_time(name)`.
    """

    @property
    def state(self) -> str:
        """CREATED, REBALANCING (starting), RUNNING, PENDING_SHUTDOWN, NOT_RUNNING, PENDING_ERROR or ERROR."""

    @property
    def wrote(self) -> bool:
        """Whether a batch is out."""

    def run(self, spark: "SparkSession | None" = None) -> None:
        """Until `stop`, or with `once` until what is there now has been processed. Raises what made a query fail.
        In a session of its own that a host gives, else in the one of this process."""

    def stop(self) -> None:
        """Graceful: the current micro-batch ends. From any thread, also inside a signal handler; returns at once."""

    def metrics(self) -> Sequence[Metric]: ...

    def status(self) -> Mapping[str, Any]:
        """For people, as JSON: the queries with their last batch, input rows, rates and offsets."""
