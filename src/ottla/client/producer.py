"""A simple batching producer: records gather per partition and go out together, one request per leader at a time.

One batch of a partition is in flight at once, so order and sequence numbers need no window. With acks=all it is
idempotent: a batch repeated after a lost connection is written once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.client.cluster import Cluster, Outcomes
from ottla.client.deadline import Deadline
from ottla.client.errors import (
    ConnectionLost,
    CorruptAnswer,
    KafkaError,
    NoSuchPartition,
    RequestTooLarge,
    UnsupportedApi,
    known,
)
from ottla.client.partitioner import Sticky, partition_of_key
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.records import Header, NewRecord, build_batch

ALL: Final = -1
CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BATCH_BYTES: Final = 256 << 10
BUFFER_BYTES: Final = 4 << 20
RECORD_OVERHEAD: Final = 24
"""An estimate that only decides when a batch is full."""
ACK_TIMEOUT_MS: Final = 15_000
_SEQUENCES: Final = 1 << 31
_TOO_LARGE: Final = (Errors.MESSAGE_TOO_LARGE, Errors.RECORD_LIST_TOO_LARGE)
_SUSPICIOUS_BYTES: Final = 1 << 20
"""No broker takes less than this. A connection that broke under less broke for another reason."""
_UNLIMITED: Final = 1 << 31
_BROKER: Final = 4
_DEFAULT_SOURCE: Final = 5
_REQUEST_LIMITS: Final = ("socket.request.max.bytes", "message.max.bytes")
INIT_PRODUCER_ID_STABLE: Final = 5
"""InitProducerId v6 (KIP-939) is not stable in Kafka 4.3."""


class Delivered(NamedTuple):
    """A batch the broker has acknowledged. base_offset is -1 where it did not say (acks=0, or written before)."""

    place: TopicPartition
    base_offset: int
    records: Sequence[NewRecord]
    append_time: int
    """With LogAppendTime the broker's clock, else -1."""


class _Identity(NamedTuple):
    producer_id: int = -1
    epoch: int = -1


class _Batch(NamedTuple):
    place: TopicPartition
    records: list[NewRecord]
    base_sequence: int
    encoded: bytearray


