"""What Spark's tasks run for the sink: `Pack` before the shuffle, `Write` behind it.

Both are sent to the workers with each batch, so they carry an `Errand` and nothing else. Connections stay open in a
worker from batch to batch.
"""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError, KafkaError
from ottla.client.reach import Reach
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.delivery import Delivery
from ottla.pipelines.sink.encoding import MAX_BATCH_BYTES, Encoded, Sender, encode_batches, next_sequence
from ottla.pipelines.sink.limits import PRODUCTION_ERROR, Instead, Judge, Limit, Refused, limits_of
from ottla.pipelines.sink.packing import Packer, Topics, chunks_of, merged, overflow
from ottla.pipelines.sink.transaction import Fenced, Transaction
from ottla.pipelines.source.origins import Origins, resolved
from ottla.pipelines.workers import settle_worker
from ottla.protocol import compression

if TYPE_CHECKING:
    from pyspark import TaskContext

PORTION: Final = 4
"""So many batches are encoded in one go."""
RECEIPT_TYPE: Final = (
    "topic string, partition int, records bigint, size bigint, offset bigint, error int, message string"
)
_RECEIPT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("offset", pa.int64()),
        ("error", pa.int32()),
        ("message", pa.string()),
    ]
)


class Receipt(NamedTuple):
    """What one partition got, or why nothing more could be written."""

    topic: str | None
    partition: int | None
    records: int
    size: int
    offset: int
    error: int = 0
    message: str | None = None

    @classmethod
    def failed(cls, error: Errors, message: str) -> Receipt:
        return cls(None, None, 0, 0, -1, int(error), message)

    @property
    def place(self) -> TopicPartition:
        assert self.topic is not None and self.partition is not None
        return TopicPartition(self.topic, self.partition)


class Errand(NamedTuple):
    """All that the tasks of one batch have to know."""

    reach: Reach
    transactional_id: str
    sender: Sender = Sender()
    second: bool = True
    batch_id: int = 0
    topics: Mapping[str, int] = {}
    """How many partitions the topics have that the driver has seen."""
    limits: Mapping[str, Limit] = {}
    """What they take."""
    judge: bytes | None = None
    """A pickled `Judge`, which few batches need: asked about records that their topics do not take."""
    sequences: Mapping[TopicPartition, int] = {}
    writers: int = 1
    timeout_s: float = 60.0
    codec: int = compression.NONE
    max_batch_bytes: int = MAX_BATCH_BYTES
    origins: Origins | None = None
    """Set when rows may carry marks in place of headers."""


class PackingOrder(NamedTuple):
    """What `Pack` is told of a batch. With a limit no more than that many bytes are given back by a task: a row
    OVERFLOW stands for the rest, which has been computed and dropped."""

    errand: Errand
    limit: int | None = None

    def as_text(self) -> str:
        # Who only chooses partitions needs no sequence numbers, of which there is one for each.
        order = self._replace(errand=self.errand._replace(sequences={}))
        return base64.b64encode(pickle.dumps(order)).decode()

    @classmethod
    def told(cls) -> PackingOrder:
        """To this task."""
        found = pickle.loads(base64.b64decode(_context().getLocalProperty(PACKING_ORDER) or ""))
        assert isinstance(found, cls)
        return found


PACKING_ORDER: Final = "ottla.sink.packing"
"""The local property that brings a batch's `PackingOrder` to its tasks."""


Packing = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Rows in, chunks out: a `Pack`, or in tests whatever needs no task of Spark's."""


class Pack:
    """Rows to chunks: for mapInArrow, and in tasks whose rows are made by Python anyway. It is part of a query's plan,
    which is made before anything is known of a batch: so the order comes by a property of the thread that runs the
    batch. A plan of its own for each batch would have to be analysed, optimised and compiled each time, which took
    longer than the batch."""

    __slots__ = ("_dropped",)

    def __init__(self, dropped: Callable[[dict[str, int]], None] | None = None) -> None:
        """`dropped` is told of records that were left out since their topics do not take them."""
        self._dropped = dropped

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        errand, limit = PackingOrder.told()
        task = _context().partitionId()
        chunks = self.chunks(batches, errand, task, lambda: connected(errand.reach, errand.timeout_s))
        return chunks if limit is None else _limited(chunks, limit)

    def chunks(
        self, batches: Iterable[pa.RecordBatch], errand: Errand, task: int, connect: Callable[[], Cluster]
    ) -> Iterator[pa.RecordBatch]:
        """`connect` is asked where brokers have to be."""
        judge = None if errand.judge is None else _Counting(errand.judge, self._dropped)
        topics = _AskedTopics(errand, connect)
        packer = Packer(topics, writers=errand.writers, task=task, spread=errand.batch_id, judge=judge)
        if errand.origins is not None:
            batches = resolved(iter(batches), errand.origins, connect)
        return packer.pack(batches)


