"""What may be said about an operation besides its functions: serdes, names, stores. Plain values, under Kafka's names.

Names become parts of topic and store names, so they have to be such names. Nothing given here is ever changed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ottla.streams.topology.graph import Partitioner, Reset, TimestampExtractor, TopologyError

if TYPE_CHECKING:
    from ottla.serdes.base import Serde
    from ottla.streams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
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
    reset: Reset | str | None = None
    """Where to begin without a committed offset: earliest or latest. None: what the application says."""
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
    def start(self) -> Reset | None:
        return self.reset if isinstance(self.reset, Reset) else None


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
    caching: bool = True
    """Kept for Kafka's sake: a micro-batch hands on the last value per key either way, the test driver every value."""

    def __post_init__(self) -> None:
        checked_name(self.name)

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

    def __post_init__(self) -> None:
        checked_name(self.name)


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
class Branched(Generic[K, V]):
    """A branch of `split`. With `chain` the branch is what that function makes of it; None: it ends in there."""

    name: str | None = None
    chain: "Callable[[KStream[K, V]], KStream[Any, Any] | None] | None" = None

    def __post_init__(self) -> None:
        checked_name(self.name)


Named = TypeVar("Named", Consumed[Any, Any], Produced[Any, Any], Grouped[Any, Any], Repartitioned[Any, Any])


def renamed(options: Named, name: str | None) -> Named:
    """A name said beside the options goes before the one in them."""
    return options if name is None else replace(options, name=name)


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Holds results of windows back. Made by `until_window_closes`; time limits come later."""

    name: str | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    logging: bool | Mapping[str, str] = True

    def __post_init__(self) -> None:
        checked_name(self.name)

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
