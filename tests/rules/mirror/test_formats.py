"""The bytes of mirroring's own records. Hexadecimal ones were written by MirrorMaker's classes."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror.formats import Checkpoint, Heartbeat, OffsetSync, Unreadable

_NAMES = st.text(max_size=40)
_INT32 = st.integers(-(2**31), 2**31 - 1)
_INT64 = st.integers(-(2**63), 2**63 - 1)


def test_a_sync_is_topic_and_partition_to_two_offsets() -> None:
    sync = OffsetSync("orders", 3, 100, 90)
    assert sync.key() == bytes.fromhex("0006") + b"orders" + bytes.fromhex("00000003")
    assert sync.value() == bytes.fromhex("0000000000000064000000000000005a")


def test_a_checkpoint_has_a_version_before_its_offsets() -> None:
    checkpoint = Checkpoint("app", "us.orders", 1, 5, 4, "m")
    assert checkpoint.key() == b"\x00\x03app\x00\x09us.orders\x00\x00\x00\x01"
    assert checkpoint.value() == bytes.fromhex("0000 0000000000000005 0000000000000004 0001") + b"m"


def test_a_heartbeat_is_two_aliases_to_a_time() -> None:
    heartbeat = Heartbeat("us", "eu", 1_700_000_000_000)
    assert heartbeat.key() == b"\x00\x02us\x00\x02eu"
    assert heartbeat.value() == bytes.fromhex("0000 0000018bcfe56800")


@given(st.builds(OffsetSync, _NAMES, _INT32, _INT64, _INT64))
def test_every_sync_is_read_as_it_was_written(sync: OffsetSync) -> None:
    assert OffsetSync.read(sync.key(), sync.value()) == sync


@given(st.builds(Checkpoint, _NAMES, _NAMES, _INT32, _INT64, _INT64, _NAMES))
def test_every_checkpoint_is_read_as_it_was_written(checkpoint: Checkpoint) -> None:
    assert Checkpoint.read(checkpoint.key(), checkpoint.value()) == checkpoint


@given(st.builds(Heartbeat, _NAMES, _NAMES, _INT64))
def test_every_heartbeat_is_read_as_it_was_written(heartbeat: Heartbeat) -> None:
    assert Heartbeat.read(heartbeat.key(), heartbeat.value()) == heartbeat


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_other_bytes_are_refused_and_nothing_else_happens(key: bytes, value: bytes) -> None:
    for kind in (OffsetSync, Checkpoint, Heartbeat):
        with suppress(Unreadable):
            kind.read(key, value)


def test_a_length_that_lies_and_a_version_that_is_not_known_are_told() -> None:
    with pytest.raises(Unreadable, match="a text of 1000 bytes where 2 are left"):
        OffsetSync.read(b"\x03\xe8ab", bytes(16))
    with pytest.raises(Unreadable, match="version 1 of a record"):
        Heartbeat.read(b"\x00\x00\x00\x00", b"\x00\x01" + bytes(8))
