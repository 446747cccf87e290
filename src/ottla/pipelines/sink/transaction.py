"""A transaction from the driver's side, and the sequence numbers of its writers.

Tasks write the records themselves, with the producer id and epoch of `Transaction.sender` (see `delivery`). The rules
are in `client.transacting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError, TimedOut
from ottla.client.producing import Identity
from ottla.client.transacting import FENCING, Fenced, Transacting, TransactionTimedOut
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.encoding import Sender, next_sequence


class Transaction:
    """One transactional id. `initialise` first; then records, `commit_offsets`, and `commit` or `abort`, in turns."""

    __slots__ = ("_cluster", "_core", "name")

    def __init__(self, cluster: Cluster, transactional_id: str, *, timeout_ms: int) -> None:
        self._cluster = cluster
        self._core = Transacting(transactional_id, timeout_ms)
        self.name = transactional_id

    @property
    def sender(self) -> Sender:
        """Producer id and epoch of the transaction that is open, or comes next."""
        return Sender(*self._core.identity, transactional=True)

    @sender.setter
    def sender(self, sender: Sender) -> None:
        """As of another process."""
        self._core.identity = Identity(sender.producer_id, sender.epoch)

    @property
    def second(self) -> bool:
        """The cluster has KIP-890's second part (transaction.version 2)."""
        return self._core.second

    def initialise(self) -> None:
        """Fences whoever used the name before, and returns when its open transaction is aborted, so when all that was
        ever written under this name is decided."""
        self._cluster.run(self._core.initialise(self._cluster.routing))

    def refused(self) -> ClientError:
        """Why the epoch is no longer good: a successor's, or the broker's for a transaction that took too long."""
        return self._cluster.run(self._core.refused(self._cluster.routing))

    def require_ours(self) -> None:
        """Between two transactions, also in a process that was only given the sender. Raises Fenced."""
        self._cluster.run(self._core.require_ours(self._cluster.routing))

    def add_partitions(self, places: Iterable[TopicPartition]) -> None:
        """Before the first write to each; needless where `second` is true."""
        self._cluster.run(self._core.add_partitions(self._cluster.routing, places))

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str] | None = None
    ) -> None:
        """The group's offsets become these when the transaction commits, each with its metadata, if there is some."""
        self._cluster.run(self._core.commit_offsets(self._cluster.routing, group, offsets, metadata))

    def commit(self) -> None:
        """Raises Fenced when a successor has taken over. Any other error leaves the outcome open: `initialise` waits
        until it is known."""
        self._cluster.run(self._core.commit(self._cluster.routing))

    def abort(self) -> None:
        """As far as it can be done now: `initialise` aborts what is left over."""
        self._cluster.run(self._core.abort(self._cluster.routing))


class Sequences:
    """Where the sequence numbers of each partition stand: from 0 in each epoch."""

    __slots__ = ("_epoch", "_next")

    def __init__(self) -> None:
        self._epoch: tuple[int, int] | None = None
        self._next: dict[TopicPartition, int] = {}

    def of(self, sender: Sender) -> dict[TopicPartition, int]:
        if self._epoch != (sender.producer_id, sender.epoch):
            self._epoch, self._next = (sender.producer_id, sender.epoch), {}
        return self._next

    def wrote(self, sender: Sender, place: TopicPartition, records: int) -> None:
        numbers = self.of(sender)
        numbers[place] = next_sequence(numbers.get(place, 0), records)


__all__ = ["FENCING", "Fenced", "Sequences", "TimedOut", "Transaction", "TransactionTimedOut"]
