"""Stream time of a partition: the largest timestamp seen so far, carried from one micro-batch to the next.

Kafka Streams decides record by record whether one is late, against the largest timestamp before it. A micro-batch is
read by tasks that keep nothing, so each leaves the maximum it ended with in a file named after its end offset, and the
batch that begins there takes it up. A batch that is replayed finds what it found the first time.
"""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ottla.model.ids import TopicPartition

UNKNOWN: Final = -1
"""Nothing was seen yet: what Kafka Streams starts with."""
KEPT: Final = 12
"""Files that stay at or below the committed offset: more than the batches that Spark can go back."""


def running_maximum(timestamps: NDArray[np.int64], carried: int) -> NDArray[np.int64]:
    """Stream time at each record, that record included."""
    maximum: NDArray[np.int64] = np.maximum.accumulate(timestamps)
    return np.maximum(maximum, carried, out=maximum)


class StreamTimeCarry:
    """Files `<directory>/<topic>-<partition>/<end offset>`. On a cluster the directory has to be one that all share."""

    __slots__ = ("_directory",)

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def read(self, topic: str, partition: int, start: int) -> int:
        """The maximum with which the last batch before `start` ended. Raises ValueError for a damaged file."""
        folder = self._folder(topic, partition)
        ends = [end for end in _ends(folder) if end <= start]
        if not ends:
            return UNKNOWN
        path = folder / str(max(ends))
        text = path.read_text()
        try:
            return int(text)
        except ValueError as error:
            raise ValueError(f"{path} should hold the stream time of {topic}-{partition}, not {text!r}") from error

    def write(self, topic: str, partition: int, end: int, max_timestamp: int) -> None:
        folder = self._folder(topic, partition)
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{end}.{token_hex(4)}"
        with unfinished.open("w") as file:
            file.write(str(max_timestamp))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / str(end))

    def clean(self, topic: str, partition: int, committed: int) -> None:
        """Everything below `committed` is done with: what only older batches would read goes."""
        folder = self._folder(topic, partition)
        done = sorted(end for end in _ends(folder) if end <= committed)
        for end in done[:-KEPT]:
            (folder / str(end)).unlink(missing_ok=True)

    def _folder(self, topic: str, partition: int) -> Path:
        return self._directory / str(TopicPartition(topic, partition))


def _ends(folder: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except FileNotFoundError:
        return []
