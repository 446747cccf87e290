"""Headers around messages, checked against kafka-python's header classes, and the frames of the metadata log."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol import messages
from ottla.protocol.apis import API
from ottla.protocol.codec import DecodeError, Message
from ottla.protocol.frames import (
    RequestHeader,
    decode_metadata_record,
    decode_request_header,
    decode_response_header,
    encode_metadata_record,
    encode_request,
    encode_request_header,
    encode_response,
    encode_response_header,
)

PAIRS = [(api.key, version) for api in API.values() for version in range(api.min_version, api.max_version + 1)]


@pytest.mark.parametrize(("key", "version"), PAIRS)
def test_a_request_header_comes_back_and_equals_the_generated_one(key: int, version: int) -> None:
    for client_id in ("client", "", None):
        header = RequestHeader(key, version, 77, client_id)
        wire = encode_request_header(header)
        assert decode_request_header(wire + b"body") == (header, len(wire))
        generated = messages.RequestHeader(key, version, 77, client_id)
        assert wire == generated.encode(2 if API[key].is_flexible(version) else 1)


@pytest.mark.parametrize(("key", "version"), PAIRS)
def test_a_response_header_is_flexible_with_its_request_but_never_for_api_versions(key: int, version: int) -> None:
    flexible = API[key].is_flexible(version) and key != 18
    wire = encode_response_header(key, version, 99)
    assert wire == messages.ResponseHeader(99).encode(1 if flexible else 0)
    assert decode_response_header(wire + b"body", key, version) == (99, len(wire))


def test_unknown_tags_in_a_header_are_skipped() -> None:
    plain = encode_request_header(RequestHeader(3, 12, 5, "c"))
    tagged = plain[:-1] + b"\x02\x00\x03abc\x63\x00"
    assert decode_request_header(tagged + b"body") == (RequestHeader(3, 12, 5, "c"), len(tagged))
    assert decode_response_header(b"\0\0\0\x07\x01\x05\x02xx", 3, 12) == (7, 9)


def test_a_header_cut_at_any_byte_is_refused() -> None:
    wire = encode_request_header(RequestHeader(3, 12, 5, "client"))
    for cut in range(len(wire)):
        with pytest.raises(DecodeError):
            decode_request_header(wire[:cut])
    for cut in range(5):
        with pytest.raises(DecodeError):
            decode_response_header(b"\0\0\0\x07\0"[:cut], 3, 12)


@pytest.mark.parametrize("length", [-2, 20, 0x7FFF])
def test_a_lying_client_id_is_refused(length: int) -> None:
    wire = (3).to_bytes(2, "big") + bytes(6) + length.to_bytes(2, "big", signed=True) + b"short"
    with pytest.raises(DecodeError):
        decode_request_header(wire)


@pytest.mark.parametrize(("key", "version"), [(18, 5), (18, 32767), (4, 0), (93, 0), (-1, 0), (0, 2)])
def test_a_header_names_also_keys_and_versions_that_nobody_serves(key: int, version: int) -> None:
    header, _ = decode_request_header(encode_request_header(RequestHeader(key, version, 1, "c")))
    assert (header.api_key, header.api_version) == (key, version)


def test_frames_are_those_of_kafka_python() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka.protocol.metadata import MetadataRequest, MetadataResponse  # noqa: PLC0415
    for version in range(14):
        theirs = MetadataRequest(version=version)
        theirs.with_header(correlation_id=9, client_id="me")
        frame = bytes(theirs.encode(version=version, header=True, framed=True))
        header, pos = decode_request_header(frame[4:])
        request = messages.MetadataRequest.decode(frame[4:], version, pos)
        assert encode_request(header, request) == frame
        answer = encode_response(3, version, 9, messages.MetadataResponse())
        assert MetadataResponse.decode(answer, version=version, header=True, framed=True).header.correlation_id == 9


RECORDS: list[tuple[Message, int]] = [
    (messages.TopicRecord("t", bytes(range(16))), 0),
    (messages.PartitionRecord(1, bytes(16), [1, 2], [1], leader=1), 2),
    (messages.NoOpRecord(), 0),
    (messages.ClearElrRecord("t"), 0),
]


@pytest.mark.parametrize(("record", "version"), RECORDS)
def test_metadata_records_come_back_with_their_version(record: Message, version: int) -> None:
    wire = encode_metadata_record(record, version)
    assert wire[:3] == bytes((1, record.API_KEY, version))
    assert decode_metadata_record(wire) == (record, version)


@pytest.mark.parametrize(
    "wire", [b"", b"\x01", b"\x01\x02", b"\x02\x02\0", b"\x01\x06\0", b"\x01\x02\x09", b"\x01\xff\x7f\0"]
)
def test_what_is_no_metadata_record_is_refused(wire: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_metadata_record(wire)


@given(st.binary(max_size=60))
def test_garbage_never_gets_further_than_a_decode_error(wire: bytes) -> None:
    for read in (decode_request_header, decode_metadata_record):
        try:
            read(wire)
        except DecodeError:
            continue
