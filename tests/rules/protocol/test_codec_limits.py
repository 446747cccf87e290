"""A decoder believes no length: nothing is allocated for what is not there, and nothing but DecodeError comes out."""

import tracemalloc
from random import Random
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, long_varint, read_varint, varint
from tests.support.examples import examples

HUGE = 0x7FFFFFFF
ALL = [(name, version) for name in sorted(messages.NAMES) for version in messages.named(name).DECODERS]


def refused(name: str, version: int, wire: bytes) -> str:
    with pytest.raises(DecodeError) as caught:
        messages.named(name).decode(wire, version)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "version", "wire"),
    [
        ("MetadataRequest", 0, pack(">i", HUGE)),
        (
            "MetadataRequest",
            0,
            bytes.fromhex("030000033c0c00b6"),
        ),  # the eight bytes that cost kafka-protocol-rs 3.6 GiB
        ("MetadataRequest", 12, b"\xff\xff\xff\xff\x0f"),
        ("MetadataRequest", 12, b"\xff\xff\xff\xff\x07" + b"\0" * 100),
        ("LeaderChangeMessage", 0, pack(">hii", 0, 1, HUGE)),
        ("ListGroupsRequest", 4, b"\xff\xff\xff\xff\x0f"),
        ("DescribeTopicPartitionsRequest", 0, b"\xff\xff\xff\xff\x0f"),
        ("AlterPartitionRequest", 2, pack(">iq", 1, 1) + b"\xff\xff\xff\xff\x0f"),
        ("SaslAuthenticateRequest", 0, pack(">i", HUGE)),
        ("SaslAuthenticateRequest", 2, b"\xff\xff\xff\xff\x0f"),
        ("ProduceRequest", 9, b"\0" + pack(">hi", -1, 0) + b"\x02\x02t\x02" + pack(">i", 0) + b"\xff\xff\xff\xff\x0f"),
        ("HeartbeatRequest", 0, pack(">h", 0x7FFF)),
        ("HeartbeatRequest", 4, b"\xff\xff\xff\xff\x0f"),
        ("ApiVersionsRequest", 3, b"\x02a\x02b\x01\x05\xff\xff\xff\xff\x0f"),
        ("ApiVersionsRequest", 3, b"\x02a\x02b\xff\xff\xff\xff\x0f"),
    ],
)
def test_a_lying_length_is_refused_and_never_allocated(name: str, version: int, wire: bytes) -> None:
    messages.named(name)
    tracemalloc.start()
    try:
        refused(name, version, wire)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_an_array_count_is_measured_by_what_its_elements_need_at_least() -> None:
    # 100 bytes could hold a hundred elements of one byte, but an assignment needs 18.
    wire = pack(">iq", 1, 1) + varint(50) + b"\0" * 100
    assert "claims a length of 49 where 100 bytes are left" in refused("AlterPartitionRequest", 2, wire)


@pytest.mark.parametrize("length", [-2, -32768])
def test_a_negative_length_other_than_null_is_refused(length: int) -> None:
    refused("ProduceRequest", 3, pack(">h", length) + bytes(20))
    refused("MetadataRequest", 1, pack(">i", length) + bytes(20))
    refused("ProduceRequest", 3, pack(">hhiihsii", -1, 1, 1, 1, 1, b"t", 1, 0) + pack(">i", length) + bytes(20))


def test_null_is_refused_where_it_may_not_be() -> None:
    assert (
        refused("HeartbeatRequest", 0, pack(">h", -1) + bytes(20)) == "HeartbeatRequest.group_id is null and may not be"
    )
    assert "is null" in refused("HeartbeatRequest", 4, bytes(20))
    assert "is null" in refused("MetadataRequest", 0, pack(">i", -1))
    assert messages.MetadataRequest.decode(pack(">i", -1), 1).topics is None


def test_bad_utf_8_is_refused() -> None:
    refused("HeartbeatRequest", 0, pack(">h", 2) + b"\xc3\x28" + bytes(20))
    refused("HeartbeatRequest", 4, b"\x03\xc3\x28" + bytes(20))


def test_a_string_beyond_kafkas_limit_is_refused_though_it_is_there() -> None:
    most = messages.HeartbeatRequest(group_id="x" * 0x7FFF).encode(4)
    assert len(messages.HeartbeatRequest.decode(most, 4).group_id) == 0x7FFF
    refused("HeartbeatRequest", 4, varint(0x8001) + b"x" * 0x9000)


def test_a_known_tag_must_fill_its_length() -> None:
    fetch = messages.FetchRequest(cluster_id="abc").encode(12)
    assert fetch.endswith(b"\x01\x00\x04\x04abc")
    assert "ends" in refused("FetchRequest", 12, fetch[:-5] + b"\x05\x04abc" + b"zz")
    assert "ends" in refused("FetchRequest", 12, fetch[:-5] + b"\x03\x04abc")


def test_a_flood_of_tags_is_walked_through_once() -> None:
    flood = b"".join(varint(tag) + b"\0" for tag in range(10, 50_010))
    wire = b"\x02a\x02b" + varint(50_000) + flood
    message, end = messages.ApiVersionsRequest.DECODERS[3](wire, 0)
    assert (message.client_software_name, end) == ("a", len(wire))


def test_a_version_that_kafka_lacks_is_refused() -> None:
    assert refused("ProduceRequest", 2, b"") == "ProduceRequest has no version 2"
    refused("ProduceRequest", 32767, b"")


@given(st.integers(0, 0xFFFFFFFF))
def test_varints_come_back(value: int) -> None:
    wire = varint(value)
    assert read_varint(wire + b"rest", 0) == (value, len(wire))
    assert len(wire) <= 5


def test_a_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(DecodeError):
        long_varint(b"\xff\xff\xff\xff\x01", 0, 0xFF)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32))
def test_garbage_is_either_a_message_or_refused(seed: int) -> None:
    dice = Random(seed)
    for _ in range(20):
        name, version = dice.choice(ALL)
        wire = (
            dice.randbytes(dice.choice((3, 10, 40, 200)))
            if dice.random() < 0.5
            else bytes(dice.choices((0, 1, 2, 255), k=60))
        )
        try:
            messages.named(name).decode(wire, version)
        except DecodeError:
            continue
