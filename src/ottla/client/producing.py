"""What a producer keeps: records that gather per partition, sequence numbers, how batches are written. No socket here.

One batch of a partition is in flight at once, so order and sequence numbers need no window. With acks=all it is
idempotent: a batch repeated after a lost connection is written once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.client.errors import (
    ConnectionLost,
    KafkaError,
    NoSuchPartition,
    RequestTooLarge,
    Unreachable,
    UnsupportedApi,
    known,
)
from ottla.client.partitioner import Sticky, partition_of_key
from ottla.client.routing import Outcomes, Routing, Work, asking, at_leaders, call, partitions
from ottla.client.steps import NEWEST, Attempts, Steps, begin
from ottla.client.transactions import INIT_PRODUCER_ID_STABLE
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.records import NewRecord, build_batch

ALL: Final = -1
CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BATCH_BYTES: Final = 256 << 10
BUFFER_BYTES: Final = 4 << 20
RECORD_OVERHEAD: Final = 24
"""An estimate that only decides when a batch is full."""
ACK_TIMEOUT_MS: Final = 15_000
LAST_BY_NAME: Final = 12
"""From Produce v13 on a topic goes by its id alone (KIP-516)."""
FIRST_OF_SECOND: Final = 12
"""Produce from this version on adds its partitions to the transaction by itself (KIP-890)."""
_SEQUENCES: Final = 1 << 31
_TOO_LARGE: Final = (Errors.MESSAGE_TOO_LARGE, Errors.RECORD_LIST_TOO_LARGE)
_SUSPICIOUS_BYTES: Final = 1 << 20
"""No broker takes less than this. A connection that broke under less broke for another reason."""
_UNLIMITED: Final = 1 << 31
_BROKER: Final = 4
_DEFAULT_SOURCE: Final = 5
_REQUEST_LIMITS: Final = ("socket.request.max.bytes", "message.max.bytes")


class Delivered(NamedTuple):
    """A batch the broker has acknowledged. base_offset is -1 where it did not say (acks=0, or written before)."""

    place: TopicPartition
    base_offset: int
    records: Sequence[NewRecord]
    append_time: int
    """With LogAppendTime the broker's clock, else -1."""

    def offset_at(self, index: int) -> int:
        """Of the record at that place in the batch; -1 where the broker did not say."""
        return self.base_offset + index if self.base_offset >= 0 else -1

    def timestamp_of(self, record: NewRecord) -> int:
        """As it stands in the log."""
        return record.timestamp if self.append_time < 0 else self.append_time


class Identity(NamedTuple):
    producer_id: int = -1
    epoch: int = -1


class Transactional(NamedTuple):
    """Whose transaction the batches belong to."""

    name: str
    identity: Identity
    second: bool
    """The cluster has KIP-890's second part (transaction.version 2)."""


class _Batch(NamedTuple):
    place: TopicPartition
    records: list[NewRecord]
    base_sequence: int
    encoded: bytearray


