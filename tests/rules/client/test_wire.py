"""The conversation with a broker, without a socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import CorruptAnswer, NotKafka, UnsupportedApi
from ottla.client.wire import HELLO_VERSION, Wire
from ottla.protocol import messages
from ottla.protocol.frames import RequestHeader, decode_request_header, encode_response

API_VERSIONS = 18
METADATA = 3


def api_versions(ranges: dict[int, tuple[int, int]], error_code: int = 0) -> messages.ApiVersionsResponse:
    return messages.ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            messages.ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in ranges.items()
        ],
    )


def header_of(frame: bytes) -> RequestHeader:
    return decode_request_header(frame[4:])[0]


def greeted(ranges: dict[int, tuple[int, int]]) -> Wire:
    wire = Wire("broker:9092", "test")
    wire.hello()
    (answer,) = wire.received(encode_response(API_VERSIONS, HELLO_VERSION, 0, api_versions(ranges)))
    assert wire.greeted(answer) is None
    return wire


def test_the_highest_version_that_both_have_is_used() -> None:
    wire = greeted({METADATA: (0, 9), API_VERSIONS: (0, 4)})
    assert wire.version_for(messages.MetadataRequest) == 9
    assert wire.version_for(messages.MetadataRequest, at_most=4) == 4
    correlation, frame = wire.request(messages.MetadataRequest(topics=[]))
    assert header_of(frame) == RequestHeader(METADATA, 9, 1, "test")
    assert correlation == 1


def test_kip_511_an_older_broker_answers_in_the_v0_form_and_is_asked_again_at_its_own_version() -> None:
    wire = Wire("broker:9092", "test")
    assert header_of(wire.hello()).api_version == HELLO_VERSION
    refusal = api_versions({API_VERSIONS: (0, 3)}, error_code=35)
    (answer,) = wire.received(encode_response(API_VERSIONS, 0, 0, refusal))
    again = wire.greeted(answer)
    assert again is not None
    assert header_of(again).api_version == 3
    (answer,) = wire.received(encode_response(API_VERSIONS, 3, 1, api_versions({METADATA: (0, 12)})))
    assert wire.greeted(answer) is None
    assert wire.version_for(messages.MetadataRequest) == 12


def test_a_refusal_without_any_range_leads_to_version_0() -> None:
    wire = Wire("broker:9092", "test")
    wire.hello()
    (answer,) = wire.received(encode_response(API_VERSIONS, 0, 0, api_versions({}, error_code=35)))
    again = wire.greeted(answer)
    assert again is not None
    assert header_of(again).api_version == 0


def test_an_api_that_the_broker_lacks_is_refused_before_anything_is_sent() -> None:
    wire = greeted({METADATA: (0, 9)})
    with pytest.raises(UnsupportedApi, match="broker:9092 does not offer Fetch: it is not in the broker's list"):
        wire.request(messages.FetchRequest())
    wire = greeted({1: (100, 101)})
    with pytest.raises(UnsupportedApi, match="it has versions 100 to 101, known here are 4 to 18"):
        wire.request(messages.FetchRequest())
    assert wire.waiting == 0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_answers_come_out_in_order_however_the_bytes_are_cut(cuts: list[int]) -> None:
    wire = greeted({METADATA: (0, 12)})
    names = [f"topic-{number}" for number in range(3)]
    stream = b""
    for name in names:
        correlation, _ = wire.request(messages.MetadataRequest(topics=[]))
        topic = messages.MetadataResponse.MetadataResponseTopic(name=name)
        stream += encode_response(METADATA, 12, correlation, messages.MetadataResponse(topics=[topic]))
    found: list[str | None] = []
    while stream:
        for cut in cuts:
            piece, stream = stream[:cut], stream[cut:]
            for answer in wire.received(piece):
                found += [topic.name for topic in answer.decode(messages.MetadataResponse).topics]
    assert found == names
    assert wire.waiting == 0


def test_a_produce_without_acks_has_no_answer_to_wait_for() -> None:
    wire = greeted({0: (3, 9), METADATA: (0, 12)})
    wire.request(messages.ProduceRequest(acks=0), expect_answer=False)
    correlation, _ = wire.request(messages.MetadataRequest(topics=[]))
    (answer,) = wire.received(encode_response(METADATA, 12, correlation, messages.MetadataResponse()))
    assert answer.correlation == correlation == 2


def test_an_answer_to_another_request_is_not_believed() -> None:
    wire = greeted({METADATA: (0, 12)})
    wire.request(messages.MetadataRequest(topics=[]))
    with pytest.raises(CorruptAnswer, match="answered request 7 where 1 was next"):
        wire.received(encode_response(METADATA, 12, 7, messages.MetadataResponse()))


@pytest.mark.parametrize(
    ("first_bytes", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "it answers in HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "it answers in TLS"),
        (b"\x00\x00\x00\x00", "its first bytes are"),
        (b"\xff\xff\xff\xff", "its first bytes are"),
        (b"SSH-2.0-OpenSSH", "its first bytes are b'SSH-'"),
    ],
)
def test_what_does_not_speak_kafka_is_told_apart(first_bytes: bytes, reason: str) -> None:
    wire = Wire("broker:9092", "test")
    wire.hello()
    with pytest.raises(NotKafka, match=reason):
        wire.received(first_bytes)


def test_an_answer_that_ends_early_is_an_error_of_its_own() -> None:
    wire = greeted({METADATA: (0, 12)})
    correlation, _ = wire.request(messages.MetadataRequest(topics=[]))
    whole = encode_response(METADATA, 12, correlation, messages.MetadataResponse(cluster_id="a cluster"))
    shorter = (len(whole) - 8).to_bytes(4, "big") + whole[4:-4]
    (answer,) = wire.received(shorter)
    with pytest.raises(CorruptAnswer, match="the answer is no MetadataResponse v12"):
        answer.decode(messages.MetadataResponse)
