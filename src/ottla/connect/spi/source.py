"""A source: asked again and again for what comes behind a position.

`read` may be called twice with the same `start`, in this process or in another one: what it gave the first time was
never seen then. It holds no position of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from ottla.connect.data.schema import BYTES, STRING, Schema
from ottla.connect.definitions import ConfigDef
from ottla.connect.plugins import PluginType
from ottla.connect.spi.config import Config, definition_of, model_of
from ottla.connect.spi.measures import Observed

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


class Unreadable(NamedTuple):
    """In place of a row's value: what lay there, and why it is no record. It becomes a dead letter."""

    data: bytes
    reason: str
    """With the place where it was read."""


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

    def without_bytes(self) -> Copies:
        """What is remembered of them until they are acknowledged: in place of values, how long each is."""
        import pyarrow.compute as pc  # noqa: PLC0415

        nothing = self.offsets.slice(0, 0)
        return self._replace(keys=nothing, values=pc.binary_length(self.values), headers=nothing)

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


class JsonForm(NamedTuple):
    """How the JsonConverters of a connector are set, without which there is no short way."""

    keys_have_schemas: bool
    values_have_schemas: bool


class Texts(NamedTuple):
    """Records of one topic, as they are to lie there."""

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]


class Prepared(ABC):
    """Many records that their source can write as JSON by itself: with JsonConverters and no transforms no Struct is
    made for any of them."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def as_rows(self) -> Sequence[Row]: ...

    @abstractmethod
    def as_json(self, form: JsonForm) -> Iterable[Texts | list[Row]]:
        """The bytes that the converters would make of `as_rows`, in the order of each topic; rows among them go the
        long way, in their place."""


class Table(NamedTuple):
    """Many records of one topic without keys: Arrow's columns with Connect's schema. Where the converter writes columns
    and there are no transforms no object is made for any of them."""

    topic: str
    schema: Schema
    """Of a struct, whose fields are the columns in their order."""
    values: pa.Table
    """In the types that `data.columns.arrow_type` gives to the schema, decimals as texts."""
    timestamp: int | None = None

    def as_rows(self) -> list[Row]:
        from ottla.connect.data.columns import structs  # noqa: PLC0415  pyarrow

        return [
            Row(self.topic, each, timestamp=self.timestamp, value_schema=self.schema)
            for each in structs(self.schema, self.values)
        ]


class Read(NamedTuple):
    """What was read, and where the next read begins."""

    rows: Sequence[Row] | Lines | Copies | Table | Prepared
    end: Offset | None
    """None: as before. It is written down even if there are no rows."""
    more: bool | None = None
    """Whether there is more behind `end` already; None: if there are about as many rows as were asked for."""

    @property
    def size(self) -> int:
        """In records."""
        rows = self.rows
        return len(rows.values) if isinstance(rows, Lines | Copies | Table) else len(rows)

    def as_rows(self) -> Sequence[Row]:
        rows = self.rows
        return rows.as_rows() if isinstance(rows, Lines | Copies | Table | Prepared) else rows

    def has_more(self, limit: int) -> bool:
        count = self.size
        return bool(count) and self.end is not None and (count >= limit // 2 if self.more is None else self.more)


class Source(Generic[C]):
    """One instance reads one partition. Made by the framework, in the process that reads."""

    PLUGIN_TYPE: ClassVar = PluginType.SOURCE
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    """Made of the model, unless the class has one of its own."""
    model: ClassVar[type[Config]] = Config
    """What stands in the brackets behind `Source`."""
    version: ClassVar[str] = ""
    """Of the connector; that of its distribution if empty."""
    exactly_once: ClassVar[bool] = True
    """Whether `read` from the same start gives what comes next, with nothing left out and nothing twice."""
    defines_transactions: ClassVar[bool] = False
    """Whether each `read` is to be one transaction where `transaction.boundary` is `connector`."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.model = model_of(cls) or cls.model
        if "CONFIG" not in cls.__dict__:
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
        written and committed with it. Of Copies there is what `without_bytes` leaves, of Prepared nothing."""
        return ()

    def observed(self, reads: Sequence[Read], now_ms: int) -> Sequence[Observed]:
        """Metrics of its own: of what these reads gave, which is acknowledged now. Asked without any now and then, for
        what is known without a read (`spi.gauge`)."""
        return ()

    def written(self, end: Offset) -> None:
        """All before `end` is written for good: an acknowledgement for those who need one. May come late, or twice."""

    def alert(self) -> str | None:
        """What somebody should look at, though it goes on. Logged as a warning when it appears."""
        return None

    def validate(self) -> None:
        """Beyond what the model says. Raises ConfigRefused."""

    @classmethod
    def check_offset(cls, partition: Partition, offset: Offset | None) -> None:
        """Before a position is set by hand, or forgotten (None). Raises ValueError for one that no `read` of this
        source begins at; `text_of` and `number_of` help to find out."""

    def close(self) -> None:
        """Lets go of what it holds open."""
