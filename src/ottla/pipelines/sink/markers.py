"""The batch marker: which micro-batch of a query is out. Written inside the batch's own transaction.

Spark writes commits/N after the sink has committed; a crash in between makes it replay a batch whose output is there
already. The marker tells. It is keyed by Spark's query id, which is new with each fresh checkpoint: keyed by name, an
application that was reset would find the marker of its former life and write nothing.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from ottla.client import admin
from ottla.client.blocking.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.offsets import EARLIEST, list_offsets
from ottla.client.partitioner import partition_of_key
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.decided import decided_records
from ottla.protocol.records import NewRecord

NONE: Final = -1
"""No batch is out."""
TOPIC_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # The newest segment is never compacted and has to be read whole at each start: it must stay small.
    "segment.bytes": str(4 << 20),
}


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
    """The last batch of the query that was committed, or NONE. All transactions of this query must be decided. A
    tombstone, which `streams reset` writes, says NONE."""
    key = query_id.encode()
    found = decided_records(cluster, place, lambda each: each == key)
    return int(json.loads(found[-1].value)["batch"]) if found and found[-1].value is not None else NONE
