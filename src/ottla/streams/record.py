"""What flows through a topology."""

from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

NO_TIMESTAMP = -1


class Record(NamedTuple):
    """A record between two nodes: deserialized, with its event time in milliseconds."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> "Record":
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> "Record":
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> "Record":
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> "Record":
        return Record(self.key, self.value, self.timestamp, headers)


class RecordMetadata(NamedTuple):
    """Where the record that is being processed came from."""

    topic: str
    partition: int
    offset: int


class Change(NamedTuple):
    """What nodes of a table hand on as a record's value. The old value is None where nobody downstream asked for it."""

    new: Any
    old: Any
    is_latest: bool = True
    """False for an update that came out of order (KIP-825's rule for tables)."""


class Raw(NamedTuple):
    """A record as it lies in a topic: what goes into a task and what comes out of it."""

    topic: str
    partition: int
    """Minus one for a record whose partition the sink chooses."""
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