class _Counting:
    """A judge that is unpacked when somebody has to be judged, and counts."""

    __slots__ = ("_dropped", "_judge", "_pickled")

    def __init__(self, pickled: bytes, dropped: Callable[[dict[str, int]], None] | None) -> None:
        self._pickled = pickled
        self._dropped = dropped
        self._judge: Judge | None = None

    def __call__(self, refused: Refused) -> Sequence[Instead]:
        if self._judge is None:
            self._judge = pickle.loads(self._pickled)
            assert self._judge is not None
        found = self._judge(refused)
        if self._dropped is not None:
            self._dropped({PRODUCTION_ERROR: 1})
        return found


def _limited(chunks: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    size = 0
    for chunk in chunks:
        size += chunk.nbytes
        if size <= limit:
            yield chunk
    if size > limit:
        yield overflow()


class Write:
    """Chunks to records in the topics, for mapInArrow; gives a receipt for each partition.

    An error is a receipt too and not an exception: only the driver can tell what it means for the transaction.
    """

    __slots__ = ("errand",)

    def __init__(self, errand: Errand) -> None:
        self.errand = errand

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        if _context().attemptNumber():
            # The attempt before may have written some: its sequence numbers are used, its records cannot be told apart.
            yield _table([Receipt.failed(Errors.INVALID_TXN_STATE, "a writer was started again in a transaction")])
            return
        cluster = connected(self.errand.reach, self.errand.timeout_s)
        try:
            receipts = self.deliver(cluster, batches)
        except ClientError as error:
            cluster.close()
            receipts = [Receipt.failed(_code(error), str(error))]
        yield _table(receipts)

    def deliver(self, cluster: Cluster, batches: Iterable[pa.RecordBatch]) -> list[Receipt]:
        """The chunks come by CHUNK_ORDER. Raises ClientError."""
        errand = self.errand
        delivery = Delivery(cluster, errand.transactional_id, second=errand.second)
        limits = dict(errand.limits)
        for place, chunks in groupby(chunks_of(batches), key=lambda chunk: chunk.place):
            self._announce(cluster, place)
            if place.topic not in limits:
                limits |= limits_of(cluster, [place.topic])
            most = min(errand.max_batch_bytes, limits[place.topic].max_message_bytes)
            sequence = errand.sequences.get(place, 0)
            for rows in merged(chunks, PORTION * errand.max_batch_bytes):
                for encoded in encode_batches(rows, errand.sender, sequence, max_bytes=most, codec=errand.codec):
                    self.send(delivery, place, encoded)
                    sequence = next_sequence(sequence, encoded.records)
        delivery.flush()
        return [
            Receipt(place.topic, place.partition, delivered.records, delivered.size, delivered.first_offset)
            for place, delivered in delivery.delivered.items()
        ]

    def send(self, delivery: Delivery, place: TopicPartition, encoded: Encoded) -> None:
        delivery.send(place, encoded)

    def _announce(self, cluster: Cluster, place: TopicPartition) -> None:
        """Topics may be named by rows, so the driver cannot know the partitions beforehand."""
        if not self.errand.second:
            joined = Transaction(cluster, self.errand.transactional_id, timeout_ms=0)
            joined.sender = self.errand.sender
            joined.add_partitions([place])


class _AskedTopics(Topics):
    __slots__ = ("_connect",)

    def __init__(self, errand: Errand, connect: Callable[[], Cluster]) -> None:
        super().__init__(errand.topics, errand.limits)
        self._connect = connect

    def ask(self, topic: str) -> int:
        # As for every producer: the broker decides whether a topic that is missing is made.
        return len(self._connect().partitions(topic, auto_create=True))

    def ask_limit(self, topic: str) -> Limit:
        self.count(topic)  # which makes it where it is missing
        return limits_of(self._connect(), [topic])[topic]


_CLUSTERS: dict[tuple[int, Reach], Cluster] = {}


def connected(reach: Reach, timeout_s: float) -> Cluster:
    """The cluster as this process knows it. A worker runs one task at a time, so it needs no more than one."""
    # Workers are forks: a connection must not be shared with the process it was opened in.
    name = (os.getpid(), reach)
    if name not in _CLUSTERS:
        # The driver has just talked to them: brokers that are away will be back.
        _CLUSTERS[name] = reach.cluster(client_id="ottla-streams", timeout_s=timeout_s, patient=True)
    return _CLUSTERS[name]


def _context() -> TaskContext:
    from pyspark import TaskContext  # noqa: PLC0415  who writes without Spark comes by as well

    context = TaskContext.get()
    assert context is not None, "this runs inside a task"
    return context


def _code(error: ClientError) -> Errors:
    if isinstance(error, KafkaError):
        return error.error
    return Errors.PRODUCER_FENCED if isinstance(error, Fenced) else Errors.NETWORK_EXCEPTION


def _table(receipts: Sequence[Receipt]) -> pa.RecordBatch:
    columns = zip(*receipts, strict=True) if receipts else [()] * len(_RECEIPT)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind.type) for column, kind in zip(columns, _RECEIPT, strict=True)], schema=_RECEIPT
    )
