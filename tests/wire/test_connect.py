"""Connect's REST API over a real cluster: whole conversations, workers that share, secrets, bad input. Connectors are
rehearsed here: what they do is another matter."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from confluent_kafka import Producer

from ottla.connect.config_records import ConnectorPut, TargetState, TargetStatePut, TasksCommitted, encode
from ottla.testing import Cluster
from tests.support.committed import committed
from tests.support.connect_workers import PATIENCE_S, Answered, ConnectWorker
from tests.support.hosted_worker import HostedWorker

SOURCE = {"connector.class": "FileStreamSource", "file": "/a", "topic": "lines"}
SINK = {"connector.class": "FileStreamSink", "file": "/b", "topics": "lines", "tasks.max": "2"}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with Cluster(group_initial_rebalance_delay_ms=0) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def one_worker(brokers: Cluster) -> Iterator[ConnectWorker]:
    with ConnectWorker(brokers.bootstrap_servers) as worker:
        yield worker


@pytest.fixture
def worker(one_worker: ConnectWorker) -> Iterator[ConnectWorker]:
    yield one_worker
    for name in one_worker.ask("GET", "/connectors").body:
        assert one_worker.ask("DELETE", f"/connectors/{quote(name, safe='')}").status == 204


def in_state(state: str, tasks: int | None = None) -> Callable[[Answered], bool]:
    def holds(answer: Answered) -> bool:
        if answer.status != 200 or answer.body["connector"]["state"] != state:
            return False
        return tasks is None or [task["state"] for task in answer.body["tasks"]] == [state] * tasks

    return holds


def eventually(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        if holds():
            return
        pause.wait(0.05)
    raise AssertionError("it never came true")


def test_the_life_of_a_connector(worker: ConnectWorker) -> None:
    created = worker.ask("POST", "/connectors", {"name": " a ", "config": SINK})
    config = {**SINK, "name": "a"}
    assert (created.status, created.headers["location"]) == (201, f"{worker.url}/connectors/a")
    assert created.body == {"name": "a", "config": config, "tasks": [], "type": "sink"}
    assert worker.ask("POST", "/connectors", {"name": "a", "config": SINK}).status == 409
    status = worker.until("/connectors/a/status", in_state("RUNNING", 2)).body
    one = {"state": "RUNNING", "worker_id": worker.service.worker_id, "version": "4.3.1"}
    assert status == {"name": "a", "connector": one, "tasks": [{"id": 0, **one}, {"id": 1, **one}], "type": "sink"}
    assert worker.runner.running["a"].tasks == 2
    assert worker.ask("PUT", "/connectors/a/pause").status == 202
    worker.until("/connectors/a/status", in_state("PAUSED", 2))
    assert "a" not in worker.runner.running
    assert worker.ask("PUT", "/connectors/a/resume").status == 202
    worker.until("/connectors/a/status", in_state("RUNNING", 2))
    changed = worker.ask("PATCH", "/connectors/a/config", {"tasks.max": 1, "file": None, "topics": "other"})
    assert changed.body["config"] == {
        "connector.class": "FileStreamSink",
        "topics": "other",
        "tasks.max": "1",
        "name": "a",
    }
    worker.until("/connectors/a/status", in_state("RUNNING", 1))
    assert worker.ask("PATCH", "/connectors/a/config", {"name": "b"}).status == 400
    assert worker.ask("PUT", "/connectors/a/stop").status == 204
    worker.until("/connectors/a/status", in_state("STOPPED", 0))
    assert worker.ask("DELETE", "/connectors/a").status == 204
    worker.until("/connectors/a/status", lambda answer: answer.status == 404)
    assert worker.ask("GET", "/connectors").body == []


def test_what_failed_is_started_again_and_says_when(worker: ConnectWorker) -> None:
    worker.ask("PUT", "/connectors/f/config", {**SOURCE, "connector.auto.restart.backoff.ms": "300"})
    worker.until("/connectors/f/status", in_state("RUNNING", 1))
    worker.runner.fail("f", "it broke")
    failed = worker.until("/connectors/f/status", in_state("FAILED")).body["connector"]
    assert failed["trace"].startswith("it broke\n\nIt is started again in 0.3 s")
    assert failed["next_restart_ms"] > 0
    worker.until("/connectors/f/status", in_state("RUNNING", 1))
    worker.ask("PATCH", "/connectors/f/config", {"connector.auto.restart": False})
    eventually(lambda: "connector.auto.restart" in worker.runner.config_of("f"))
    worker.until("/connectors/f/status", in_state("RUNNING", 1))
    worker.runner.fail("f", "it broke")
    worker.until("/connectors/f/status", in_state("FAILED"))
    plan = worker.ask("POST", "/connectors/f/restart?includeTasks=true&onlyFailed=true")
    assert (plan.status, plan.body["connector"]["state"]) == (202, "RESTARTING")
    worker.until("/connectors/f/status", in_state("RUNNING", 1))


def test_one_that_does_not_end_when_it_is_deleted_is_in_no_others_way(worker: ConnectWorker) -> None:
    async def held_up() -> asyncio.Event:
        return worker.runner.held_up.setdefault("slow", asyncio.Event())

    async def let_go() -> None:
        worker.runner.held_up.pop("slow").set()

    assert worker.ask("PUT", "/connectors/slow/config", SINK).status == 201
    worker.until("/connectors/slow/status", in_state("RUNNING", 2))
    worker.do(held_up)
    try:
        assert worker.ask("DELETE", "/connectors/slow").status == 204
        for name in ("one", "another"):
            assert worker.ask("PUT", f"/connectors/{name}/config", SOURCE).status == 201
            worker.until(f"/connectors/{name}/status", in_state("RUNNING", 1))
        assert "slow" in worker.runner.running
    finally:
        worker.do(let_go)
    eventually(lambda: "slow" not in worker.runner.running)


def test_offsets_of_a_source_with_a_topic_of_its_own_are_those_in_it(worker: ConnectWorker, brokers: Cluster) -> None:
    worker.ask("PUT", "/connectors/own/config", {**SOURCE, "offsets.storage.topic": "own-offsets"})
    assert worker.ask("GET", "/connectors/own/offsets").body == {"offsets": []}, "there is no such topic yet"
    worker.ask("PUT", "/connectors/own/stop")
    change = {"offsets": [{"partition": {"filename": "/a"}, "offset": {"position": 9}}]}
    assert worker.ask("PATCH", "/connectors/own/offsets", change).status == 200
    assert worker.ask("GET", "/connectors/own/offsets").body == change
    assert [record.key for record in brokers.consume("own-offsets", 1)] == [b'["own",{"filename":"/a"}]']
    assert worker.ask("DELETE", "/connectors/own/offsets").status == 200
    assert worker.ask("GET", "/connectors/own/offsets").body == {"offsets": []}


def test_a_worker_whose_admin_has_no_listeners_has_no_admin(brokers: Cluster) -> None:
    topics = {f"{kind}.storage.topic": f"no-admin-{kind}" for kind in ("config", "offset", "status")}
    with ConnectWorker(brokers.bootstrap_servers, {**topics, "group.id": "no-admin", "admin.listeners": ""}) as worker:
        assert worker.ask("GET", "/admin/loggers").status == 404
        assert worker.ask("GET", "/connectors").status == 200


def test_offsets_of_a_source_are_set_and_forgotten_when_it_is_stopped(worker: ConnectWorker) -> None:
    worker.ask("POST", "/connectors", {"name": "o", "config": SOURCE})
    change = {"offsets": [{"partition": {"filename": "/a"}, "offset": {"position": 9}}]}
    refused = worker.ask("PATCH", "/connectors/o/offsets", change)
    assert refused.status == 400
    assert refused.body["message"].startswith("Connectors must be in the STOPPED state before their offsets")
    worker.ask("PUT", "/connectors/o/stop")
    assert worker.ask("PATCH", "/connectors/o/offsets", change).status == 200
    assert worker.ask("GET", "/connectors/o/offsets").body == change
    wrong = {"offsets": [{"partition": {"file": "/a"}, "offset": {"position": 9}}]}
    refused = worker.ask("PATCH", "/connectors/o/offsets", wrong)
    assert (refused.status, refused.body["message"]) == (400, "Partition objects should contain the key 'filename'")
    assert worker.ask("DELETE", "/connectors/o/offsets").status == 200
    assert worker.ask("GET", "/connectors/o/offsets").body == {"offsets": []}


def test_workers_share_connectors_any_answers_and_a_killed_ones_go_on_elsewhere(brokers: Cluster) -> None:
    own = {"group.id": "pair", "config.storage.topic": "pair-configs", "status.storage.topic": "pair-status"}
    with ConnectWorker(brokers.bootstrap_servers, own) as first:
        with ConnectWorker(brokers.bootstrap_servers, own) as second:
            for name in "abcd":
                asked = second if name in "ab" else first
                assert asked.ask("POST", "/connectors", {"name": name, "config": SOURCE}).status == 201
            eventually(lambda: [len(each.runner.running) for each in (first, second)] == [2, 2])
            every = sorted([*first.runner.running, *second.runner.running])
            assert every == ["a", "b", "c", "d"]
            for each in (first, second):
                each.until("/connectors/a/status", in_state("RUNNING", 1))
            follower = second if first.service.leads else first
            assert follower.ask("PUT", "/connectors/a/pause").status == 202
            assert follower.ask("PUT", "/connectors/x/pause").status == 404
            assert follower.ask("PUT", "/connectors/a/pause?forward=false").status == 409
            follower.ask("PUT", "/connectors/a/resume")
            second.kill()
        eventually(lambda: sorted(first.runner.running) == ["a", "b", "c", "d"])
        first.until("/connectors/a/status", in_state("RUNNING", 1))


def test_a_killed_worker_is_missed_long_before_its_session_is_over_and_the_other_stood_by(brokers: Cluster) -> None:
    own = {"group.id": "missed", "config.storage.topic": "missed-configs", "status.storage.topic": "missed-status"}
    own["session.timeout.ms"] = "1200000"
    with (
        ConnectWorker(brokers.bootstrap_servers, own) as first,
        ConnectWorker(brokers.bootstrap_servers, own) as second,
    ):
        eventually(lambda: {first.service.leads, second.service.leads} == {True, False})
        assert first.ask("POST", "/connectors", {"name": "a", "config": SOURCE}).status == 201
        eventually(lambda: first.runner.stands_by or second.runner.stands_by)
        works, other = (second, first) if first.runner.stands_by else (first, second)
        eventually(lambda: sorted(works.runner.running) == ["a"])
        other.until("/connectors/a/status", in_state("RUNNING", 1))
        works.kill()
        eventually(lambda: sorted(other.runner.running) == ["a"])
        assert other.ask("GET", "/connectors/a/config").status == 200
        eventually(lambda: other.service.leads)


def test_a_forged_signature_is_refused(worker: ConnectWorker) -> None:
    headers = {"X-Connect-Authorization": "Zm9yZ2Vk", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    worker.ask("PUT", "/connectors/p/config", SOURCE)
    eventually(lambda: worker.ask("PUT", "/connectors/p/pause", None, **headers).status == 403)
    assert (
        worker.ask("POST", "/connectors/p/tasks", []).body["message"] == "Internal request missing required signature"
    )
    assert worker.ask("PUT", "/connectors/p/fence", None, **headers).status == 403


def test_a_provided_secret_is_given_to_the_connector_and_shown_to_nobody(brokers: Cluster, tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("path=/hush-hush\n")
    own = {
        "group.id": "secretive",
        "config.storage.topic": "secretive-configs",
        "status.storage.topic": "secretive-status",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    reference = f"${{file:{tmp_path}/secrets.properties:path}}"
    with ConnectWorker(brokers.bootstrap_servers, own) as worker:
        answers = [worker.ask("PUT", "/connectors/s/config", {**SOURCE, "file": reference, "tasks.max": "x"})]
        answers.append(worker.ask("PUT", "/connectors/s/config", {**SOURCE, "file": reference}))
        answers.append(
            worker.ask("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "file": reference})
        )
        worker.until("/connectors/s/status", in_state("RUNNING", 1))
        assert worker.runner.resolved["s"]["file"] == "/hush-hush"
        worker.runner.fail("s", "cannot open /hush-hush")
        answers.append(worker.until("/connectors/s/status", in_state("FAILED")))
        assert answers[-1].body["connector"]["trace"].startswith("cannot open [hidden]")
        paths = ("", "/config", "/tasks", "/status")
        answers += [worker.ask("GET", f"/connectors/s{path}") for path in paths]
        shown = json.dumps([answer.body for answer in answers])
        assert reference in shown
        for topic, partitions in (("secretive-configs", 1), ("secretive-status", 2)):
            shown += "".join(record.value for record in committed(brokers.bootstrap_servers, topic, partitions))
        assert "hush-hush" not in shown
        assert reference in "".join(
            str(record.value) for record in committed(brokers.bootstrap_servers, "secretive-configs")
        )


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/connectors", b"{", 400),
        ("POST", "/connectors", b"[1]", 400),
        ("POST", "/connectors", {"name": "x"}, 400),
        ("POST", "/connectors", {"name": "x", "config": SOURCE, "surprise": 1}, 400),
        ("POST", "/connectors", {"name": "x", "config": SOURCE, "initial_state": "FLYING"}, 400),
        ("POST", "/connectors", {"name": "x", "config": {**SOURCE, "topic": {"a": 1}}}, 400),
        ("POST", "/connectors", {"name": "x\u0007y", "config": SOURCE}, 400),
        ("POST", "/connectors", {"name": "x", "config": {**SOURCE, "topic": None}}, 400),
        ("POST", "/connectors", b'{"name":"x","config":' + b'{"a":' * 5000 + b"}" * 5001, 400),
        ("PUT", "/connectors/x/config", {}, 400),
        ("PUT", "/connectors/x/config", {**SINK, "topics.regex": "(" * 200}, 400),
        ("PUT", "/connectors/x/config", {**SINK, "file": "x" * 3_000_000}, 413),
        ("PUT", "/connectors/x/config", {**SINK, "transforms": "t", "transforms.t.type": "Nope"}, 400),
        ("PUT", "/connector-plugins/FileStreamSink/config/validate", {}, 400),
        ("PATCH", "/connectors/x/offsets", {"offsets": "many"}, 400),
        ("GET", "/connectors/x/tasks/one/status", None, 404),
        ("DELETE", "/connectors", None, 405),
        ("GET", "/nowhere", None, 404),
    ],
)
def test_bad_input_is_the_callers_fault(
    worker: ConnectWorker, method: str, path: str, body: object, status: int
) -> None:
    answer = worker.ask(method, path, body)
    assert answer.status == status
    assert set(answer.body) == {"error_code", "message"}
    assert answer.body["error_code"] == status


def test_a_body_that_is_too_long_is_not_read(brokers: Cluster) -> None:
    with ConnectWorker(brokers.bootstrap_servers, {"connect.body.max.bytes": 2048}) as worker:
        assert worker.ask("POST", "/connectors", {"name": "x", "config": {"a": "b" * 4096}}).status == 413


@pytest.mark.parametrize("name", ["with space", "sl/ash", "per%cent", "plus+", "süß", "a?b#c", "..", "-"])
def test_any_name_can_be_used_and_gone_again(worker: ConnectWorker, name: str) -> None:
    created = worker.ask("POST", "/connectors", {"name": name, "config": SOURCE})
    assert created.status == 201
    assert worker.ask("GET", created.headers["location"].removeprefix(worker.url)).body["name"] == name
    path = f"/connectors/{quote(name, safe='')}"
    worker.until(f"{path}/status", in_state("RUNNING", 1))
    assert worker.ask("DELETE", path).status == 204


def test_a_misspelt_class_is_answered_with_the_nearest_name(worker: ConnectWorker) -> None:
    answer = worker.ask("POST", "/connectors", {"name": "x", "config": {"connector.class": "FileStreamSnik"}})
    assert answer.status == 400
    assert answer.body["message"].endswith("Did you mean FileStreamSink?")


def test_metrics_are_told_under_connects_names(worker: ConnectWorker) -> None:
    worker.ask("PUT", "/connectors/m/config", SINK)
    worker.until("/connectors/m/status", in_state("RUNNING", 2))
    text = worker.ask("GET", "/metrics", None, Accept="text/plain;version=0.0.4").body
    assert "kafka_connect_worker_connector_count 1\n" in text
    assert "kafka_connect_worker_task_count 2\n" in text
    assert 'kafka_connect_connector_status{connector="m",status="running"} 1\n' in text
    assert 'kafka_connect_worker_connector_running_task_count{connector="m"} 2\n' in text
    assert 'kafka_connect_worker_connector_failed_task_count{connector="m"} 0\n' in text
    assert 'kafka_connect_connector_task_running_ratio{connector="m",task="1"} 1\n' in text
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    startups = [int(found[f"kafka_connect_worker_task_startup_{each}_total"]) for each in ("attempts", "success")]
    assert startups[0] >= startups[1] >= 2
    assert int(found["kafka_connect_worker_rebalance_completed_rebalances_total"]) >= 1
    assert found["kafka_connect_worker_rebalance_rebalancing"] == "0"


def test_a_pattern_that_backtracks_without_end_is_judged_at_once(worker: ConnectWorker) -> None:
    bomb = {"connector.class": "FileStreamSink", "name": "r", "topics.regex": "(a+)+b"}
    config = {**bomb, "errors.deadletterqueue.topic.name": "a" * 200}
    assert worker.ask("PUT", "/connector-plugins/FileStreamSink/config/validate", config).body["error_count"] == 0


def test_where_spark_cannot_run_connectors_say_what_is_missing(
    brokers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    topics = {f"{kind}.storage.topic": f"bare-{kind}" for kind in ("config", "offset", "status")}
    own: dict[str, object] = {"group.id": "bare", **topics}
    with HostedWorker(brokers.bootstrap_servers, tmp_path, own) as worker:
        worker.ask("PUT", "/connectors/s/config", SOURCE)
        failed = worker.until("/connectors/s/status", in_state("FAILED")).body
        assert "Java was not found: Spark needs Java 17 or newer" in failed["connector"]["trace"]


@pytest.mark.matrix  # 17 s of CPU
def test_ten_thousand_connectors_are_listed_and_told_of_in_bounded_time(brokers: Cluster) -> None:
    """They are there before the worker starts, stopped: Java's own records."""
    names = {f"{kind}.storage.topic": f"many-{kind}" for kind in ("config", "offset", "status")}
    brokers.create_topic("many-config", 1, cleanup_policy="compact")
    records = []
    for number in range(10_000):
        name = f"c{number}"
        records.append(encode(TargetStatePut(name, TargetState.STOPPED)))
        records.append(encode(ConnectorPut(name, {**SOURCE, "name": name})))
        records.append(encode(TasksCommitted(name, 0)))
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "linger.ms": 50})
    for key, value in records:
        producer.produce("many-config", key=key, value=value)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    with ConnectWorker(brokers.bootstrap_servers, {**names, "group.id": "many"}) as worker:
        began_s = time.process_time()
        assert len(worker.ask("GET", "/connectors").body) == 10_000
        eventually(lambda: worker.ask("GET", "/connectors/c9999/status").status == 200)
        assert len(worker.ask("GET", "/connectors?expand=info&expand=status").body) > 9_000
        assert worker.ask("PUT", "/connectors/one-more/config", SOURCE).status == 201
        assert worker.ask("DELETE", "/connectors/one-more").status == 204
        assert time.process_time() - began_s < 60


def test_the_level_of_a_logger_is_set_here_and_where_connectors_run(worker: ConnectWorker) -> None:
    assert worker.ask("PUT", "/admin/loggers/a.name.of.nobody", {"level": "debug"}).body == ["a.name.of.nobody"]
    assert worker.ask("GET", "/admin/loggers/a.name.of.nobody").body["level"] == "DEBUG"
    assert worker.runner.levels == {"a.name.of.nobody": 10}
