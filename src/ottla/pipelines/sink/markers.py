"""The batch marker: which micro-batch of a query is out. Written inside the batch's own transaction.

Spark writes commits/N after the sink has committed; a crash in between makes it replay a batch whose output is there
already. The marker tells. It is keyed by Spark's query id, which is new with each fresh checkpoint: keyed by name, an
application that was reset would find the marker of its former life and write nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.client import admin
from ottla.client.batches import readable_batches
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError, known
from ottla.client.fetching import LAST_BY_NAME
from ottla.client.offsets import EARLIEST, LATEST, READ_UNCOMMITTED, Found, list_offsets
from ottla.client.partitioner import partition_of_key
from ottla.client.routing import Outcomes, Routing, Work, at_leaders
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.records import NewRecord, read_records

NONE: Final = -1
"""No batch is out."""
TOPIC_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # The newest segment is never compacted and has to be read whole at each start: it must stay small.
    "segment.bytes": str(4 << 20),
}
_FETCH_BYTES: Final = 1 << 20
_WAIT_MS: Final = 100


class Marker(NamedTuple):
    query_id: str
    query_name: str
    batch: int

    def record(self, now_ms: int) -> NewRecord:
        value = {"version": 1, "batch": self.batch, "query": self.query_name}
        return NewRecord(self.query_id.encode(), json.dumps(value).encode(), now_ms)


def ensure_topic(cluster: Cluster, topic: str) -> None:
    """Creates the topic unless it is there, and returns when its leader knows of it."""
    (found,) = cluster.metadata([topic]).topics
    if found.error_code:
        new = admin.NewTopic(topic, partitions=1, replication_factor=-1, configs=TOPIC_CONFIGS)
        outcome = admin.create_topics(cluster, [new])[topic]
        if isinstance(outcome, KafkaError) and outcome.error != Errors.TOPIC_ALREADY_EXISTS:
            raise outcome
    place = TopicPartition(topic, 0)
    deadline = cluster.deadline()
    while isinstance(answer := list_offsets(cluster, {place: EARLIEST})[place], KafkaError):
        if not answer.retriable:
            raise answer
        deadline.pause(f"waiting for {topic}", answer)
        cluster.metadata([topic])


def place_of(cluster: Cluster, topic: str, query_id: str) -> TopicPartition:
    partitions = cluster.partitions(topic, auto_create=False)
    return TopicPartition(topic, partition_of_key(query_id.encode(), len(partitions)))


def last_batch(cluster: Cluster, place: TopicPartition, query_id: str) -> int:
    """The last batch of the query that was committed, or NONE. All transactions of this query must be decided.

    Read up to the end of the log and not only to the last stable offset: another query's transaction that hangs open
    in front must not hide what this one has committed. So commit and abort are looked up here.
    """
    first = _offset(list_offsets(cluster, {place: EARLIEST})[place])
    end = _offset(list_offsets(cluster, {place: LATEST}, isolation=READ_UNCOMMITTED)[place])
    key = query_id.encode()
    open_ones: dict[int, int] = {}
    found = NONE
    deadline = cluster.deadline()
    position = first
    while position < end:
        for header, batch in _fetch(cluster, place, position):
            position = max(position, header.last_offset + 1)
            if header.is_control:
                decided = open_ones.pop(header.producer_id, None)
                found = decided if decided is not None and _is_commit(batch) else found
                continue
            marked = _marked(batch, key)
            if marked is not None and header.is_transactional:
                open_ones[header.producer_id] = marked
            elif marked is not None:
                found = marked
        if position < end and deadline.left() <= 0:
            deadline.pause(f"reading {place}", KafkaError(Errors.REQUEST_TIMED_OUT, str(place)))
    return found


def _marked(batch: memoryview, key: bytes) -> int | None:
    """What the batch says about the key: None for nothing. A tombstone, which `streams reset` writes, says NONE."""
    said: int | None = None
    for record in read_records(batch):
        if record.key == key:
            said = NONE if record.value is None else int(json.loads(record.value)["batch"])
    return said


def _is_commit(batch: memoryview) -> bool:
    """A control record's key is int16 version, int16 type; type 1 commits."""
    marker = next(iter(read_records(batch)), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == b"\0\1"


def _fetch(cluster: Cluster, place: TopicPartition, position: int) -> list[tuple[b.BatchHeader, memoryview]]:
    routing = cluster.routing
    work = Work(messages.FetchRequest, messages.FetchResponse, partial(_request, routing, position), _fetched)
    outcome = cluster.run(at_leaders(routing, [place], work, f"reading {place}"))[place]
    if isinstance(outcome, KafkaError):
        raise outcome
    found: list[tuple[b.BatchHeader, memoryview]] = []
    at = 0
    # Control batches come as None from there, and here they matter: it only checks and cuts.
    for header, _ in readable_batches(str(place), outcome):
        if header.last_offset >= position:
            found.append((header, outcome[at : at + header.size]))
        at += header.size
    return found


def _request(routing: Routing, position: int, places: Sequence[TopicPartition], version: int) -> messages.FetchRequest:
    (place,) = places
    kind = messages.FetchRequest
    topic = (
        kind.FetchTopic(topic_id=routing.topic_ids[place.topic])
        if version > LAST_BY_NAME
        else kind.FetchTopic(topic=place.topic)
    )
    topic.partitions.append(
        kind.FetchPartition(partition=place.partition, fetch_offset=position, partition_max_bytes=_FETCH_BYTES)
    )
    return kind(max_wait_ms=_WAIT_MS, min_bytes=1, max_bytes=_FETCH_BYTES, topics=[topic])


def _fetched(response: messages.FetchResponse, places: Sequence[TopicPartition]) -> Outcomes[memoryview]:
    (place,) = places
    data = response.responses[0].partitions[0] if not response.error_code else None
    error = known(response.error_code or (data.error_code if data is not None else 0))
    if error or data is None:
        return {place: KafkaError(error, str(place))}
    return {place: memoryview(data.records or b"")}


def _offset(outcome: Found | KafkaError) -> int:
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome.offset