class Producing:
    __slots__ = (
        "_acks", "_buffered", "_codec", "_idempotent", "_identity", "_partitions", "_queues", "_sequences", "_sizes",
        "_sticky", "on_delivery", "transaction",
    )  # fmt: skip

    def __init__(
        self,
        *,
        acks: int = ALL,
        codec: int = 0,
        idempotent: bool = True,
        on_delivery: Callable[[Delivered], None] | None = None,
    ) -> None:
        self._acks = acks
        self._codec = codec
        self._idempotent = idempotent and acks == ALL
        self._identity: Identity | None = None
        self.transaction: Transactional | None = None
        self.on_delivery = on_delivery
        self._partitions: dict[str, list[int]] = {}
        self._sticky = Sticky()
        self._queues: dict[TopicPartition, list[NewRecord]] = {}
        self._sizes: dict[TopicPartition, int] = {}
        self._buffered = 0
        self._sequences: dict[TopicPartition, int] = {}

    # Gathering.

    def known(self, topic: str) -> bool:
        return topic in self._partitions

    def learn(self, routing: Routing, topic: str) -> Steps[None]:
        self._partitions[topic] = yield from partitions.steps(routing, topic, auto_create=True)

    def place_of(self, topic: str, key: bytes | None, partition: int | None) -> TopicPartition:
        """Of a topic that is known. Raises NoSuchPartition."""
        there = self._partitions[topic]
        if partition is None:
            chosen = self._sticky.choose(topic, there) if key is None else partition_of_key(key, len(there))
            return TopicPartition(topic, chosen)
        if partition not in there:
            raise NoSuchPartition(topic, partition, len(there))
        return TopicPartition(topic, partition)

    def has_room_for(self, place: TopicPartition, record: NewRecord) -> bool:
        """False: what is gathered should be written first."""
        if self._buffered >= BUFFER_BYTES:
            return False
        if place in self._queues and self._sizes[place] + _size(record) > BATCH_BYTES:
            self._sticky.batch_full(place.topic)
            return False
        return True

    def add(self, place: TopicPartition, record: NewRecord) -> None:
        size = _size(record)
        self._queues.setdefault(place, []).append(record)
        self._sizes[place] = self._sizes.get(place, 0) + size
        self._buffered += size

    def gathered(self) -> dict[TopicPartition, int]:
        """How many records wait to be written, by partition."""
        return {place: len(records) for place, records in self._queues.items()}

    def discard(self) -> None:
        """Forgets what is gathered."""
        self._queues, self._sizes, self._buffered = {}, {}, 0

    # Writing.

    def flush(self, routing: Routing) -> Steps[dict[TopicPartition, KafkaError]]:
        """Writes everything gathered; gives the partitions of which something could not be written. What was gathered
        for those is gone: who sent it knows."""
        queues, self._queues, self._sizes, self._buffered = self._queues, {}, {}, 0
        chunks = {place: deque([records]) for place, records in queues.items()}
        failures: dict[TopicPartition, KafkaError] = {}
        try:
            while chunks:
                identity = yield from self._identify(routing)
                batches = {place: self._batch(place, waiting[0], identity) for place, waiting in chunks.items()}
                outcomes = yield from at_leaders(
                    routing, list(batches), self._work(routing, batches), "produce", new_topics=True
                )
                failures.update(self._settle(chunks, batches, outcomes))
        finally:
            if (failures or chunks) and self.transaction is None:
                # What the broker has of them is not known: the next batches start over under another identity.
                self._identity = None
                self._sequences = {}
        return failures

    def begin(self, transaction: Transactional) -> None:
        """What is written from now on belongs to it. Sequence numbers start from 0 in each epoch."""
        if self.transaction is None or self.transaction.identity != transaction.identity:
            self._sequences = {}
        self.transaction = transaction

    def _identify(self, routing: Routing) -> Steps[Identity]:
        if self.transaction is not None:
            return self.transaction.identity
        if self._identity is None:
            self._identity = (yield from new_identity(routing)) if self._idempotent else Identity()
        return self._identity

    def _batch(self, place: TopicPartition, records: list[NewRecord], identity: Identity) -> _Batch:
        sequence = self._sequences.get(place, 0) if identity.producer_id >= 0 else -1
        encoded = build_batch(
            records,
            codec=self._codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=sequence,
            attributes=b.TRANSACTIONAL if self.transaction is not None else 0,
        )
        return _Batch(place, records, sequence, encoded)

    def _work(
        self, routing: Routing, batches: dict[TopicPartition, _Batch]
    ) -> Work[messages.ProduceResponse, Delivered]:
        at_most = NEWEST if routing.ids_of(place.topic for place in batches) else LAST_BY_NAME
        if self.transaction is not None and not self.transaction.second:
            at_most = FIRST_OF_SECOND - 1
        return Work(
            messages.ProduceRequest,
            messages.ProduceResponse,
            lambda places, version: self._request(routing, [batches[place] for place in places], version),
            lambda response, places: self._outcomes(routing, response, batches, places),
            at_most,
            answered=self._acks != 0,
            explain=partial(_explain, batches),
        )

    def _request(self, routing: Routing, batches: Sequence[_Batch], version: int) -> messages.ProduceRequest:
        kind = messages.ProduceRequest
        topics: dict[str, messages.ProduceRequest.TopicProduceData] = {}
        for batch in batches:
            name = batch.place.topic
            if name not in topics:
                topics[name] = (
                    kind.TopicProduceData(topic_id=routing.topic_ids[name])
                    if version > LAST_BY_NAME
                    else kind.TopicProduceData(name=name)
                )
            topics[name].partition_data.append(
                kind.PartitionProduceData(index=batch.place.partition, records=batch.encoded)
            )
        return kind(
            transactional_id=self.transaction.name if self.transaction is not None else None,
            acks=self._acks,
            timeout_ms=ACK_TIMEOUT_MS,
            topic_data=list(topics.values()),
        )

    def _outcomes(
        self,
        routing: Routing,
        response: messages.ProduceResponse,
        batches: dict[TopicPartition, _Batch],
        places: Sequence[TopicPartition],
    ) -> Outcomes[Delivered]:
        if self._acks == 0:
            return {place: Delivered(place, -1, batches[place].records, -1) for place in places}
        names = {routing.topic_ids[place.topic]: place.topic for place in places}
        outcomes: Outcomes[Delivered] = {}
        for topic in response.responses:
            for answer in topic.partition_responses:
                place = TopicPartition(topic.name or names.get(topic.topic_id, ""), answer.index)
                outcomes[place] = outcome_of(place, batches[place].records if place in batches else (), answer)
        return outcomes

    def _settle(
        self,
        chunks: dict[TopicPartition, deque[list[NewRecord]]],
        batches: dict[TopicPartition, _Batch],
        outcomes: Outcomes[Delivered],
    ) -> dict[TopicPartition, KafkaError]:
        """Reports what was written, splits what was too large; gives what failed."""
        failures: dict[TopicPartition, KafkaError] = {}
        for place, batch in batches.items():
            outcome = outcomes[place]
            waiting = chunks[place]
            waiting.popleft()
            if isinstance(outcome, Delivered):
                self._delivered(batch, outcome)
            elif outcome.error in _TOO_LARGE and len(batch.records) > 1:
                # A broker's limit may lie below BATCH_BYTES; nothing of the batch was written, its sequence is free.
                middle = len(batch.records) // 2
                waiting.extendleft((batch.records[middle:], batch.records[:middle]))
            else:
                failures[place] = outcome
                waiting.clear()
            if not waiting:
                del chunks[place]
        return failures

    def _delivered(self, batch: _Batch, delivered: Delivered) -> None:
        if batch.base_sequence >= 0:
            self._sequences[batch.place] = (batch.base_sequence + len(batch.records)) % _SEQUENCES
        if self.on_delivery is not None:
            self.on_delivery(delivered)


