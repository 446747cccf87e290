"""`ottla start --secure`: from nothing to a record by a user who logged in, and what keeps everybody else out."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from tests.support.nodes import free_ports, is_free
from tests.support.patience import PATIENCE_SECONDS


@contextmanager
def launched(*words: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "ottla", "start", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def told(process: "subprocess.Popen[str]") -> str:
    """What it prints until it is ready."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "stop with Ctrl-C" in line:
            break
    return "".join(lines)


@contextmanager
def started(*words: str) -> Iterator[str]:
    with launched(*words) as process:
        yield told(process)


def ottla(*words: str, config: Path, stdin: str = "", ends: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        env={**os.environ, "OTTLA_COMMAND_CONFIG": str(config)},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == ends, done.stdout + done.stderr
    return done.stdout + done.stderr


def pasted(text: str) -> dict[str, Any]:
    """The settings for confluent-kafka, as they stand there."""
    found = re.search(r"\{.*?\}", text, re.DOTALL)
    assert found is not None, text
    settings: dict[str, Any] = json.loads(found.group())
    return settings


def produced(settings: dict[str, Any], topic: str, value: bytes = b"plums") -> KafkaError | None:
    outcomes: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 60_000, "log_level": 0})
    producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(PATIENCE_SECONDS)
    return outcomes[0]


def free_port(count: int) -> int:
    """The first of so many free ports in a row."""
    while True:
        (first,) = free_ports(1)
        if all(is_free(first + more) for more in range(count)):
            return first


def test_one_node_tells_its_administrator_once_and_lets_nobody_else_in(tmp_path: Path) -> None:
    words = ("--port", str(free_port(2)), "--data", str(tmp_path / "data"))
    kept = tmp_path / "data.security"
    with started("--secure", *words) as first:
        admin = pasted(first)
        assert produced(admin, "orders") is None
        bootstrap = ("--bootstrap", admin["bootstrap.servers"])
        config = kept / "admin.properties"
        ottla("users", "add", "alice", *bootstrap, config=config, stdin="wonderland\n")
        alice = {**admin, "sasl.username": "alice", "sasl.password": "wonderland"}
        refused = produced(alice, "orders")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        ottla("acls", "allow", "alice", "produce", "orders", "--execute", *bootstrap, config=config)
        assert produced(alice, "orders") is None
        (registry,) = re.findall(r"registry (https://\S+)", first)
        new = ("schemas", "register", "orders-value", "-", "--type", "AVRO", "-r", registry)
        ottla(*new, config=config, stdin='"string"')
        assert "orders-value" in ottla("schemas", "list", "-r", registry, config=config)
        checked = ("topics", "create", "checked", "--config", "confluent.value.schema.validation=true")
        ottla(*checked, *bootstrap, config=config)
        ottla(
            "schemas",
            "register",
            "checked-value",
            "-",
            "--type",
            "AVRO",
            "-r",
            registry,
            config=config,
            stdin='"string"',
        )
        assert produced(admin, "checked", b"\0\0\0\0\1\x0aplums") is None  # the broker has asked the registry
        refused = produced(admin, "checked", b"plums")
        assert refused is not None
        assert refused.code() == KafkaError.INVALID_RECORD
        (connect,) = re.findall(r"connect  (https://\S+)", first)
        stopped = {"connector.class": "FileStreamSource", "file": "/tmp/none", "topic": "orders"}
        body = json.dumps({"name": "lines", "config": stopped})
        ottla("connect", "create", "-", "--state", "STOPPED", "-u", connect, config=config, stdin=body)
        assert "lines" in ottla("connect", "list", "-u", connect, config=config)
        of_alice = connect.replace("https://", "https://alice:wonderland@")
        assert "needs DESCRIBE on the cluster" in ottla("connect", "list", "-u", of_alice, config=config, ends=1)
        (sql,) = re.findall(r"sql      (https://\S+)", first)
        shown = ottla("sql", "-s", sql, "-e", "SHOW CONNECTORS; PRINT 'orders' FROM BEGINNING LIMIT 1;", config=config)
        assert "lines" in shown and "plums" in shown  # Connect was asked as the administrator
        by_alice = sql.replace("https://", "https://alice:wonderland@")
        refusal = ottla("sql", "-s", by_alice, "-e", "PRINT 'orders' LIMIT 1;", config=config, ends=1)
        assert "User:alice needs READ on topic orders" in refusal
        typed = "CREATE STREAM checked (v STRING) WITH (kafka_topic='checked', value_format='AVRO');"
        # The registry's answer, asked as nodes do: a string is no record of columns.
        ottla("sql", "-s", sql, "-e", typed + "DESCRIBE checked;", config=config)
        nobody = tmp_path / "nobody.properties"
        nobody.write_text(re.sub('password="[^"]*"', 'password="guessed"', config.read_text()))
        assert "uthentication" in ottla("topics", "list", *bootstrap, "--timeout", "20", config=nobody, ends=1)
    assert {path.name: path.stat().st_mode & 0o777 for path in kept.iterdir()} == {
        "ca.pem": 0o644,
        **dict.fromkeys(("ca-key.pem", "node.pem", "node.properties", "admin.properties"), 0o600),
    }
    with started("--secure", *words) as second:
        assert "password" not in second
        assert produced(alice, "orders") is None
    assert "was started with --secure" in ottla("start", *words, config=nobody, ends=1)


