"""What a serde is. None is no value at all: it has no bytes, and no bytes give None."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Generic, NoReturn, TypeVar

from ottla.serdes.types import ANY, Type

T = TypeVar("T")

SHOWN_BYTES: Final = 40


class SerdeError(ValueError):
    """Bytes that are not what the serde reads, or a value that it cannot write."""


def shown(data: bytes) -> str:
    more = f" ... ({len(data)} bytes)" if len(data) > SHOWN_BYTES else ""
    return f"{bytes(data[:SHOWN_BYTES])!r}{more}"


def shown_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + " ..."


class Serde(ABC, Generic[T]):
    """Reads and writes one kind of value. Make your own by overriding `encode` and `decode`."""

    name: str = "serde"
    type: Type = ANY
    """Of the values, for expressions. `any` will do for a serde of your own."""

    def serialize(self, value: T | None) -> bytes | None:
        return None if value is None else self.encode(value)

    def deserialize(self, data: bytes | None) -> T | None:
        return None if data is None else self.decode(data)

    @abstractmethod
    def encode(self, value: T) -> bytes: ...

    @abstractmethod
    def decode(self, data: bytes) -> T | None: ...

    def __repr__(self) -> str:
        return f"Serdes.{self.name}"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name, self.type))

    def not_read(self, expected: str, data: bytes) -> NoReturn:
        raise SerdeError(f"{self!r}: {expected} expected, found {shown(data)}")

    def not_written(self, expected: str, value: object) -> NoReturn:
        raise SerdeError(f"{self!r}: {expected} expected, not {type(value).__name__} {shown_value(value)}")


class Where:
    """The record that is being read or written. Whoever reads and writes records keeps one for each place where a serde
    looks at it."""

    __slots__ = ("headers", "topic")

    def __init__(self, topic: str = "") -> None:
        self.topic = topic
        self.headers: list[tuple[str, bytes | None]] = []


class ContextSerde(Serde[T]):
    """A serde that sees the topic and the headers of a record, as Java's may: override `encode_for` and `decode_from`.

    What it appends to `headers` while a record is written to a topic goes along with the record.
    """

    @abstractmethod
    def encode_for(self, value: T, topic: str, headers: list[tuple[str, bytes | None]]) -> bytes: ...

    @abstractmethod
    def decode_from(self, data: bytes, topic: str, headers: list[tuple[str, bytes | None]]) -> T | None: ...

    def encode_kept(self, value: T, topic: str) -> bytes:
        """For a store, which keeps no headers. `topic` is its changelog's name, or that of the topic which fills it."""
        return self.encode_for(value, topic, [])

    def encode(self, value: T) -> bytes:
        return self.encode_for(value, "", [])

    def decode(self, data: bytes) -> T | None:
        return self.decode_from(data, "", [])


class ColumnSerde(ContextSerde[T]):
    """One that Spark can be given whole columns of (`serdes.columns`), though it is Python code."""

    @property
    @abstractmethod
    def has_columns(self) -> bool:
        """Whether its values have a type that columns can hold, and nothing of a record lies in headers it writes."""

    @abstractmethod
    def read(self, data: bytes, headers: Sequence[tuple[str, bytes | None]], *, for_columns: bool) -> T | None:
        """For columns: dates, times and timestamps as the numbers that Arrow takes for them."""


class _Placed(Serde[Any]):
    def __init__(self, inner: ContextSerde[Any], where: Where) -> None:
        self.inner = inner
        self.name = inner.name
        self.type = inner.type
        self._where = where

    def encode(self, value: Any) -> bytes:
        return self.inner.encode_for(value, self._where.topic, self._where.headers)

    def decode(self, data: bytes) -> Any:
        return self.inner.decode_from(data, self._where.topic, self._where.headers)


class SerdeAround(Serde[T]):
    """One that writes something beside what another one writes, which may look at the record."""

    inner: Serde[Any]

    @abstractmethod
    def around(self, inner: Serde[Any]) -> Serde[T]:
        """The same around another."""


def sees_place(serde: Serde[Any] | None) -> bool:
    """Whether it looks at the topic and the headers of a record."""
    return isinstance(serde, ContextSerde) or (isinstance(serde, SerdeAround) and sees_place(serde.inner))


def placed(serde: Serde[Any], where: Where) -> Serde[Any]:
    """The serde, told where the record lies, if it looks at that."""
    if isinstance(serde, SerdeAround) and sees_place(serde):
        return serde.around(placed(serde.inner, where))
    return _Placed(serde, where) if isinstance(serde, ContextSerde) else serde


class _Kept(Serde[Any]):
    def __init__(self, inner: ContextSerde[Any], topic: str) -> None:
        self.inner = inner
        self.name = inner.name
        self.type = inner.type
        self._topic = topic

    def encode(self, value: Any) -> bytes:
        return self.inner.encode_kept(value, self._topic)

    def decode(self, data: bytes) -> Any:
        return self.inner.decode_from(data, self._topic, [])


def kept(serde: Serde[Any], topic: str) -> Serde[Any]:
    """The serde of a store, told its changelog's name, if it looks at that."""
    if isinstance(serde, SerdeAround) and sees_place(serde):
        return serde.around(kept(serde.inner, topic))
    return _Kept(serde, topic) if isinstance(serde, ContextSerde) else serde
