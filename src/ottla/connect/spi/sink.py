"""A sink: given the records of some partitions in order, it says which of them it could not take.

A batch comes again, whole or longer, if something died before it was written down that it was done. A sink that can
tell keeps the offsets with what it writes (`Batch.spans`); one that cannot is at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from ottla.connect.definitions import ConfigDef
from ottla.connect.plugins import PluginType
from ottla.connect.spi.config import Config, definition_of, model_of

if TYPE_CHECKING:
    import pyarrow as pa

C = TypeVar("C", bound=Config)


class Span(NamedTuple):
    """Offsets [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str = ""
    """As Kafka prints it; empty where the cluster gives none."""

    @property
    def log(self) -> str:
        """What offsets are filed under: a topic that is deleted and made again has its name and other records."""
        return f"{self.topic}@{self.topic_id}" if self.topic_id else self.topic


class Columns(NamedTuple):
    """Records of one partition as they lie in the topic: bytes, in Arrow's columns."""

    topic: str
    partition: int
    keys: pa.Array
    values: pa.Array
    offsets: Any
    """numpy, int64."""
    timestamps: Any
    """numpy, int64: milliseconds."""
    headers: pa.Array | None = None


class Batch(NamedTuple):
    """Some records of a micro-batch: those of one partition are on end and in order, and all of them have offsets in
    one of the spans."""

    records: Sequence[Any]
    """Converted and transformed. Empty where `columns` has them."""
    spans: Sequence[Span]
    """What the task reads in this micro-batch altogether: the same if it is replayed."""
    columns: Sequence[Columns] = ()
    """In place of `records`, for a sink with `takes_columns` where nothing has to be converted or transformed, and one
    that `takes_json` where values are JSON. `at` of a verdict then counts these."""


class Refused(NamedTuple):
    """A record that the target does not take, and why."""

    at: int
    """Its place in `Batch.records`."""
    error: Exception | str


Verdicts = Iterable[Refused]
"""Those that are not named are written."""


class OneByOne(Exception):
    """Raised by `write` of a sink that `takes_json`: of these columns it cannot make anything as they are. Nothing of
    them is taken, and they come again as records."""


def _nothing() -> None:
    """Nobody else is there."""


class Sink(Generic[C]):
    """One instance per task, and one that prepares. `prepare`, then in each task `begin`, `write` any number of times
    and `end`, for each micro-batch."""

    PLUGIN_TYPE: ClassVar = PluginType.SINK
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    """Made of the model, unless the class has one of its own."""
    model: ClassVar[type[Config]] = Config
    """What stands in the brackets behind `Sink`."""
    version: ClassVar[str] = ""
    exactly_once: ClassVar[bool] = False
    """Whether a batch that comes again leaves nothing twice."""
    takes_columns: ClassVar[bool] = False
    """Whether `write` may be given `Batch.columns`."""
    batch_records: ClassVar[int] = 10_000
    """At most so many records in one call of `write`."""
    first_records: ClassVar[int] = 2_000
    """In the first micro-batch; how many the next ones have depends on how long it takes."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.model = model_of(cls) or cls.model
        if "CONFIG" not in cls.__dict__:
            cls.CONFIG = definition_of(cls.model)

    def __init__(self, config: C, name: str) -> None:
        """`name`: the connector's."""
        self.config = config
        self.name = name
        self.require_ours: Callable[[], None] = _nothing
        """Raises if another worker has this connector now. `prepare`, `write` and `end` are called only after it was
        asked; who makes or deletes several things in one call, as files, calls it before each. Most calls cost
        nothing."""

    @property
    def takes_json(self) -> bool:
        """Whether `write` may be given `Batch.columns` whose values are JSON without schemas, or no JSON at all. Raises
        OneByOne for those."""
        return False

    def prepare(self, spans: Sequence[Span]) -> None:
        """A micro-batch is about to be given to tasks, perhaps for the second time: what has to be done once for all of
        them, before any of them writes. `spans` are those of all tasks."""

    def begin(self, spans: Sequence[Span]) -> None:
        """A task is about to write its part of a micro-batch, perhaps for the second time."""

    def write(self, batch: Batch) -> Verdicts:
        """Raises TryAgain where all of it may be tried again, anything else where the connector has to fail."""
        raise NotImplementedError

    def end(self) -> Verdicts:
        """All records were given: what was held back has to be out when this returns. Places count the records of the
        whole micro-batch."""
        return ()

    def gather_ms(self) -> int:
        """How long records are gathered into a micro-batch: 0 for as they come."""
        return 0

    def gather_records(self) -> int:
        """A partition that has so many is gathered no longer; 0 for only by time."""
        return 0

    def validate(self) -> None:
        """Beyond what the model says. Raises ConfigRefused."""

    def close(self) -> None:
        """Lets go of what it holds open."""
