"""`ottla connect worker.properties` as a process, and the other words of `ottla connect`."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Cluster
from tests.support.connect_workers import ask, until
from tests.support.nodes import free_ports
from tests.support.patience import PATIENCE_SECONDS
from tests.support.programs import Program

DISTRIBUTED = """\
# As it comes with Kafka 4.3.1, with other addresses.
bootstrap.servers={bootstrap}
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000
plugin.path=/usr/local/share/java,/opt/connectors
listeners=http://127.0.0.1:{port}
"""


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with Cluster(group_initial_rebalance_delay_ms=0) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def url(brokers: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("worker")
    (port,) = free_ports(1)
    file = directory / "connect-distributed.properties"
    file.write_text(DISTRIBUTED.format(bootstrap=brokers.bootstrap_servers, port=port))
    worker = Program("worker", [sys.executable, "-m", "ottla", "connect", str(file)], directory)
    url = f"http://127.0.0.1:{port}"
    worker.until("a worker", lambda: "a Connect worker is ready" in worker.printed())
    until(url, "/health", lambda answer: answer.status == 200)
    yield url
    worker.stop()


def ottla(url: str, *words: str, code: int = 0) -> str:
    """What `ottla connect` prints."""
    command = [sys.executable, "-m", "ottla", "connect", *words, "-u", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_connector_is_created_watched_and_deleted_by_words(url: str, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    config = {"connector.class": "FileStreamSink", "topics": "t", "file": "/dev/null"}
    file.write_text(json.dumps({"name": "c", "config": config}))
    assert "nothing is wrong" in ottla(url, "validate", str(file))
    assert ottla(url, "create", str(file), "--state", "STOPPED") == "c is created\n"
    until(url, "/connectors/c/status", lambda answer: answer.status == 200)
    assert [row["state"] for row in json.loads(ottla(url, "list", "--json"))] == ["STOPPED"]
    assert "STOPPED" in ottla(url, "status", "c")
    assert ottla(url, "offsets", "c", "--reset") == "The offsets for this connector have been reset successfully\n"
    assert ottla(url, "create", str(file)) == "c is changed\n"
    assert "FileStreamSinkConnector" in ottla(url, "plugins")
    assert "topics.regex" in ottla(url, "plugins", "FileStreamSink")
    assert ottla(url, "delete", "c") == "c is deleted\n"
    assert "Connector c not found (404)" in ottla(url, "delete", "c", code=1)


def test_a_config_that_is_no_good_is_told_key_by_key(url: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"connector.class": "FileStreamSink", "name": "b", "tasks.max": "many"}))
    said = ottla(url, "validate", str(file), code=1)
    assert "tasks.max: Invalid value many for configuration tasks.max: Not a number of type INT" in said
    assert "Must configure one of topics or topics.regex" in said
    assert "bad.json names no connector" not in ottla(url, "create", str(file), code=1)
    assert ask(url, "GET", "/connectors").body == []


def test_a_key_that_is_nearly_one_is_said_and_taken_as_java_does(url: str, tmp_path: Path) -> None:
    file = tmp_path / "near.json"
    config = {"connector.class": "FileStreamSink", "name": "n", "topics": "t", "file": "f", "errors.tolerence": "all"}
    file.write_text(json.dumps({**config, "anything.else": "1"}))
    said = ottla(url, "validate", str(file))
    assert "errors.tolerence: is no key of FileStreamSink; did you mean errors.tolerance?" in said
    assert "anything.else" not in said


def test_a_cluster_for_tests_brings_a_worker_along() -> None:
    with Cluster(connect=True, group_initial_rebalance_delay_ms=0) as kafka:
        until(kafka.connect_url, "/health", lambda answer: answer.status == 200)
        config = {"connector.class": "FileStreamSource", "file": "/dev/null", "topic": "t"}
        body = {"name": "c", "config": config, "initial_state": "STOPPED"}
        assert ask(kafka.connect_url, "POST", "/connectors", body).status == 201
        until(kafka.connect_url, "/connectors/c/status", lambda answer: answer.status == 200)


def test_a_misspelt_setting_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("group.id=g\nofset.storage.topic=x\nlisteners=ftp://127.0.0.1:0\n")
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "connect", str(file)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "did you mean offset.storage.topic?" in done.stderr
    assert "http://host:port or https://host:port is expected" in done.stderr


def test_it_ends_by_a_signal_and_without_brokers_too(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "worker.properties"
    file.write_text(f"bootstrap.servers=127.0.0.1:{port}\ngroup.id=g\nlisteners=http://127.0.0.1:0\n")
    worker = subprocess.Popen([sys.executable, "-m", "ottla", "connect", str(file)], stderr=subprocess.PIPE)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE_SECONDS)
    assert worker.returncode in (0, -signal.SIGTERM)
