"""Rows of a database in a topic, by the task that Spark would run: in columns, or one by one with a transform."""

from pathlib import Path

import msgspec
import pytest

from ottla.client.reach import Reach
from ottla.connect.jobs.source_query import _Task
from ottla.connect.jobs.source_task import LIMIT, Part, SourceTask
from ottla.connect.jobs.spec import JobSpec
from ottla.testing import Cluster
from tests.platform.connect.databases import run

ROWS = 3000
WITH_TRANSFORM = {
    "transforms": "insert",
    "transforms.insert.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.insert.static.field": "more",
    "transforms.insert.static.value": "x",
}


@pytest.mark.parametrize("more", [{}, WITH_TRANSFORM], ids=["columns", "rows"])
def test_all_rows_are_in_the_topic_in_order(kafka: Cluster, tmp_path: Path, more: dict[str, str]) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'test.db'}"
    rows = ", ".join(f"({n}, '\"{n}')" for n in range(ROWS))
    run(url, f"CREATE TABLE t (id integer PRIMARY KEY, name text); INSERT INTO t VALUES {rows}")
    topic = f"rows-{len(more)}-t"
    config = {
        "connector.class": "jdbc-source",
        "connection.url": url,
        "table.whitelist": "t",
        "topic.prefix": topic.removesuffix("t"),
        "batch.max.rows": "1000",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        **more,
    }
    kafka.create_topic(topic)
    kafka.create_topic("offsets")
    spec = JobSpec("rows", config, kafka.bootstrap_servers, "group", "offsets", str(tmp_path))
    reach = Reach(kafka.bootstrap_servers)
    cluster = reach.cluster(client_id="test", timeout_s=60)
    try:
        transaction = _Task(cluster, reach, spec.transactional_id(0))
        transaction.transaction.initialise()
        task = SourceTask(spec)
        part = Part({"protocol": "1", "table": "t"}, None, b"key")
        report = task.run(0, [part], LIMIT, cluster, transaction.errand(spec))
        task.close()
        assert report.failed is None
        transaction.transaction.commit()
    finally:
        cluster.close()
    found = [msgspec.json.decode(record.value or b"") for record in kafka.consume(topic, ROWS)]
    extra = {"more": "x"} if more else {}
    assert found == [{"id": n, "name": f'"{n}', **extra} for n in range(ROWS)]
    assert (report.counts.read, report.counts.written, report.ends[0][1]["round"]) == (ROWS, ROWS, 1)  # type: ignore[index]
