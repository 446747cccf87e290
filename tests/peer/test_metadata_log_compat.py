"""The metadata log beside Apache Kafka's: either starts on what the other wrote, with voters kept in the log (KIP-853).

One directory goes through all hands: Kafka writes it, ottla takes it over and snapshots it, Kafka's dump tool reads
that, and Kafka starts on it again. The exchange of a whole node with a static quorum is test_directory_exchange.py.
"""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.metadata.batches import Batch, read_batches
from ottla.metadata.features import UNSERVED
from ottla.metadata.image import MetadataImage
from ottla.metadata.replay import Replayer, image_of
from ottla.model.ids import uuid_text
from ottla.model.properties import Settings
from ottla.net.peer import SocketPeers
from ottla.protocol import messages as m
from ottla.raft.snapshots import SUFFIX, SnapshotId, decode_snapshot, parse_name
from ottla.runtime.clock import SystemClock, SystemIds
from ottla.runtime.committed import CommittedImage
from ottla.runtime.control_plane import ControlPlane
from ottla.runtime.formatting import identify
from ottla.runtime.lifecycle import BrokerLifecycle
from ottla.storage.fs import RealFilesystem
from tests.support import jvm
from tests.support.jvm import Tools
from tests.support.nodes import ApacheKafka
from tests.support.patience import eventually
from tests.support.requests import metadata_end, producer_id
from tests.support.wire import Wire

pytestmark = pytest.mark.jvm

LOG = "__cluster_metadata-0"
SNAPSHOT_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "300"}


class Standalone(ApacheKafka):
    """Apache Kafka with a quorum of one whose voters live in the log."""

    def __init__(self, directory: Path, data: Path | None = None) -> None:
        super().__init__(directory, data, SNAPSHOT_OFTEN)
        text = self.properties.read_text()
        text = re.sub(r"controller\.quorum\.voters=1@", "controller.quorum.bootstrap.servers=", text)
        self.properties.write_text(text)

    def format(self) -> None:
        words = ["kafka.tools.StorageTool", "format", "--standalone", "-t", "ottlaPeerClusterId0000"]
        command = jvm.java(self._jars, *words, "-c", str(self.properties))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def settings(self) -> Settings:
        return Settings.from_properties(self.properties.read_text())


def work(wire: Wire) -> None:
    """Something of everything the control plane keeps so far."""
    create = m.CreateTopicsRequest
    config = [create.CreatableTopicConfig(name="retention.ms", value="1000000")]
    names = ("kept", "grown", "deleted", "with.dots")
    topics = [create.CreatableTopic(name=n, num_partitions=2, replication_factor=1, configs=config) for n in names]
    wire.ask(create(topics=topics), 7)
    delete = m.DeleteTopicsRequest
    reply = wire.ask(delete(topics=[delete.DeleteTopicState(name="deleted")], timeout_ms=10_000), 6)
    assert [r.error_code for r in reply.responses] == [0], reply
    grow = m.CreatePartitionsRequest
    wire.ask(grow(topics=[grow.CreatePartitionsTopic(name="grown", count=5, assignments=None)], timeout_ms=10_000), 3)
    alter = m.IncrementalAlterConfigsRequest
    for kind, name, key, value in (
        (2, "kept", "max.message.bytes", "2000000"),
        (4, "", "log.cleaner.threads", "2"),
        (4, "1", "log.cleaner.backoff.ms", "10000"),
        (32, "a-group", "consumer.session.timeout.ms", "50000"),
        (16, "a-subscription", "interval.ms", "5000"),
    ):
        change = alter.AlterableConfig(name=key, config_operation=0, value=value)
        resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        reply = wire.ask(alter(resources=[resource]), 1)
        assert [r.error_code for r in reply.responses] == [0]
    quotas = m.AlterClientQuotasRequest
    entity = [quotas.EntityData(entity_type="user", entity_name=None)]
    operation = [quotas.OpData(key="producer_byte_rate", value=1024.0, remove=False)]
    reply = wire.ask(quotas(entries=[quotas.EntryData(entity=entity, ops=operation)]), 1)
    assert [r.error_code for r in reply.entries] == [0], reply
    producer_id(wire)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Kafka's directory after some work and a clean stop."""
    node = Standalone(tmp_path_factory.mktemp("kafka"))
    with node, Wire(node.bootstrap) as wire:
        work(wire)
        done = metadata_end(wire)
        # What Kafka writes when it has nothing to do counts as well, so that one more snapshot comes.
        eventually(lambda: snapshots(node.data)[-1].offset >= done, "a snapshot of all that was done")
    yield node


def snapshots(data: Path) -> list[SnapshotId]:
    found = [parse_name(path.name) for path in (data / LOG).iterdir()]
    return sorted(f.id for f in found if f is not None and f.suffix == SUFFIX)


def replayed_until(data: Path, offset: int) -> MetadataImage:
    """The image of the whole log below `offset`, no snapshot used."""
    replayer = Replayer(MetadataImage())
    for batch in read_batches((data / LOG / "00000000000000000000.log").read_bytes()):
        if batch.last_offset >= offset:
            break
        if batch.is_control:
            replayer.control_batch(batch.last_offset, batch.epoch, batch.timestamp)
        else:
            replayer.batch(batch.records, batch.base_offset, batch.epoch, batch.timestamp)
    return replayer.take()[1]


