"""What may be said about an operation besides its functions: serdes, names, stores. Plain values, under Kafka's names.

Names become parts of topic and store names, so they have to be such names. Nothing given here is ever changed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ottla.streams.topology.errors import TopologyError
from ottla.streams.topology.graph import Partitioner, Reset, ResetByDuration, TimestampExtractor

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

_LONGEST_NAME: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def checked_name(name: str | None) -> str | None:
    """Names of nodes and stores follow the rules of topic names."""
    if name is None:
        return None
    if not name or name in (".", ".."):
        raise TopologyError(f"{name!r} is no name")
    if len(name) > _LONGEST_NAME:
        raise TopologyError(f"a name has at most {_LONGEST_NAME} characters: {name}")
    if not _NAME.fullmatch(name):
        raise TopologyError(f"the name {name!r} holds something other than ASCII letters, digits, '.', '_' and '-'")
    return name


@dataclass(frozen=True, slots=True)
class Consumed(Generic[K, V]):
    """How a topic is read. Without serdes keys and values are bytes, unless the builder has defaults."""

    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    timestamp_extractor: TimestampExtractor | Callable[..., int] | None = None
    """A function is given (key, value, timestamp, partition time) and gives milliseconds."""
    reset: Reset | ResetByDuration | str | None = None
    """Where to begin without a committed offset: earliest, latest, none, or `Reset.by_duration`. None: what the
    application says."""
    name: str | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)
        if isinstance(self.reset, str):
            object.__setattr__(self, "reset", Reset(self.reset))

    @property
    def extractor(self) -> TimestampExtractor:
        given = self.timestamp_extractor
        if given is None:
            return TimestampExtractor()
        return given if isinstance(given, TimestampExtractor) else TimestampExtractor(given)

    @property
    def start(self) -> Reset | ResetByDuration | None:
        return None if isinstance(self.reset, str) else self.reset


@dataclass(frozen=True, slots=True)
class Produced(Generic[K, V]):
    """How a topic is written."""

    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    partitioner: Partitioner | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)


@dataclass(frozen=True, slots=True)
class Materialized(Generic[K, V]):
    """The store behind a table. One with a name can be queried from outside."""

    name: str | None = None
    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    logging: bool | Mapping[str, str] = True
    """Whether there is a changelog topic; settings of that topic mean yes."""
    retention_ms: int | None = None
    """Of windows and sessions; at least window size (or gap) and grace together, which is also the default."""
    history_retention_ms: int | None = None
    """Makes the table versioned: its store keeps older values for this long, and joins look at it as of their time."""
    store_type: str | None = None
    """rocksDB, or in_memory: windows and sessions then come in the order of time, as Kafka's stores in memory have
    them. None: as default.dsl.store says."""
    segment_interval_ms: int | None = None
    """By what steps a versioned store forgets; chosen by the retention if not said."""
    caching: bool = True
    """Whether of several updates of a key within a micro-batch the last one goes out, or each (KIP-63). Without it an
    aggregate is computed record by record, not by Spark itself."""

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.store_type not in (None, "rocksDB", "in_memory"):
            raise TopologyError(f"store_type={self.store_type!r}: rocksDB or in_memory is expected")
        if self.history_retention_ms is not None and self.name is None:
            raise TopologyError("a versioned table needs a name for its store: Materialized(name, ...)")

    @property
    def changelog_config(self) -> Mapping[str, str]:
        return {} if isinstance(self.logging, bool) else self.logging

    @property
    def logged(self) -> bool:
        return self.logging is not False


@dataclass(frozen=True, slots=True)
class Grouped(Generic[K, V]):
    """How a stream or table is grouped. The name becomes that of the repartition topic: NAME-repartition."""

    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    name: str | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)


@dataclass(frozen=True, slots=True)
class Joined(Generic[K, V, V2]):
    """A join of a stream with a table. The name is that of the join, and of the repartition topic if one is needed."""

    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    other_value_serde: "Serde[V2] | None" = None
    name: str | None = None
    grace_ms: int | None = None
    """With a versioned table: records of the stream wait this long for late records of the table."""

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.grace_ms is not None and self.grace_ms < 0:
            raise TopologyError(f"a grace of {self.grace_ms} ms: time does not go back")


@dataclass(frozen=True, slots=True)
class StreamJoined(Generic[K, V, V2]):
    """A join of two streams. Serdes that are missing are those of the streams."""

    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    other_value_serde: "Serde[V2] | None" = None
    name: str | None = None
    store_name: str | None = None
    """The window stores are called after it: STORE_NAME-this-join-store and so on."""
    logging: bool | Mapping[str, str] = True

    def __post_init__(self) -> None:
        checked_name(self.name)
        checked_name(self.store_name)


@dataclass(frozen=True, slots=True)
class TableJoined(Generic[K, K2]):
    """A join of two tables by foreign key. The name becomes part of its nodes', its topics' and its store's names.

    A table that is partitioned otherwise than by its key needs its partitioner here; it is given (topic, key, None,
    number of partitions) and names one partition, or None for the default.
    """

    partitioner: Partitioner | None = None
    """Of this table, by its key: where answers go."""
    other_partitioner: Partitioner | None = None
    """Of the other table, by the foreign key: where subscriptions go."""
    name: str | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)


@dataclass(frozen=True, slots=True)
class Repartitioned(Generic[K, V]):
    """A repartition topic: NAME-repartition."""

    name: str | None = None
    key_serde: "Serde[K] | None" = None
    value_serde: "Serde[V] | None" = None
    partitions: int | None = None
    partitioner: Partitioner | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.partitions is not None and self.partitions < 1:
            raise TopologyError(f"a repartition topic has at least one partition, not {self.partitions}")


@dataclass(frozen=True, slots=True)
class Printed(Generic[K, V]):
    """How a stream is printed: `[LABEL]: KEY, VALUE` per record, or what `mapper` (key, value) makes of it."""

    path: str | None = None
    """The file that lines are added to; none: the standard output."""
    label: str | None = None
    """None: the name of the stream's node."""
    mapper: Callable[[K, V], Any] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.path == "" or self.label == "":
            raise TopologyError("a stream is printed to a file with a name and under a label with one, or without")

    @classmethod
    def to_sys_out(
        cls, *, label: str | None = None, mapper: Callable[[K, V], Any] | None = None, name: str | None = None
    ) -> "Printed[K, V]":
        return cls(None, label, mapper, name)

    @classmethod
    def to_file(
        cls,
        path: str | PathLike[str],
        *,
        label: str | None = None,
        mapper: Callable[[K, V], Any] | None = None,
        name: str | None = None,
    ) -> "Printed[K, V]":
        return cls(fspath(path), label, mapper, name)

    def printing(self, stream: str) -> "Printing":
        return Printing(self.path, self.label or stream, self.mapper)