def new_identity(routing: Routing) -> Steps[Identity]:
    request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFFFFFF)
    attempts = yield from begin("getting a producer id", routing.timeout_s)
    while True:
        response = yield from call(routing, request, messages.InitProducerIdResponse, at_most=INIT_PRODUCER_ID_STABLE)
        if not response.error_code:
            return Identity(response.producer_id, response.producer_epoch)
        error = KafkaError(known(response.error_code), "a producer id")
        if not error.retriable:
            raise error
        yield from attempts.again(error)


def _size(record: NewRecord) -> int:
    size = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD
    return size + sum(len(name) + len(content or b"") for name, content in record.headers)


def outcome_of(
    place: TopicPartition,
    records: Sequence[NewRecord],
    response: messages.ProduceResponse.PartitionProduceResponse,
) -> Delivered | KafkaError:
    # Written already by an attempt whose answer got lost: the broker no longer knows at which offset.
    if response.error_code == Errors.DUPLICATE_SEQUENCE_NUMBER:
        return Delivered(place, -1, records, -1)
    if response.error_code:
        reasons = [error.batch_index_error_message for error in response.record_errors]
        message = response.error_message or next((reason for reason in reasons if reason), None)
        return KafkaError(known(response.error_code), str(place), message)
    return Delivered(place, response.base_offset, records, response.log_append_time_ms)


def _explain(
    batches: dict[TopicPartition, _Batch], attempts: Attempts, leader: int, places: Sequence[TopicPartition]
) -> Steps[Outcomes[Delivered]]:
    """Brokers hang up on what is over their limit without a word, and would do so again and again."""
    size = sum(len(batches[place].encoded) for place in places)
    limit = yield from request_limit(attempts, leader, size)
    if size <= limit:
        return {}
    return {place: RequestTooLarge(str(place), size, limit) for place in places}


def request_limit(attempts: Attempts, leader: int, size: int) -> Steps[int]:
    """What a broker takes at most, asked for only if something of that size may be why it hung up."""
    if size < _SUSPICIOUS_BYTES:
        return _UNLIMITED
    kind = messages.DescribeConfigsRequest
    resource = kind.DescribeConfigsResource(_BROKER, str(leader), list(_REQUEST_LIMITS))
    ask = asking(kind(resources=[resource]), messages.DescribeConfigsResponse, broker=leader)
    try:
        response = yield from attempts.ask(ask, messages.DescribeConfigsResponse)
    except (UnsupportedApi, ConnectionLost, Unreachable):
        return _UNLIMITED
    (result,) = response.results
    found = {entry.name: entry for entry in result.configs}
    if result.error_code or any(name not in found or not found[name].value for name in _REQUEST_LIMITS):
        return _UNLIMITED
    frame, message = (found[name] for name in _REQUEST_LIMITS)
    limit = int(frame.value or 0)
    # ottla's default makes room for a larger message.max.bytes.
    return max(limit, int(message.value or 0)) if frame.config_source == _DEFAULT_SOURCE else limit
