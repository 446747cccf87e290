"""Records into topics, inside a transaction that somebody else ends: by the task itself, several requests under way.

One writer for each producer id, so sequence numbers are counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.client.blocking.cluster import Cluster
from ottla.connect.jobs.internal_topics import ensure
from ottla.connect.jobs.raw_record import RawRecord
from ottla.connect.jobs.sizes import ASKED_FROM, DEFAULT, Sizes, size_of
from ottla.connect.spi import Copies, Texts
from ottla.connect.topic_creation import CreationRule
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.delivery import Delivery
from ottla.pipelines.sink.encoding import Rows, binary, encode_batches, encode_headers, next_sequence
from ottla.pipelines.sink.packing import Packer, Topics, chunks_of, merged
from ottla.pipelines.sink.transaction import Transaction
from ottla.pipelines.sink.writer import Errand
from ottla.pipelines.source.columns import HEADERS_TYPE

RUN_BYTES: Final = 4_000_000
"""Records without keys go to one partition for so long, then to the next: batches stay large, no partition starves."""

ROWS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
        ("headers", HEADERS_TYPE),
    ]
)


class Outgoing:
    """`send` any number of times, then `flush`. Raises ClientError."""

    __slots__ = ("_cluster", "_delivery", "_errand", "_packer", "_sequences", "_sizes", "_spread", "_topics", "topics")

    def __init__(
        self, cluster: Cluster, errand: Errand, rules: Sequence[CreationRule] = (), sizes: Sizes | None = None
    ) -> None:
        """`rules`: how topics are made that are not there. `sizes`: what is known of them already."""
        self._cluster = cluster
        self._errand = errand
        self._delivery = Delivery(cluster, errand.transactional_id, second=errand.second)
        self._sizes = Sizes(cluster) if sizes is None else sizes
        self._topics = _Asked(cluster, errand.topics, rules)
        self._spread = errand.batch_id
        """Small batches shall not all go to the first partition."""
        self._packer = Packer(self._topics, writers=1, task=0, spread=errand.batch_id)
        self._sequences = dict(errand.sequences)
        self.topics: dict[str, int] = {}
        """Records by topic."""

    def too_large(self, record: RawRecord) -> str:
        """Why its topic will not take it, alone in a batch and compressed as it will be; empty if it will."""
        size = size_of(record)
        if size < ASKED_FROM:
            return ""
        self._topics.count(record.topic)  # made if it is not there
        most = self._sizes.exceeded(record.topic, size)
        if most is not None and self._errand.codec:
            size = self._packed(record)
            most = self._sizes.exceeded(record.topic, size)
        if most is None:
            return ""
        return f"it takes {size:,} bytes in topic {record.topic}, whose max.message.bytes is {most:,}"

    def take_all(self, topic: str, *columns: pa.Array) -> bool:
        """Whether there is none among many that may be too large: one by one it is found which."""
        largest = sum(pc.max(pc.binary_length(column)).as_py() or 0 for column in columns)
        if largest < ASKED_FROM:
            return True
        self._topics.count(topic)
        return self._sizes.exceeded(topic, largest + size_of(RawRecord(None, None, topic))) is None

    def _packed(self, record: RawRecord) -> int:
        told = [[{"key": name, "value": value} for name, value in record.headers] or None]
        rows = Rows(
            pa.array([record.key], pa.binary()),
            pa.array([record.value], pa.binary()),
            encode_headers(pa.array(told, HEADERS_TYPE)),
            np.zeros(1, np.int64),
        )
        (alone,) = encode_batches(rows, self._errand.sender, 0, codec=self._errand.codec)
        return len(alone.data)

    def send(self, records: Iterable[RawRecord]) -> None:
        columns = list(zip(*records, strict=True))
        if not columns:
            return
        *plain, headers = columns
        told = [[{"key": name, "value": value} for name, value in each] or None for each in headers]
        arrays = [pa.array(column, kind.type) for column, kind in zip((*plain, told), ROWS, strict=True)]
        self.send_rows(pa.RecordBatch.from_arrays(arrays, schema=ROWS))

    def send_values(self, topic: str, values: pa.Array, timestamp_ms: int) -> None:
        """Without keys: no object is made for any of them, and none is moved. A run of them goes to one partition, the
        next run to the next."""
        if not len(values):
            return
        partitions = self._topics.count(topic)
        bytes_of = binary(values)
        step = max(1, len(bytes_of) * RUN_BYTES // max(bytes_of.nbytes, 1))
        for start in range(0, len(bytes_of), step):
            run = bytes_of.slice(start, step)
            place = TopicPartition(topic, self._spread % partitions)
            self._spread += 1
            self._announce(place)
            self._encode(place, Rows(pa.nulls(len(run), pa.binary()), run, None, np.full(len(run), timestamp_ms)))

    def send_copies(self, copies: Copies) -> None:
        """All to the partition that they name."""
        if not len(copies.values):
            return
        rows = Rows(
            binary(copies.keys), binary(copies.values), encode_headers(copies.headers), copies.timestamps.to_numpy()
        )
        place = TopicPartition(copies.topic, copies.partition)
        self._announce(place)
        step = max(1, len(rows.value) * RUN_BYTES // max(rows.value.nbytes, 1))
        for start in range(0, len(rows.value), step):
            self._encode(place, rows.slice(start, min(start + step, len(rows.value))))

    def send_texts(self, texts: Texts, timestamp_ms: int) -> None:
        count = len(texts.values)
        arrays = [
            pa.array(texts.keys, pa.binary()),
            pa.array(texts.values, pa.binary()),
            pa.repeat(pa.scalar(texts.topic, pa.string()), count),
            pa.nulls(count, pa.int32()),
            pa.repeat(pa.scalar(timestamp_ms, pa.int64()), count),
            pa.nulls(count, HEADERS_TYPE),
        ]
        self.send_rows(pa.RecordBatch.from_arrays(arrays, schema=ROWS))

    def send_rows(self, rows: pa.RecordBatch) -> None:
        errand = self._errand
        for chunk in self._packer.pack([rows]):
            for place, chunks in groupby(chunks_of([chunk]), key=lambda each: each.place):
                self._announce(place)
                for portion in merged(chunks, 4 * errand.max_batch_bytes):
                    self._encode(place, portion)

    def _encode(self, place: TopicPartition, portion: Rows) -> None:
        errand = self._errand
        sequence = self._sequences.get(place, 0)
        max_bytes = self._max_bytes(place.topic, portion)
        for encoded in encode_batches(portion, errand.sender, sequence, max_bytes=max_bytes, codec=errand.codec):
            self._delivery.send(place, encoded)
            sequence = next_sequence(sequence, encoded.records)
            self.topics[place.topic] = self.topics.get(place.topic, 0) + encoded.records
        self._sequences[place] = sequence

    def _max_bytes(self, topic: str, portion: Rows) -> int:
        """Of a batch."""
        if portion.key.nbytes + portion.value.nbytes < ASKED_FROM:
            return self._errand.max_batch_bytes
        return min(self._errand.max_batch_bytes, self._sizes.most(topic) or DEFAULT)

    def flush(self) -> None:
        """Returns when all is acknowledged."""
        self._delivery.flush()

    @property
    def written(self) -> dict[TopicPartition, int]:
        """Records by partition, for the sequence numbers of the next transaction."""
        return {place: delivered.records for place, delivered in self._delivery.delivered.items()}

    @property
    def first_offsets(self) -> dict[tuple[str, int], int]:
        """Of what was acknowledged, by partition; those that the broker no longer knew are left out."""
        return {
            (place.topic, place.partition): delivered.first_offset
            for place, delivered in self._delivery.delivered.items()
            if delivered.first_offset >= 0
        }

    def _announce(self, place: TopicPartition) -> None:
        if not self._errand.second and place not in self._delivery.delivered:
            joined = Transaction(self._cluster, self._errand.transactional_id, timeout_ms=0)
            joined.sender = self._errand.sender
            joined.add_partitions([place])


class _Asked(Topics):
    __slots__ = ("_cluster", "_rules")

    def __init__(self, cluster: Cluster, counts: Mapping[str, int], rules: Sequence[CreationRule]) -> None:
        super().__init__(counts)
        self._cluster = cluster
        self._rules = rules

    def ask(self, topic: str) -> int:
        rule = next((each for each in self._rules if each.matches(topic)), None)
        if rule is not None:
            ensure(self._cluster, topic, rule.partitions, rule.replication, rule.configs)
        return len(self._cluster.partitions(topic, auto_create=True))
