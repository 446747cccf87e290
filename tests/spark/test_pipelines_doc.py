"""The example of docs/PIPELINES.md, pasted into a file and run, as a reader would; and the mistakes a reader makes."""

import json
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.client import admin, groups
from ottla.client.blocking.cluster import Cluster as Client
from ottla.model.ids import TopicPartition
from ottla.pipelines import exactly_once, read_stream
from tests.spark.applications import START, Input, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent


def example() -> str:
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "PIPELINES.md").read_text(), re.DOTALL | re.MULTILINE
    )
    return str(code)


def create(client: Client, *names: str) -> None:
    for outcome in admin.create_topics(client, [admin.NewTopic(name, 1, 1) for name in names]).values():
        assert not isinstance(outcome, Exception), outcome


def orders(amounts: list[int]) -> list[Input]:
    return [Input("orders", b"%d" % n, json.dumps({"amount": n}).encode(), START + n) for n in amounts]


def test_the_example_runs_as_it_stands_and_each_order_is_there_once(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the session that is there, which is what getOrCreate asks for."""
    monkeypatch.chdir(world.directory)
    monkeypatch.setenv("KAFKA_SERVERS", world.bootstrap)
    create(world.client, "orders", "large-orders")
    file = world.directory / "large_orders.py"
    file.write_text(example())
    world.send(orders([5, 100, 250]))
    runpy.run_path(str(file))
    assert capsys.readouterr().out == "3 orders were read\n"
    world.send(orders([7, 300]))
    runpy.run_path(str(file))
    assert capsys.readouterr().out == "2 orders were read\n"
    found = [(record.key, record.timestamp) for record in world.read("large-orders")]
    assert found == [(b"100", START + 100), (b"250", START + 250), (b"300", START + 300)]
    assert groups.committed(world.client, "large-orders")[TopicPartition("orders", 0)].offset == 5


def test_what_is_wrong_is_said_with_what_to_do(spark: "SparkSession", world: World) -> None:
    with pytest.raises(ValueError, match=r"kafka\.bootstrap\.servers is not set"):
        read_stream(spark, {"subscribe": "orders"})
    with pytest.raises(ValueError, match="startingOffset is not an option of this source; is startingOffsets meant"):
        read_stream(spark, {"kafka.bootstrap.servers": world.bootstrap, "subscribe": "t", "startingOffset": "latest"})
    write = exactly_once(bootstrap_servers=world.bootstrap, topic="large-orders")
    with pytest.raises(ValueError, match=r"pass this function to writeStream\.foreachBatch"):
        write(spark.range(3), 0)
    elsewhere = exactly_once(bootstrap_servers=world.bootstrap, topic="t", checkpoint=str(world.directory / "nowhere"))
    with pytest.raises(ValueError, match="has to be what the option checkpointLocation says"):
        elsewhere(spark.range(3), 0)
