"""What tasks carry from one micro-batch to the next, beside Spark's own state: a few numbers, or a table.

A task keeps nothing, so it leaves what it knows in a file named after the offset at which it ended, and the batch that
begins there takes it up. A batch that runs again after a crash finds what it found the first time, and writes the same
file. Not fsynced, as Spark's own checkpoint is not: whoever loses power may lose both, and a file that came to harm is
noticed when it is decoded.

On a cluster the folder has to be one that all machines share.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Final, Generic, TypeVar

T = TypeVar("T")

KEPT: Final = 12
"""Files that stay: more than the batches that Spark can go back (minBatchesToRetain)."""


class CarryLost(Exception):
    """A file that should be there is missing or damaged."""


class Carry(Generic[T]):
    """The files of one partition: `<folder>/<end offset>`."""

    __slots__ = ("_decode", "_encode", "_folder", "_keep")

    def __init__(
        self,
        folder: str | Path,
        encode: Callable[[T], bytes | memoryview],
        decode: Callable[[bytes], T],
        keep: int = KEPT,
    ) -> None:
        """`decode` raises ValueError for bytes that are not whole."""
        self._folder = Path(folder)
        self._encode = encode
        self._decode = decode
        self._keep = keep

    def __contains__(self, end: int) -> bool:
        return (self._folder / str(end)).exists()

    def read(self, end: int) -> T:
        """What the batch that ended at `end` left. Raises CarryLost."""
        path = self._folder / str(end)
        try:
            return self._decode(path.read_bytes())
        except FileNotFoundError as error:
            raise CarryLost(_lost(f"{path} is missing")) from error
        except ValueError as error:
            raise CarryLost(_lost(f"{path} is damaged")) from error

    def latest(self, start: int) -> T | None:
        """What the last batch that ended at `start` or before it left; None if there was none. Raises CarryLost."""
        ends = [end for end in self._ends() if end <= start]
        return self.read(max(ends)) if ends else None

    def write(self, end: int, content: T) -> None:
        """The oldest files go."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._folder / f".{end}.{token_hex(4)}"
        unfinished.write_bytes(self._encode(content))
        unfinished.replace(self._folder / str(end))
        for old in sorted(self._ends())[: -self._keep]:
            (self._folder / str(old)).unlink(missing_ok=True)

    def _ends(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._folder) if name.isdigit()]
        except FileNotFoundError:
            return []


def _lost(what: str) -> str:
    return f"[ottla] {what}: what batches carried on to each other is lost, and the application needs a reset [end]"
