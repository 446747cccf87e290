"""`ottla sql run FILE`: two queries of a file as one application, killed, and run again until all is done."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from ottla.client import admin
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.sql.testing import run
from tests.spark.test_sql_kill_nine import rows
from tests.support.patience import PATIENCE_SECONDS, eventually
from tests.support.sql_servers import PROCESS_PATIENCE_S, unique

FILE = """
SET 'application.id' = '{n}';
SET 'state.dir' = '{folder}';
SET 'ksql.streams.auto.offset.reset' = 'earliest';
SET 'max.records.per.batch' = '60';
CREATE STREAM orders (id STRING KEY, price INT) WITH (KAFKA_TOPIC='{n}-orders', VALUE_FORMAT='JSON');
CREATE STREAM dear WITH (KAFKA_TOPIC='{n}-dear') AS SELECT id, price * 10 AS cents FROM orders WHERE price > 1;
CREATE TABLE counts WITH (KAFKA_TOPIC='{n}-counts') AS SELECT id, COUNT(*) AS c, SUM(price) AS total FROM orders
    GROUP BY id;
"""
PARTS, PER_PART = 3, 200


class File:
    """A file of statements, and the tool with it."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.name = unique("run")
        self.path = folder / "orders.sql"
        self.text = FILE.replace("{n}", self.name).replace("{folder}", str(folder / "state"))
        self.path.write_text(self.text)
        self._bootstrap = bootstrap

    def command(self, verb: str, *words: str) -> list[str]:
        reach = [] if verb in ("describe", "explain") else ["-b", self._bootstrap]
        return [sys.executable, "-m", "ottla", "sql", verb, str(self.path), *reach, *words]

    def __call__(self, verb: str, *words: str) -> str:
        """What is printed."""
        done = subprocess.run(
            self.command(verb, *words), capture_output=True, text=True, check=False, timeout=PROCESS_PATIENCE_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, part: int) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "partitioner": "murmur2_random"})
        for record in self.records(part):
            value, moment = json.dumps(record["value"]), record["timestamp"]
            producer.produce(f"{self.name}-orders", value, record["key"], timestamp=moment)
        assert producer.flush(60) == 0

    def records(self, part: int) -> list[dict[str, Any]]:
        return [
            {"topic": f"{self.name}-orders", "key": f"u{n % 7}", "value": {"PRICE": n % 5}, "timestamp": 1_000 + n}
            for n in range(part * PER_PART, (part + 1) * PER_PART)
        ]

    def written(self, sink: str) -> list[tuple[bytes | None, Any]]:
        with Cluster(parse_bootstrap(self._bootstrap)) as cluster:
            there = {topic.name for topic in cluster.metadata().topics}
        topic = f"{self.name}-{sink}"
        return rows(self._bootstrap, topic) if topic in there else []


def test_two_queries_that_are_killed_together_go_on_exactly_once(bootstrap: str, tmp_path: Path) -> None:
    file = File(bootstrap, tmp_path)
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        kept = {"retention.ms": "-1"}
        admin.create_topics(cluster, [admin.NewTopic(f"{file.name}-orders", 2, 1, configs=kept)])
    assert "Sink: KSTREAM-SINK" in file("describe")
    assert "KSTREAM-AGGREGATE" in file("explain")
    file.write(0)
    running = subprocess.Popen(file.command("run"), start_new_session=True)
    try:
        eventually(lambda: len(file.written("dear")) > 0 or running.poll() is not None, "the first batch")
        assert running.poll() is None, "it has ended"
        file.write(1)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(PATIENCE_SECONDS)
    file.write(2)
    file("run", "--once")
    told = json.loads(file("status", "--json"))
    assert file.name in json.dumps(told)

    expected, _ = run(file.text, [record for part in range(PARTS) for record in file.records(part)])
    dear = Counter((each["key"], each["value"]["CENTS"]) for each in expected if each["topic"].endswith("-dear"))
    assert Counter(((key or b"").decode(), value["CENTS"]) for key, value in file.written("dear")) == dear
    counts = {each["key"]: each["value"] for each in expected if each["topic"].endswith("-counts")}
    assert {(key or b"").decode(): value for key, value in file.written("counts")} == counts

    assert f"{file.name}-orders" in file("reset")
    file("reset", "--execute")
    file("run", "--once")
    assert len(file.written("dear")) == 2 * dear.total(), "from the beginning, behind what is there"
