"""Connectors that die at any step of a batch leave, in the end, what ones leave that live."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.connect.jobs.query import ConnectorStopped
from ottla.connect.redrive import Letters, condition, to_topics
from tests.platform.systems.http_server import commanded_server
from tests.spark.applications import START, Input, World
from tests.spark.connect.connectors import JSON, POINTS, TEXTS, run, run_and_die, spec_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 1_200
"""More than what goes along with a plan, so that tasks read for themselves as well, all in one batch."""


def append(path: Path, first: int, count: int = LINES) -> None:
    with path.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(first, first + count))


def values(world: World, topic: str) -> list[bytes | None]:
    return [record.value for record in world.read(topic)]


def test_a_file_source_that_dies_at_every_step_writes_each_line_once_and_in_order(
    spark: "SparkSession", world: World
) -> None:
    topic, path = world.topic("lines"), world.directory / "in.txt"
    spec = spec_of(world, "source", {**TEXTS, "connector.class": "FileStreamSource", "file": str(path), "topic": topic})
    append(path, 0)
    for life, point in enumerate(POINTS, 1):
        with pytest.raises(ConnectorStopped, match=point):
            run_and_die(spark, spec, point, 0)
        append(path, LINES * life)
    run(spark, spec)
    assert values(world, topic) == [b"line %d" % number for number in range(LINES * (1 + len(POINTS)))]


@pytest.mark.parametrize("point", POINTS)
def test_datagen_that_dies_makes_the_records_of_one_that_lives(spark: "SparkSession", world: World, point: str) -> None:
    def config(topic: str) -> dict[str, str]:
        made = {"quickstart": "orders", "max.interval": "0", "iterations": "1500", "random.seed": "7"}
        return {**JSON, "connector.class": "datagen", "kafka.topic": topic, **made}

    quiet, killed = world.topic("quiet"), world.topic("killed")
    run(spark, spec_of(world, "quiet", config(quiet)))
    spec = spec_of(world, "killed", config(killed))
    with pytest.raises(ConnectorStopped, match=point):
        run_and_die(spark, spec, point, 0)
    run(spark, spec)
    assert values(world, killed) == values(world, quiet)
    assert len(values(world, quiet)) == 1500


def send(world: World, topic: str, first: int, count: int) -> None:
    numbers = range(first, first + count)
    world.send([Input(topic, b"%d" % (n % 5), json.dumps({"n": n}).encode(), START + n) for n in numbers])


def test_a_file_sink_that_dies_at_every_step_has_each_record_once(spark: "SparkSession", world: World) -> None:
    topic, path = world.topic("in"), world.directory / "out.txt"
    spec = spec_of(world, "sink", {**TEXTS, "connector.class": "FileStreamSink", "file": str(path), "topics": topic})
    for life, point in enumerate(POINTS):
        send(world, topic, 100 * life, 100)
        with pytest.raises(ConnectorStopped, match=point):
            run_and_die(spark, spec, point, 0)
    send(world, topic, 100 * len(POINTS), 100)
    run(spark, spec)
    assert path.read_text().splitlines() == [f'{{"n": {n}}}' for n in range(100 * (1 + len(POINTS)))]


def test_an_http_sink_that_dies_repeats_requests_under_the_keys_that_they_had(
    spark: "SparkSession", world: World
) -> None:
    topic = world.topic("in")
    with commanded_server() as server:
        spec = spec_of(
            world, "sink", {**JSON, "connector.class": "http-sink", "http.api.url": server.url, "topics": topic}
        )
        for life, point in enumerate(POINTS):
            send(world, topic, 20 * life, 20)
            with pytest.raises(ConnectorStopped, match=point):
                run_and_die(spark, spec, point, 0)
        run(spark, spec)
        keys = {each.headers["idempotency-key"] for each in server.taken}
        assert keys == {f"{topic}-0-{offset}" for offset in range(20 * len(POINTS))}
        assert sorted(server.values(), key=str) == sorted(({"n": n} for n in range(20 * len(POINTS))), key=str)
        times = Counter(each.headers["idempotency-key"] for each in server.taken)
        assert set(times.values()) <= {1, 2}


def test_dead_letters_of_a_batch_that_is_tried_again_are_there_once(spark: "SparkSession", world: World) -> None:
    topic, path = world.topic("in"), world.directory / "out.txt"
    letters = f"{world.name}.letters"
    config = {
        **JSON,
        "connector.class": "FileStreamSink",
        "file": str(path),
        "topics": topic,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    spec = spec_of(world, "sink", config)
    for life, point in enumerate(POINTS):
        send(world, topic, 10 * life, 10)
        world.send([Input(topic, b"k", b"{poison %d" % life, START)])
        with pytest.raises(ConnectorStopped, match=point):
            run_and_die(spark, spec, point, 0)
    run(spark, spec)
    assert path.read_text().splitlines() == [f"{{n={n}}}" for n in range(10 * len(POINTS))]
    found = world.read(letters)
    assert [record.value for record in found] == [b"{poison %d" % life for life in range(len(POINTS))]
    told = dict(found[0].headers)
    assert {
        name: told[f"__connect.errors.{name}"] for name in ("topic", "partition", "offset", "stage", "task.id")
    } == {
        "topic": topic.encode(),
        "partition": b"0",
        "offset": b"10",
        "stage": b"VALUE_CONVERTER",
        "task.id": b"0",
    }
    assert told["__connect.errors.connector.name"] == spec.name.encode()
    assert told["__connect.errors.class.name"] == b"org.apache.kafka.connect.json.JsonConverter"
    assert told["__connect.errors.exception.class.name"] == b"org.apache.kafka.connect.errors.DataException"


def test_a_source_has_dead_letters_too_and_redrive_sends_each_letter_once(spark: "SparkSession", world: World) -> None:
    topic, letters, path = world.topic("lines"), f"{world.name}.letters", world.directory / "in.txt"
    path.write_text("2020\nno number\n2021\nnor this\n")
    config = {
        "key.converter": TEXTS["key.converter"],
        "value.converter": "org.apache.kafka.connect.converters.IntegerConverter",
        "connector.class": "FileStreamSource",
        "file": str(path),
        "topic": topic,
        "transforms": "number",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "int32",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    told = run(spark, spec_of(world, "source", config))
    assert (told["counts"]["read"], told["counts"]["written"], told["counts"]["letters"]) == (4, 2, 2)
    assert values(world, topic) == [(2020).to_bytes(4, "big"), (2021).to_bytes(4, "big")]
    assert values(world, letters) == [b"no number", b"nor this"]
    said = dict(world.read(letters)[0].headers)
    assert said["__connect.errors.stage"] == b"TRANSFORMATION"
    assert json.loads(said["__connect.errors.source.partition"] or b"") == {"filename": str(path)}

    def redriven(*conditions: str) -> dict[str, int]:
        queue = Letters(world.client, letters)
        found = list(queue.read([condition(text) for text in conditions]))
        return dict(to_topics(world.client, queue, found))

    assert redriven("value~this") == {topic: 1}
    assert redriven() == {topic: 1}
    assert redriven() == {}
    assert values(world, topic)[2:] == [b"nor this", b"no number"]
