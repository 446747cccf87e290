"""Compaction as clients see it: a node cleans in the background, and goes on cleaning after a restart."""

import time
from pathlib import Path

import pytest

from ottla.protocol.records import NewRecord, build_batch
from ottla.storage.checkpoints import decode_offsets
from ottla.testing import Cluster
from tests.support.patience import eventually
from tests.support.requests import create_topic, fetch, list_offset, produced, records_in
from tests.support.wire import Wire

SETTINGS = {"log_cleaner_backoff_ms": 100, "log_segment_delete_delay_ms": 0}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"}
NOW = time.time_ns() // 1_000_000
KEYS = 40


def write(wire: Wire, topic: str, first: int, batches: int) -> None:
    """Batches of 25 KB, a record for each key in each of them."""
    for number in range(first, first + batches):
        records = [NewRecord(b"%d" % key, b"%d." % number + bytes(600), NOW) for key in range(KEYS)]
        produced(wire, topic, bytes(build_batch(records)))


def cleaned_to(data: Path, topic: str) -> int:
    path = data / "cleaner-offset-checkpoint"
    return (
        next((o for tp, o in decode_offsets(path.read_bytes()).items() if tp.topic == topic), 0) if path.exists() else 0
    )


def active(data: Path, topic: str) -> int:
    return max(int(path.stem) for path in (data / f"{topic}-0").glob("*.log"))


def table(wire: Wire, topic: str) -> tuple[dict[bytes | None, bytes], int]:
    """What a consumer builds from the beginning, and how many records it had to read."""
    found: dict[bytes | None, bytes] = {}
    offset, count = 0, 0
    end = list_offset(wire, topic, -1).offset
    while offset < end:
        for record in records_in(fetch(wire, topic, offset).records):
            if record.offset >= offset:
                found[record.key] = (record.value or b"").partition(b".")[0]
                offset, count = record.offset + 1, count + 1
    return found, count


def test_a_node_compacts_in_the_background_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        create_topic(wire, "table", 1, COMPACTED)
        write(wire, "table", 0, 100)
        eventually(lambda: cleaned_to(tmp_path, "table") >= active(tmp_path, "table") > 0, "the first round")
        found, count = table(wire, "table")
        assert found == {b"%d" % key: b"99" for key in range(KEYS)}
        assert count < 100 * KEYS / 2
        eventually(lambda: not list(tmp_path.glob("table-0/*.deleted")), "the removal of old files")
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        before = cleaned_to(tmp_path, "table")
        write(wire, "table", 100, 50)
        eventually(lambda: cleaned_to(tmp_path, "table") >= active(tmp_path, "table") > before, "the next round")
        assert table(wire, "table")[0] == {b"%d" % key: b"149" for key in range(KEYS)}
    assert not list(tmp_path.glob("table-0/*.cleaned")) + list(tmp_path.glob("table-0/*.swap"))


def test_a_damaged_log_is_left_alone_and_the_others_are_cleaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(data_dir=tmp_path, log_cleaner_enable=False) as cluster, Wire(cluster.bootstrap_servers) as wire:
        for topic in ("damaged", "sound"):
            create_topic(wire, topic, 1, COMPACTED)
            write(wire, topic, 0, 60)
    first = min((tmp_path / "damaged-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[5000] ^= 1
    first.write_bytes(content)
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        eventually(lambda: cleaned_to(tmp_path, "sound") >= active(tmp_path, "sound") > 0, "the sound one's round")
        eventually(lambda: "cannot be compacted" in caplog.text, "the complaint")
        write(wire, "damaged", 60, 1)
    assert first.read_bytes() == content
    assert cleaned_to(tmp_path, "damaged") == 0


def test_a_node_stops_at_once_in_the_middle_of_a_round(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path, log_cleaner_io_max_bytes_per_second=100_000, **SETTINGS) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            create_topic(wire, "table", 1, COMPACTED)
            write(wire, "table", 0, 60)
        # At this pace the round takes a minute, so this is its middle.
        eventually(lambda: any((tmp_path / "table-0").glob("*.cleaned")), "the beginning of the round")
        began = time.monotonic()
    assert time.monotonic() - began < 20
    with Cluster(data_dir=tmp_path, **SETTINGS) as cluster, Wire(cluster.bootstrap_servers) as wire:
        eventually(lambda: cleaned_to(tmp_path, "table") >= active(tmp_path, "table") > 0, "the round")
        assert table(wire, "table")[0] == {b"%d" % key: b"59" for key in range(KEYS)}
