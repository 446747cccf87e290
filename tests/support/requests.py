"""Requests that many wire tests send, with what does not matter to them filled in."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.batch import read_header
from ottla.protocol.records import NewRecord, Record, build_batch, read_records
from tests.support.patience import PATIENCE_MS
from tests.support.wire import Deadline, Wire, latest

NOON = 1_700_000_000_000
ZERO_ID = bytes(16)


def records(count: int, *, size: int = 10, start: int = NOON, step: int = 1) -> list[NewRecord]:
    return [NewRecord(f"k{i}".encode(), f"{i:0{size}}".encode(), start + i * step) for i in range(count)]


def batch(count: int = 1, *, start: int = NOON, **options: Any) -> bytes:
    """One batch; see build_batch for the options."""
    return bytes(build_batch(records(count, start=start), **options))


def create_topic_request(
    topic: str, partitions: int = 1, configs: Mapping[str, str | None] | None = None, replication_factor: int = 1
) -> m.CreateTopicsRequest.CreatableTopic:
    return m.CreateTopicsRequest.CreatableTopic(
        name=topic,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[
            m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
            for name, value in (configs or {}).items()
        ],
    )


def create_topic(wire: Wire, topic: str, partitions: int = 1, configs: Mapping[str, str | None] | None = None) -> bytes:
    """Creates it, waits until every partition has a leader, returns its id."""
    request = m.CreateTopicsRequest(topics=[create_topic_request(topic, partitions, configs)], timeout_ms=PATIENCE_MS)
    (created,) = wire.ask(request).topics
    assert created.error_code == 0, created
    return wait_for_topic(wire, topic, partitions)


def describe_topic(wire: Wire, topic: str) -> Any:
    request = m.MetadataRequest(
        topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    (described,) = wire.ask(request).topics
    return described


def wait_for_topic(wire: Wire, topic: str, partitions: int = 1) -> bytes:
    deadline = Deadline(f"a leader for {partitions} partitions of {topic}")
    while True:
        described = describe_topic(wire, topic)
        if len(described.partitions) == partitions and all(
            part.error_code == 0 and part.leader_id >= 0 for part in described.partitions
        ):
            break
        deadline.check(described)
    # Kafka's metadata may name a leader a moment before that leader knows.
    places = [m.ListOffsetsRequest.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(partitions)]
    asked = m.ListOffsetsRequest(
        replica_id=-1, topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=places)]
    )
    while any(part.error_code for part in wire.ask(asked).topics[0].partitions):
        deadline.check("a leader that does not know yet")
    topic_id: bytes = described.topic_id
    return topic_id


def metadata_end(wire: Wire) -> int:
    """The offset up to which the metadata log is committed."""
    asked = m.DescribeQuorumRequest(
        topics=[
            m.DescribeQuorumRequest.TopicData(
                topic_name="__cluster_metadata",
                partitions=[m.DescribeQuorumRequest.PartitionData(partition_index=0)],
            )
        ]
    )
    return int(wire.ask(asked).topics[0].partitions[0].high_watermark)


def settle(wire: Wire) -> None:
    """Waits until the broker knows all that its controller has committed so far."""
    committed = metadata_end(wire)
    hello = m.ApiVersionsRequest(client_software_name="settle", client_software_version="1")
    deadline = Deadline(f"metadata up to {committed}")
    # The epoch of the features is the offset up to which the broker has read the metadata log.
    while (seen := wire.ask(hello).finalized_features_epoch) < committed - 1:
        deadline.check(seen)


def delete_topic(wire: Wire, topic: str) -> None:
    state = m.DeleteTopicsRequest.DeleteTopicState(name=topic)
    (answer,) = wire.ask(m.DeleteTopicsRequest(topics=[state], timeout_ms=PATIENCE_MS)).responses
    assert answer.error_code == 0, answer
    deadline = Deadline(f"the end of {topic}")
    while describe_topic(wire, topic).error_code == 0:
        deadline.check()


def produce_request(
    topic: str | bytes, data: bytes | None, *, partition: int = 0, acks: int = -1, version: int = latest(0)
) -> m.ProduceRequest:
    """`topic` is a name, or an id as of version 13."""
    part = m.ProduceRequest.PartitionProduceData(index=partition, records=data)
    return m.ProduceRequest(
        acks=acks,
        timeout_ms=PATIENCE_MS,
        topic_data=[
            m.ProduceRequest.TopicProduceData(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else ZERO_ID,
                partition_data=[part],
            )
        ],
    )


NAMED_PRODUCE = 12
"""The last version of Produce that names its topics."""
NAMED_FETCH = 12
"""The same for Fetch."""


def produce(
    wire: Wire,
    topic: str | bytes,
    data: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int | None = None,
) -> Any:
    """The partition's part of the answer."""
    if version is None:
        version = NAMED_PRODUCE if isinstance(topic, str) else latest(0)
    answer = wire.ask(produce_request(topic, data, partition=partition, acks=acks), version)
    ((part,),) = [response.partition_responses for response in answer.responses]
    return part


