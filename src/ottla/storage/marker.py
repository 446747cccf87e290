"""The control record that ends a transaction."""

from struct import Struct
from typing import NamedTuple

from ottla.protocol import batch as b
from ottla.protocol.records import CorruptBatch, read_records

_MARKER = Struct(">hi")


class Marker(NamedTuple):
    """The control record at the end of a transaction."""

    committed: bool
    coordinator_epoch: int


def marker_of(batch: b.Buffer) -> Marker | None:
    """None also for a control batch the cleaner has emptied, or one it cannot read: recovery must not stop for it."""
    try:
        for record in read_records(batch):
            return read_marker(record.key, record.value)
    except CorruptBatch:
        return None
    return None


def read_marker(key: bytes | None, value: bytes | None) -> Marker | None:
    """The control record of an ended transaction; None for the other control types, which Raft writes."""
    if key is None or len(key) < 4 or value is None or len(value) < _MARKER.size:
        return None
    kind = int.from_bytes(key[2:4])
    if kind not in (0, 1):
        return None
    return Marker(kind == 1, _MARKER.unpack_from(value)[1])
