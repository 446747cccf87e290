"""Which partition a record goes to, as Kafka's producers decide it: murmur2 of the key, else one at a time."""

import random
from collections.abc import Sequence
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_R: Final = 24
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32 bits that Java's clients compute, here unsigned."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for pos in range(0, whole, 4):
        k = int.from_bytes(data[pos : pos + 4], "little") * _M & _MASK
        k = (k ^ (k >> _R)) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ (h >> 13)) * _M & _MASK
    return h ^ (h >> 15)


def partition_of_key(key: bytes, partitions: int) -> int:
    """Same key, same partition as with every other client of the default partitioner."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Sticky:
    """Records without a key fill one partition's batch before the next is chosen (KIP-480): batches get large."""

    __slots__ = ("_current", "_dice")

    def __init__(self, dice: random.Random | None = None) -> None:
        self._dice = dice or random.Random()
        self._current: dict[str, int] = {}

    def choose(self, topic: str, partitions: Sequence[int]) -> int:
        chosen = self._current.get(topic)
        if chosen is None or chosen not in partitions:
            chosen = self._current[topic] = self._dice.choice(partitions)
        return chosen

    def batch_full(self, topic: str) -> None:
        """The next record of `topic` may go elsewhere."""
        self._current.pop(topic, None)