class Producer:
    """`send` as often as needed, then `flush`. `on_delivery` hears of each acknowledged batch."""

    __slots__ = (
        "_acks", "_buffered", "_cluster", "_codec", "_identity", "_on_delivery", "_partitions", "_queues", "_sequences",
        "_sizes", "_sticky",
    )  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ALL,
        codec: int = 0,
        idempotent: bool = True,
        on_delivery: Callable[[Delivered], None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._codec = codec
        self._identity: _Identity | None = None if idempotent and acks == ALL else _Identity()
        self._on_delivery = on_delivery
        self._partitions: dict[str, list[int]] = {}
        self._sticky = Sticky()
        self._queues: dict[TopicPartition, list[NewRecord]] = {}
        self._sizes: dict[TopicPartition, int] = {}
        self._buffered = 0
        self._sequences: dict[TopicPartition, int] = {}

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Queues a record; writes when a batch or the buffer is full. Raises KafkaError when that fails."""
        place = TopicPartition(topic, self._choose(topic, key) if partition is None else partition)
        self._require_partition(place)
        stamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD
        size += sum(len(name) + len(content or b"") for name, content in headers)
        if self._sizes.get(place, 0) + size > BATCH_BYTES and place in self._queues:
            self.flush()
            self._sticky.batch_full(topic)
        self._queues.setdefault(place, []).append(NewRecord(key, value, stamp, tuple(headers)))
        self._sizes[place] = self._sizes.get(place, 0) + size
        self._buffered += size
        if self._buffered >= BUFFER_BYTES:
            self.flush()

    def _choose(self, topic: str, key: bytes | None) -> int:
        partitions = self._known_partitions(topic)
        if key is None:
            return self._sticky.choose(topic, partitions)
        return partition_of_key(key, len(partitions))

    def _known_partitions(self, topic: str) -> list[int]:
        if topic not in self._partitions:
            self._partitions[topic] = self._cluster.partitions(topic, auto_create=True)
        return self._partitions[topic]

    def _require_partition(self, place: TopicPartition) -> None:
        partitions = self._known_partitions(place.topic)
        if place.partition not in partitions:
            raise NoSuchPartition(place.topic, place.partition, len(partitions))

    def flush(self) -> None:
        """Returns when everything queued is acknowledged. On an error what was queued is gone: who sent it knows."""
        queues, self._queues, self._sizes, self._buffered = self._queues, {}, {}, 0
        chunks = {place: deque([records]) for place, records in queues.items()}
        while chunks:
            batches = {place: self._batch(place, waiting[0]) for place, waiting in chunks.items()}
            exchange = partial(self._exchange, batches)
            outcomes = self._cluster.at_leaders(list(batches), exchange, "produce", new_topics=True)
            self._settle(chunks, batches, outcomes)

    def _batch(self, place: TopicPartition, records: list[NewRecord]) -> _Batch:
        identity = self._identity
        if identity is None:
            identity = self._identity = self._new_identity()
        sequence = self._sequences.get(place, 0) if identity.producer_id >= 0 else -1
        encoded = build_batch(
            records,
            codec=self._codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
        )
        return _Batch(place, records, sequence, encoded)

    def _new_identity(self) -> _Identity:
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFFFFFF)
        deadline = self._cluster.deadline()
        while True:
            response = self._cluster.call(request, messages.InitProducerIdResponse, at_most=INIT_PRODUCER_ID_STABLE)
            if not response.error_code:
                return _Identity(response.producer_id, response.producer_epoch)
            error = KafkaError(known(response.error_code), "a producer id")
            if not error.retriable:
                raise error
            deadline.pause("getting a producer id", error)

    def _exchange(
        self, batches: dict[TopicPartition, _Batch], leader: int, places: Sequence[TopicPartition], deadline: Deadline
    ) -> Outcomes[Delivered]:
        connection = self._cluster.connection(leader, deadline)
        version = connection.version_for(messages.ProduceRequest)
        request = self._request([batches[place] for place in places], by_id=version >= 13)
        if self._acks == 0:
            connection.submit(request, deadline=deadline.end, expect_answer=False)
            return {place: Delivered(place, -1, batches[place].records, -1) for place in places}
        try:
            response = self._cluster.call_once(request, messages.ProduceResponse, deadline, broker=leader)
        except ConnectionLost:
            size = sum(len(batches[place].encoded) for place in places)
            if size < _SUSPICIOUS_BYTES or size <= (limit := self._request_limit(leader, deadline)):
                raise
            return {place: RequestTooLarge(str(place), size, limit) for place in places}
        return self._outcomes(response, batches, places)

    def _request_limit(self, leader: int, deadline: Deadline) -> int:
        """Brokers hang up on what is over their limit without a word, and would do so again and again."""
        request = messages.DescribeConfigsRequest(
            resources=[
                messages.DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_BROKER, resource_name=str(leader), configuration_keys=list(_REQUEST_LIMITS)
                )
            ]
        )
        try:
            response = self._cluster.call_once(request, messages.DescribeConfigsResponse, deadline, broker=leader)
        except UnsupportedApi:
            return _UNLIMITED
        (result,) = response.results
        found = {entry.name: entry for entry in result.configs}
        if result.error_code or any(name not in found or not found[name].value for name in _REQUEST_LIMITS):
            return _UNLIMITED
        frame, message = (found[name] for name in _REQUEST_LIMITS)
        limit = int(frame.value or 0)
        # ottla's default makes room for a larger message.max.bytes.
        return max(limit, int(message.value or 0)) if frame.config_source == _DEFAULT_SOURCE else limit

    def _request(self, batches: Sequence[_Batch], *, by_id: bool) -> messages.ProduceRequest:
        topics: dict[str, messages.ProduceRequest.TopicProduceData] = {}
        for batch in batches:
            name = batch.place.topic
            if name not in topics:
                # From v13 on a topic goes by its id alone (KIP-516).
                topics[name] = messages.ProduceRequest.TopicProduceData(
                    **({"topic_id": self._cluster.topic_ids[name]} if by_id else {"name": name})
                )
            topics[name].partition_data.append(
                messages.ProduceRequest.PartitionProduceData(index=batch.place.partition, records=batch.encoded)
            )
        return messages.ProduceRequest(acks=self._acks, timeout_ms=ACK_TIMEOUT_MS, topic_data=list(topics.values()))

    def _outcomes(
        self,
        response: messages.ProduceResponse,
        batches: dict[TopicPartition, _Batch],
        places: Sequence[TopicPartition],
    ) -> Outcomes[Delivered]:
        names = {self._cluster.topic_ids[place.topic]: place.topic for place in places}
        outcomes: Outcomes[Delivered] = {}
        for topic in response.responses:
            for partition in topic.partition_responses:
                place = TopicPartition(topic.name or names.get(topic.topic_id, ""), partition.index)
                if place not in batches:
                    raise CorruptAnswer(f"a produce response names {place}, which was not written to")
                outcomes[place] = _outcome(batches[place], partition)
        missing = [place for place in places if place not in outcomes]
        if missing:
            raise CorruptAnswer(f"a produce response says nothing about {missing[0]}")
        return outcomes

    def _settle(
        self,
        chunks: dict[TopicPartition, deque[list[NewRecord]]],
        batches: dict[TopicPartition, _Batch],
        outcomes: Outcomes[Delivered],
    ) -> None:
        """Reports what was written, splits what was too large; then raises the first failure."""
        failure: KafkaError | None = None
        for place, batch in batches.items():
            outcome = outcomes[place]
            waiting = chunks[place]
            if isinstance(outcome, Delivered):
                waiting.popleft()
                if not waiting:
                    del chunks[place]
                self._delivered(batch, outcome)
            elif outcome.error in _TOO_LARGE and len(batch.records) > 1:
                # A broker's limit may lie below BATCH_BYTES; nothing of the batch was written, its sequence is free.
                waiting.popleft()
                middle = len(batch.records) // 2
                waiting.extendleft((batch.records[middle:], batch.records[:middle]))
            else:
                failure = failure or outcome
        if failure is not None:
            raise failure

    def _delivered(self, batch: _Batch, delivered: Delivered) -> None:
        if batch.base_sequence >= 0:
            self._sequences[batch.place] = (batch.base_sequence + len(batch.records)) % _SEQUENCES
        if self._on_delivery is not None:
            self._on_delivery(delivered)


def _outcome(batch: _Batch, response: messages.ProduceResponse.PartitionProduceResponse) -> Delivered | KafkaError:
    # Written already by an attempt whose answer got lost: the broker no longer knows at which offset.
    if response.error_code == Errors.DUPLICATE_SEQUENCE_NUMBER:
        return Delivered(batch.place, -1, batch.records, -1)
    if response.error_code:
        reasons = [error.batch_index_error_message for error in response.record_errors]
        message = response.error_message or next((reason for reason in reasons if reason), None)
        return KafkaError(known(response.error_code), str(batch.place), message)
    return Delivered(batch.place, response.base_offset, batch.records, response.log_append_time_ms)