def test_kafkas_log_replays_into_the_image_that_kafka_itself_has(kafka: Standalone) -> None:
    taken = [s for s in snapshots(kafka.data) if s.offset > 0]
    assert len(taken) >= 2
    for snapshot in taken:
        content = decode_snapshot((kafka.data / LOG / f"{snapshot.stem}{SUFFIX}").read_bytes())
        ours = replayed_until(kafka.data, snapshot.offset)
        theirs = image_of(content.records, offset=ours.offset, epoch=ours.epoch, timestamp=ours.timestamp)
        assert theirs == ours
        assert (ours.offset, ours.epoch) == (snapshot.offset - 1, snapshot.epoch)
    assert {"kept", "grown"} <= set(theirs.topics) and theirs.client_quotas and theirs.next_producer_id == 1000
    assert sorted(replayed_until(kafka.data, 1 << 62).topics) == ["grown", "kept", "with.dots"]


def test_both_format_a_directory_alike_but_for_what_is_not_served_here(kafka: Standalone, tmp_path: Path) -> None:
    text = kafka.properties.read_text().replace(str(kafka.data), str(tmp_path / "data"))
    identify(Settings.from_properties(text), RealFilesystem(), SystemClock(), SystemIds())
    for name in ("bootstrap.checkpoint", f"{LOG}/00000000000000000000-0000000000.checkpoint"):
        ours = [records_of(batch) for batch in read_batches((tmp_path / "data" / name).read_bytes())]
        theirs = [records_of(batch) for batch in read_batches((kafka.data / name).read_bytes())]
        assert ours == [
            [record for record in batch if not any(f"'{name}'" in record for name in UNSERVED)] for batch in theirs
        ]


def records_of(batch: Batch) -> list[str]:
    return [without_what_is_random(repr(record)) for record in batch.records]


def without_what_is_random(text: str) -> str:
    text = re.sub(r"voter_directory_id=b(['\"]).*?\1, endpoints", "voter_directory_id=X, endpoints", text)
    return re.sub(r"last_contained_log_timestamp=[1-9]\d*", "last_contained_log_timestamp=T", text)


async def taken_over(settings: Settings) -> tuple[MetadataImage, MetadataImage]:
    """ottla's control plane on Kafka's directory: as it was found, and after a topic, a snapshot and another topic."""
    plane = ControlPlane.open(settings, peers=SocketPeers(asyncio.get_running_loop(), "test"))
    log = plane.raft.metadata_log
    whole = CommittedImage(log.load(""))
    whole.follow(log.log, log.end_offset)
    found = whole.image
    await plane.start()
    broker = BrokerLifecycle(settings, plane, SystemIds(), settings.advertised_listeners)
    await broker.register()
    await broker.unfence()
    create = m.CreateTopicsRequest
    for name in ("by-ottla", "after-the-snapshot"):
        await plane.submit(create(topics=[create.CreatableTopic(name=name, num_partitions=3, replication_factor=1)]))
        if name == "by-ottla":
            plane._quorum._snapshots.take_if_changed()
            await plane._quorum._snapshots.written()
    await plane.close()
    return found, plane.image


def payloads(dump: str) -> list[dict[str, object]]:
    return [json.loads(line.split(" payload: ", 1)[1]) for line in dump.splitlines() if " payload: " in line]


def test_a_directory_goes_from_kafka_to_ottla_and_back(kafka: Standalone, tmp_path: Path, java_tools: Tools) -> None:
    data = tmp_path / "data"
    shutil.copytree(kafka.data, data)
    node = Standalone(tmp_path, data)
    found, left = asyncio.run(taken_over(node.settings()))
    assert found._replace(cluster_id="") == replayed_until(kafka.data, 1 << 62)

    latest = data / LOG / f"{snapshots(data)[-1].stem}{SUFFIX}"
    for path in (data / LOG / "00000000000000000000.log", latest):
        dump = java_tools.must("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path))
        assert "isvalid: false" not in dump
        batches = list(read_batches(path.read_bytes()))
        kinds = [re.sub(r"(?<!^)(?=[A-Z])", "_", type(r).__name__).upper() for b in batches for r in b.records]
        assert [p["type"] for p in payloads(dump)] == [k for k in kinds if k in KNOWN_KINDS]
        assert "KRaftVoters" in dump

    with node, Wire(node.bootstrap) as wire:
        reply = wire.ask(m.MetadataRequest(topics=None), 12)
        assert {t.name: (uuid_text(t.topic_id), len(t.partitions)) for t in reply.topics} == {
            t.name: (uuid_text(t.id), len(t.partitions)) for t in left.topics.values()
        }
        assert all(p.leader_id == 1 and p.error_code == 0 for t in reply.topics for p in t.partitions)


KNOWN_KINDS = frozenset(
    re.sub(r"(?<!^)(?=[A-Z])", "_", m.METADATA_RECORDS[key].__name__).upper() for key in m.METADATA_RECORDS
)
