"""The short form of a produce response is the long form without errors, to the byte."""

import pytest

from ottla.protocol.frames import encode_response
from ottla.protocol.messages import ProduceResponse
from ottla.protocol.produce_ack import FIRST_VERSION, ProduceAck, read_row, row

PRODUCE = 0
ID = bytes(range(16))


def taken(index: int, base_offset: int, log_start_offset: int) -> ProduceResponse.PartitionProduceResponse:
    return ProduceResponse.PartitionProduceResponse(
        index=index, base_offset=base_offset, log_start_offset=log_start_offset
    )


def long_form(topics: list[tuple[str, bytes, list[bytes]]]) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=name,
                topic_id=topic_id,
                partition_responses=[taken(*read_row(one)) for one in rows],
            )
            for name, topic_id, rows in topics
        ]
    )


@pytest.mark.parametrize("version", range(FIRST_VERSION, max(ProduceResponse.ENCODERS) + 1))
@pytest.mark.parametrize(
    "topics",
    [
        [],
        [("orders", ID, [])],
        [("orders", ID, [row(0, 7, 0), row(5, 1 << 40, 12)]), ("n" * 200, ID, [row(1, 0, 0)])],
        [("many", ID, [row(index, index, 0) for index in range(300)])],
    ],
)
def test_both_forms_are_the_same_bytes(topics: list[tuple[str, bytes, list[bytes]]], version: int) -> None:
    short = encode_response(PRODUCE, version, 9, ProduceAck(topics))
    assert short == encode_response(PRODUCE, version, 9, long_form(topics))


def test_a_row_can_be_read_back() -> None:
    assert read_row(row(3, 1 << 40, 12)) == (3, 1 << 40, 12)
