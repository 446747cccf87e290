"""What is committed in a partition of a small compacted topic, up to its very end.

Not only to the last stable offset: a transaction of somebody else's that hangs open in front must not hide what this
one has committed. So commit and abort are looked up here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla.client.batches import readable_batches
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError, known
from ottla.client.fetching import LAST_BY_NAME
from ottla.client.offsets import EARLIEST, LATEST, READ_UNCOMMITTED, Found, list_offsets
from ottla.client.routing import Outcomes, Routing, Work, at_leaders
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol import messages
from ottla.protocol.records import Record, read_records

_FETCH_BYTES: Final = 1 << 20
_WAIT_MS: Final = 100


def decided_records(cluster: Cluster, place: TopicPartition, wanted: Callable[[bytes | None], bool]) -> list[Record]:
    """Committed records with keys that are `wanted`, in the order in which they were committed. What is open belongs to
    others: all transactions of who asks must be decided."""
    offsets = list_offsets(cluster, {place: EARLIEST})
    position = _offset(offsets[place])
    end = _offset(list_offsets(cluster, {place: LATEST}, isolation=READ_UNCOMMITTED)[place])
    open_ones: dict[int, list[Record]] = {}
    found: list[Record] = []
    deadline = cluster.deadline()
    while position < end:
        for header, batch in _fetch(cluster, place, position):
            position = max(position, header.last_offset + 1)
            if header.is_control:
                decided = open_ones.pop(header.producer_id, [])
                found += decided if _is_commit(batch) else []
                continue
            records = [record for record in read_records(batch) if wanted(record.key)]
            if header.is_transactional:
                open_ones.setdefault(header.producer_id, []).extend(records)
            else:
                found += records
        if position < end and deadline.left() <= 0:
            deadline.pause(f"reading {place}", KafkaError(Errors.REQUEST_TIMED_OUT, str(place)))
    return found


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
