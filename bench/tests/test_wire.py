"""The hand-written frames, against the record reader and hand-written replies."""

from bench.wire import (
    OFFSET_COMMIT_VERSION,
    Partition,
    Produced,
    committed_errors,
    metadata_brokers,
    metadata_partitions,
    offset_commit_request,
    one_record_batch,
    produced,
)
from ottla.protocol import batch
from ottla.protocol import messages as m
from ottla.protocol.frames import RequestHeader, decode_request_header
from ottla.protocol.records import read_records


def test_the_batch_is_one_that_a_broker_accepts() -> None:
    built = one_record_batch(b"x" * 100)
    header = batch.read_header(built)
    assert header.size == len(built)
    assert batch.computed_crc(built) == header.crc
    assert [(record.offset, record.key, record.value) for record in read_records(built)] == [(0, None, b"x" * 100)]


def test_a_produce_reply_is_read_to_its_error_and_offset() -> None:
    reply = "0002066669727374020000000000000000000000000001ffffffffffffffff0000000000000000010000000000000000"
    assert produced(bytes.fromhex(reply)) == Produced(0, 1)
    refused = "000206666972737402000000000003ffffffffffffffffffffffffffffffffffffffffffffffff010000000000000000"
    assert produced(bytes.fromhex(refused)) == Produced(3, -1)


def test_every_partition_of_a_metadata_reply_is_read() -> None:
    partition = "0000{:08x}0000000100000001000000010000000100000001"
    topic = "00000001610000000002" + partition.format(0) + partition.format(1)
    reply = "00000000000000010000000100016800002384ffffffff0000000100000001" + topic
    assert metadata_partitions(bytes.fromhex(reply)) == [
        Partition("a", 0, 0, 1, (1,)),
        Partition("a", 1, 0, 1, (1,)),
    ]
    assert metadata_brokers(bytes.fromhex(reply)) == [1]


def test_a_commit_holds_every_partition_and_nobody() -> None:
    frame = offset_commit_request("g", "t", [7, 8])
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, pos = decode_request_header(frame[4:])
    assert header == RequestHeader(8, OFFSET_COMMIT_VERSION, 1, "bench")
    request, end = m.OffsetCommitRequest.DECODERS[OFFSET_COMMIT_VERSION](frame[4:], pos)
    kind = m.OffsetCommitRequest
    assert end == len(frame) - 4
    partitions = [
        kind.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for index, offset in enumerate([7, 8])
    ]
    assert request == kind(
        group_id="g",
        topics=[kind.OffsetCommitRequestTopic(name="t", partitions=partitions)],
    )


def test_a_commit_reply_tells_the_error_of_each_partition() -> None:
    kind = m.OffsetCommitResponse
    partitions = [
        kind.OffsetCommitResponsePartition(partition_index=0),
        kind.OffsetCommitResponsePartition(partition_index=1, error_code=16),
    ]
    reply = kind(topics=[kind.OffsetCommitResponseTopic(name="t", partitions=partitions)])
    assert committed_errors(b"\0" + reply.encode(OFFSET_COMMIT_VERSION)) == [0, 16]
