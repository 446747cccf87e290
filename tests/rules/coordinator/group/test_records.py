"""The frame of coordinator records."""

import pytest

from ottla.coordinator.group.classic.consumer_protocol import assignment, assignment_bytes, subscribed_topics
from ottla.coordinator.records import CoordinatorRecord, Decoder, encode, tombstone
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError


def test_a_key_is_its_type_and_its_struct_a_value_its_version_and_its_struct() -> None:
    record = CoordinatorRecord(messages.GroupMetadataKey(group="g"), messages.ConsumerGroupMetadataValue(epoch=5), 0)
    written = encode(record, 77)
    assert (written.key, written.timestamp) == (b"\x00\x02\x00\x01g", 77)
    assert written.value is not None and written.value[:6] == b"\x00\x00\x00\x00\x00\x05"


def test_a_tombstone_has_no_value() -> None:
    written = encode(tombstone(messages.OffsetCommitKey(group="g", topic="t", partition=1)), 0)
    decoded = Decoder(messages.GROUP_RECORDS).decode(written.key, written.value)
    assert decoded == tombstone(messages.OffsetCommitKey(group="g", topic="t", partition=1))


def test_a_type_of_a_later_version_is_skipped_and_a_torn_record_is_an_error() -> None:
    decoder = Decoder(messages.GROUP_RECORDS)
    assert decoder.decode(b"\x03\xe7rest", b"") is None
    for key in (None, b"\0", b"\0\1\0\x09x"):
        with pytest.raises(DecodeError):
            decoder.decode(key, None)


def test_subscriptions_of_later_versions_begin_like_version_0() -> None:
    blob = messages.ConsumerProtocolSubscription(topics=["a", "b"]).encode(3)
    assert subscribed_topics(b"\0\x63" + blob) == ["a", "b"]
    assert subscribed_topics(b"") is None
    assert subscribed_topics(b"\0\0\0\0\0\x09") is None


def test_assignments_round_trip() -> None:
    assert assignment(assignment_bytes({"a": [1, 2], "b": [0]}, 2)) == {"a": [1, 2], "b": [0]}
    assert assignment(b"") == {}
