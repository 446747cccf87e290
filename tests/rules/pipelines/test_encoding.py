"""Batches built from columns hold what the columns held, and keys go where Java's clients put them."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.partitioner import murmur2, partition_of_key
from ottla.pipelines.sink.encoding import (
    Rows,
    Sender,
    encode_batches,
    encode_headers,
    murmur2_of,
    next_sequence,
    partitions_of_keys,
    sizes_alone,
)
from ottla.protocol import batch as b
from ottla.protocol.records import NewRecord, Record, build_batch, read_records
from tests.support.examples import examples

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

some_bytes = st.none() | st.binary(max_size=20) | st.integers(0, 3).map(lambda n: b"x" * (60 << n))
some_headers = st.none() | st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3)
times = st.integers(0, 2**40) | st.integers(1_700_000_000_000, 1_700_000_000_200)
records = st.builds(NewRecord, some_bytes, some_bytes, times, some_headers.map(lambda found: tuple(found or ())))


def rows_of(given: list[NewRecord], *, slack: int = 0) -> Rows:
    """With `slack` the columns are slices of longer ones, as Arrow hands them out."""
    padded = [*given[:slack], *given]
    headers = pa.array([[{"key": k, "value": v} for k, v in r.headers] or None for r in padded], HEADERS)
    rows = Rows(
        pa.array([r.key for r in padded], pa.binary()),
        pa.array([r.value for r in padded], pa.binary()),
        encode_headers(headers),
        np.array([r.timestamp for r in padded], dtype=np.int64),
    )
    return rows.slice(len(padded) - len(given), len(padded))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(records, min_size=1, max_size=30), st.integers(0, 3), st.sampled_from([0, 3, 4]))
def test_what_is_read_is_what_the_columns_held(written: list[NewRecord], slack: int, codec: int) -> None:
    (batch,) = encode_batches(rows_of(written, slack=slack), Sender(), -1, codec=codec)
    assert batch.records == len(written)
    assert b.computed_crc(batch.data) == b.read_header(batch.data).crc
    assert list(read_records(batch.data)) == [
        Record(offset, r.timestamp, r.key, r.value, tuple(r.headers)) for offset, r in enumerate(written)
    ]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(records, min_size=1, max_size=30))
def test_bytes_are_those_of_the_plain_encoder(written: list[NewRecord]) -> None:
    sender = Sender(producer_id=77, epoch=3, transactional=True)
    (batch,) = encode_batches(rows_of(written), sender, 5)
    assert batch.data == build_batch(
        written, attributes=b.TRANSACTIONAL, producer_id=77, producer_epoch=3, base_sequence=5
    )


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(records, min_size=1, max_size=40), st.integers(100, 1500))
def test_batches_stay_below_the_limit_and_lose_nothing(written: list[NewRecord], limit: int) -> None:
    batches = list(encode_batches(rows_of(written), Sender(1, 1), 0, max_bytes=limit))
    assert all(len(batch.data) <= limit or batch.records == 1 for batch in batches)
    read = [record._replace(offset=0) for batch in batches for record in read_records(batch.data)]
    assert read == [Record(0, r.timestamp, r.key, r.value, tuple(r.headers)) for r in written]
    starts = [b.read_header(batch.data).base_sequence for batch in batches]
    assert starts == [sum(batch.records for batch in batches[:index]) for index in range(len(batches))]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(records, min_size=1, max_size=10))
def test_how_large_a_record_is_alone_is_known_before_it_is_encoded(written: list[NewRecord]) -> None:
    alone = [len(next(encode_batches(rows_of([each]), Sender(1, 1), 0)).data) for each in written]
    assert sizes_alone(rows_of(written)).tolist() == alone


def test_sequence_numbers_go_on_at_zero_behind_the_last_one() -> None:
    last = 2**31 - 1
    assert next_sequence(last - 1, 1) == last
    assert next_sequence(last, 1) == 0
    assert next_sequence(last - 2, 5) == 2
    rows = rows_of([NewRecord(None, b"v" * 100, 0)] * 4)
    batches = list(encode_batches(rows, Sender(1, 1), last - 1, max_bytes=330))
    assert [(b.read_header(batch.data).base_sequence, batch.records) for batch in batches] == [(last - 1, 2), (0, 2)]


def test_a_header_needs_a_key() -> None:
    try:
        encode_headers(pa.array([[{"key": None, "value": b"v"}]], HEADERS))
    except ValueError as error:
        assert "no key" in str(error)
    else:
        raise AssertionError("a header without a key was taken")


def test_no_headers_at_all_cost_no_column() -> None:
    assert encode_headers(pa.array([None, []], HEADERS)) is None


some_keys = st.lists(st.none() | st.binary(max_size=40) | st.integers(500, 530).map(lambda n: b"k" * n), max_size=40)


@settings(max_examples=examples(200), deadline=None)
@given(some_keys, st.integers(0, 3))
def test_the_hash_is_that_of_the_plain_partitioner(keys: list[bytes | None], slack: int) -> None:
    array = pa.array([*keys[:slack], *keys], pa.binary()).slice(min(slack, len(keys)))
    assert murmur2_of(array).tolist() == [murmur2(key or b"") for key in keys]
    assert partitions_of_keys(array, 7).tolist() == [partition_of_key(key or b"", 7) for key in keys]
