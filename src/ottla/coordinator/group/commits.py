"""Plain offset commits of one request: decided, written and replayed together, without an object for each partition.

A record of a commit without metadata is the same bytes but for partition, offset and leader epoch, and is packed in one
go; one with metadata, or with a time of its own to expire at, is written by the codec of its schema.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from ottla.coordinator.records import CoordinatorRecord, encode
from ottla.model.ids import ZERO_UUID
from ottla.protocol.messages import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.records import write_record
from ottla.protocol.varint import write_signed

VALUE_VERSION: Final = 4
VALUE_VERSION_WITH_EXPIRY: Final = 1
"""The last version that has the field; only clients older than OffsetCommit v5 can ask for it."""
NO_EXPIRY: Final = -1

Row = tuple[int, ...]
"""Partition, offset, leader epoch; whatever follows means nothing."""
CommitTopic = tuple[str, bytes, Sequence[Row]]
"""Name, id, rows."""
Metadata = Mapping[tuple[str, int], str]
"""By topic and partition, where there is any."""
NO_METADATA: Final[Metadata] = {}

_SHORT: Final = Struct(">h").pack
_LONG: Final = Struct(">q").pack
_ONE_BYTE_DELTAS: Final = 64
_TWO_BYTE_DELTAS: Final = 8192


class Commits:
    """Records of `__consumer_offsets`: one for each row, in their order."""

    __slots__ = ("count", "expires", "group_id", "metadata", "timestamp", "topics")

    def __init__(
        self,
        group_id: str,
        topics: Sequence[CommitTopic],
        timestamp: int,
        metadata: Metadata = NO_METADATA,
        expires: int = NO_EXPIRY,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.timestamp = timestamp
        self.metadata = metadata
        self.expires = expires
        self.count = sum([len(rows) for _, _, rows in topics])

    def body(self) -> bytearray:
        """The records as they stand in a batch that begins at `timestamp`."""
        if self.metadata or self.expires != NO_EXPIRY or self.count > _TWO_BYTE_DELTAS:
            return self._body_by_codec()
        body = bytearray()
        delta = 0
        for name, topic_id, rows in self.topics:
            form = _form(self.group_id, name, topic_id)
            tail = b"\x01" + _LONG(self.timestamp) + form.tail
            short, size, key, value = form.short.pack, form.short_size, form.key, form.value
            for row in rows:
                if delta < _ONE_BYTE_DELTAS:
                    body += short(size, delta << 1, key, row[0], value, row[1], row[2], tail)
                else:  # a varint of two bytes, the low seven bits first
                    two = ((delta << 1 & 0x7F | 0x80) << 8) | delta >> 6
                    body += form.long.pack(form.long_size, two, key, row[0], value, row[1], row[2], tail)
                delta += 1
        return body

    def _body_by_codec(self) -> bytearray:
        body = bytearray()
        for delta, record in enumerate(self.records()):
            write_record(body, encode(record, self.timestamp), delta, 0)
        return body

    def records(self) -> list[CoordinatorRecord]:
        """The same one by one, as their schemas have them."""
        version = VALUE_VERSION if self.expires == NO_EXPIRY else VALUE_VERSION_WITH_EXPIRY
        return [
            CoordinatorRecord(
                OffsetCommitKey(self.group_id, name, row[0]),
                OffsetCommitValue(
                    row[1], row[2], self.metadata.get((name, row[0]), ""), self.timestamp, self.expires, topic_id
                ),
                version,
            )
            for name, topic_id, rows in self.topics
            for row in rows
        ]


class _Form(NamedTuple):
    """What the records of one topic's commits have in common."""

    short: Struct
    """Size and two zeros, offset delta, key up to the partition, partition, head of the value, offset, epoch, tail."""
    short_size: bytes
    long: Struct
    """The same with an offset delta of two bytes."""
    long_size: bytes
    key: bytes
    value: bytes
    tail: bytes


@lru_cache(maxsize=1024)
def _form(group_id: str, topic: str, topic_id: bytes) -> _Form:
    group, name = group_id.encode(), topic.encode()
    key = _SHORT(OffsetCommitKey.API_KEY) + _SHORT(len(group)) + group + _SHORT(len(name)) + name
    tags = b"\0" if topic_id == ZERO_UUID else b"\x01\0\x10" + topic_id  # one tagged field, number 0, 16 bytes
    key_head = _varint(len(key) + 4) + key
    value_head = _varint(2 + 8 + 4 + 1 + 8 + len(tags)) + _SHORT(VALUE_VERSION)
    tail = tags + b"\0"  # no headers
    size = 2 + len(key_head) + 4 + len(value_head) + 12 + 9 + len(tail)
    short_size, long_size = (_varint(size + delta) + b"\0\0" for delta in (1, 2))
    rest = f"{len(key_head)}si{len(value_head)}sqi{9 + len(tail)}s"
    return _Form(
        Struct(f">{len(short_size)}sB{rest}"),
        short_size,
        Struct(f">{len(long_size)}sH{rest}"),
        long_size,
        key_head,
        value_head,
        tail,
    )


def _varint(value: int) -> bytes:
    out = bytearray()
    write_signed(out, value)
    return bytes(out)
