"""What a node does by itself: old segments go, fsync where a topic asks for it, memory stays bounded."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from ottla.testing import Cluster
from tests.support.nodes import Ottla
from tests.support.patience import eventually
from tests.support.requests import batch, create_topic, delete_topic, list_offset, produce, produced
from tests.support.wire import Deadline, Wire

EARLIEST = -2
KAFKA_STORAGE_ERROR = 56
MIB = 1 << 20
NOW = 1_700_000_000_000


@pytest.fixture(scope="module")
def busy_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """A node that keeps house every few milliseconds instead of every few minutes."""
    directory = tmp_path_factory.mktemp("busy")
    settings = {
        "log_retention_check_interval_ms": 20,
        "log_flush_offset_checkpoint_interval_ms": 50,
        "log_segment_delete_delay_ms": 0,
        "ottla_producer_ids_max": 10,
        "ottla_disk_reserve_bytes": 0,
    }
    with Cluster(data_dir=directory, **settings) as cluster:
        yield cluster, directory


@pytest.fixture
def wire(busy_node: tuple[Cluster, Path]) -> Iterator[Wire]:
    with Wire(busy_node[0].bootstrap_servers) as connection:
        yield connection


def fill(wire: Wire, topic: str, megabytes: int, timestamp: int) -> None:
    value = bytes(MIB // 2)
    for _ in range(2 * megabytes):
        produced(wire, topic, bytes(build_batch([NewRecord(None, value, timestamp)])))


def wait_for_start(wire: Wire, topic: str, at_least: int) -> None:
    deadline = Deadline(f"a log start of {at_least} in {topic}")
    while list_offset(wire, topic, EARLIEST).offset < at_least:
        deadline.check()


def segments(directory: Path, topic: str) -> list[str]:
    return sorted(
        path.name for path in (directory / f"{topic}-0").iterdir() if path.name.endswith((".log", ".deleted"))
    )


def test_segments_beyond_retention_bytes_go_and_their_files_with_them(
    busy_node: tuple[Cluster, Path], wire: Wire, topic: str
) -> None:
    create_topic(wire, topic, 1, {"segment.bytes": str(MIB), "retention.bytes": str(MIB), "retention.ms": "-1"})
    fill(wire, topic, 4, NOW)
    wait_for_start(wire, topic, 4)
    deadline = Deadline("the files of old segments to go")
    while len(segments(busy_node[1], topic)) > 3:
        deadline.check()


def test_segments_older_than_retention_ms_go_the_active_one_included(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, 1, {"segment.bytes": str(MIB), "retention.ms": "1000"})
    fill(wire, topic, 2, NOW)  # years ago
    wait_for_start(wire, topic, 4)
    assert produced(wire, topic, batch(1)) == 4


def test_a_topic_that_asks_for_fsync_acknowledges_what_is_on_the_disk(
    busy_node: tuple[Cluster, Path], wire: Wire, topic: str
) -> None:
    create_topic(wire, topic, 1, {"flush.messages": "1", "retention.ms": "-1"})
    for expected in range(5):
        assert produced(wire, topic, batch(1)) == expected
    deadline = Deadline("the recovery point of five records")
    checkpoint = busy_node[1] / "recovery-point-offset-checkpoint"
    while not checkpoint.exists() or f"{topic} 0 5" not in checkpoint.read_text():
        deadline.check()


def test_the_directory_of_a_deleted_topic_goes(busy_node: tuple[Cluster, Path], wire: Wire, topic: str) -> None:
    create_topic(wire, topic)
    produced(wire, topic, batch(3))
    delete_topic(wire, topic)
    deadline = Deadline("the directory to go")
    while any(path.name.startswith(topic) for path in busy_node[1].iterdir()):
        deadline.check()


def test_made_up_producer_ids_do_not_fill_the_memory(wire: Wire, topic: str) -> None:
    create_topic(wire, topic, 1, {"retention.ms": "-1"})
    for producer_id in range(1000, 1100):
        produced(wire, topic, batch(1, producer_id=producer_id, producer_epoch=0, base_sequence=0))
    deadline = Deadline("idle producers to be forgotten")
    while len(remembered(wire, topic)) > 10:
        deadline.check()
    assert produced(wire, topic, batch(1, producer_id=1000, producer_epoch=0, base_sequence=1)) == 100


def remembered(wire: Wire, topic: str) -> list[int]:
    asked = m.DescribeProducersRequest(topics=[m.DescribeProducersRequest.TopicRequest(topic, [0])])
    (part,) = wire.ask(asked).topics[0].partitions
    return [producer.producer_id for producer in part.active_producers]


def test_a_nearly_full_disk_refuses_produce_and_goes_on_serving_the_rest(tmp_path: Path, topic: str) -> None:
    with (
        Cluster(
            data_dir=tmp_path,
            ottla_disk_reserve_bytes=0,
            ottla_disk_low_water_bytes=1 << 60,
            ottla_disk_low_water_ratio="1.0",
        ) as cluster,
        Wire(cluster.bootstrap_servers) as wire,
    ):
        create_topic(wire, topic)
        part = produce(wire, topic, batch(1))
        assert (part.error_code, "nearly full" in part.error_message) == (KAFKA_STORAGE_ERROR, True)
        assert list_offset(wire, topic, EARLIEST).offset == 0


def test_a_directory_that_is_removed_goes_offline_and_the_other_one_goes_on(tmp_path: Path, topic: str) -> None:
    kept, removed = tmp_path / "kept", tmp_path / "removed"
    # Nobody writes to the directory: whoever watches the disks has to find out.
    never = {"replica.high.watermark.checkpoint.interval.ms": "86400000"}
    with (
        Ottla(tmp_path / "node", extra={"log.dirs": f"{kept},{removed}", **never}) as node,
        Wire(node.bootstrap) as wire,
    ):
        create_topic(wire, topic, 2)
        (lost,) = [index for index in range(2) if (removed / f"{topic}-{index}").exists()]
        shutil.rmtree(removed)
        eventually(lambda: "cannot be used any more: No such file or directory" in node.printed())
        assert produce(wire, topic, batch(1), partition=lost).error_code == KAFKA_STORAGE_ERROR
        assert produce(wire, topic, batch(1), partition=1 - lost).error_code == 0
        assert "Traceback" not in node.printed()


def test_a_node_whose_directory_is_emptied_stops_and_acknowledges_nothing_into_files_without_a_name(
    tmp_path: Path, topic: str
) -> None:
    with Ottla(tmp_path / "node") as node:
        with Wire(node.bootstrap) as wire:
            create_topic(wire, topic)
        # The directory itself stays, as after `rm -rf data/*` and `rm -rf data/.[a-z]*`; the lock is in it no more.
        for path in node.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        process = node.process
        assert process is not None
        eventually(lambda: process.poll() is not None)
        assert "its files were removed while the node ran" in node.printed()
        assert "is full" not in node.printed()
        assert "Traceback" not in node.printed()
