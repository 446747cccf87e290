"""The answer to a produce in which all went well, without an object for every partition.

Each batch that was taken becomes a row of bytes, which is all that is left to do when the answer is sent. The bytes are
those of a ProduceResponse; whoever needs that one after all, as another partition has failed, makes it of the rows.
"""

from struct import Struct
from typing import Final

from ottla.protocol.codec import ONE, Message, Part, string_head, varint

FIRST_VERSION: Final = 9
"""The compact encodings, which are alike but for the way a topic is named."""
_BY_TOPIC_ID: Final = 13

_ROW: Final = Struct(">i2xqqqB2x")
"""Index, no error, base offset, append time, log start offset, no record errors, no message, no tags."""
_pack_row = _ROW.pack
_NO_APPEND_TIME: Final = -1
_NO_RECORD_ERRORS: Final = 1
_END: Final = bytes(5)  # throttle time and tags


def row(index: int, base_offset: int, log_start_offset: int) -> bytes:
    """A partition whose batch was appended with its producer's timestamps."""
    return _pack_row(index, base_offset, _NO_APPEND_TIME, log_start_offset, _NO_RECORD_ERRORS)


def read_row(one: bytes) -> tuple[int, int, int]:
    """What `row` was given."""
    index, base_offset, _, log_start_offset, _ = _ROW.unpack(one)
    return index, base_offset, log_start_offset


class ProduceAck(Message):
    __slots__ = FIELDS = ("topics",)

    def __init__(self, topics: list[tuple[str, bytes, list[bytes]]]) -> None:
        self.topics = topics
        """Name, id, rows; which of the first two counts depends on the version."""


def _encode_by_name(ack: ProduceAck, out: list[Part]) -> None:
    out.append(varint(len(ack.topics) + 1))
    for name, _, rows in ack.topics:
        encoded = name.encode()
        out += (string_head(len(encoded) + 1), encoded, varint(len(rows) + 1), *rows, ONE[0])
    out.append(_END)


def _encode_by_id(ack: ProduceAck, out: list[Part]) -> None:
    out.append(varint(len(ack.topics) + 1))
    for _, topic_id, rows in ack.topics:
        out += (topic_id, varint(len(rows) + 1), *rows, ONE[0])
    out.append(_END)


ProduceAck.ENCODERS = {
    version: _encode_by_id if version >= _BY_TOPIC_ID else _encode_by_name
    for version in range(FIRST_VERSION, _BY_TOPIC_ID + 1)
}