def produced(wire: Wire, topic: str | bytes, data: bytes, **options: Any) -> int:
    """The base offset of a batch that must be taken."""
    part = produce(wire, topic, data, **options)
    assert part.error_code == 0, part
    return int(part.base_offset)


def fetch_partition(
    partition: int = 0, offset: int = 0, *, max_bytes: int = 1_000_000, leader_epoch: int = -1
) -> m.FetchRequest.FetchPartition:
    return m.FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=leader_epoch
    )


def fetch_request(
    topics: Mapping[str | bytes, Sequence[m.FetchRequest.FetchPartition]], **options: Any
) -> m.FetchRequest:
    """A topic is a name, or an id as of version 13. Answers at once unless told otherwise."""
    return m.FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 50_000_000} | options,
        topics=[
            m.FetchRequest.FetchTopic(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else ZERO_ID,
                partitions=list(partitions),
            )
            for topic, partitions in topics.items()
        ],
    )


def fetch(
    wire: Wire,
    topic: str | bytes,
    offset: int = 0,
    *,
    partition: int = 0,
    max_bytes: int = 1_000_000,
    version: int | None = None,
    **options: Any,
) -> Any:
    """The partition's part of the answer to a fetch without session."""
    if version is None:
        version = NAMED_FETCH if isinstance(topic, str) else latest(1)
    request = fetch_request({topic: [fetch_partition(partition, offset, max_bytes=max_bytes)]}, **options)
    ((part,),) = [response.partitions for response in wire.ask(request, version).responses]
    return part


def wait_until_stable(wire: Wire, topic: str, partition: int = 0) -> None:
    """Waits for the markers of transactions that have ended: that they end is answered before these are written."""
    deadline = Deadline(f"the last markers in {topic}-{partition}")
    while True:
        part = fetch(wire, topic, partition=partition, max_bytes=1, isolation_level=1)
        if not part.error_code and part.last_stable_offset == part.high_watermark:
            return
        deadline.check(part)


def batches_in(data: bytes | memoryview | None) -> list[bytes]:
    """The whole batches in what a fetch returned."""
    rest = bytes(data or b"")
    found = []
    while len(rest) >= 61:
        size = read_header(rest).size
        if size > len(rest):
            break
        found.append(rest[:size])
        rest = rest[size:]
    return found


def records_in(data: bytes | memoryview | None) -> list[Record]:
    return [record for one in batches_in(data) for record in read_records(one)]


def list_offset(wire: Wire, topic: str, timestamp: int, *, partition: int = 0, version: int | None = None) -> Any:
    """The partition's part of the answer."""
    place = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = m.ListOffsetsRequest(
        replica_id=-1, topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[place])]
    )
    ((part,),) = [answer.partitions for answer in wire.ask(request, version).topics]
    return part


def delete_records(wire: Wire, topic: str, before: int, *, partition: int = 0, version: int | None = None) -> Any:
    place = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=before)
    request = m.DeleteRecordsRequest(
        topics=[m.DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[place])], timeout_ms=PATIENCE_MS
    )
    ((part,),) = [answer.partitions for answer in wire.ask(request, version).topics]
    return part


def producer_id(wire: Wire) -> tuple[int, int]:
    """A fresh id for an idempotent producer, and its epoch."""
    deadline = Deadline("a producer id")
    while True:
        answer = wire.ask(m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
        if answer.error_code == 0:
            return answer.producer_id, answer.producer_epoch
        assert answer.error_code == 14, answer  # a fresh Kafka fetches its first block of ids
        deadline.check(answer)
