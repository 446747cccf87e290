"""The sink: one Kafka transaction per micro-batch, so that every output is there exactly once.

Spark replays a batch with the same offsets after a crash. A batch whose transaction committed has left its marker; one
that did not commit left nothing that a reader of committed records can see. So for every batch: all records, the marker
and the group's offsets, or none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import ClientError, KafkaError, known
from ottla.client.producing import CODECS
from ottla.client.reach import Reach
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.rows import HEADERS_TYPE, without_null_headers
from ottla.pipelines.session import check_session
from ottla.pipelines.sink import markers
from ottla.pipelines.sink.delivery import Delivery
from ottla.pipelines.sink.encoding import MAX_BATCH_BYTES, Encoded
from ottla.pipelines.sink.expected import HERE_BYTES, Expected
from ottla.pipelines.sink.limits import Limit, limits_of
from ottla.pipelines.sink.packing import CHUNK, CHUNK_ORDER, CHUNK_TYPE, OVERFLOW
from ottla.pipelines.sink.transaction import FENCING, Fenced, Sequences, Transaction
from ottla.pipelines.sink.writer import PACKING_ORDER, RECEIPT_TYPE, Errand, Pack, PackingOrder, Receipt, Write
from ottla.pipelines.source.origins import Origins
from ottla.pipelines.type_names import named
from ottla.protocol.batch import TRANSACTIONAL
from ottla.protocol.records import build_batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MARKER_TOPIC: Final = "__ottla_batch_markers"
TRANSACTION_TIMEOUT_MS: Final = 5 * 60_000
"""Only the writing of a batch counts, not its computing. After a crash a successor ends the transaction at once; where
none comes, readers of committed records wait for so long."""
TOPICS_AGE_S: Final = 60.0
"""Partition counts are asked for again after so long."""


class Written(NamedTuple):
    """What became of a batch."""

    batch_id: int
    skipped: bool
    """Its output was out already: Spark replayed it, and only its state was computed again."""
    records: int
    size: int
    partitions: dict[TopicPartition, int]
    """Records by partition."""


class Unpacked(NamedTuple):
    """A batch whose rows are not in chunks yet, see `kafka_rows`."""

    rows: DataFrame
    records: int
    """How many were read for it, at most."""
    pack: Pack


class Commits(NamedTuple):
    """Of a group: offsets, and what is said beside them."""

    offsets: Mapping[TopicPartition, int]
    metadata: Mapping[TopicPartition, str] = {}


def _as_read(offsets: Mapping[TopicPartition, int]) -> Commits:
    return Commits(offsets)


class TransactionalSink:
    """Writes the micro-batches of one query. `open` it once; `write` opens it again after a batch that failed.

    What it writes are rows that were `packed`, as the end of the query's own plan, which spares each batch a plan of
    its own. Or they are `Unpacked`, where it is known of how many records they come: those of small batches the driver
    packs, which spares them another Python process.
    """

    __slots__ = (
        "_cluster", "_errand", "_expected", "_fenced", "_group_id", "_marker", "_marker_place", "_marker_topic",
        "_ready", "_sequences", "_topics", "_transaction", "_writers", "commits", "last_batch",
    )  # fmt: skip

    def __init__(
        self,
        *,
        reach: Reach,
        transactional_id: str,
        group_id: str | None = None,
        marker_topic: str = MARKER_TOPIC,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        compression: str = "none",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        timeout_s: float = 60.0,
        patient: bool = False,
        judge: bytes | None = None,
    ) -> None:
        """`patient`: brokers that were never seen are waited for as well, see `client.routing.Routing`. `judge`: see
        `Errand`."""
        if compression not in CODECS:
            raise ValueError(f"{compression!r} is no codec: {', '.join(CODECS)} are")
        self._cluster = reach.cluster(client_id="ottla-streams", timeout_s=timeout_s, patient=patient)
        self._transaction = Transaction(self._cluster, transactional_id, timeout_ms=transaction_timeout_ms)
        self._group_id = group_id
        self._marker_topic = marker_topic
        self._errand = Errand(
            reach=reach,
            transactional_id=transactional_id,
            timeout_s=timeout_s,
            codec=CODECS[compression],
            max_batch_bytes=max_batch_bytes,
            judge=judge,
        )
        self._sequences = Sequences()
        self._marker: markers.Marker | None = None
        self._marker_place = TopicPartition(marker_topic, 0)
        self._topics = _SeenTopics(self._cluster)
        self._ready = False
        self._expected = Expected()
        self._writers = 0
        """Of the session; 0 before it is known."""
        self._fenced: Fenced | None = None
        self.last_batch = markers.NONE
        """The last batch that is out, -1 for none."""
        self.commits: Callable[[Mapping[TopicPartition, int]], Commits] = _as_read
        """Asked when the records of a batch are written, with how far it has read: what the group commits."""

    @property
    def is_open(self) -> bool:
        return self._marker is not None

    def open(self, query_id: str, query_name: str) -> None:
        """Fences whoever wrote for this query before, and finds out how far it came."""
        self._marker = markers.Marker(query_id, query_name, markers.NONE)
        self._fenced = None
        self._reopen()

    def _reopen(self) -> None:
        assert self._marker is not None, "open() comes before write()"
        markers.ensure_topic(self._cluster, self._marker_topic)
        # In this order: the marker counts only when everything that was ever written before is decided.
        self._transaction.initialise()
        query_id = self._marker.query_id
        self._marker_place = markers.place_of(self._cluster, self._marker_topic, query_id)
        self.last_batch = markers.last_batch(self._cluster, self._marker_place, query_id)
        self._ready = True

    def expect(self, records: int) -> None:
        """Before the first batch: how many records it has read. Tasks that only write would come up for it alone."""
        self._expected.first(records)

    def close(self) -> None:
        self._ready = False
        self._cluster.close()

    # A batch.

    def write(
        self,
        batch: DataFrame | Unpacked,
        batch_id: int,
        offsets: Mapping[TopicPartition, int],
        origins: Origins | None = None,
    ) -> Written:
        """Takes rows that are `packed`, or are to be, and returns when the batch is out. Any exception means that
        nothing of it is, or that the marker will tell: the query has to stop, and Spark replays the batch. With
        `origins` the headers of rows may be marks."""
        self._errand = self._errand._replace(origins=origins)
        if self._fenced is not None:
            raise self._fenced  # to open again by itself would fence the successor
        if not self._ready:
            self._reopen()
        if batch_id <= self.last_batch:
            # The crash came between the commit and Spark's commits/N. The state still has to be computed.
            chunks = _in_chunks(batch)
            self._order(chunks, PackingOrder(self._errand_of(batch_id, self._writers_in(chunks.sparkSession)), 0))
            chunks.write.format("noop").mode("overwrite").save()
            return Written(batch_id, True, 0, 0, {})
        self._ready = False
        try:
            receipts = self._attempt(batch, batch_id, offsets)
        except Fenced as fenced:
            self._fenced = fenced
            raise
        self._ready = True
        self.last_batch = batch_id
        return _written(batch_id, receipts)

    def _attempt(
        self, batch: DataFrame | Unpacked, batch_id: int, offsets: Mapping[TopicPartition, int]
    ) -> list[Receipt]:
        try:
            receipts = self._produce(batch, batch_id)
            self._mark(batch_id)
            self._commit_offsets(offsets)
        except BaseException:
            self._expected.failed()
            self._abort()
            raise
        # If this fails nobody knows yet how it ended: not to be followed by an abort.
        self._commit()
        return receipts

    def _produce(self, batch: DataFrame | Unpacked, batch_id: int) -> list[Receipt]:
        session = (batch.rows if isinstance(batch, Unpacked) else batch).sparkSession
        receipts = self._delivered(batch, self._errand_of(batch_id, self._writers_in(session)))
        for receipt in receipts:
            if receipt.error:
                raise self._refusal(known(receipt.error), receipt.message or "")
        for receipt in receipts:
            self._wrote(receipt.place, receipt.records)
        records = batch.records if isinstance(batch, Unpacked) else None
        self._expected.wrote(sum(receipt.size for receipt in receipts), records)
        return receipts

    def _delivered(self, batch: DataFrame | Unpacked, errand: Errand) -> list[Receipt]:
        if isinstance(batch, Unpacked) and self._expected.fits(batch.records):
            return self._pack_here(batch, errand)
        chunks = _in_chunks(batch)
        receipts = self._write_here(chunks, errand) if self._expected.small else None
        return self._write_there(chunks, errand) if receipts is None else receipts

    def _writers_in(self, session: SparkSession) -> int:
        """Executors come and go, but a small batch is written by the driver: no reason to ask the JVM each time."""
        if not self._expected.small or not self._writers:
            check_session(session)
            self._writers = max(session.sparkContext.defaultParallelism, 1)
        return self._writers

    def _order(self, chunks: DataFrame, order: PackingOrder) -> None:
        """Holds for the batch of this thread."""
        chunks.sparkSession.sparkContext.setLocalProperty(PACKING_ORDER, order.as_text())

    def _write_there(self, chunks: DataFrame, errand: Errand) -> list[Receipt]:
        """By one task for each partition."""
        self._order(chunks, PackingOrder(errand))
        placed = chunks.repartitionById(errand.writers, "writer").sortWithinPartitions(*CHUNK_ORDER)
        return [Receipt(*row) for row in placed.mapInArrow(self._task(errand), RECEIPT_TYPE).collect()]

    def _write_here(self, chunks: DataFrame, errand: Errand) -> list[Receipt] | None:
        """By the driver: a shuffle costs more than a small batch does. None if it is not small after all."""
        self._order(chunks, PackingOrder(errand, HERE_BYTES))
        found = chunks.toArrow()
        if OVERFLOW in found.column("writer").to_pylist():
            return None
        try:
            return self._deliver(found, errand)
        except KafkaError as error:
            raise self._refusal(error.error, str(error)) from error

    def _pack_here(self, batch: Unpacked, errand: Errand) -> list[Receipt]:
        """By the driver as well, and packed by it."""
        found: list[pa.RecordBatch] = batch.rows._collect_as_arrow()  # type: ignore[operator]
        try:
            packed = pa.Table.from_batches(batch.pack.chunks(found, errand, 0, lambda: self._cluster), CHUNK)
            return self._deliver(packed, errand)
        except KafkaError as error:
            raise self._refusal(error.error, str(error)) from error

    def _deliver(self, chunks: pa.Table, errand: Errand) -> list[Receipt]:
        placed = chunks.sort_by([(name, "ascending") for name in CHUNK_ORDER])
        return self._task(errand).deliver(self._cluster, placed.to_batches()) if placed.num_rows else []

    def _task(self, errand: Errand) -> Write:
        """What writes a batch's chunks."""
        return Write(errand)

    def _mark(self, batch_id: int) -> None:
        assert self._marker is not None
        place, sender = self._marker_place, self._transaction.sender
        self._transaction.add_partitions([place])
        record = self._marker._replace(batch=batch_id).record(time.time_ns() // 1_000_000)
        batch = build_batch(
            [record],
            attributes=TRANSACTIONAL,
            producer_id=sender.producer_id,
            producer_epoch=sender.epoch,
            base_sequence=self._sequences.of(sender).get(place, 0),
        )
        delivery = Delivery(self._cluster, self._transaction.name, second=self._transaction.second)
        try:
            delivery.send(place, Encoded(1, batch))
            delivery.flush()
        except KafkaError as error:
            raise self._refusal(error.error, str(error)) from error
        self._wrote(place, 1)

    def _commit_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._group_id is not None:
            self._transaction.commit_offsets(self._group_id, *self.commits(offsets))

    def _commit(self) -> None:
        self._transaction.commit()

    def _abort(self) -> None:
        self._transaction.abort()

    # What it knows.

    def _errand_of(self, batch_id: int, writers: int) -> Errand:
        sender = self._transaction.sender
        return self._errand._replace(
            sender=sender,
            second=self._transaction.second,
            batch_id=batch_id,
            topics=self._topics.counts(),
            limits=dict(self._topics.limits),
            sequences=dict(self._sequences.of(sender)),
            writers=writers,
        )

    def _wrote(self, place: TopicPartition, records: int) -> None:
        self._sequences.wrote(self._transaction.sender, place, records)
        self._topics.saw(place.topic)

    def _refusal(self, error: Errors, message: str) -> ClientError:
        if error in FENCING:
            return self._transaction.refused()
        return KafkaError(error, f"a batch of {self._transaction.name}", message)


class _SeenTopics:
    """How many partitions they have that were written to, and what they take, so that tasks need not ask; asked for
    again from time to time."""

    __slots__ = ("_age", "_cluster", "_counts", "limits")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._counts: dict[str, int] = {}
        self.limits: dict[str, Limit] = {}
        self._age = time.monotonic()

    def counts(self) -> dict[str, int]:
        if time.monotonic() - self._age > TOPICS_AGE_S:
            found = self._cluster.metadata(sorted(self._counts)).topics
            self._counts = {topic.name: len(topic.partitions) for topic in found if topic.name and not topic.error_code}
            self.limits = limits_of(self._cluster, sorted(self._counts))
            self._age = time.monotonic()
        return self._counts

    def saw(self, topic: str) -> None:
        if topic not in self._counts:
            self._counts[topic] = len(self._cluster.partitions(topic))
            self.limits |= limits_of(self._cluster, [topic])


def _written(batch_id: int, receipts: list[Receipt]) -> Written:
    partitions = {receipt.place: receipt.records for receipt in receipts}
    return Written(batch_id, False, sum(partitions.values()), sum(receipt.size for receipt in receipts), partitions)


_TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "src_partition": "int",
    "src_offset": "bigint",
    "seq": "int",
}


