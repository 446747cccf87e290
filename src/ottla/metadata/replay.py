"""A whole log into an image: deltas, and the transactions that may span batches (KIP-868)."""

from collections.abc import Iterable
from typing import Final

from ottla.metadata.delta import MetadataDelta, ReplayError
from ottla.metadata.image import MetadataImage

_BEGIN: Final = "BeginTransactionRecord"
_END: Final = "EndTransactionRecord"
_ABORT: Final = "AbortTransactionRecord"


class Replayer:
    """Takes batches in log order. A transaction counts once its end is seen; an aborted one leaves no trace."""

    __slots__ = ("_delta", "_last", "_open", "transaction_start")

    def __init__(self, image: MetadataImage) -> None:
        self._delta = MetadataDelta(image)
        self._last = (image.offset, image.epoch, image.timestamp)
        self._open: list[object] = []
        """Records of a transaction whose end has not come."""
        self.transaction_start: int | None = None
        """Offset of the begin of a transaction that has not ended."""

    def batch(self, records: Iterable[object], base_offset: int, epoch: int, timestamp: int) -> None:
        for offset, record in enumerate(records, base_offset):
            self._record(record, offset)
            if self.transaction_start is None:
                self._last = (offset, epoch, timestamp)

    def control_batch(self, last_offset: int, epoch: int, timestamp: int) -> None:
        """Batches of the quorum itself move the offset and change no fact."""
        if self.transaction_start is None:
            self._last = (last_offset, epoch, timestamp)

    def _record(self, record: object, offset: int) -> None:
        kind = type(record).__name__
        if kind == _BEGIN:
            if self.transaction_start is not None:
                raise ReplayError(f"a transaction begins at offset {offset} inside another one")
            self.transaction_start = offset
        elif kind in (_END, _ABORT):
            if self.transaction_start is None:
                raise ReplayError(f"a transaction ends at offset {offset} but none is open")
            if kind == _END:
                self._delta.replay_all(self._open)
            self._open = []
            self.transaction_start = None
        elif self.transaction_start is not None:
            self._open.append(record)
        else:
            self._delta.replay(record)

    def take(self) -> tuple[MetadataDelta, MetadataImage]:
        """What has changed since the last call, and the image it leads to: that of the last offset outside of an open
        transaction. Replay may go on after it."""
        delta = self._delta
        image = delta.apply(*self._last)
        self._delta = MetadataDelta(image)
        return delta, image

    def abandon_transaction(self) -> None:
        """What a new leader does to the transaction its predecessor left open; the abort is appended by the caller."""
        self._open = []
        self.transaction_start = None


def image_of(
    records: Iterable[object], cluster_id: str = "", *, offset: int = -1, epoch: int = -1, timestamp: int = -1
) -> MetadataImage:
    """The image of loose records, as of a snapshot that ends at `offset`."""
    delta = MetadataDelta(MetadataImage(cluster_id=cluster_id))
    delta.replay_all(records)
    return delta.apply(offset, epoch, timestamp)
