"""Apache Kafka reads what the storage room writes, and writes what its golden files say."""

import subprocess
from pathlib import Path

import pytest

from ottla.storage.config import LogConfig
from ottla.storage.fs import RealFilesystem
from ottla.storage.opening import create_log
from tests.golden.storage.test_files import KAFKA, write
from tests.rules.storage.scene import NOW, PARTITION, TOPIC_ID
from tests.support.jvm import compiled, java, kafka_jars, run_alone

pytestmark = pytest.mark.jvm

DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("storage") / "orders-0"
    config = LogConfig(segment_bytes=3000, index_interval_bytes=300)
    log = create_log(RealFilesystem(), str(path), PARTITION, TOPIC_ID, config, now=NOW)
    write(log)
    log.close()
    return path


def files(directory: Path, *suffixes: str) -> str:
    return ",".join(str(path) for path in sorted(directory.iterdir()) if path.suffix in suffixes)


def test_dump_log_finds_every_batch_and_record_sound(log_dir: Path) -> None:
    out = run_alone(DUMP, "--deep-iteration", "--files", files(log_dir, ".log"))
    batches = [line for line in out.splitlines() if line.startswith("baseOffset: ")]
    assert len(batches) == 45
    assert all("isvalid: true" in line for line in batches)
    assert sum(line.startswith("| offset: ") for line in out.splitlines()) == 85
    assert out.count("endTxnMarker: ABORT coordinatorEpoch: 0") == 2


def test_dump_log_finds_the_indexes_sane_and_true_to_the_log(log_dir: Path) -> None:
    out = run_alone(DUMP, "--index-sanity-check", "--files", files(log_dir, ".index", ".timeindex"))
    assert out.count("passed sanity check.") == 4
    out = run_alone(DUMP, "--verify-index-only", "--files", files(log_dir, ".index", ".timeindex"))
    assert "mismatch" not in out.lower()
    assert "Found timestamp" not in out


def test_dump_log_reads_snapshots_and_transaction_indexes(log_dir: Path) -> None:
    out = run_alone(DUMP, "--files", files(log_dir, ".txnindex", ".snapshot"))
    assert "version: 0 producerId: 6 firstOffset: 80 lastOffset: 81 lastStableOffset: 82" in out
    assert "version: 0 producerId: 7 firstOffset: 82 lastOffset: 84 lastStableOffset: 83" in out
    assert "producerId: 8 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[83]" in out


def test_the_golden_files_are_still_what_kafka_writes(tmp_path: Path) -> None:
    jars = kafka_jars()
    classes = compiled(jars, KAFKA.parent / "KafkaFiles.java")
    fresh = tmp_path / "kafka"
    fresh.mkdir()
    done = subprocess.run(
        java(jars, "KafkaFiles", str(fresh), classes=classes), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    golden = {path.relative_to(KAFKA): path.read_bytes() for path in KAFKA.rglob("*") if path.is_file()}
    made = {path.relative_to(fresh): path.read_bytes() for path in fresh.rglob("*") if path.is_file()}
    dated = Path("meta.properties")
    made[dated] = b"".join(line for line in made[dated].splitlines(True) if not line.startswith(b"#") or line == b"#\n")
    assert made == golden
