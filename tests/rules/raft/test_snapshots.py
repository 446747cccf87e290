"""Snapshot files: names, bytes, and which of them stay."""

import pytest
from hypothesis import given, settings

from ottla.metadata.batches import CorruptMetadata
from ottla.metadata.image import EMPTY
from ottla.metadata.records import image_records
from ottla.metadata.replay import image_of
from ottla.model.ids import Uuid
from ottla.protocol.codec import MetadataRecord
from ottla.raft.snapshots import (
    DELETED_SUFFIX,
    PARTIAL_SUFFIX,
    SUFFIX,
    SnapshotFile,
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    log_start_after_cleaning,
    parse_name,
)
from ottla.raft.voters import Voter, VoterSet
from tests.rules.metadata.lives import lives

VOTERS = VoterSet((Voter(1, Uuid(bytes(range(16)))),))


def a_snapshot(records: list[MetadataRecord], kraft_version: int = 0) -> bytes:
    return b"".join(
        encode_snapshot(
            records,
            epoch=3,
            now=100,
            last_contained_timestamp=90,
            metadata_version=30,
            kraft_version=kraft_version,
            voters=VOTERS if kraft_version else None,
        )
    )


def test_names_carry_the_end_offset_and_the_epoch() -> None:
    assert SnapshotId(42, 7).stem == "00000000000000000042-0000000007"
    stem = SnapshotId(42, 7).stem
    for suffix in (SUFFIX, PARTIAL_SUFFIX, DELETED_SUFFIX):
        assert parse_name(stem + suffix) == SnapshotFile(SnapshotId(42, 7), suffix)
    # Kafka's temporary files have a random number in between.
    assert parse_name(stem + "-123456789" + PARTIAL_SUFFIX) == SnapshotFile(SnapshotId(42, 7), PARTIAL_SUFFIX)


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "leader-epoch-checkpoint", "x.checkpoint", "quorum-state"])
def test_other_files_are_no_snapshots(name: str) -> None:
    assert parse_name(name) is None


@settings(max_examples=30, deadline=None)
@given(lives())
def test_a_snapshot_file_holds_the_image(life: list[MetadataRecord]) -> None:
    image = image_of(life)
    records = list(image_records(image))
    snapshot = decode_snapshot(a_snapshot(records))
    assert image_of(snapshot.records) == image
    assert (snapshot.last_contained_timestamp, snapshot.kraft_version, snapshot.voters) == (90, 0, None)


def test_kip_853_voters_are_part_of_a_snapshot_from_kraft_version_1_on() -> None:
    snapshot = decode_snapshot(a_snapshot([], kraft_version=1))
    assert (snapshot.kraft_version, snapshot.voters, image_of(snapshot.records)) == (1, VOTERS, EMPTY)


def test_a_file_without_its_footer_or_with_a_damaged_byte_is_no_snapshot() -> None:
    data = a_snapshot([], kraft_version=1)
    for cut in range(len(data)):
        with pytest.raises(CorruptMetadata):
            decode_snapshot(data[:cut])
    damaged = bytearray(data)
    damaged[-1] ^= 1
    with pytest.raises(CorruptMetadata):
        decode_snapshot(bytes(damaged))


# Cleaning. Snapshots of 10 bytes at 100, 200, 300; a log of one byte for each offset, up to 350.

IDS = [SnapshotId(100, 1), SnapshotId(200, 1), SnapshotId(300, 2)]


def cleaned(*, retention_bytes: int = -1, retention_ms: int = -1, now: int = 0) -> SnapshotId | None:
    return log_start_after_cleaning(
        IDS,
        size_of=lambda snapshot: 10,
        timestamp_of=lambda snapshot: snapshot.offset,
        log_size_from=lambda offset: 350 - offset,
        retention_bytes=retention_bytes,
        retention_ms=retention_ms,
        now=now,
    )


def test_without_limits_everything_stays() -> None:
    assert cleaned() is None


@pytest.mark.parametrize(("limit", "start"), [(280, None), (279, IDS[1]), (170, IDS[1]), (169, IDS[2]), (0, IDS[2])])
def test_the_log_starts_at_the_next_snapshot_while_it_is_too_large(limit: int, start: SnapshotId | None) -> None:
    assert cleaned(retention_bytes=limit) == start


@pytest.mark.parametrize(("now", "start"), [(150, None), (151, IDS[1]), (251, IDS[2]), (9999, IDS[2])])
def test_old_snapshots_go_and_the_latest_stays_however_old(now: int, start: SnapshotId | None) -> None:
    assert cleaned(retention_ms=50, now=now) == start
