"""The markers of a transaction whose end is decided: sent round by round until each of its partitions has taken one.

Until the last has, readers of committed records wait there, and so does the producer's next transaction; so who is kept
waiting for long is told why.
"""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from ottla.broker.coordination.markers import Marker, Results
from ottla.coordinator.transaction.shard import WriteMarkers
from ottla.metadata.image import MetadataImage
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition

logger = logging.getLogger(__name__)

_FIRST_PAUSE_MS: Final = 20
LONGEST_PAUSE_MS: Final = 1_000
_DOUBLED: Final = 6
"""Rounds after which the pause is the longest."""
_FIRST_TOLD: Final = 8
"""After some three seconds, and then each time that as many rounds again have gone by."""
_OVER: Final = (Errors.INVALID_PRODUCER_EPOCH, Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, Errors.UNSUPPORTED_VERSION)
"""Refusals after which a partition has nothing of the transaction left to end."""


class MarkerWriter(Protocol):
    def write(self, marker: Marker, partitions: Iterable[TopicPartition], then: Callable[[Results], None]) -> None:
        """`then` may be called several times, for some of the partitions each; for none of them if there are none."""


class MarkerRounds:
    __slots__ = ("_acknowledge", "_image", "_is_current", "_loop", "_writer")

    def __init__(
        self,
        loop: AbstractEventLoop,
        writer: MarkerWriter,
        image: Callable[[], MetadataImage],
        is_current: Callable[[WriteMarkers], bool],
        acknowledge: Callable[[WriteMarkers, Sequence[TopicPartition]], None],
    ) -> None:
        """`is_current` tells whether this node still keeps the transactional id: who keeps it now sends them if not.
        `acknowledge` hears of partitions that have their marker, or need none."""
        self._loop = loop
        self._writer = writer
        self._image = image
        self._is_current = is_current
        self._acknowledge = acknowledge

    def begin(self, markers: WriteMarkers) -> None:
        self._send(markers, markers.partitions, 0)

    def _send(self, markers: WriteMarkers, partitions: Sequence[TopicPartition], number: int) -> None:
        if not self._is_current(markers):
            return
        image = self._image()
        there = [partition for partition in partitions if image.partition(*partition) is not None]
        # A deleted partition has nothing left to end.
        gone: Results = {partition: Errors.NONE for partition in partitions if image.partition(*partition) is None}
        if gone or not there:
            self._written(markers, gone, number)
        if there:
            marker = Marker(
                *markers.producer, markers.committed, markers.coordinator_epoch, markers.transaction_version
            )
            self._writer.write(marker, there, lambda written: self._written(markers, written, number))

    def _written(self, markers: WriteMarkers, results: Results, number: int) -> None:
        done: list[TopicPartition] = []
        again: list[TopicPartition] = []
        for partition, error in results.items():
            if error == Errors.TRANSACTION_COORDINATOR_FENCED:
                logger.error("%s: %s knows a newer coordinator than this one", markers.transactional_id, partition)
                return
            if error and error not in _OVER:
                again.append(partition)
                continue
            if error:
                logger.warning("%s: %s needs no marker any more (%s)", markers.transactional_id, partition, error.name)
            done.append(partition)
        if done or not again:
            self._acknowledge(markers, done)
        if again:
            self._tell(markers, again[0], results[again[0]], number)
            pause_ms = min(_FIRST_PAUSE_MS << min(number, _DOUBLED), LONGEST_PAUSE_MS)
            self._loop.call_later(pause_ms / 1000, self._send, markers, again, number + 1)

    def _tell(self, markers: WriteMarkers, partition: TopicPartition, error: Errors, number: int) -> None:
        if number >= _FIRST_TOLD and not number & (number - 1):
            logger.warning(
                "the end of a transaction of %s is decided, and %s-%d does not take its marker (%s): readers of "
                "committed records wait there. Tried again every second",
                markers.transactional_id,
                *partition,
                error.name,
            )
