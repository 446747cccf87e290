"""OffsetCommit as consumers send it nearly always, read and answered without an object for every partition.

Ordinary is a request of the compact encodings whose offsets come without metadata: then every partition takes eighteen
bytes, and a topic's partitions are read in one go. Whatever looks different is left to the general codec, which knows
every form and every refusal: nothing is refused here.
"""

from struct import Struct, error
from typing import Any, Final, NamedTuple

from ottla.protocol.codec import ONE, Buffer, Message, Part
from ottla.protocol.messages import OffsetCommitRequest

FIRST_VERSION: Final = 8
"""The compact encodings, which are alike but for the way a topic is named."""
_BY_TOPIC_ID: Final = 10

# ---- requests

Row = tuple[int, int, int, int, int]
"""Partition, offset and leader epoch; and that there is neither metadata nor a tag behind them."""
Topic = tuple[str | bytes, list[Row]]
"""Name or id, whichever the version has."""

_ROW: Final = Struct(">iqiBB")
_ROW_SIZE: Final = _ROW.size
_rows: Final = _ROW.iter_unpack
_GENERATION: Final = Struct(">iB").unpack_from  # generation, size of the member id
_new_tuple: Final = tuple.__new__


class OrdinaryCommit(NamedTuple):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    topics: list[Topic]
    body: Buffer
    start: int

    def in_full(self, version: int) -> OffsetCommitRequest:
        """The same request as the general codec reads it."""
        request: OffsetCommitRequest = OffsetCommitRequest.DECODERS[version](self.body, self.start)[0]
        return request


def _read_by_name(body: memoryview, start: int) -> tuple[Any, int]:
    return _read(body, start, FIRST_VERSION)


def _read_by_id(body: memoryview, start: int) -> tuple[Any, int]:
    return _read(body, start, _BY_TOPIC_ID)


def _read(body: memoryview, start: int, version: int) -> tuple[Any, int]:
    try:
        end = start + body[start]
        generation, size = _GENERATION(body, end)
        instance = end + 4 + size
        if 0 < body[start] < 128 and 0 < size < 128 and (length := body[instance]) < 128:
            group_id = str(body[start + 1 : end], "utf-8")
            member_id = str(body[end + 5 : instance], "utf-8")
            pos = instance + (length or 1)
            instance_id = str(body[instance + 1 : pos], "utf-8") if length else None
            topics: list[Topic] = []
            pos = _read_topics(body, pos, topics, version == _BY_TOPIC_ID)
            if pos:
                ordinary = (group_id, generation, member_id, instance_id, topics, body, start)
                return _new_tuple(OrdinaryCommit, ordinary), pos
    except (error, IndexError, UnicodeDecodeError):
        pass  # the general codec will say what is wrong with it
    return OffsetCommitRequest.DECODERS[version](body, start)


def _read_topics(body: memoryview, pos: int, topics: list[Topic], by_id: bool) -> int:
    """Where the request ends; 0 if any of it is not ordinary."""
    count = body[pos]
    pos += 1
    if not 1 < count < 128:
        return 0
    for _ in range(count - 1):
        name: str | bytes
        if by_id:
            end = pos + 16
            name = bytes(body[pos:end])
        else:
            size = body[pos]
            end = pos + size
            if not 1 < size < 128:
                return 0
            name = str(body[pos + 1 : end], "utf-8")
        partitions = body[end] - 1
        pos = end + 1 + partitions * _ROW_SIZE
        if not 0 < partitions < 127:
            return 0
        data = body[end + 1 : pos].tobytes()
        if body[pos] or any(data[17::_ROW_SIZE]) or max(data[16::_ROW_SIZE]) > 1:
            return 0  # metadata, or tagged fields
        topics.append((name, list(_rows(data))))
        pos += 1
    return 0 if body[pos] else pos + 1


DECODERS: Final = {
    **OffsetCommitRequest.DECODERS,
    **dict.fromkeys(range(FIRST_VERSION, _BY_TOPIC_ID), _read_by_name),
    _BY_TOPIC_ID: _read_by_id,
}
"""By version. Give an OrdinaryCommit or, of anything else, an OffsetCommitRequest."""

# ---- responses


class CommitAck(Message):
    """To an ordinary request, all of which was taken. The bytes are those of an OffsetCommitResponse."""

    FIELDS = ("topics",)
    __slots__ = ("topics",)

    def __init__(self, topics: list[Topic]) -> None:
        self.topics = topics


_layouts: Final = [Struct(">" + "i3x" * count) for count in range(128)]
"""Index, no error, no tags: so many times."""
_END: Final = bytes(1)


def _encode_by_name(ack: CommitAck, out: list[Part]) -> None:
    out.append(b"\0\0\0\0" + ONE[len(ack.topics) + 1])
    for name, rows in ack.topics:
        assert isinstance(name, str)
        encoded = name.encode()
        indexes = _layouts[len(rows)].pack(*[row[0] for row in rows])
        out += (ONE[len(encoded) + 1], encoded, ONE[len(rows) + 1], indexes, _END)
    out.append(_END)


def _encode_by_id(ack: CommitAck, out: list[Part]) -> None:
    out.append(b"\0\0\0\0" + ONE[len(ack.topics) + 1])
    for topic_id, rows in ack.topics:
        indexes = _layouts[len(rows)].pack(*[row[0] for row in rows])
        out += (topic_id, ONE[len(rows) + 1], indexes, _END)
    out.append(_END)


CommitAck.ENCODERS = {
    version: _encode_by_id if version >= _BY_TOPIC_ID else _encode_by_name
    for version in range(FIRST_VERSION, _BY_TOPIC_ID + 1)
}
