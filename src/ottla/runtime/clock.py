"""The one place that reads the clock and throws dice; everything else is given time and ids."""

import os
import time
from typing import Final

from ottla.model.ids import Millis, Uuid, uuid_text

_RESERVED: Final = 100
"""Ids below this number have meanings of their own in Kafka (KIP-858)."""


class SystemClock:
    __slots__ = ()

    def wall(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)

    def monotonic(self) -> Millis:
        return Millis(time.monotonic_ns() // 1_000_000)


class SystemIds:
    __slots__ = ()

    def uuid(self) -> Uuid:
        """A version 4 UUID. One that prints with a leading dash is drawn again: command lines take it for an option."""
        while True:
            raw = bytearray(os.urandom(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            uuid = Uuid(bytes(raw))
            if int.from_bytes(uuid, "big") >= _RESERVED and not uuid_text(uuid).startswith("-"):
                return uuid

    def number(self, low: int, high: int) -> int:
        return low + int.from_bytes(os.urandom(8), "big") % (high - low + 1)
