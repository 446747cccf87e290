"""Java's Connect worker and ours on one broker: the same questions get the same answers, and each goes on where the other
has stopped."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster
from tests.peer.connect_script import SOURCE, held_with, is_state
from tests.support import jvm
from tests.support.connect_workers import Answered, ConnectWorker, ask, until
from tests.support.nodes import free_ports
from tests.support.programs import Program

pytestmark = pytest.mark.jvm

_JSON = "org.apache.kafka.connect.json.JsonConverter"
SHARED = {
    "key.converter": _JSON,
    "value.converter": _JSON,
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "2",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "2",
    "scheduled.rebalance.max.delay.ms": "0",
}


def of_cluster(name: str) -> dict[str, str]:
    """What makes workers a cluster: its group and its topics."""
    topics = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("config", "offset", "status")}
    return {"group.id": name, **topics}


class JavaWorker:
    def __init__(self, bootstrap: str, directory: Path, settings: Mapping[str, str]) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        directory.mkdir(exist_ok=True)
        given = {
            "bootstrap.servers": bootstrap,
            "listeners": self.url,
            "plugin.discovery": "service_load",
            **SHARED,
            **settings,
        }
        properties = directory / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        words = ("org.apache.kafka.connect.cli.ConnectDistributed", str(properties))
        self._program = Program("worker", jvm.java(jvm.program_jars(), *words), directory)

    def __enter__(self) -> "JavaWorker":
        self._program.until("a healthy worker", self._healthy)
        return self

    def _healthy(self) -> bool:
        try:
            return ask(self.url, "GET", "/health").status == 200
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        self._program.stop_or_kill()


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with Cluster(group_initial_rebalance_delay_ms=0) as cluster:
        yield cluster


DIFFERENT = {
    "GET /": "version and commit are each one's own",
}
"""By the beginning of a step: why its answers differ, for as long as it stands here."""


def plain(value: Any) -> Any:
    """Without what is each worker's own, and lists of keys by their names."""
    if isinstance(value, dict):
        return {
            name: plain(each) for name, each in value.items() if name not in ("worker_id", "documentation", "commit")
        }
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "name" in each for each in value):
            return {each["name"]: plain(each) for each in value}
        return [plain(each) for each in value]
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", value) if isinstance(value, str) else value


def compared(answer: Answered) -> Any:
    return answer.status, plain(answer.body), answer.headers.get("location")


def test_the_same_calls_get_the_same_answers_but_for_named_differences(brokers: Cluster, tmp_path: Path) -> None:
    sink = str(tmp_path / "sink.txt")
    with JavaWorker(brokers.bootstrap_servers, tmp_path / "java", of_cluster("java")) as java:
        theirs = held_with(java.url, sink)
    with ConnectWorker(brokers.bootstrap_servers, {**SHARED, **of_cluster("ours")}) as worker:
        ours = held_with(worker.url, sink)
    found = {}
    for (step, java_says), (_, we_say) in zip(theirs, ours, strict=True):
        reason = next((why for named, why in DIFFERENT.items() if step.startswith(named)), None)
        if reason is None and compared(java_says) != compared(we_say):
            found[step] = (compared(java_says), compared(we_say))
    assert found == {}


def test_each_goes_on_with_the_topics_of_the_other(brokers: Cluster, tmp_path: Path) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text("a\nb\n")
    moving = {**SOURCE, "file": str(lines), "topic": "moved"}
    with JavaWorker(brokers.bootstrap_servers, tmp_path / "first", of_cluster("shared")) as java:
        for name, state in (("runs", "RUNNING"), ("rests", "PAUSED"), ("stands", "STOPPED")):
            assert (
                ask(java.url, "POST", "/connectors", {"name": name, "config": moving, "initial_state": state}).status
                == 201
            )
        assert ask(java.url, "POST", "/connectors", {"name": "gone", "config": moving}).status == 201
        until(java.url, *is_state("runs", "RUNNING", 1))
        until(java.url, *is_state("rests", "PAUSED", 1))
        assert ask(java.url, "DELETE", "/connectors/gone").status == 204
        until(java.url, "/connectors/runs/offsets", lambda answer: bool(answer.body.get("offsets")))
        before = {name: ask(java.url, "GET", f"/connectors/{name}") for name in ("runs", "rests", "stands")}
        stood = ask(java.url, "GET", "/connectors/runs/offsets").body
    with ConnectWorker(brokers.bootstrap_servers, {**SHARED, **of_cluster("shared")}) as worker:
        assert sorted(worker.ask("GET", "/connectors").body) == ["rests", "runs", "stands"]
        for name, answer in before.items():
            assert worker.ask("GET", f"/connectors/{name}").body == answer.body
        worker.until(*is_state("runs", "RUNNING", 1))
        worker.until(*is_state("rests", "PAUSED", 1))
        assert sorted(worker.runner.running) == ["runs"]
        assert worker.ask("GET", "/connectors/runs/offsets").body == stood
        assert worker.ask("PUT", "/connectors/rests/resume").status == 202
        assert worker.ask("PUT", "/connectors/runs/stop").status == 204
        worker.until(*is_state("runs", "STOPPED", 0))
        skipped = {"offsets": [{"partition": {"filename": str(lines)}, "offset": {"position": 2}}]}
        assert worker.ask("PATCH", "/connectors/runs/offsets", skipped).status == 200
        assert (
            worker.ask("POST", "/connectors", {"name": "new", "config": moving, "initial_state": "PAUSED"}).status
            == 201
        )
        ours = {name: worker.ask("GET", f"/connectors/{name}").body for name in ("runs", "rests", "stands", "new")}
    with JavaWorker(brokers.bootstrap_servers, tmp_path / "second", of_cluster("shared")) as java:
        for name, body in ours.items():
            found = ask(java.url, "GET", f"/connectors/{name}").body
            assert {**found, "tasks": body["tasks"]} == {**body, "tasks": body["tasks"]}
        until(java.url, *is_state("rests", "RUNNING", 1))
        until(java.url, *is_state("runs", "STOPPED", 0))
        until(java.url, *is_state("new", "PAUSED", 1))
        assert ask(java.url, "GET", "/connectors/runs/offsets").body == skipped
