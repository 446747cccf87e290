"""The short way to read and to answer a produce request is the long way, where nothing is out of the ordinary."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.batch import read_header
from ottla.protocol.codec import DecodeError
from ottla.protocol.frames import encode_response
from ottla.protocol.messages import ProduceRequest, ProduceResponse
from ottla.protocol.ordinary_produce import (
    DECODERS,
    FIRST_VERSION,
    OrdinaryProduce,
    ProduceAck,
    failed_row,
    read_row,
    row,
)
from tests.rules.storage.scene import a_batch

PRODUCE = 0
ID = bytes(range(16))
LAST_VERSION = max(ProduceRequest.DECODERS)
SHORT_VERSIONS = range(FIRST_VERSION, LAST_VERSION + 1)
BY_TOPIC_ID = 13

TopicData = ProduceRequest.TopicProduceData
PartitionData = ProduceRequest.PartitionProduceData


def asked(*topics: tuple[str, Sequence[tuple[int, bytes | bytearray | None]]], **fields: Any) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=1500,
        topic_data=[
            TopicData(
                name=name,
                topic_id=name.encode()[:16].ljust(16, b"."),
                partition_data=[PartitionData(*one) for one in data],
            )
            for name, data in topics
        ],
        **fields,
    )


def encoded(request: ProduceRequest, version: int) -> memoryview:
    if version >= BY_TOPIC_ID:
        for topic in request.topic_data:
            topic.name = ""
    else:
        for topic in request.topic_data:
            topic.topic_id = bytes(16)
    return memoryview(bytearray(request.encode(version)))


def read(frame: memoryview, version: int) -> Any:
    request, end = DECODERS[version](frame, 0)
    assert end == len(frame)
    return request


def in_long_form(read: OrdinaryProduce, version: int) -> ProduceRequest:
    """What the short form says, and that what it says of a batch is in the batch."""
    topics = []
    for name_or_id, batches in read.topics:
        topic = TopicData(topic_id=name_or_id) if isinstance(name_or_id, bytes) else TopicData(name=name_or_id)
        for view, (index, *essentials) in batches:
            header = read_header(view)
            assert essentials == [
                header.base_offset, header.batch_length, header.magic, header.crc, header.attributes,
                header.last_offset_delta, header.max_timestamp, header.producer_id, header.producer_epoch,
                header.base_sequence, header.record_count,
            ]  # fmt: skip
            topic.partition_data.append(PartitionData(index, view))
        topics.append(topic)
    return ProduceRequest(acks=read.acks, timeout_ms=read.timeout_ms, topic_data=topics)


def of_size(size: int) -> bytearray:
    return a_batch(bytes(size), producer=(7, 1, 40))


@pytest.mark.parametrize("version", SHORT_VERSIONS)
@pytest.mark.parametrize(
    "request_of",
    [
        lambda: asked(("orders", [(0, of_size(10))])),
        lambda: asked(
            ("orders", [(index, of_size(size)) for index, size in enumerate((0, 50, 60, 16_000, 20_000, 1_000_000))])
        ),
        lambda: asked(("a", [(3, of_size(5))]), ("b" * 126, [(1, of_size(6)), (0, of_size(70_000))])),
        lambda: asked(*((f"t{number}", [(0, of_size(number))]) for number in range(126))),
    ],
    ids=["one", "sizes", "two topics", "many topics"],
)
def test_an_ordinary_request_reads_the_same_in_both_ways(request_of: Any, version: int) -> None:
    frame = encoded(request_of(), version)
    short = read(frame, version)
    assert isinstance(short, OrdinaryProduce)
    assert short.in_full(version) == ProduceRequest.decode(frame, version) == in_long_form(short, version)


@pytest.mark.parametrize("version", SHORT_VERSIONS)
@pytest.mark.parametrize(
    "request_of",
    [
        asked,
        lambda: asked(("orders", [])),
        lambda: asked(("orders", [(0, None)])),
        lambda: asked(("orders", [(0, b"")])),
        lambda: asked(("orders", [(0, bytes(60))])),
        lambda: asked(("orders", [(0, of_size(10)), (1, bytes(60))])),
        lambda: asked(("orders", [(0, of_size(3_000_000))])),
        lambda: asked(("orders", [(index, of_size(1)) for index in range(127)])),
        lambda: asked(("orders", [(0, of_size(10))]), transactional_id="t"),
        lambda: asked(("orders", [(0, of_size(10))]), transactional_id=""),
    ],
    ids=[
        "nothing",
        "no partition",
        "null",
        "empty",
        "no header",
        "one without",
        "huge",
        "many",
        "transaction",
        "unnamed",
    ],
)
def test_anything_else_is_read_by_the_general_codec(request_of: Any, version: int) -> None:
    frame = encoded(request_of(), version)
    assert read(frame, version) == ProduceRequest.decode(frame, version)


def test_a_long_name_is_read_by_the_general_codec() -> None:
    frame = encoded(asked(("n" * 200, [(0, of_size(10))])), 12)
    assert read(frame, 12).topic_data[0].name == "n" * 200


def test_versions_before_the_compact_ones_are_read_by_the_general_codec() -> None:
    request = asked(("orders", [(0, of_size(10))]))
    for version in range(3, FIRST_VERSION):
        frame = encoded(request, version)
        assert read(frame, version) == ProduceRequest.decode(frame, version)


def outcome(frame: memoryview, version: int, decoders: Any) -> Any:
    try:
        request, end = decoders[version](frame, 0)
    except DecodeError as refusal:
        return str(refusal)
    return (request.in_full(version) if isinstance(request, OrdinaryProduce) else request), end


@given(
    version=st.sampled_from(SHORT_VERSIONS),
    cut=st.integers(0, 400),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
)
def test_damaged_bytes_mean_the_same_in_both_ways(version: int, cut: int, changes: list[tuple[int, int]]) -> None:
    frame = encoded(asked(("orders", [(0, of_size(10)), (1, of_size(100))]), ("b", [(0, of_size(3))])), version)
    for at, value in changes:
        frame[at % len(frame)] = value
    frame = frame[: max(len(frame) - cut, 0)] if cut % 2 else frame
    assert outcome(frame, version, DECODERS) == outcome(frame, version, ProduceRequest.DECODERS)


def taken(
    index: int, error_code: int, base_offset: int, log_start_offset: int
) -> ProduceResponse.PartitionProduceResponse:
    return ProduceResponse.PartitionProduceResponse(
        index=index, error_code=error_code, base_offset=base_offset, log_start_offset=log_start_offset
    )


def long_form(topics: list[tuple[str, list[bytes]]]) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=name,
                topic_id=ID,
                partition_responses=[taken(*read_row(one)) for one in rows],
            )
            for name, rows in topics
        ]
    )


@pytest.mark.parametrize("version", SHORT_VERSIONS)
@pytest.mark.parametrize(
    "topics",
    [
        [],
        [("orders", [])],
        [("orders", [row(0, 7, 0), row(5, 1 << 40, 12), failed_row(6, 56)]), ("n" * 126, [row(1, 0, 0)])],
        [("many", [row(index, index, 0) for index in range(126)])],
        [(f"t{number}", [row(0, number, 0)]) for number in range(126)],
    ],
)
def test_both_forms_of_an_answer_are_the_same_bytes(topics: list[tuple[str, list[bytes]]], version: int) -> None:
    short = ProduceAck([(ID if version >= BY_TOPIC_ID else name, rows) for name, rows in topics])
    assert encode_response(PRODUCE, version, 9, short) == encode_response(PRODUCE, version, 9, long_form(topics))


def test_a_row_can_be_read_back() -> None:
    assert read_row(row(3, 1 << 40, 12)) == (3, 0, 1 << 40, 12)
    assert read_row(failed_row(3, 56)) == (3, 56, -1, -1)
