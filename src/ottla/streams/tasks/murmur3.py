"""Murmur3, 128 bits for 64-bit machines: the hash that joins by foreign key make of a value, as Kafka Streams does."""

from typing import Final

from mmh3 import mmh3_x64_128_digest

_SEED: Final = 104_729


def hash128(data: bytes) -> bytes:
    """Both halves, each big-endian, as they lie in a subscription."""
    digest = mmh3_x64_128_digest(data, _SEED)
    return digest[7::-1] + digest[:7:-1]
