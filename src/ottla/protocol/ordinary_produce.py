"""Produce as clients send it nearly always, read and answered without an object for every partition.

Ordinary is a request without a transaction whose partitions hold one batch of the present format each. Its batches'
headers are read together with what stands around them, and each batch that was taken becomes a row of bytes, which is
all that is left to do when the answer is sent. Whatever looks different is left to the general codec, which knows every
form and every refusal: nothing is refused here.
"""

from struct import Struct, error
from typing import Any, Final, NamedTuple

from ottla.protocol.batch import HEADER_SIZE
from ottla.protocol.codec import ONE, Buffer, Message, Part
from ottla.protocol.messages import ProduceRequest

FIRST_VERSION: Final = 9
"""The compact encodings, which are alike but for the way a topic is named."""
_BY_TOPIC_ID: Final = 13

# ---- requests

Header = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
"""Partition; then of its batch: base offset, length, magic, CRC, attributes, last offset delta, greatest timestamp,
producer id, producer epoch, first sequence, count. The leader's epoch and the first timestamp are asked for by nobody
on the way in."""
Batch = tuple[memoryview, Header]
Topic = tuple[str | bytes, list[Batch]]
"""Name or id, whichever the version has, and the batches: views of the request."""

_START: Final = Struct(">BhiB").unpack_from  # no transactional id, acks, timeout, topics
_TOPIC_ID: Final = Struct(">16sB").unpack_from  # id, partitions
_START_BY_ID: Final = Struct(">BhiB16sB").unpack_from  # all of these
_HEADER: Final = "qi4xbIhi8xqqhii"
_SHORT: Final = Struct(">i1x" + _HEADER).unpack_from
_USUAL: Final = Struct(">i2x" + _HEADER).unpack_from
_LONG: Final = Struct(">i3x" + _HEADER).unpack_from
"""A partition, a varint of so many bytes (the size of its records plus one), and the header at their beginning."""
_new_tuple: Final = tuple.__new__
"""Makes a NamedTuple for a third of what its constructor costs."""


class OrdinaryProduce(NamedTuple):
    acks: int
    timeout_ms: int
    topics: list[Topic]
    body: Buffer
    start: int

    def in_full(self, version: int) -> ProduceRequest:
        """The same request as the general codec reads it."""
        request: ProduceRequest = ProduceRequest.DECODERS[version](self.body, self.start)[0]
        return request


def _read_by_id(body: memoryview, start: int) -> tuple[Any, int]:
    try:
        named, acks, timeout_ms, count, topic_id, partitions = _START_BY_ID(body, start)
        if not named and 1 < count < 128:
            topics: list[Topic] = []
            pos = _read_batches(body, start + 25, partitions, topic_id, topics)
            while pos and len(topics) < count - 1:
                topic_id, partitions = _TOPIC_ID(body, pos)
                pos = _read_batches(body, pos + 17, partitions, topic_id, topics)
            if pos and not body[pos]:
                return _new_tuple(OrdinaryProduce, (acks, timeout_ms, topics, body, start)), pos + 1
    except (error, IndexError):
        pass  # the general codec will say what is wrong with it
    return ProduceRequest.DECODERS[_BY_TOPIC_ID](body, start)


def _read_by_name(body: memoryview, start: int) -> tuple[Any, int]:
    try:
        named, acks, timeout_ms, count = _START(body, start)
        if not named and 1 < count < 128:
            topics: list[Topic] = []
            pos = start + 8
            while pos and len(topics) < count - 1:
                size = body[pos]
                if size > 127:
                    break
                end = pos + size
                pos = _read_batches(body, end + 1, body[end], str(body[pos + 1 : end], "utf-8"), topics)
            if len(topics) == count - 1 and pos and not body[pos]:
                return _new_tuple(OrdinaryProduce, (acks, timeout_ms, topics, body, start)), pos + 1
    except (error, IndexError, UnicodeDecodeError):
        pass
    return ProduceRequest.DECODERS[FIRST_VERSION](body, start)


