"""The hand-written frames, against the record reader and hand-written replies."""

from bench.wire import Partition, Produced, metadata_partitions, one_record_batch, produced
from ottla.protocol import batch
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
    assert metadata_partitions(bytes.fromhex(reply)) == [Partition("a", 0, 0, 1), Partition("a", 1, 0, 1)]
