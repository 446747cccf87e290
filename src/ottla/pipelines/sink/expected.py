"""How large a batch will be, by the one before it: small ones are written by the driver."""

from __future__ import annotations

from typing import Final

SMALL_BYTES: Final = 1 << 20
"""A batch behind one that wrote no more than this is expected to be small as well."""
HERE_BYTES: Final = 4 << 20
"""And if it is not, the driver takes no more than this from a task."""
FEW_RECORDS: Final = 20_000
"""What comes of so many is expected to be small before anything is known."""


class Expected:
    __slots__ = ("_bytes_per_record", "small")

    def __init__(self) -> None:
        self.small = False
        self._bytes_per_record = 0.0

    def first(self, records: int) -> None:
        """Before the first batch: how many records it has read."""
        self.small = records <= FEW_RECORDS

    def wrote(self, size: int, records: int | None) -> None:
        """`records`: how many were read for it, if that is known."""
        self.small = size <= SMALL_BYTES
        if records:
            self._bytes_per_record = size / records

    def failed(self) -> None:
        """Perhaps as it was not small."""
        self.small = False

    def fits(self, records: int) -> bool:
        """Whether the driver may take all that comes of so many, before their size is known."""
        return self.small and records <= FEW_RECORDS and records * self._bytes_per_record <= HERE_BYTES
