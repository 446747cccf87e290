"""What the cleaner leaves, beside Apache Kafka: its tools read it, it serves it, its own cleaner leaves the same."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from ottla.model.ids import TopicPartition
from ottla.protocol import batch as b
from ottla.protocol.records import Record, read_records
from ottla.storage.checkpoints import decode_offsets
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.fs import RealFilesystem
from ottla.storage.log import Log
from ottla.storage.segment import OpenFiles
from tests.rules.storage.cleaning import Pair, end, put
from tests.support.jvm import Tools
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.patience import eventually
from tests.support.requests import batches_in, create_topic, fetch, list_offset, settle, wait_for_topic
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

TOPIC = "table"
PARTITION = TopicPartition(TOPIC, 0)
NOW = time.time_ns() // 1_000_000
CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": "1048576",
    "delete.retention.ms": "0",
}
CLEANING = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "0"}
PRODUCERS = (1001, 1002, 1003)


def story(log: Log) -> None:
    """Keys again and again, tombstones, every codec, producers with and without transactions that end both ways."""
    dice = Random(11)
    sequences = dict.fromkeys(PRODUCERS, 0)
    open_: set[int] = set()
    for turn in range(900):
        pairs: list[Pair] = []
        for _ in range(dice.randint(1, 12)):
            value = None if dice.random() < 0.1 else dice.randbytes(dice.randint(1, 700))
            pairs.append((b"key-%d" % dice.randrange(200), value))
        at = NOW - 600_000 + turn * 100
        producer = dice.choice((None, None, *PRODUCERS))
        codec = dice.choice((0, 0, 0, 1, 2, 3, 4))
        if producer is None:
            put(log, *pairs, at=at, codec=codec)
        else:
            if producer in open_ or dice.random() < 0.6:
                open_.add(producer)
            attributes = b.TRANSACTIONAL if producer in open_ else 0
            put(log, *pairs, at=at, codec=codec, attributes=attributes, producer=(producer, 0, sequences[producer]))
            sequences[producer] += len(pairs)
            if producer in open_ and dice.random() < 0.3:
                end(log, producer, 0, commit=dice.random() < 0.5, at=at)
                open_.discard(producer)
        if turn in (300, 600):
            log.roll(at)
    for producer in sorted(open_):
        end(log, producer, 0, commit=True, at=NOW - 1000)
    log.roll(NOW)
    put(log, (b"last", b"x"), at=NOW)


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory whose one compacted topic nobody has cleaned."""
    node = Ottla(tmp_path_factory.mktemp("dirty"), extra={"log.cleaner.enable": "false"})
    with node, Wire(node.bootstrap) as wire:
        create_topic(wire, TOPIC, 1, CONFIGS)
        settle(wire)
    happens(node.data, story)
    return node.data


def happens(data: Path, what: Callable[[Log], None]) -> None:
    """To the log of a stopped node."""
    directory = LogDirectory.open(OpenFiles(RealFilesystem()), str(data))
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=1 << 20)
    directory.load(lambda _: config, NOW)
    what(directory.logs[PARTITION])
    directory.close()


def sequel(log: Log) -> None:
    """Some keys come again, one producer goes on, and what had a delete horizon is past it."""
    for number in range(0, 200, 3):
        put(log, (b"key-%d" % number, b"new"), at=NOW)
    end(log, PRODUCERS[0], 0, commit=False, at=NOW)
    log.roll(NOW)
    put(log, (b"very last", b"x"), at=NOW)


def cleaned_by(node: Node) -> Path:
    """Its log, after the cleaner has reached the active segment."""
    log = node.data / f"{TOPIC}-0"
    active = max(int(path.stem) for path in log.glob("*.log"))
    checkpoint = node.data / "cleaner-offset-checkpoint"
    with node:
        eventually(lambda: checkpoint.exists() and decode_offsets(checkpoint.read_bytes()).get(PARTITION, 0) >= active)
    return log


