"""A source: asked again and again for what comes behind a position.

`read` may be called twice with the same `start`, in this process or in another one: what it gave the first time was
never seen then. It holds no position of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from ottla.connect.data.schema import BYTES, STRING
from ottla.connect.definitions import ConfigDef
from ottla.connect.plugins import PluginType
from ottla.connect.spi.config import Config, definition_of, model_of

if TYPE_CHECKING:
    import pyarrow as pa

C = TypeVar("C", bound=Config)

Partition = Mapping[str, Any]
"""Where a position counts: `{"filename": "in.txt"}`. As JSON has it."""
Offset = Mapping[str, Any]
"""The position itself: `{"position": 17}`. As JSON has it."""

NOWHERE: Final[Partition] = {}


class Row(NamedTuple):
    """One record to be. Values are what the converter takes: dict, list, str, numbers, None, bytes, or a Struct."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[tuple[str, Any]] = ()
    timestamp: int | None = None
    """Milliseconds; None: now."""
    partition: int | None = None
    """None: by the key, as Kafka's producers choose it."""
    value_schema: Any = None
    """A Schema; None: none, or that of the Struct."""
    key_schema: Any = None


class Lines(NamedTuple):
    """Many records of one topic without keys, as Arrow has them: text (`pa.string()`) or bytes (`pa.binary()`). With a
    String or ByteArray converter and no transforms no object is made for any of them."""

    topic: str
    values: pa.Array
    timestamp: int | None = None

    def as_rows(self) -> list[Row]:
        schema = STRING if _is_text(self.values) else BYTES
        return [
            Row(self.topic, each, timestamp=self.timestamp, value_schema=schema) for each in self.values.to_pylist()
        ]


def _is_text(values: pa.Array) -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_string(values.type))


class Copies(NamedTuple):
    """Records as they lie in another topic: bytes, in Arrow's columns. With ByteArray converters and no transforms no
    object is made for any of them."""

    topic: str
    partition: int
    keys: pa.Array
    values: pa.Array
    timestamps: pa.Array
    """int64: milliseconds."""
    headers: pa.Array
    """Lists of {key, value}."""
    offsets: pa.Array
    """int64: where they lay in the topic that they come from."""

    def as_rows(self) -> list[Row]:
        columns = (self.keys, self.values, self.timestamps, self.headers)
        return [
            Row(
                self.topic,
                value,
                key,
                [(each["key"], each["value"]) for each in headers or ()],
                timestamp,
                self.partition,
            )
            for key, value, timestamp, headers in zip(*(column.to_pylist() for column in columns), strict=True)
        ]


class Read(NamedTuple):
    """What was read, and where the next read begins."""

    rows: Sequence[Row] | Lines | Copies
    end: Offset | None
    """None: as before. It is written down even if there are no rows."""
    more: bool | None = None
    """Whether there is more behind `end` already; None: if there are about as many rows as were asked for."""

    def has_more(self, limit: int) -> bool:
        rows = self.rows
        count = len(rows.values) if isinstance(rows, Lines | Copies) else len(rows)
        return bool(count) and self.end is not None and (count >= limit // 2 if self.more is None else self.more)


class Source(Generic[C]):
    """One instance reads one partition. Made by the framework, in the process that reads."""

    PLUGIN_TYPE: ClassVar = PluginType.SOURCE
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    """Made of the model."""
    model: ClassVar[type[Config]] = Config
    """What stands in the brackets behind `Source`."""
    version: ClassVar[str] = ""
    """Of the connector; that of its distribution if empty."""
    exactly_once: ClassVar[bool] = True
    """Whether `read` from the same start gives what comes next, with nothing left out and nothing twice."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.model = model_of(cls) or cls.model
        cls.CONFIG = definition_of(cls.model)

    def __init__(self, config: C, name: str, partition: Partition = NOWHERE) -> None:
        """`name`: the connector's. `partition`: one of `partitions`."""
        self.config = config
        self.name = name
        self.partition = partition

    def partitions(self) -> Sequence[Partition]:
        """What the positions are filed under: the tables, files or topics that can be read side by side. Asked again
        now and then."""
        return [NOWHERE]

    def read(self, start: Offset | None, limit: int) -> Read:
        """Up to about `limit` records, as soon as there are some; none if there are none now. `start` is the `end` of
        the read before, None at the very beginning."""
        raise NotImplementedError

    def poll_interval_ms(self) -> int:
        """How long to wait after a read that left nothing behind."""
        return 1000

    def is_done(self, start: Offset | None) -> bool:
        """Whether nothing will ever come behind `start`."""
        return False

    def delivered(self, reads: Sequence[Read], first_offsets: Mapping[tuple[str, int], int]) -> Sequence[Row]:
        """What these reads gave lies in its topics, from these offsets on, but is not committed. What is returned is
        written and committed with it."""
        return ()

    def written(self, end: Offset) -> None:
        """All before `end` is written for good: an acknowledgement for those who need one. May come late, or twice."""

    def validate(self) -> None:
        """Beyond what the model says. Raises ConfigRefused."""

    def close(self) -> None:
        """Lets go of what it holds open."""
