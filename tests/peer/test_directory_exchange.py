"""A directory that one server wrote is a directory of the other: people can move in, and out again."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from tests.support.jvm import Tools
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.requests import (
    batch,
    create_topic,
    delete_records,
    delete_topic,
    describe_topic,
    fetch,
    list_offset,
    produced,
    producer_id,
    records_in,
    settle,
    wait_for_topic,
)
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

SETTINGS = {"log.segment.bytes": "1048576"}
NOW = time.time_ns() // 1_000_000 - 60_000
"""Recent, or a restart would find the records too old to keep and the producers too old to remember."""
TOPICS = {"codecs": 1, "segments": 2, "compacted": 1, "trimmed": 1, "empty": 3, "idempotent": 1}


class Contents(NamedTuple):
    """All that a client can see of a server."""

    cluster_id: str
    topics: dict[str, tuple[bytes, int]]
    """Name to id and number of partitions."""
    records: dict[tuple[str, int], list[tuple[int, int, bytes | None, bytes | None, Any]]]
    ends: dict[tuple[str, int], tuple[int, int, int]]
    """Earliest, latest and the offset for a time."""
    configs: dict[str, dict[str, str]]
    producers: list[tuple[int, int, int]]


def fill(wire: Wire) -> tuple[int, int]:
    """Writes something of everything; returns an idempotent producer's id and epoch."""
    for topic, partitions in TOPICS.items():
        create_topic(wire, topic, partitions, {"cleanup.policy": "compact"} if topic == "compacted" else None)
    create_topic(wire, "deleted", 2)
    for codec in range(5):
        given = [
            NewRecord(b"k%d" % i, b"v%d" % i * 9, NOW + codec * 1000 + i, (("h", b"x"), ("n", None))) for i in range(40)
        ]
        produced(wire, "codecs", bytes(build_batch(given, codec=codec)))
    for number in range(60):
        value = bytes([number]) * 50_000
        produced(wire, "segments", bytes(build_batch([NewRecord(b"k", value, NOW + number)])), partition=number % 2)
    produced(wire, "compacted", batch(30, start=NOW))
    produced(wire, "trimmed", batch(10, start=NOW))
    produced(wire, "trimmed", batch(10, start=NOW))
    assert delete_records(wire, "trimmed", 13).low_watermark == 13
    id_, epoch = producer_id(wire)
    for sequence in range(0, 14, 2):
        produced(wire, "idempotent", sequenced(id_, epoch, sequence))
    change = m.IncrementalAlterConfigsRequest
    rows = [change.AlterableConfig(name="retention.ms", config_operation=0, value="7777777777")]
    wire.ask(change(resources=[change.AlterConfigsResource(resource_type=2, resource_name="codecs", configs=rows)]))
    delete_topic(wire, "deleted")
    settle(wire)
    return id_, epoch


def sequenced(id_: int, epoch: int, sequence: int) -> bytes:
    return batch(2, start=NOW, producer_id=id_, producer_epoch=epoch, base_sequence=sequence)


def read(wire: Wire) -> Contents:
    names = sorted(t.name for t in wire.ask(m.MetadataRequest(topics=None)).topics if not t.is_internal)
    topics = {name: (describe_topic(wire, name).topic_id, len(describe_topic(wire, name).partitions)) for name in names}
    for name, (_, partitions) in topics.items():
        wait_for_topic(wire, name, partitions)  # a server that has just started may not lead all of them yet
    places = [(name, partition) for name, (_, count) in topics.items() for partition in range(count)]
    ends = {
        (name, partition): (
            list_offset(wire, name, -2, partition=partition).offset,
            list_offset(wire, name, -1, partition=partition).offset,
            list_offset(wire, name, NOW + 20, partition=partition).offset,
        )
        for name, partition in places
    }
    who = m.DescribeProducersRequest(
        topics=[m.DescribeProducersRequest.TopicRequest(name="idempotent", partition_indexes=[0])]
    )
    (producers,) = wire.ask(who).topics[0].partitions
    return Contents(
        wire.ask(m.DescribeClusterRequest()).cluster_id,
        topics,
        {(name, partition): list(all_records(wire, name, partition, ends)) for name, partition in places},
        ends,
        {name: own_configs(wire, name) for name in topics},
        [(p.producer_id, p.producer_epoch, p.last_sequence) for p in producers.active_producers],
    )


def same(seen: Contents, expected: Contents) -> bool:
    """Compares the small things first, so that a difference can be read."""
    assert seen._replace(records={}) == expected._replace(records={})
    for place, records in expected.records.items():
        assert seen.records[place] == records, place
    return True


def untrimmed(contents: Contents) -> Contents:
    """Without what a kill may take back: the start of a log is written down each minute, not at each DeleteRecords."""
    place = ("trimmed", 0)
    return contents._replace(
        records={k: v for k, v in contents.records.items() if k != place},
        ends={k: v for k, v in contents.ends.items() if k != place},
    )


def all_records(
    wire: Wire, topic: str, partition: int, ends: dict[tuple[str, int], tuple[int, int, int]]
) -> Iterator[Any]:
    offset, end, _ = ends[topic, partition]
    while offset < end:
        part = fetch(wire, topic, offset, partition=partition)
        assert part.error_code == 0
        for record in records_in(part.records):
            if record.offset >= offset:
                yield record.offset, record.timestamp, record.key, record.value, record.headers
                offset = record.offset + 1


def own_configs(wire: Wire, topic: str) -> dict[str, str]:
    asked = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=None
    )
    (answer,) = wire.ask(m.DescribeConfigsRequest(resources=[asked])).results
    topic_level = 1
    return {entry.name: entry.value for entry in answer.configs if entry.config_source == topic_level}