@pytest.fixture(scope="module")
def cleaned(dirty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log as ottla's cleaner leaves it."""
    base = tmp_path_factory.mktemp("ottla")
    shutil.copytree(dirty, base / "data")
    return cleaned_by(Ottla(base / "node", base / "data", CLEANING))


class Left(NamedTuple):
    """All that is left of a batch, but for what the moment of cleaning decides: the delete horizon and its base."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    max_timestamp: int
    producer: tuple[int, int, int]
    records: tuple[Record, ...]


def left(log: Path) -> dict[str, list[Left]]:
    return {path.name: list(left_in(path)) for path in sorted(log.glob("*.log"))}


def left_in(path: Path) -> Iterator[Left]:
    for batch in batches_in(path.read_bytes()):
        header = b.read_header(batch)
        assert header.crc == b.computed_crc(batch)
        yield Left(
            header.base_offset,
            header.last_offset,
            header.leader_epoch,
            header.attributes,
            header.max_timestamp,
            (header.producer_id, header.producer_epoch, header.base_sequence),
            tuple(read_records(batch)),
        )


def test_apache_kafkas_cleaner_leaves_the_same(dirty: Path, cleaned: Path, tmp_path: Path) -> None:
    shutil.copytree(dirty, tmp_path / "theirs")
    theirs = cleaned_by(ApacheKafka(tmp_path / "kafka", tmp_path / "theirs", CLEANING))
    assert_the_same(cleaned, theirs)
    batches = [one for segment in left(cleaned).values() for one in segment]
    assert any(not one.records for one in batches), "no batch stayed for its producer alone"
    assert any(one.attributes & b.CONTROL for one in batches)
    assert list(cleaned.glob("*.txnindex"))


@pytest.mark.matrix
def test_apache_kafkas_cleaner_leaves_the_same_in_a_second_round(cleaned: Path, tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        shutil.copytree(cleaned.parent, tmp_path / name, ignore=shutil.ignore_patterns(".lock"))
        happens(tmp_path / name, sequel)
    theirs = cleaned_by(ApacheKafka(tmp_path / "kafka", tmp_path / "theirs", CLEANING))
    mine = cleaned_by(Ottla(tmp_path / "ottla", tmp_path / "mine", CLEANING))
    assert_the_same(mine, theirs)
    assert tombstones_and_markers(cleaned) > tombstones_and_markers(mine)


def tombstones_and_markers(log: Path) -> tuple[int, int]:
    batches = [one for segment in left(log).values() for one in segment]
    tombstones = sum(record.value is None for one in batches for record in one.records)
    return tombstones, sum(bool(one.attributes & b.CONTROL) for one in batches)


def assert_the_same(mine_log: Path, theirs: Path) -> None:
    mine, expected = left(mine_log), left(theirs)
    assert list(mine) == list(expected)
    for name, batches in expected.items():
        assert mine[name] == batches
    assert {path.name: path.read_bytes() for path in mine_log.glob("*.txnindex")} == {
        path.name: path.read_bytes() for path in theirs.glob("*.txnindex")
    }


def test_dump_log_segments_reads_cleaned_segments(cleaned: Path, java_tools: Tools) -> None:
    logs = sorted(cleaned.glob("*.log"))
    out = java_tools.must(
        "DumpLogSegments", "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs))
    )
    assert out.count("| offset: ") == sum(len(one.records) for batches in left(cleaned).values() for one in batches)
    assert "isvalid: false" not in out
    assert "deleteHorizonMs: OptionalLong[" in out
    for kind in ("index", "timeindex"):
        files = [str(path) for path in sorted(cleaned.glob(f"*.{kind}"))]
        for flag in ("--index-sanity-check", "--verify-index-only"):
            assert "Found" not in java_tools.must("DumpLogSegments", flag, "--files", ",".join(files))
    for path in cleaned.glob("*.txnindex"):
        assert "producerId: " in java_tools.must("DumpLogSegments", "--files", str(path))


def test_apache_kafka_serves_what_ottla_has_cleaned(cleaned: Path, tmp_path: Path) -> None:
    shutil.copytree(cleaned.parent, tmp_path / "data", ignore=shutil.ignore_patterns(".lock"))
    kafka = ApacheKafka(tmp_path / "kafka", tmp_path / "data", {"log.cleaner.enable": "false"})
    with kafka, Wire(kafka.bootstrap) as wire:
        wait_for_topic(wire, TOPIC)
        served = list(served_by(wire))
    assert served == [record for batches in left(cleaned).values() for one in batches for record in one.records]


def served_by(wire: Wire) -> Iterator[Record]:
    offset = list_offset(wire, TOPIC, -2).offset
    while offset < list_offset(wire, TOPIC, -1).offset:
        part = fetch(wire, TOPIC, offset)
        assert part.error_code == 0
        for batch in batches_in(part.records):
            yield from (record for record in read_records(batch) if record.offset >= offset)
            offset = b.read_header(batch).last_offset + 1
