"""Moves between log directories (KIP-113), by Apache's own tools, and begun by one server and finished by the other."""

import json
from pathlib import Path

import pytest

from ottla.protocol import messages as m
from tests.support.jvm import Tools
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.patience import eventually
from tests.support.requests import create_topic, list_offset, produced, settle, wait_for_topic
from tests.support.wire import Wire
from tests.wire.test_log_dirs import LATEST, big_batch, described, limit, moved

pytestmark = [pytest.mark.jvm, pytest.mark.matrix]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def test_kafka_reassign_partitions_moves_between_directories(java_tools: Tools, tmp_path: Path, topic: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    plan = tmp_path / "plan.json"
    with Ottla(tmp_path / "node", extra={"log.dirs": f"{one},{two}"}) as node, Wire(node.bootstrap) as wire:
        create_topic(wire, topic, 2)
        for partition in range(2):
            produced(wire, topic, big_batch(), partition=partition)
        rows = [{"topic": topic, "partition": p, "replicas": [1], "log_dirs": [str(two)]} for p in range(2)]
        plan.write_text(json.dumps({"version": 1, "partitions": rows}))
        words = ("--bootstrap-server", node.bootstrap, "--reassignment-json-file", str(plan))
        limited = ("--replica-alter-log-dirs-throttle", "100000000")
        assert "Successfully started moving log directory to" in java_tools.must(
            REASSIGN, *words, "--execute", *limited
        )
        eventually(lambda: "still in progress" not in java_tools.must(REASSIGN, *words, "--verify"))
        assert {path.name for path in two.glob(f"{topic}-?")} == {f"{topic}-0", f"{topic}-1"}
        report = java_tools.must("LogDirsCommand", "--bootstrap-server", node.bootstrap, "--describe")
        (broker,) = json.loads(report.splitlines()[-1])["brokers"]
        found = {Path(each["logDir"]).name: each["partitions"] for each in broker["logDirs"]}
        assert {(p["partition"], p["offsetLag"], p["isFuture"]) for p in found["two"]} >= {(f"{topic}-0", 0, False)}
        assert not any(p["partition"].startswith(topic) for p in found["one"])


@pytest.mark.parametrize("kinds", [(Ottla, ApacheKafka), (ApacheKafka, Ottla)], ids=lambda kinds: kinds[0].__name__)
def test_a_move_that_one_server_began_is_finished_by_the_other(
    tmp_path: Path, topic: str, kinds: tuple[type[Node], type[Node]]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    extra = {"log.dirs": f"{one},{two}", "replica.fetch.max.bytes": "200000"}
    first, second = (kind(tmp_path / kind.__name__, data=one, extra=extra) for kind in kinds)
    second.properties.write_text(first.properties.read_text())  # the same ports
    second.port = first.port
    with first, Wire(first.bootstrap) as wire:
        settle(wire)
        create_topic(wire, topic)
        wait_for_topic(wire, topic)
        source, target = (one, two) if (one / f"{topic}-0").exists() else (two, one)
        for _ in range(20):
            produced(wire, topic, big_batch())
        limit(wire, 1)
        assert moved(wire, topic, target) == 0
        eventually(lambda: described(wire, topic)[target.name] == [(True, True)])
    with second, Wire(second.bootstrap) as wire:
        wait_for_topic(wire, topic)
        limit(wire, 1 << 40)
        eventually(lambda: described(wire, topic) == {source.name: [], target.name: [(False, False)]})
        assert list_offset(wire, topic, LATEST).offset == 2_000
        found = wire.ask(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)])).topics
        assert [part.offline_replicas for part in found[0].partitions] == [[]]
