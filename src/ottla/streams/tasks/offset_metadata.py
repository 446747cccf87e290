"""What a task commits beside the offset of each input: how far its time has come, in Kafka Streams' own form.

Java's `TopicPartitionMetadata`, in base64: a version (2), the partition's time, and numbers by name
(`ProcessorMetadata`). A Java application keeps names that it does not know, so ours may stand among them.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from struct import Struct, error
from typing import Final, NamedTuple

from ottla.streams.record import NO_TIMESTAMP

VERSION: Final = 2
LONGEST: Final = 4096
"""Of a broker's `offset.metadata.max.bytes` by default: with more the commit would be refused."""

READ: Final = "ottla-read"
"""The number that tells how far an input was read, where some of it waits for other inputs."""

_TIME: Final = Struct(">bq")
_COUNT: Final = Struct(">i")
_NUMBER: Final = Struct(">q")


class PartitionTimes(NamedTuple):
    time: int = NO_TIMESTAMP
    """The highest timestamp of the partition so far."""
    numbers: Mapping[str, int] = {}


def encode(times: PartitionTimes) -> str:
    """Without the numbers where they would not fit."""
    parts = [_TIME.pack(VERSION, times.time)]
    if times.numbers:
        parts.append(_COUNT.pack(len(times.numbers)))
        for name, number in times.numbers.items():
            data = name.encode()
            parts += (_COUNT.pack(len(data)), data, _NUMBER.pack(number))
    text = b64encode(b"".join(parts)).decode()
    return text if len(text) <= LONGEST else encode(PartitionTimes(times.time))


def decode(text: str) -> PartitionTimes:
    """What cannot be read says nothing, as in Kafka: anybody may have committed it."""
    try:
        data = b64decode(text, validate=True)
        version, time = _TIME.unpack_from(data)
        if version == 1 or (version == VERSION and len(data) == _TIME.size):
            return PartitionTimes(time)
        if version != VERSION:
            return PartitionTimes()
        return PartitionTimes(time, _numbers(data, _TIME.size))
    except (ValueError, error, binascii.Error):
        return PartitionTimes()


def _numbers(data: bytes, at: int) -> dict[str, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    found: dict[str, int] = {}
    for _ in range(count):
        (length,) = _COUNT.unpack_from(data, at)
        name = data[at + 4 : at + 4 + length].decode()
        at += 4 + length
        (found[name],) = _NUMBER.unpack_from(data, at)
        at += _NUMBER.size
    return found


def latest(several: Iterable[PartitionTimes]) -> dict[str, int]:
    """The numbers of all partitions of a task together: the larger one holds, as in Java."""
    found: dict[str, int] = {}
    for each in several:
        for name, number in each.numbers.items():
            found[name] = max(number, found.get(name, number))
    return found
