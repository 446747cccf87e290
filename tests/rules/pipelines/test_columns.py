"""Batches as Arrow columns hold exactly what reading them record by record gives."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.batches import readable_batches
from ottla.client.errors import CorruptAnswer
from ottla.pipelines.source import columns as module
from ottla.pipelines.source.columns import HEADERS_TYPE, MOST_HEADERS, Batch, read_columns
from ottla.protocol import batch as b
from ottla.protocol.records import NewRecord, Record, build_batch, read_records
from ottla.protocol.varint import write_signed
from tests.support.examples import examples

EVER = 1 << 60
NOW = 1_700_000_000_000


def as_records(batches: list[Batch], low: int = 0, high: int = EVER, *, with_headers: bool = True) -> list[Record]:
    records: list[Record] = []
    for columns in read_columns("t-0", batches, low, high, with_headers=with_headers):
        headers = columns.headers.to_pylist() if columns.headers is not None else [None] * len(columns)
        for offset, time, key, value, pairs in zip(
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            columns.keys.to_pylist(),
            columns.values.to_pylist(),
            headers,
            strict=True,
        ):
            named = tuple((pair["key"], pair["value"]) for pair in pairs or ())
            records.append(Record(offset, time, key, value, named))
    return records


def whole(*batches: bytes | bytearray) -> list[Batch]:
    return [(b.read_header(each), memoryview(each)) for each in batches]


_bytes = st.none() | st.binary(max_size=300)
_headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
_records = st.builds(
    NewRecord,
    key=_bytes,
    value=_bytes,
    timestamp=st.integers(0, 5) | st.integers(-1, 1 << 50),
    headers=st.just(()) | _headers.map(tuple),
)


@st.composite
def _logs(draw: st.DrawFn) -> list[bytearray]:
    batches: list[bytearray] = []
    offset = draw(st.integers(0, 1 << 40))
    for records in draw(st.lists(st.lists(_records, min_size=1, max_size=90), min_size=1, max_size=4)):
        batch = build_batch(records, base_offset=offset, codec=draw(st.integers(0, 4)))
        if draw(st.booleans()):
            b.stamp_append_time(batch, NOW)
        batches.append(batch)
        offset += len(records) + draw(st.integers(0, 3))
    return batches


@settings(max_examples=examples(60), deadline=None)
@given(log=_logs(), chunk=st.sampled_from([1, 500, 1 << 22]), cut=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_columns_equal_what_is_read_record_by_record(log: list[bytearray], chunk: int, cut: tuple[int, int]) -> None:
    expected = [record for batch in log for record in read_records(batch)]
    low = expected[min(cut[0], len(expected) - 1)].offset
    high = expected[-1 - min(cut[1], len(expected) - 1)].offset + 1
    usual, module.CHUNK_BYTES = module.CHUNK_BYTES, chunk  # type: ignore[misc]
    try:
        assert as_records(whole(*log)) == expected
        assert as_records(whole(*log), low, high) == [r for r in expected if low <= r.offset < high]
    finally:
        module.CHUNK_BYTES = usual  # type: ignore[misc]


def test_integers_of_every_length_are_read() -> None:
    values = [0] + [sign * ((1 << bits) + 1) for bits in range(0, 49, 3) for sign in (1, -1)]
    times = [value for value in values if value + NOW >= 0]
    sizes = [0, 1, 62, 63, 64, 65, 8190, 8191, 8192, 8193, 1 << 20, 1 << 21]
    log = whole(
        build_batch([NewRecord(b"k" * size, b"v" * size, NOW) for size in sizes]),
        build_batch([NewRecord(None, b"", NOW + time) for time in times], base_offset=20),
        build_batch([NewRecord(b"", None, NOW) for _ in range(9000)], base_offset=100),
    )
    assert as_records(log) == [record for _, batch in log for record in read_records(batch)]


def test_the_clock_that_stamped_a_record_is_told() -> None:
    by_broker = build_batch([NewRecord(b"a", b"b", 5), NewRecord(b"a", b"b", 6)], base_offset=1)
    b.stamp_append_time(by_broker, NOW)
    (columns,) = read_columns("t-0", whole(build_batch([NewRecord(b"a", b"b", 5)]), by_broker), 0, EVER)
    assert columns.timestamps.tolist() == [5, NOW, NOW]
    assert columns.timestamp_types.tolist() == [0, 1, 1]


def test_offsets_that_compaction_removed_leave_gaps() -> None:
    batch = build_batch([NewRecord(None, b"%d" % i, NOW) for i in range(3)], base_offset=10)
    at = b.HEADER_SIZE + 3
    assert batch[at] == 0  # the first record's offset delta
    batch[at] = 1 << 1  # it is the second now; the CRC was checked by whoever hands batches over
    assert [record.offset for record in as_records(whole(batch))] == [11, 11, 12]


def test_headers_are_read_only_when_asked_for() -> None:
    log = whole(build_batch([NewRecord(None, b"a", NOW, (("h", b"1"), ("h", None))), NewRecord(None, b"b", NOW)]))
    (plain,) = read_columns("t-0", log, 0, EVER)
    (full,) = read_columns("t-0", log, 0, EVER, with_headers=True)
    assert plain.headers is None
    assert full.headers is not None
    assert full.headers.type == HEADERS_TYPE
    assert full.headers.to_pylist() == [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None]
    assert plain.values == full.values == pa.array([b"a", b"b"], pa.binary())


def test_headers_are_what_they_are_however_many_and_whether_they_are_text_or_not() -> None:
    many = tuple((f"h{number}", b"%d" % number) for number in range(MOST_HEADERS + 1))
    for headers in ((), many[:1], many[:-1], many):
        records = [
            NewRecord(None, b"a", NOW, headers),
            NewRecord(None, b"b", NOW, many[:2]),
            NewRecord(None, b"c", NOW),
        ]
        log = whole(build_batch(records))
        assert as_records(log) == [record for _, batch in log for record in read_records(batch)]
    batch = build_batch([NewRecord(None, b"a", NOW, (("h", b"1"),)), NewRecord(None, b"b", NOW, (("h", b"2"),))])
    batch[batch.rindex(b"h")] = 0xFF
    (columns,) = read_columns("t-0", whole(batch), 0, EVER, with_headers=True)
    assert columns.headers is not None
    assert [header[0]["key"] for header in columns.headers.to_pylist()] == ["h", "\ufffd"]


@pytest.mark.parametrize("omitted", [{"key"}, {"value"}, {"key", "value"}])
def test_fields_that_nobody_reads_are_null_and_the_rest_is_as_it_was(omitted: set[str]) -> None:
    batch = build_batch([NewRecord(b"k1", b"v1", NOW), NewRecord(b"k2", b"v2", NOW + 1)], base_offset=7)
    (columns,) = read_columns("t-0", whole(batch), 8, EVER, omitted=frozenset(omitted))
    assert columns.keys.to_pylist() == [None if "key" in omitted else b"k2"]
    assert columns.values.to_pylist() == [None if "value" in omitted else b"v2"]
    assert (columns.offsets.tolist(), columns.timestamps.tolist()) == ([8], [NOW + 1])


def test_a_batch_emptied_by_compaction_gives_nothing() -> None:
    empty = bytearray(build_batch([NewRecord(b"a", b"b", NOW)])[: b.HEADER_SIZE])
    header = b.read_header(empty)._replace(record_count=0, batch_length=b.HEADER_SIZE - b.LOG_OVERHEAD)
    assert as_records([(header, memoryview(empty))]) == []


def test_control_batches_and_aborted_records_are_not_rows() -> None:
    aborted = build_batch([NewRecord(None, b"no", NOW)], base_offset=0, attributes=b.TRANSACTIONAL, producer_id=7)
    marker = build_batch(
        [NewRecord(b"\0\0\0\0", b"\0\0\0\0\0\0", NOW)],
        base_offset=1,
        attributes=b.TRANSACTIONAL | b.CONTROL,
        producer_id=7,
    )
    kept = build_batch([NewRecord(None, b"yes", NOW)], base_offset=2, attributes=b.TRANSACTIONAL, producer_id=7)
    fetched = memoryview(bytes(aborted + marker + kept))
    batches = [(header, batch) for header, batch in readable_batches("t-0", fetched, [(0, 7)]) if batch is not None]
    assert as_records(batches) == [Record(2, NOW, None, b"yes")]


_GOOD = build_batch([NewRecord(b"key", b"value" * 30, NOW + i, (("h", b"x"),)) for i in range(5)], base_offset=40)


@settings(max_examples=examples(150), deadline=None)
@given(at=st.integers(b.HEADER_SIZE, len(_GOOD) - 1), byte=st.integers(0, 255))
def test_damaged_bytes_give_an_error_or_what_the_slow_reader_gives(at: int, byte: int) -> None:
    damaged = bytearray(_GOOD)
    damaged[at] = byte
    try:
        expected = list(read_records(damaged))
    except ValueError:
        with pytest.raises(CorruptAnswer, match=r"the batch at offset 40 of t-0 cannot be read"):
            as_records(whole(damaged))
    else:
        # From any offset on: a damaged one may be below 0.
        assert as_records(whole(damaged), -EVER) == expected


@pytest.mark.parametrize("count", [4, 6, 1 << 30, 0, -1])
def test_a_wrong_count_of_records_is_found(count: int) -> None:
    header = b.read_header(_GOOD)._replace(record_count=count)
    with pytest.raises(CorruptAnswer, match="offset 40 of t-0"):
        as_records([(header, memoryview(_GOOD))])


def test_a_length_that_goes_back_does_not_go_round_for_ever() -> None:
    body = bytearray()
    write_signed(body, -(1 << 20))
    header = b.read_header(_GOOD)._replace(record_count=1 << 30)
    with pytest.raises(CorruptAnswer, match="offset 40 of t-0"):
        as_records([(header, memoryview(bytes(_GOOD[: b.HEADER_SIZE]) + bytes(body)))])


def test_a_timestamp_beyond_what_spark_counts_is_refused() -> None:
    with pytest.raises(CorruptAnswer, match="record 1 of it has a timestamp that Spark cannot hold"):
        as_records(whole(build_batch([NewRecord(None, b"a", 0), NewRecord(None, b"a", 1 << 60)])))


def test_a_batch_that_is_not_of_its_codec_is_refused() -> None:
    header = b.read_header(_GOOD)
    with pytest.raises(CorruptAnswer, match="the batch at offset 40 of t-0 cannot be read: not gzip"):
        as_records([(header._replace(attributes=1), memoryview(_GOOD))])
