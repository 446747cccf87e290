"""Record batches, beside those of kafka-python and aiokafka, in both directions and with every codec."""

import warnings
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol import batch as b
from ottla.protocol.compression import CODECS
from ottla.protocol.records import CorruptBatch, NewRecord, Record, build_batch, read_records
from ottla.protocol.varint import Truncated, read_signed, read_unsigned, write_signed, write_unsigned
from tests.support.examples import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import default_records as kafka_records

BUILDERS = {"kafka-python": kafka_records, "aiokafka": aiokafka_records}
NOW = 1_700_000_000_000

new_records = st.lists(
    st.builds(
        NewRecord,
        key=st.none() | st.binary(max_size=20),
        value=st.none() | st.binary(max_size=300),
        timestamp=st.integers(NOW - 10_000, NOW + 10_000),
        headers=st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


def as_read(records: list[NewRecord], base_offset: int = 0) -> list[Record]:
    return [Record(base_offset + i, r.timestamp, r.key, r.value, tuple(r.headers)) for i, r in enumerate(records)]


@settings(max_examples=examples(60), deadline=None)
@given(new_records, st.sampled_from(sorted(CODECS)), st.integers(0, 1 << 40))
def test_a_batch_is_read_as_it_was_built(records: list[NewRecord], codec: int, base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, codec=codec, producer_id=7, producer_epoch=1, base_sequence=3)
    header = b.read_header(batch)
    assert list(read_records(batch)) == as_read(records, base_offset)
    assert (header.size, header.crc, header.codec) == (len(batch), b.computed_crc(batch), codec)
    assert (header.record_count, header.last_offset) == (len(records), base_offset + len(records) - 1)
    assert header.max_timestamp == max(r.timestamp for r in records)


@pytest.mark.parametrize("client", BUILDERS)
@settings(max_examples=examples(40), deadline=None)
@given(records=new_records, codec=st.sampled_from(sorted(CODECS)))
def test_clients_read_our_batches(client: str, records: list[NewRecord], codec: int) -> None:
    batch = BUILDERS[client].DefaultRecordBatch(bytes(build_batch(records, codec=codec)))
    assert batch.validate_crc()
    read = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert read == [tuple(record) for record in as_read(records)]


@pytest.mark.parametrize("client", BUILDERS)
@settings(max_examples=examples(40), deadline=None)
@given(records=new_records, codec=st.sampled_from(sorted(CODECS)))
def test_we_read_the_batches_of_clients(client: str, records: list[NewRecord], codec: int) -> None:
    builder: Any = BUILDERS[client].DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    for offset, r in enumerate(records):
        builder.append(offset, timestamp=r.timestamp, key=r.key, value=r.value, headers=list(r.headers))
    batch = bytes(builder.build())
    assert b.read_header(batch).crc == b.computed_crc(batch)
    assert list(read_records(batch)) == as_read(records)
    if codec == 0:
        assert batch == bytes(build_batch(records, leader_epoch=b.read_header(batch).leader_epoch))


def test_what_a_leader_patches_is_not_under_the_crc() -> None:
    batch = build_batch([NewRecord(b"k", b"v", NOW)])
    b.assign(batch, 1 << 40, 12)
    header = b.read_header(batch)
    assert (header.base_offset, header.leader_epoch, header.crc) == (1 << 40, 12, b.computed_crc(batch))
    assert b.read_frame(batch) == (1 << 40, len(batch))


def test_append_time_is_stamped_on_every_record() -> None:
    batch = build_batch([NewRecord(b"k", b"v", NOW), NewRecord(b"k", b"v", NOW + 5)])
    b.stamp_append_time(batch, NOW + 99)
    assert b.read_header(batch).crc == b.computed_crc(batch)
    assert [record.timestamp for record in read_records(batch)] == [NOW + 99, NOW + 99]


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_a_batch_cut_at_any_byte_is_corrupt(codec: int) -> None:
    batch = bytes(build_batch([NewRecord(b"key", b"value" * 10, NOW, (("h", b"x"),))] * 3, codec=codec))
    for cut in range(len(batch)):
        with pytest.raises(CorruptBatch):
            list(read_records(batch[:cut]))


@pytest.mark.parametrize("count", [-1, 0, 2, 4, 0x7FFFFFFF])
def test_a_count_that_lies_is_corrupt(count: int) -> None:
    header, batch = three_records()
    lying = b.build_header(header._replace(record_count=count)) + batch[b.HEADER_SIZE :]
    with pytest.raises(CorruptBatch):
        list(read_records(lying))


def three_records() -> tuple[b.BatchHeader, bytearray]:
    batch = build_batch([NewRecord(b"key", b"value", NOW)] * 3)
    return b.read_header(batch), batch


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=80), st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7]), st.integers(-1, 5))
def test_garbage_in_a_batch_is_corrupt_or_records(body: bytes, codec: int, count: int) -> None:
    header, _ = three_records()
    size = len(body) + b.HEADER_SIZE - b.LOG_OVERHEAD
    wire = b.build_header(header._replace(batch_length=size, attributes=codec, record_count=count)) + body
    try:
        list(read_records(wire))
    except CorruptBatch:
        return


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_varints_come_back(value: int) -> None:
    out = bytearray()
    write_signed(out, value)
    assert read_signed(out, 0) == (value, len(out))


@given(st.integers(0, (1 << 32) - 1))
def test_unsigned_varints_come_back(value: int) -> None:
    out = bytearray()
    write_unsigned(out, value)
    assert read_unsigned(out, 0) == (value, len(out))


@pytest.mark.parametrize("wire", [b"", b"\x80", b"\xff" * 11])
def test_a_varint_without_an_end_is_refused(wire: bytes) -> None:
    for read in (read_signed, read_unsigned):
        with pytest.raises(Truncated):
            read(wire, 0)
