"""Java Connect 4.3.1 and our worker, asked the same in the same order, in front of one node each and of the same kind:
answers are equal but for the differences that are named here. Then each goes on with the topics of the other."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster
from tests.peer.connect_script import held_with
from tests.support import jvm
from tests.support.connect_workers import Answered, ConnectWorker, ask
from tests.support.hosted_worker import HostedWorker
from tests.support.nodes import free_ports
from tests.support.patience import eventually
from tests.support.programs import Program

pytestmark = [pytest.mark.jvm, pytest.mark.matrix]

FILES = "org.apache.kafka.connect.file"
JSON = "org.apache.kafka.connect.json.JsonConverter"
SETTINGS = {
    "group.id": "connect-cluster",
    "key.converter": JSON,
    "value.converter": JSON,
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    "offset.storage.partitions": "2",
    "status.storage.partitions": "2",
    "offset.flush.interval.ms": "100",
    "scheduled.rebalance.max.delay.ms": "0",
    "topic.creation.enable": "true",
    "plugin.discovery": "service_load",
}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1) as cluster:
        cluster.create_topic("lines", 1)
        yield cluster


class JavaWorker:
    """`with JavaWorker(...) as url`."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        directory.mkdir(exist_ok=True)
        properties = directory / "worker.properties"
        given = {**SETTINGS, "bootstrap.servers": bootstrap, "listeners": self.url}
        properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        words = ("org.apache.kafka.connect.cli.ConnectDistributed", str(properties))
        self._program = Program("worker", jvm.java(jvm.program_jars(), *words), directory)

    def __enter__(self) -> str:
        self._program.__enter__()
        self._program.until("a worker that answers", self._is_healthy)
        return self.url

    def _is_healthy(self) -> bool:
        try:
            return ask(self.url, "GET", "/health").status == 200
        except OSError:
            return False

    def __exit__(self, *error: Any) -> None:
        self._program.__exit__(*error)


def test_the_same_calls_have_the_same_answers(tmp_path: Path, kafka: Cluster) -> None:
    with JavaWorker(kafka.bootstrap_servers, tmp_path / "java") as url:
        java = held_with(url, str(tmp_path / "sink.txt"))
    with Cluster(offsets_topic_num_partitions=1) as other:
        other.create_topic("lines", 1)
        with ConnectWorker(other.bootstrap_servers, SETTINGS) as worker:
            ours = held_with(worker.url, str(tmp_path / "sink.txt"))
    different = [
        f"{said}\n  java {theirs.status} {plain(theirs.body)}\n  ours {mine.status} {plain(mine.body)}"
        for (said, theirs), (_, mine) in zip(java, ours, strict=True)
        if not agree(theirs, mine)
    ]
    assert different == [], "\n".join(different)


# Named differences.

OF_THE_MOMENT = ("version", "commit", "kafka_cluster_id", "worker_id", "last_modified", "message", "documentation")
"""What depends on when and where, and the wording of messages."""
OURS_ALONE = re.compile(r"connector\.auto\.restart.*|errors\.deadletterqueue\..*|poll\.interval\.ms|rotation\..*")
"""What Java's workers, or its sources, do not have."""
OF_FILE_CONNECTORS = ("file", "batch.size")
"""Ours read and write no standard streams, and count bytes."""
OUR_GROUP = "Auto Restart"


def plain(body: Any) -> Any:
    if isinstance(body, Mapping):
        return {name: plain(value) for name, value in body.items() if name not in OF_THE_MOMENT}
    if isinstance(body, list):
        return [plain(each) for each in body]
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", body) if isinstance(body, str) else body


def agree(java: Answered, ours: Answered) -> bool:
    if (java.status, ours.status) == (500, 400):
        return True  # what a client sent wrongly is the client's fault
    theirs, mine = plain(java.body), plain(ours.body)
    if isinstance(theirs, dict) and "configs" in theirs:
        theirs, mine = validated(theirs), validated(mine)
    elif isinstance(theirs, list) and theirs and isinstance(theirs[0], dict) and "importance" in theirs[0]:
        theirs, mine = shared({each["name"]: each for each in theirs}), shared({each["name"]: each for each in mine})
    return java.status == ours.status and theirs == mine


def validated(body: dict[str, Any]) -> dict[str, Any]:
    configs = shared({each["value"]["name"]: each for each in body["configs"]})
    for each in configs.values():
        # There are other plug-ins here than in Java's distribution.
        each["value"]["recommended_values"] = bool(each["value"]["recommended_values"])
    return {**body, "configs": configs, "groups": [group for group in body["groups"] if group != OUR_GROUP]}


def shared(definitions: dict[str, Any]) -> dict[str, Any]:
    return {
        name: each
        for name, each in definitions.items()
        if not OURS_ALONE.fullmatch(name) and name not in OF_FILE_CONNECTORS
    }


def test_ours_goes_on_where_javas_stopped_and_javas_where_ours_did(tmp_path: Path, kafka: Cluster) -> None:
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.write_text("one\ntwo\n")
    texts = {f"{side}.converter": "org.apache.kafka.connect.storage.StringConverter" for side in ("key", "value")}
    source = {**texts, "connector.class": f"{FILES}.FileStreamSourceConnector", "file": str(given), "topic": "lines"}
    sink = {**texts, "connector.class": f"{FILES}.FileStreamSinkConnector", "file": str(out), "topics": "lines"}

    def lines() -> list[str]:
        return out.read_text().splitlines() if out.exists() else []

    def more(text: str) -> None:
        with given.open("a") as file:
            file.write(f"{text}\n")

    def position(url: str) -> int:
        offsets = ask(url, "GET", "/connectors/in/offsets").body.get("offsets", [])
        return int(offsets[0]["offset"]["position"]) if offsets else 0

    with JavaWorker(kafka.bootstrap_servers, tmp_path / "java") as url:
        for name, config in (("in", source), ("out", sink)):
            assert ask(url, "PUT", f"/connectors/{name}/config", config).status == 201
        eventually(lambda: lines() == ["one", "two"], "Java's lines")
        eventually(lambda: position(url) == given.stat().st_size, "Java's offsets")
        configs = [ask(url, "GET", f"/connectors/{name}/config").body for name in ("in", "out")]
    more("three")
    with HostedWorker(kafka.bootstrap_servers, tmp_path / "host", dict(SETTINGS)) as worker:
        eventually(lambda: lines() == ["one", "two", "three"], "a line by ours")
        assert sorted(worker.ask("GET", "/connectors").body) == ["in", "out"]
        assert [worker.ask("GET", f"/connectors/{name}/config").body for name in ("in", "out")] == configs
        eventually(lambda: position(worker.url) == given.stat().st_size, "our offsets")
    more("four")
    with JavaWorker(kafka.bootstrap_servers, tmp_path / "again") as url:
        eventually(lambda: lines() == ["one", "two", "three", "four"], "Java's again")
        assert sorted(ask(url, "GET", "/connectors").body) == ["in", "out"]
