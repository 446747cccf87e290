"""Where sources stand, as the offsets topic tells it: `["connector",{partition}]` to `{offset}`, in Java's bytes.

The key is compacted by its bytes, and the order of a partition's members is part of them. So who writes a partition
that is there already writes it under the bytes it has; partitions are compared by what they mean.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ottla.connect.config_records import Unreadable

Members: TypeAlias = Mapping[str, Any]
"""A partition, or an offset, as JSON has it."""


class OffsetPut(NamedTuple):
    connector: str
    partition: Members
    offset: Members | None
    """None: forgotten."""
    key: bytes


def key_of(connector: str, partition: Members) -> bytes:
    return msgspec.json.encode([connector, dict(partition)])


def value_of(offset: Members | None) -> bytes | None:
    return None if offset is None else msgspec.json.encode(dict(offset))


def decode(key: bytes | None, value: bytes | None) -> OffsetPut:
    """Raises Unreadable."""
    try:
        found = msgspec.json.decode(key or b"")
        offset = None if value is None else msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"{key!r}: {error}") from None
    match found:
        case [str() as connector, dict() as partition] if offset is None or isinstance(offset, dict):
            return OffsetPut(connector, partition, offset, key or b"")
    raise Unreadable(f"{key!r}: a connector and a partition are expected, and an object as value")


def _meaning(partition: Members) -> bytes:
    return msgspec.json.encode(partition, order="deterministic")


class Offsets:
    """The topic, replayed."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[str, dict[bytes, OffsetPut]] = {}

    def replay(self, record: OffsetPut) -> None:
        of_connector = self._found.setdefault(record.connector, {})
        if record.offset is None:
            of_connector.pop(_meaning(record.partition), None)
        else:
            of_connector[_meaning(record.partition)] = record

    def of(self, connector: str) -> list[OffsetPut]:
        return list(self._found.get(connector, {}).values())

    def key(self, connector: str, partition: Members) -> bytes:
        """The bytes to write this partition under."""
        found = self._found.get(connector, {}).get(_meaning(partition))
        return key_of(connector, partition) if found is None else found.key
