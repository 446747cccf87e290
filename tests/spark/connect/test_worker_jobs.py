"""A worker and its Spark host: connectors by REST, from the first record to a killed host."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platform.systems.http_server import Answer, commanded_server
from tests.spark.applications import START, Input, World
from tests.spark.connect.connectors import JSON, TEXTS
from tests.support.connect_workers import ConnectWorker
from tests.support.hosted_worker import HostedWorker
from tests.support.patience import eventually


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedWorker]:
    topics = {name: f"worker-jobs-{name.partition('.')[0]}" for name in ("config", "offset", "status")}
    settings: dict[str, object] = {f"{name}.storage.topic": topic for name, topic in topics.items()}
    settings |= {"connect.plugin.modules": "tests.spark.connect.stubborn", "task.shutdown.graceful.timeout.ms": 2000}
    settings |= {"group.id": "worker-jobs", **{f"{name}.storage.replication.factor": 1 for name in topics}}
    with HostedWorker(bootstrap, tmp_path_factory.mktemp("host"), settings) as found:
        yield found


def state(worker: ConnectWorker, name: str) -> str:
    answer = worker.ask("GET", f"/connectors/{name}/status")
    return str(answer.body["connector"]["state"]) if answer.status == 200 else str(answer.status)


def put(worker: ConnectWorker, name: str, config: dict[str, str]) -> None:
    answer = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert answer.status in (200, 201), answer.body


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_file_goes_into_a_topic_and_out_again_and_a_killed_host_changes_nothing(
    worker: HostedWorker, world: World, tmp_path: Path
) -> None:
    topic = world.topic("lines")
    source, sink = f"{world.name}-source", f"{world.name}-sink"
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.write_text("one\ntwo\n")
    put(worker, source, {**TEXTS, "connector.class": "FileStreamSource", "file": str(given), "topic": topic})
    put(worker, sink, {**TEXTS, "connector.class": "FileStreamSink", "file": str(out), "topics": topic})
    eventually(lambda: lines(out) == ["one", "two"], "the first lines")
    assert (state(worker, source), state(worker, sink)) == ("RUNNING", "RUNNING")

    def numbers() -> dict[str, float]:
        text = worker.ask("GET", "/metrics", None, Accept="text/plain;version=0.0.4").body
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}

    of_sink, of_source = (f'{{connector="{name}",task="0"}}' for name in (sink, source))
    eventually(lambda: numbers().get(f"kafka_connect_sink_task_sink_record_send_total{of_sink}") == 2, "its numbers")
    eventually(lambda: numbers().get(f"kafka_connect_source_task_transaction_size_max{of_source}") == 2, "the other's")
    found = numbers()
    assert found[f"kafka_connect_sink_task_offset_commit_completion_total{of_sink}"] >= 1
    assert found[f"kafka_connect_sink_task_put_batch_max_time_ms{of_sink}"] > 0
    assert found[f"kafka_connect_connector_task_batch_size_max{of_source}"] == 2

    with worker.host.client() as client:
        os.kill(client.pid(), signal.SIGKILL)
    with given.open("a") as file:
        file.write("three\n")
    eventually(lambda: lines(out) == ["one", "two", "three"], "a line after the host was killed")

    offsets = worker.ask("GET", f"/connectors/{source}/offsets").body["offsets"]
    assert [each["partition"] for each in offsets] == [{"filename": str(given)}]
    worker.ask("PUT", f"/connectors/{sink}/stop")
    eventually(lambda: state(worker, sink) == "STOPPED", "a stop")
    reset = {"offsets": [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}]}
    answer = worker.ask("PATCH", f"/connectors/{sink}/offsets", reset)
    assert answer.status == 200, answer.body
    worker.ask("PUT", f"/connectors/{sink}/resume")
    eventually(lambda: lines(out) == ["one", "two", "three", "two", "three"], "what was asked for again")
    for name in (source, sink):
        assert worker.ask("DELETE", f"/connectors/{name}").status == 204


def test_one_that_fails_says_on_which_record_and_leaves_the_others_alone(
    worker: HostedWorker, world: World, tmp_path: Path
) -> None:
    topic = world.topic("in")
    good, out = f"{world.name}-good", tmp_path / "out.txt"
    quoted = f"{world.name}%20bad%2F%25"
    world.send([Input(topic, None, b'{"a":1}', START), Input(topic, None, b"{poison", START)])
    put(worker, good, {**TEXTS, "connector.class": "FileStreamSink", "file": str(out), "topics": topic})
    config = {**JSON, "connector.class": "FileStreamSink", "file": str(tmp_path / "bad"), "topics": topic}
    body = {**config, "connector.auto.restart": "false"}
    answer = worker.ask("PUT", f"/connectors/{quoted}/config", body)
    assert answer.status == 201, answer.body
    eventually(lambda: state(worker, quoted) == "FAILED", "a failure")
    trace = worker.ask("GET", f"/connectors/{quoted}/status").body["connector"]["trace"]
    for part in (f"offset 1 of {topic}-0", "VALUE_CONVERTER", "JsonConverter", "It stays failed until"):
        assert part in trace
    eventually(lambda: lines(out) == ['{"a":1}', "{poison"], "the other one")
    world.send([Input(topic, None, b"more", START)])
    eventually(lambda: lines(out)[2:] == ["more"], "the other one goes on")
    for name in (good, quoted):
        assert worker.ask("DELETE", f"/connectors/{name}").status == 204


@pytest.mark.matrix  # one that never returns is waited for
def test_connectors_of_users_that_raise_or_never_return_are_in_nobodys_way(
    worker: HostedWorker, world: World, tmp_path: Path
) -> None:
    raises, hangs, good = (f"{world.name}-{each}" for each in ("raises", "hangs", "good"))
    topic, given = world.topic("lines"), tmp_path / "in.txt"
    own = {"topic": topic, "connector.auto.restart": "false"}
    put(worker, hangs, {**own, "connector.class": "tests.spark.connect.stubborn:NeverReturns"})
    put(worker, raises, {**own, "connector.class": "tests.spark.connect.stubborn:Raises"})
    eventually(lambda: state(worker, raises) == "FAILED", "a failure")
    assert "enough" in worker.ask("GET", f"/connectors/{raises}/status").body["connector"]["trace"]
    given.write_text("one\n")
    put(worker, good, {**TEXTS, "connector.class": "FileStreamSource", "file": str(given), "topic": topic})
    eventually(lambda: len(world.read(topic)) == 1, "a line beside them")
    for name in (hangs, raises, good):
        assert worker.ask("DELETE", f"/connectors/{name}").status == 204

    def jobs() -> set[str]:
        with worker.host.client() as client:
            return {name for name, job in client.status().items() if job["state"] not in ("STOPPED", "FAILED")}

    eventually(lambda: not jobs() & {hangs, raises, good}, "the end of all of them")


def test_one_that_leaks_until_its_process_is_ended_fails_with_that_and_the_others_go_on(
    worker: HostedWorker, world: World, tmp_path: Path
) -> None:
    leaks, good = f"{world.name}-leaks", f"{world.name}-good"
    topic, out = world.topic("lines"), tmp_path / "out.txt"
    put(worker, good, {**TEXTS, "connector.class": "FileStreamSink", "file": str(out), "topics": topic})
    world.send([Input(topic, None, b"one", START)])
    eventually(lambda: lines(out) == ["one"], "the first line")
    own = {**TEXTS, "topics": topic, "connector.auto.restart": "false"}
    put(worker, leaks, {**own, "connector.class": "tests.spark.connect.stubborn:Leaks"})
    eventually(lambda: state(worker, leaks) == "FAILED", "a failure")
    trace = worker.ask("GET", f"/connectors/{leaks}/status").body["connector"]["trace"]
    assert trace.startswith("the process that ran a task of this connector has ended")
    assert "memory ran out" in trace and "org.apache.spark" not in trace
    world.send([Input(topic, None, b"two", START)])
    eventually(lambda: lines(out) == ["one", "two"], "the second line")
    assert state(worker, good) == "RUNNING"
    for name in (leaks, good):
        assert worker.ask("DELETE", f"/connectors/{name}").status == 204


def test_a_secret_is_in_no_log_no_trace_and_no_dead_letter(
    bootstrap: str, world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic, letters = world.topic("in"), world.topic("letters")
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("key=hunter2\n")
    settings: dict[str, object] = {f"{name}.storage.topic": f"{world.name}.{name}" for name in ("config", "status")}
    settings |= {
        "group.id": world.name,
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
    }
    config = {
        **TEXTS,
        "connector.class": "HttpSinkConnector",
        "topics": topic,
        "connector.auto.restart": "false",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with commanded_server() as server, HostedWorker(bootstrap, tmp_path / "host", settings) as worker:
        server.answer = lambda got: Answer(422 if got.body == b"bad" else 401, f"not {got.path}".encode())
        put(worker, "tells", {**config, "http.api.url": f"{server.url}/?key=${{file:{secrets}:key}}"})
        world.send([Input(topic, None, b"bad", START)])
        eventually(lambda: len(world.read(letters)) == 1, "a letter")
        world.send([Input(topic, None, b"worse", START)])
        eventually(lambda: state(worker, "tells") == "FAILED", "a failure")
        trace = worker.ask("GET", "/connectors/tells/status").body["connector"]["trace"]
    (letter,) = world.read(letters)
    log = capfd.readouterr().err
    for said in (trace, str(letter.headers), log):
        assert "key=[hidden]" in said
        assert "hunter2" not in said
    assert "answered 401" in log