def _read_batches(body: memoryview, pos: int, partitions: int, topic: str | bytes, topics: list[Topic]) -> int:
    """Where the topic ends; 0 if any of it is not ordinary. `partitions` is their number plus one."""
    if not 1 < partitions < 128:
        return 0
    batches: list[Batch] = []
    for _ in range(partitions - 1):
        size = body[pos + 4]
        if size < 128:
            header = _SHORT(body, pos)
            pos += 5
        elif (second := body[pos + 5]) < 128:
            header = _USUAL(body, pos)
            size += (second << 7) - 128
            pos += 6
        elif (third := body[pos + 6]) < 128:
            header = _LONG(body, pos)
            size += (second << 7) + (third << 14) - 16512
            pos += 7
        else:
            return 0
        end = pos + size - 1
        if size <= HEADER_SIZE or body[end]:  # too little for a batch, or tagged fields behind it
            return 0
        batches.append((body[pos:end], header))
        pos = end + 1
    topics.append((topic, batches))
    return 0 if body[pos] else pos + 1


DECODERS: Final = {
    **ProduceRequest.DECODERS,
    **dict.fromkeys(range(FIRST_VERSION, _BY_TOPIC_ID), _read_by_name),
    _BY_TOPIC_ID: _read_by_id,
}
"""By version. Give an OrdinaryProduce or, of anything else, a ProduceRequest."""

# ---- responses

_ROW: Final = Struct(">ihqqqB2x")
"""Index, error, base offset, append time, log start offset, no record errors, no message, no tags."""
_pack_row: Final = _ROW.pack
_NO_APPEND_TIME: Final = -1
_NO_RECORD_ERRORS: Final = 1
_END: Final = Struct(">ix").pack  # throttle time and tags
_UNTHROTTLED: Final = bytes(5)


def row(index: int, base_offset: int, log_start_offset: int) -> bytes:
    """A partition whose batch was appended with its producer's timestamps."""
    return _pack_row(index, 0, base_offset, _NO_APPEND_TIME, log_start_offset, _NO_RECORD_ERRORS)


def failed_row(index: int, error_code: int) -> bytes:
    return _pack_row(index, error_code, -1, _NO_APPEND_TIME, -1, _NO_RECORD_ERRORS)


def read_row(one: bytes) -> tuple[int, int, int, int]:
    """Index, error, base offset, log start offset."""
    index, error_code, base_offset, _, log_start_offset, _ = _ROW.unpack(one)
    return index, error_code, base_offset, log_start_offset


class ProduceAck(Message):
    """To an ordinary request, so that no count and no name takes more than a byte to tell its length.

    The bytes are those of a ProduceResponse; whoever needs that one after all makes it of the rows.
    """

    FIELDS = ("topics", "throttle_time_ms")
    __slots__ = ("throttle_time_ms", "topics")

    def __init__(self, topics: list[tuple[str | bytes, list[bytes]]]) -> None:
        self.topics = topics
        """Name or id, whichever the version has, and the rows."""
        self.throttle_time_ms = 0


def _encode_by_name(ack: ProduceAck, out: list[Part]) -> None:
    out.append(ONE[len(ack.topics) + 1])
    for name, rows in ack.topics:
        assert isinstance(name, str)
        encoded = name.encode()
        out += (ONE[len(encoded) + 1], encoded, ONE[len(rows) + 1], *rows, ONE[0])
    out.append(_END(ack.throttle_time_ms) if ack.throttle_time_ms else _UNTHROTTLED)


def _encode_by_id(ack: ProduceAck, out: list[Part]) -> None:
    out.append(ONE[len(ack.topics) + 1])
    for topic_id, rows in ack.topics:
        out += (topic_id, ONE[len(rows) + 1], *rows, ONE[0])
    out.append(_END(ack.throttle_time_ms) if ack.throttle_time_ms else _UNTHROTTLED)


ProduceAck.ENCODERS = {
    version: _encode_by_id if version >= _BY_TOPIC_ID else _encode_by_name
    for version in range(FIRST_VERSION, _BY_TOPIC_ID + 1)
}