def packed(rows: DataFrame, dropped: Callable[[dict[str, int]], None] | None = None) -> DataFrame:
    """Rows as the sink takes them. They have the columns key, value, topic, and if wanted partition, headers, timestamp
    (ms, or a Spark timestamp) and for the order inside a partition src_partition, src_offset, seq; or whoever made them
    in Python has packed them already. `dropped`: see `Pack`. Raises ValueError for others."""
    return rows if are_packed(rows) else kafka_rows(rows).mapInArrow(Pack(dropped), CHUNK_TYPE)


def are_packed(rows: DataFrame) -> bool:
    return list(rows.columns) == list(CHUNK.names)


def _in_chunks(batch: DataFrame | Unpacked) -> DataFrame:
    return batch.rows.mapInArrow(batch.pack, CHUNK_TYPE) if isinstance(batch, Unpacked) else batch


def kafka_rows(rows: DataFrame) -> DataFrame:
    """The columns that `packed` tells of, as they have to be for a `Pack`. Raises ValueError."""
    kinds = dict(rows.dtypes)
    if "value" not in kinds or "topic" not in kinds:
        raise ValueError(f"a row needs the columns `value` and `topic`; these are there: {', '.join(rows.columns)}")
    columns: list[Column] = [] if "key" in kinds else [F.lit(None).cast("binary").alias("key")]
    for name, kind in kinds.items():
        if name in _TYPES:
            columns.append(_as_type(name, kind, _TYPES[name]))
        elif name == "timestamp":
            columns.append(_millis(kind))
        elif name == "headers":
            columns.append(without_null_headers(_as_type(name, kind, HEADERS_TYPE)))
    return rows.select(*columns)


def _as_type(name: str, kind: str, wanted: str) -> Column:
    if kind == wanted:
        return F.col(name)
    if wanted == "binary" and kind not in ("string", "void"):
        raise ValueError(
            f"the column `{name}` is {kind}: Kafka's keys and values are bytes, so cast it to string first"
        )
    return F.col(name).cast(named(wanted)).alias(name)


def _millis(kind: str) -> Column:
    column = F.col("timestamp")
    if kind in ("timestamp", "timestamp_ntz"):
        column = F.unix_millis(column.cast("timestamp"))
    return column.cast(named("bigint")).alias("timestamp")
