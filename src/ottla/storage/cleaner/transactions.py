"""Transactions as the cleaner meets them, batch by batch: which data is aborted, which marker is spent."""

from collections.abc import Iterable

from ottla.protocol import batch as b
from ottla.storage.index import AbortedTxn
from ottla.storage.marker import marker_of


class _Aborted:
    __slots__ = ("seen", "txn")

    def __init__(self, txn: AbortedTxn) -> None:
        self.txn = txn
        self.seen = False


class Transactions:
    """One walk over a log in offset order. It spans groups of segments: a transaction may too (KAFKA-8351)."""

    __slots__ = ("_aborted", "_ahead", "_committed", "_kept")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._ahead = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, _Aborted] = {}
        self._committed: set[int] = set()
        self._kept: list[AbortedTxn] = []

    def is_aborted(self, header: b.BatchHeader) -> bool:
        """Of a transactional data batch."""
        self._reach(header.last_offset)
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        aborted.seen = True
        return True

    def is_spent(self, header: b.BatchHeader, batch: b.Buffer) -> bool:
        """Whether a control batch marks a transaction of which no batch was met any more, or is empty already."""
        self._reach(header.last_offset)
        if header.record_count == 0:
            return True
        marker = marker_of(batch)
        if marker is None:
            return False
        if marker.committed:
            spent = header.producer_id not in self._committed
            self._committed.discard(header.producer_id)
            return spent
        aborted = self._aborted.pop(header.producer_id, None)
        if aborted is None or not aborted.seen:
            return True
        # Readers need the entry as long as the marker: data of the transaction may still be in an older copy.
        self._kept.append(aborted.txn)
        return False

    def take_kept(self) -> list[AbortedTxn]:
        """What the transaction index of the segment just written has to hold."""
        kept, self._kept = self._kept, []
        return kept

    def _reach(self, offset: int) -> None:
        ahead = self._ahead
        while ahead and ahead[-1].first_offset <= offset:
            txn = ahead.pop()
            self._aborted.setdefault(txn.producer_id, _Aborted(txn))