def filled(node: Node) -> tuple[Contents, tuple[int, int]]:
    with node, Wire(node.bootstrap) as wire:
        producer = fill(wire)
        return read(wire), producer


def goes_on(wire: Wire, producer: tuple[int, int]) -> None:
    """The next server knows the producer's last batch (that one is in a snapshot), and takes its next one."""
    id_, epoch = producer
    assert produced(wire, "idempotent", sequenced(id_, epoch, 12)) == 12
    assert produced(wire, "idempotent", sequenced(id_, epoch, 14)) == 14
    assert produced(wire, "codecs", batch(1, start=NOW)) == 200
    create_topic(wire, "made-by-the-next", 2)
    assert produced(wire, "made-by-the-next", batch(1, start=NOW), partition=1) == 0


def moved(node: Node, to: Path) -> Path:
    """A copy of a stopped node's data."""
    assert node.process is None
    shutil.copytree(node.data, to, ignore=shutil.ignore_patterns(".lock"))
    return to


def test_apache_kafka_goes_on_where_ottla_stopped_and_ottla_again(tmp_path: Path) -> None:
    ottla = Ottla(tmp_path / "ottla", extra=SETTINGS)
    written, producer = filled(ottla)
    assert len(list((ottla.data / "segments-0").glob("*.log"))) > 1

    kafka = ApacheKafka(tmp_path / "kafka", moved(ottla, tmp_path / "moved"), SETTINGS)
    with kafka, Wire(kafka.bootstrap) as wire:
        assert same(read(wire), written)
        goes_on(wire, producer)
        then = read(wire)

    back = Ottla(tmp_path / "back", moved(kafka, tmp_path / "moved-back"), SETTINGS)
    with back, Wire(back.bootstrap) as wire:
        assert same(read(wire), then)


def test_ottla_goes_on_where_apache_kafka_stopped(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path / "kafka", extra=SETTINGS)
    written, producer = filled(kafka)

    ottla = Ottla(tmp_path / "ottla", moved(kafka, tmp_path / "moved"), SETTINGS)
    with ottla, Wire(ottla.bootstrap) as wire:
        assert same(read(wire), written)
        goes_on(wire, producer)
    assert "Traceback" not in ottla.printed()


def test_either_recovers_what_the_other_left_when_it_was_killed(tmp_path: Path) -> None:
    ottla = Ottla(tmp_path / "ottla", extra=SETTINGS)
    with ottla, Wire(ottla.bootstrap) as wire:
        producer = fill(wire)
        written = read(wire)
        ottla.kill()

    kafka = ApacheKafka(tmp_path / "kafka", moved(ottla, tmp_path / "moved"), SETTINGS)
    with kafka, Wire(kafka.bootstrap) as wire:
        assert same(untrimmed(read(wire)), untrimmed(written))
        goes_on(wire, producer)
        then = read(wire)
        kafka.kill()

    back = Ottla(tmp_path / "back", moved(kafka, tmp_path / "moved-back"), SETTINGS)
    with back, Wire(back.bootstrap) as wire:
        assert same(untrimmed(read(wire)), untrimmed(then))


DUMP = "DumpLogSegments"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of an ottla that was filled and stopped."""
    node = Ottla(tmp_path_factory.mktemp("dumped"), extra=SETTINGS)
    filled(node)
    return node.data


def test_dump_log_segments_reads_every_record(stopped: Path, java_tools: Tools) -> None:
    logs = sorted(stopped.glob("codecs-0/*.log"))
    out = java_tools.must(DUMP, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))

    for codec in ("NONE", "GZIP", "SNAPPY", "LZ4", "ZSTD", "none", "gzip", "snappy", "lz4", "zstd"):
        if codec.isupper():
            assert f"compresscodec: {codec.lower()}" in out.lower()
    assert out.count("| offset: ") == 200
    assert "isvalid: false" not in out
    assert "headerKeys: [h,n]" in out


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_dump_log_segments_finds_the_indexes_sane(stopped: Path, java_tools: Tools, kind: str) -> None:
    files = sorted(stopped.glob(f"segments-*/*.{kind}"))
    assert len(files) > 2

    for flag in ("--index-sanity-check", "--verify-index-only"):
        out = java_tools.must(DUMP, flag, "--files", ",".join(map(str, files)))
        assert "Found" not in out, out
        if flag == "--index-sanity-check":
            assert out.count("passed sanity check") == len(files)


def test_dump_log_segments_reads_producer_snapshots(stopped: Path, java_tools: Tools) -> None:
    files = sorted(stopped.glob("idempotent-0/*.snapshot"))
    assert files

    out = java_tools.must(DUMP, "--files", str(files[-1]))

    assert "producerEpoch: 0" in out
    assert "lastSequence: 13" in out or "lastSeq: 13" in out


def test_dump_log_segments_reads_the_metadata_log(stopped: Path, java_tools: Tools) -> None:
    logs = sorted(stopped.glob("__cluster_metadata-0/*.log"))
    out = java_tools.must(DUMP, "--cluster-metadata-decoder", "--files", ",".join(map(str, logs)))

    for kind in ("REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "FEATURE_LEVEL_RECORD"):
        assert kind in out
    assert "Could not decode" not in out and "isvalid: false" not in out


def test_dump_log_segments_reads_metadata_snapshots(stopped: Path, java_tools: Tools) -> None:
    files = sorted(stopped.glob("__cluster_metadata-0/*.checkpoint")) + sorted(stopped.glob("bootstrap.checkpoint"))
    assert files
    for file in files:
        out = java_tools.must(DUMP, "--cluster-metadata-decoder", "--files", str(file))
        assert "FEATURE_LEVEL_RECORD" in out
        assert "Could not decode" not in out and "isvalid: false" not in out
