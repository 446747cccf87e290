"""A record as connectors and transforms see it. Nothing here changes: what differs is a new record."""

from typing import Any, NamedTuple

from ottla.connect.data.java_text import java_text
from ottla.connect.data.schema import Schema


class SchemaAndValue(NamedTuple):
    schema: Schema | None
    value: Any


NOTHING = SchemaAndValue(None, None)


class Header(NamedTuple):
    key: str
    schema: Schema | None
    value: Any


class ConnectRecord:
    """A sink's record has an offset, a source's has none. `origin` is the runner's: where the record was read, carried
    through every transform, so that an error or an acknowledgement finds its way back."""

    __slots__ = (
        "headers",
        "key",
        "key_schema",
        "offset",
        "origin",
        "partition",
        "timestamp",
        "topic",
        "value",
        "value_schema",
    )

    def __init__(
        self,
        topic: str,
        partition: int | None = None,
        key_schema: Schema | None = None,
        key: Any = None,
        value_schema: Schema | None = None,
        value: Any = None,
        timestamp: int | None = None,
        headers: tuple[Header, ...] = (),
        offset: int | None = None,
        origin: object = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.timestamp = timestamp
        self.headers = headers
        self.offset = offset
        self.origin = origin

    def _copy(self) -> "ConnectRecord":
        made = ConnectRecord.__new__(ConnectRecord)
        made.topic = self.topic
        made.partition = self.partition
        made.key_schema = self.key_schema
        made.key = self.key
        made.value_schema = self.value_schema
        made.value = self.value
        made.timestamp = self.timestamp
        made.headers = self.headers
        made.offset = self.offset
        made.origin = self.origin
        return made

    def with_topic(self, topic: str) -> "ConnectRecord":
        made = self._copy()
        made.topic = topic
        return made

    def with_partition(self, partition: int | None) -> "ConnectRecord":
        made = self._copy()
        made.partition = partition
        return made

    def with_timestamp(self, timestamp: int | None) -> "ConnectRecord":
        made = self._copy()
        made.timestamp = timestamp
        return made

    def with_key(self, schema: Schema | None, key: Any) -> "ConnectRecord":
        made = self._copy()
        made.key_schema = schema
        made.key = key
        return made

    def with_value(self, schema: Schema | None, value: Any) -> "ConnectRecord":
        made = self._copy()
        made.value_schema = schema
        made.value = value
        return made

    def with_headers(self, headers: tuple[Header, ...]) -> "ConnectRecord":
        made = self._copy()
        made.headers = headers
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConnectRecord) and all(
            getattr(self, name) == getattr(other, name) for name in ConnectRecord.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        headers = ", ".join(
            f"ConnectHeader(key={each.key}, value={java_text(each.value)}, schema={_shown(each.schema)})"
            for each in self.headers
        )
        parts = (
            f"topic='{self.topic}'",
            f"kafkaPartition={java_text(self.partition)}",
            f"key={java_text(self.key)}",
            f"keySchema={_shown(self.key_schema)}",
            f"value={java_text(self.value)}",
            f"valueSchema={_shown(self.value_schema)}",
            f"timestamp={java_text(self.timestamp)}",
            f"headers=ConnectHeaders(headers={f'[{headers}]' if headers else ''})",
        )
        return f"ConnectRecord{{{', '.join(parts)}}}"


def _shown(schema: Schema | None) -> str:
    return "null" if schema is None else repr(schema)
