"""Byte for byte what Apache Kafka 4.3.1 writes: `kafka/` was made by KafkaFiles.java with Kafka's own UnifiedLog.

tests/peer/test_dump_log_reads_storage.py makes it again and compares; only the date in meta.properties is left out.
"""

import shutil
from pathlib import Path

import pytest

from ottla.model.ids import TopicPartition, parse_uuid
from ottla.protocol import batch as b
from ottla.storage import checkpoints, names
from ottla.storage.answers import COORDINATOR, Appended
from ottla.storage.checkpoints import MetaProperties
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import RealFilesystem
from ottla.storage.index import AbortedTxn
from ottla.storage.leading import append_as_leader
from ottla.storage.log import Log
from ottla.storage.opening import create_log, open_log
from ottla.storage.segment import OpenFiles
from ottla.testing.disk import SimDisk
from tests.rules.storage.scene import NOW, PARTITION, TOPIC_ID, a_batch, a_marker, values

KAFKA = Path(__file__).parent / "kafka"
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300)
LOG_FILES = sorted(path.name for path in (KAFKA / "orders-0").iterdir())


def write(log: Log) -> None:
    """The appends of KafkaFiles.java."""
    for number in range(40):
        batch = a_batch(b"v%d" % number, b"w", at=NOW + number, producer=(5, 0, 2 * number))
        assert isinstance(append_as_leader(log, batch, 1 + number // 10, NOW), Appended)
    for producer_id in (6, 7, 8):
        transactional = a_batch(b"t", producer=(producer_id, 0, 0), attributes=b.TRANSACTIONAL)
        append_as_leader(log, transactional, 9, NOW)
        if producer_id == 6:
            append_as_leader(log, a_marker(6, 0, commit=False), 9, NOW, origin=COORDINATOR)
    append_as_leader(log, a_marker(7, 0, commit=False), 9, NOW, origin=COORDINATOR)


def ours() -> dict[str, bytes]:
    disk = SimDisk()
    log = create_log(disk, "/data/orders-0", PARTITION, TOPIC_ID, CONFIG, now=NOW)
    write(log)
    log.close()
    return {path.removeprefix("/data/orders-0/"): bytes(inode.data) for path, inode in disk.names.items()}


def test_a_log_has_the_files_that_kafka_would_have_written() -> None:
    assert sorted(ours()) == LOG_FILES


@pytest.mark.parametrize("name", LOG_FILES)
def test_each_file_of_a_log_has_kafkas_bytes(name: str) -> None:
    assert ours()[name] == (KAFKA / "orders-0" / name).read_bytes()


def kafkas_directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KAFKA, tmp_path / "data"))


@pytest.mark.parametrize("clean", [True, False])
def test_a_directory_of_kafkas_is_read_as_kafka_left_it(tmp_path: Path, clean: bool) -> None:
    root = kafkas_directory(tmp_path)
    if not clean:
        (root / names.CLEAN_SHUTDOWN).unlink()
    directory = LogDirectory.open(OpenFiles(RealFilesystem()), str(root))
    assert (directory.was_clean, directory.clean_broker_epoch) == ((True, 42) if clean else (False, None))
    directory.load(lambda topic: CONFIG, NOW)
    log = directory.logs[PARTITION]
    assert (log.topic_id, log.log_start_offset, log.log_end_offset, log.recovery_point) == (TOPIC_ID, 0, 85, 85)
    assert list(zip(log.epochs.epochs, log.epochs.starts, strict=True)) == [(1, 0), (2, 20), (3, 40), (4, 60), (9, 80)]
    assert len(values(log)) == 83
    assert log.segments[1].aborted_txns() == [AbortedTxn(6, 80, 81, 82), AbortedTxn(7, 82, 84, 83)]
    assert [(p.producer_id, p.last_sequence, p.txn_start_offset) for p in log.active_producers()] == [
        (5, 79, -1),
        (6, 0, -1),
        (7, 0, -1),
        (8, 0, 83),
    ]
    assert log.producers.first_ongoing == 83


@pytest.mark.parametrize("suffix", [names.INDEX, names.TIME_INDEX, names.TXN_INDEX, names.SNAPSHOT])
def test_recovery_rebuilds_kafkas_bytes(tmp_path: Path, suffix: str) -> None:
    root = kafkas_directory(tmp_path)
    for path in (root / "orders-0").glob(f"*{suffix}"):
        path.unlink()
    log = open_log(
        RealFilesystem(),
        f"{root}/orders-0",
        PARTITION,
        None,
        CONFIG,
        now=NOW,
        clean=False,
        recovery_point=0,
        log_start_offset=0,
    )
    log.close()
    rebuilt = {path.name: path.read_bytes() for path in (root / "orders-0").iterdir()}
    assert rebuilt == {path.name: path.read_bytes() for path in (KAFKA / "orders-0").iterdir()}


def test_the_checkpoints_of_a_directory() -> None:
    offsets = {TopicPartition("orders", 0): 85}
    data = (KAFKA / names.RECOVERY_POINTS).read_bytes()
    assert (checkpoints.encode_offsets(offsets), checkpoints.decode_offsets(data)) == (data, offsets)
    marker = (KAFKA / names.CLEAN_SHUTDOWN).read_bytes()
    assert (checkpoints.encode_clean_shutdown(42), checkpoints.decode_clean_shutdown(marker)) == (marker, 42)


def test_meta_properties_hold_the_same_lines_in_whatever_order() -> None:
    meta = MetaProperties("6PMpHYL9QkeyXRj9Nrp4KA", 1, parse_uuid("AAECAwQFBgcICQoLDA0ODw"))
    data = (KAFKA / names.META_PROPERTIES).read_bytes()
    assert checkpoints.decode_meta_properties(data) == meta
    assert sorted(checkpoints.encode_meta_properties(meta).splitlines()) == sorted(data.splitlines())
