"""The nouns of the house: offsets, epochs, ids. A type name carries the unit, so no variable has to."""

import base64
import binascii
from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
BrokerId = NewType("BrokerId", int)
BrokerEpoch = NewType("BrokerEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
Millis = NewType("Millis", int)
"""Milliseconds: a wall-clock instant since 1970, or a span; the parameter's name says which."""

Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes, as on the wire. Cores compare and store them; only the edge mints and prints them."""

ZERO_UUID = Uuid(bytes(16))

MIGRATING_DIRECTORY = ZERO_UUID
UNASSIGNED_DIRECTORY = Uuid((1).to_bytes(16, "big"))
LOST_DIRECTORY = Uuid((2).to_bytes(16, "big"))
"""Ids that are no log directory's own (KIP-858)."""
NO_OFFSET = Offset(-1)
NO_LEADER_EPOCH = LeaderEpoch(-1)
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_LEADER = BrokerId(-1)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(uuid: bytes) -> str:
    """Kafka prints ids as 22 characters of unpadded URL-safe base64."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def parse_uuid(text: str) -> Uuid:
    """The inverse of `uuid_text`. Raises ValueError for anything that is not 16 bytes."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a Kafka id: 22 characters of URL-safe base64 are expected") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a Kafka id: it holds {len(raw)} bytes, not 16")
    return Uuid(raw)
