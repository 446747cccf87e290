"""A broker with two log directories: replicas move from one to the other while clients work (KIP-113)."""

from pathlib import Path

from ottla.protocol import messages as m
from ottla.protocol.records import NewRecord, build_batch
from tests.support.nodes import Ottla
from tests.support.patience import eventually
from tests.support.requests import NOON, batch, create_topic, list_offset, produced
from tests.support.wire import Wire, versions

LIMIT = "replica.alter.log.dirs.io.max.bytes.per.second"
LATEST = -1
LOG_DIR_NOT_FOUND, REPLICA_NOT_AVAILABLE = 57, 9


def big_batch() -> bytes:
    return bytes(build_batch([NewRecord(None, b"x" * 2_000, NOON)] * 100))


def described(wire: Wire, topic: str) -> dict[str, list[tuple[bool, bool]]]:
    """By directory: for each log there, whether it is a future one, and whether it is behind."""
    rows = [m.DescribeLogDirsRequest.DescribableLogDirTopic(topic, [0])]
    results = wire.ask(m.DescribeLogDirsRequest(topics=rows)).results
    return {
        Path(each.log_dir).name: [(p.is_future_key, p.offset_lag > 0) for t in each.topics for p in t.partitions]
        for each in results
    }


def moved(wire: Wire, topic: str, path: Path, version: int = 2, partition: int = 0) -> int:
    kind = m.AlterReplicaLogDirsRequest
    rows = [kind.AlterReplicaLogDir(str(path), [kind.AlterReplicaLogDirTopic(topic, [partition])])]
    ((part,),) = [found.partitions for found in wire.ask(kind(rows), version).results]
    return int(part.error_code)


def limit(wire: Wire, value: int) -> None:
    kind = m.IncrementalAlterConfigsRequest
    change = kind.AlterableConfig(LIMIT, 0, str(value))
    (answer,) = wire.ask(kind(resources=[kind.AlterConfigsResource(4, "", [change])])).responses
    assert answer.error_code == 0, answer.error_message


def test_a_replica_moves_while_it_is_written_to_and_through_a_kill(tmp_path: Path, topic: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    node = Ottla(tmp_path / "node", extra={"log.dirs": f"{one},{two}"})
    with node, Wire(node.bootstrap) as wire:
        create_topic(wire, topic)
        source, target = (one, two) if (one / f"{topic}-0").exists() else (two, one)
        for _ in range(20):
            produced(wire, topic, big_batch())
        limit(wire, 1)
        assert [moved(wire, topic, target, version) for version in versions(34)] == [0, 0]
        eventually(lambda: described(wire, topic) == {source.name: [(False, False)], target.name: [(True, True)]})
        assert len(list(target.glob(f"{topic}-0.*-future"))) == 1
        node.kill()
    with node, Wire(node.bootstrap) as wire:
        assert described(wire, topic) == {source.name: [(False, False)], target.name: [(True, True)]}
        produced(wire, topic, big_batch())
        limit(wire, 1 << 40)
        eventually(lambda: described(wire, topic) == {source.name: [], target.name: [(False, False)]})
        assert (target / f"{topic}-0").exists() and not (source / f"{topic}-0").exists()
        assert list_offset(wire, topic, LATEST).offset == 2_100
        produced(wire, topic, batch(1))
        assert moved(wire, topic, tmp_path / "three") == LOG_DIR_NOT_FOUND
        assert moved(wire, topic, source, partition=7) == REPLICA_NOT_AVAILABLE
    assert "Traceback" not in node.printed()