class Printing:
    """Writes a line per call. It travels to Spark's workers, so it opens its file where it writes."""

    __slots__ = ("_label", "_mapper", "_path")

    def __init__(self, path: str | None, label: str, mapper: Callable[[Any, Any], Any] | None) -> None:
        self._path = path
        self._label = label
        self._mapper = mapper

    def __call__(self, key: Any, value: Any) -> None:
        shown = f"{key}, {value}" if self._mapper is None else self._mapper(key, value)
        line = f"[{self._label}]: {shown}"
        if self._path is None:
            print(line, flush=True)
            return
        with open(self._path, "a", encoding="utf-8") as file:
            print(line, file=file)


@dataclass(frozen=True, slots=True)
class Branched(Generic[K, V]):
    """A branch of `split`. With `chain` the branch is what that function makes of it; None: it ends in there."""

    name: str | None = None
    chain: "Callable[[KStream[K, V]], KStream[Any, Any] | None] | None" = None

    def __post_init__(self) -> None:
        checked_name(self.name)


Named = TypeVar(
    "Named",
    Consumed[Any, Any],
    Produced[Any, Any],
    Grouped[Any, Any],
    Printed[Any, Any],
    Repartitioned[Any, Any],
    TableJoined[Any, Any],
)


def renamed(options: Named, name: str | None) -> Named:
    """A name said beside the options goes before the one in them."""
    return options if name is None else replace(options, name=name)


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Holds changes of a table back. Made by `until_window_closes` or `until_time_limit`."""

    name: str | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    logging: bool | Mapping[str, str] = True
    limit_ms: int | None = None
    """None: until the window closes."""
    shut_down_when_full: bool = True

    def __post_init__(self) -> None:
        checked_name(self.name)
        for name, most in (("max_records", self.max_records), ("max_bytes", self.max_bytes)):
            if most is not None and most < 0:
                raise TopologyError(f"{name} of a buffer must not be negative: {most}")
        if self.limit_ms is not None and self.limit_ms < 0:
            raise TopologyError(f"limit_ms must not be negative: {self.limit_ms}")

    @classmethod
    def until_window_closes(
        cls,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        logging: bool | Mapping[str, str] = True,
        name: str | None = None,
    ) -> "Suppressed":
        """One final result per window and key, at the end of its grace. A buffer that would outgrow its limits ends
        the application (Kafka's shutDownWhenFull): a final result must not be sent early."""
        return cls(name, max_records, max_bytes, logging)

    @classmethod
    def until_time_limit(
        cls,
        limit_ms: int,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        shut_down_when_full: bool = False,
        logging: bool | Mapping[str, str] = True,
        name: str | None = None,
    ) -> "Suppressed":
        """The last change of each key, once stream time is `limit_ms` past the first one that was held back. A buffer
        that would outgrow its limits hands on the oldest early, or ends the application."""
        return cls(name, max_records, max_bytes, logging, limit_ms, shut_down_when_full)
