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

    __slots__ = ("_delta", "_image", "_last", "transaction_start")

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._delta = MetadataDelta(image)
        self._last = (image.offset, image.epoch, image.timestamp)
        self.transaction_start: int | None = None
        """Offset of the begin of a transaction that has not ended."""

    def batch(self, records: Iterable[object], base_offset: int, epoch: int, timestamp: int) -> None:
        for offset, record in enumerate(records, base_offset):
            self._record(record, offset, epoch, timestamp)
            if self.transaction_start is None:
                self._last = (offset, epoch, timestamp)

    def control_batch(self, last_offset: int, epoch: int, timestamp: int) -> None:
        """Batches of the quorum itself move the offset and change no fact."""
        if self.transaction_start is None:
            self._last = (last_offset, epoch, timestamp)

    def _record(self, record: object, offset: int, epoch: int, timestamp: int) -> None:
        kind = type(record).__name__
        if kind == _BEGIN:
            if self.transaction_start is not None:
                raise ReplayError(f"a transaction begins at offset {offset} inside another one")
            self._checkpoint()
            self.transaction_start = offset
        elif kind in (_END, _ABORT):
            if self.transaction_start is None:
                raise ReplayError(f"a transaction ends at offset {offset} but none is open")
            self.transaction_start = None
            if kind == _ABORT:
                self._delta = MetadataDelta(self._image)
        else:
            self._delta.replay(record)

    def _checkpoint(self) -> None:
        if not self._delta.is_empty:
            self._image = self._delta.apply(*self._last)
            self._delta = MetadataDelta(self._image)

    def image(self) -> MetadataImage:
        """The state at the last offset outside of an open transaction. Replay may go on after it."""
        assert self.transaction_start is None, "an open transaction has no image: abort it first"
        self._image = self._delta.apply(*self._last)
        self._delta = MetadataDelta(self._image)
        return self._image

    def abandon_transaction(self) -> None:
        """What a new leader does to the transaction its predecessor left open; the abort is appended by the caller."""
        self._delta = MetadataDelta(self._image)
        self.transaction_start = None


def image_of(
    records: Iterable[object], cluster_id: str = "", *, offset: int = -1, epoch: int = -1, timestamp: int = -1
) -> MetadataImage:
    """The image of loose records, as of a snapshot that ends at `offset`."""
    delta = MetadataDelta(MetadataImage(cluster_id=cluster_id))
    delta.replay_all(records)
    return delta.apply(offset, epoch, timestamp)
