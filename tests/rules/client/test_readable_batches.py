"""What of a fetch response a reader gets to see."""

import pytest

from ottla.client.batches import readable_batches
from ottla.client.errors import CorruptAnswer
from ottla.protocol import batch as b
from ottla.protocol.records import NewRecord, build_batch, read_records

TRANSACTIONAL = b.TRANSACTIONAL
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def plain(offset: int, *values: bytes) -> bytearray:
    return build_batch([NewRecord(None, value, 1) for value in values], base_offset=offset)


def transactional(offset: int, producer: int, value: bytes) -> bytearray:
    return build_batch(
        [NewRecord(None, value, 1)],
        base_offset=offset,
        attributes=TRANSACTIONAL,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
    )


def marker(offset: int, producer: int, key: bytes) -> bytearray:
    return build_batch(
        [NewRecord(key, b"\0\0\0\0\0\0", 1)],
        base_offset=offset,
        attributes=TRANSACTIONAL | b.CONTROL,
        producer_id=producer,
        producer_epoch=0,
    )


def values(data: bytes, aborted: list[tuple[int, int]]) -> list[bytes | None]:
    return [
        record.value
        for _, batch in readable_batches("orders-0", memoryview(data), aborted)
        if batch is not None
        for record in read_records(batch)
    ]


def test_control_batches_are_passed_over_but_counted() -> None:
    data = b"".join([plain(0, b"a"), marker(1, 7, COMMIT), plain(2, b"b")])
    found = [(header.last_offset, batch is None) for header, batch in readable_batches("orders-0", memoryview(data))]
    assert found == [(0, False), (1, True), (2, False)]


def test_kip_98_records_of_an_aborted_transaction_are_hidden_until_its_marker_and_no_further() -> None:
    data = b"".join(
        [
            transactional(0, 7, b"aborted"),
            transactional(1, 8, b"of another producer"),
            plain(2, b"in between"),
            transactional(3, 7, b"aborted too"),
            marker(4, 7, ABORT),
            transactional(5, 7, b"the next transaction"),
            marker(6, 7, COMMIT),
        ]
    )
    assert values(data, [(0, 7)]) == [b"of another producer", b"in between", b"the next transaction"]


def test_a_transaction_that_aborts_later_does_not_hide_an_earlier_one() -> None:
    data = b"".join(
        [
            transactional(0, 7, b"committed"),
            marker(1, 7, COMMIT),
            transactional(2, 7, b"aborted"),
            marker(3, 7, ABORT),
        ]
    )
    assert values(data, [(2, 7)]) == [b"committed"]


def test_read_uncommitted_shows_everything_but_markers() -> None:
    data = b"".join([transactional(0, 7, b"aborted"), marker(1, 7, ABORT)])
    assert values(data, []) == [b"aborted"]


def test_a_batch_cut_off_at_the_end_waits_for_the_next_response() -> None:
    whole, cut = plain(0, b"a"), plain(1, b"b")
    for size in range(len(cut)):
        assert values(bytes(whole + cut[:size]), []) == [b"a"]


def test_a_flipped_bit_is_never_given_out() -> None:
    batch = plain(0, b"value")
    for position in range(b.CRC_START, len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptAnswer, match="the batch at offset 0 of orders-0 fails its checksum"):
            values(bytes(damaged), [])