def test_three_nodes_log_in_with_each_other_and_know_one_administrator(tmp_path: Path) -> None:
    words = ("--nodes", "3", "--port", str(free_port(6)), "--data", str(tmp_path / "data"))
    with started("--secure", *words) as first:
        admin = pasted(first)
        bootstrap = ("--bootstrap", admin["bootstrap.servers"])
        config = tmp_path / "data.security" / "admin.properties"
        ottla("topics", "create", "orders", "--replication-factor", "3", *bootstrap, config=config)
        assert produced({**admin, "acks": "all"}, "orders") is None
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "data").glob("*.properties")} == {0o600}


def test_a_file_is_secured_by_its_own_lines(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("")
    assert "docs/SECURITY.md" in ottla("start", str(file), "--secure", config=tmp_path / "none", ends=2)


def test_an_administrator_is_told_a_port_that_is_known(tmp_path: Path) -> None:
    words = ("--secure", "--port", "0", "--data", str(tmp_path / "data"))
    assert "1 to 65534" in ottla("start", *words, config=tmp_path / "none", ends=2)


PAGE = Path(__file__).parents[2] / "docs" / "SECURITY.md"


def test_the_file_on_the_page_makes_three_nodes_that_trust_each_other(tmp_path: Path) -> None:
    (text,) = re.findall(r"```properties\n(.*?)```", PAGE.read_text(), re.DOTALL)
    ottla("certs", "dev", str(tmp_path / "certs"), config=tmp_path / "none")
    ports = free_ports(6)
    text = text.replace("/etc/ottla", str(tmp_path / "certs"))
    for number in (1, 2, 3):
        text = text.replace(f"{number}@kafka{number}:9093", f"{number}@127.0.0.1:{ports[2 + number]}")
    with ExitStack() as nodes:
        starting = []
        for number in (1, 2, 3):
            file = tmp_path / f"{number}.properties"
            own = text.replace("node.id=1", f"node.id={number}").replace("/var/lib/ottla", str(tmp_path / f"{number}"))
            own = own.replace("kafka1:9092", f"127.0.0.1:{ports[number - 1]}")
            file.write_text(own.replace("kafka1:9093", f"127.0.0.1:{ports[2 + number]}"))
            starting.append(nodes.enter_context(launched(str(file))))
        for each in starting:
            told(each)
        bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports[:3])
        admin = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(tmp_path / "certs" / "ca.pem"),
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "ADMIN-SECRET",
        }
        assert produced(admin, "orders") is None
