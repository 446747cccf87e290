"""The sink writes every micro-batch once, whatever happens to the query."""

import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from ottla.client import admin, groups
from ottla.client.blocking.cluster import Cluster as Client
from ottla.client.blocking.consumer import Consumer
from ottla.client.offsets import LATEST, READ_COMMITTED, READ_UNCOMMITTED, Found, list_offsets
from ottla.client.partitioner import partition_of_key
from ottla.client.reach import Reach
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink import sink as sink_module
from ottla.pipelines.sink.delivery import Delivery
from ottla.pipelines.sink.encoding import Encoded
from ottla.pipelines.sink.exactly_once import exactly_once
from ottla.pipelines.sink.expected import FEW_RECORDS
from ottla.pipelines.sink.sink import TransactionalSink, Unpacked, kafka_rows, packed
from ottla.pipelines.sink.transaction import Fenced
from ottla.pipelines.sink.writer import Errand, Pack, Write
from ottla.protocol.records import Record
from tests.spark import sink_app as app
from tests.support.patience import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parent.parent.parent


def create(client: Client, topic: str, partitions: int = app.PARTITIONS) -> str:
    outcome = admin.create_topics(client, [admin.NewTopic(topic, partitions, 1)])[topic]
    assert not isinstance(outcome, Exception), outcome
    return topic


def committed(client: Client, topic: str) -> dict[int, list[Record]]:
    """What a reader of committed records finds, by partition, when every transaction has come to its end: a commit is
    decided before its markers are in the logs."""
    places = [TopicPartition(topic, index) for index in client.partitions(topic)]
    eventually(lambda: ends(client, places, READ_COMMITTED) == ends(client, places, READ_UNCOMMITTED), "an end")
    spans = {place: (0, end) for place, end in ends(client, places, READ_COMMITTED).items()}
    consumer = Consumer(client, spans, isolation=READ_COMMITTED)
    found: dict[int, list[Record]] = {place.partition: [] for place in places}
    while consumer.active:
        for fetched in consumer.poll(1.0):
            found[fetched.place.partition] += fetched.records
    return found


def ends(client: Client, places: list[TopicPartition], isolation: int) -> dict[TopicPartition, int]:
    found = list_offsets(client, dict.fromkeys(places, LATEST), isolation=isolation)
    return {place: offset(found[place]) for place in places}


def group_is_at(client: Client, group: str, place: TopicPartition, offset: int) -> None:
    def there() -> bool:
        found = groups.committed(client, group).get(place)
        return found is not None and found.offset == offset

    eventually(there, f"{group} at {offset}")


def offset(found: object) -> int:
    assert isinstance(found, Found), found
    return found.offset


def values(client: Client, topic: str) -> list[str]:
    return sorted((r.value or b"").decode() for found in committed(client, topic).values() for r in found)


class NewSink(Protocol):
    def __call__(self, topic: str, **settings: Any) -> TransactionalSink: ...


@pytest.fixture
def new_sink(bootstrap: str) -> Iterator[NewSink]:
    """An open sink. Two for the same topic are the same query."""
    with ExitStack() as stack:

        def new(topic: str, **settings: Any) -> TransactionalSink:
            sink = TransactionalSink(reach=Reach(bootstrap), transactional_id=f"id-{topic}", **settings)
            stack.callback(sink.close)
            sink.open(f"query of {topic}", "a test")
            return sink

        yield new


def numbers(spark: "SparkSession", topic: str, count: int, start: int = 0) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: PLC0415

    return spark.range(start, start + count, 1, 2).select(
        F.col("id").cast("string").alias("key"),
        F.col("id").cast("string").alias("value"),
        F.lit(topic).alias("topic"),
    )


# ---- rows


def test_a_row_becomes_a_record_with_all_it_has(
    spark: "SparkSession", client: Client, topic: str, new_sink: NewSink
) -> None:
    create(client, topic, 2)
    rows = spark.createDataFrame(
        [
            (topic, 1, b"k", b"v", [("h", b"1"), ("h", None)], 1_700_000_000_123),
            (topic, 0, None, None, None, 5),
            (topic, 0, b"", b"", [], 4),
        ],
        "topic string, partition int, key binary, value binary, headers array<struct<key:string,value:binary>>, "
        "timestamp long",
    ).coalesce(1)
    written = new_sink(topic, compression="lz4").write(packed(rows), 0, {})
    assert (written.records, written.skipped) == (3, False)
    assert written.partitions == {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 1}
    assert committed(client, topic) == {
        0: [Record(0, 5, None, None), Record(1, 4, b"", b"")],
        1: [Record(0, 1_700_000_000_123, b"k", b"v", (("h", b"1"), ("h", None)))],
    }


def test_keys_go_where_javas_producers_put_them_and_keep_their_order(
    spark: "SparkSession", client: Client, topic: str, new_sink: NewSink
) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    create(client, topic)
    # Two tasks of unsorted rows, whose order is told by their source: partition, offset, number.
    rows = (
        spark.range(0, 600, 1, 2)
        .select(
            F.format_string("key-%s", F.col("id") % 10).alias("key"),
            F.format_string("%s/%s/%s", F.col("id") % 2, (F.col("id") % 300), F.col("id").cast("int")).alias("value"),
            F.lit(topic).alias("topic"),
            (F.col("id") % 2).cast("int").alias("src_partition"),
            (F.col("id") % 300).alias("src_offset"),
            F.col("id").cast("int").alias("seq"),
        )
        .orderBy(F.hash("value"))
    )
    new_sink(topic, max_batch_bytes=2_000).write(packed(rows), 0, {})
    found = committed(client, topic)
    assert sum(map(len, found.values())) == 600
    for partition, records in found.items():
        assert {partition_of_key(record.key or b"", app.PARTITIONS) for record in records} == {partition}
        places = [tuple(map(int, (record.value or b"").split(b"/"))) for record in records]
        assert places == sorted(places)


def test_records_without_a_key_are_spread(spark: "SparkSession", client: Client, topic: str, new_sink: NewSink) -> None:
    create(client, topic)
    sink = new_sink(topic)
    for batch in range(app.PARTITIONS):
        sink.write(packed(numbers(spark, topic, 10).drop("key").coalesce(1)), batch, {})
    assert {partition: len(found) for partition, found in committed(client, topic).items()} == {0: 10, 1: 10, 2: 10}


@pytest.mark.parametrize(("expected_first", "counts"), [(FEW_RECORDS, [3_000, 10]), (1 << 40, [10, 10, 3_000, 10])])
def test_a_batch_that_is_not_small_after_all_is_written_by_tasks(
    spark: "SparkSession",
    client: Client,
    topic: str,
    new_sink: NewSink,
    monkeypatch: pytest.MonkeyPatch,
    expected_first: int,
    counts: list[int],
) -> None:
    create(client, topic)
    monkeypatch.setattr(sink_module, "HERE_BYTES", 5_000)
    sink = new_sink(topic)
    sink.expect(expected_first)
    for batch, count in enumerate(counts):
        assert sink.write(packed(numbers(spark, topic, count, start=1_000 * batch)), batch, {}).records == count
    expected = [str(1_000 * batch + number) for batch, count in enumerate(counts) for number in range(count)]
    assert values(client, topic) == sorted(expected)


def test_what_the_driver_packs_is_what_tasks_pack(
    spark: "SparkSession", client: Client, topic: str, new_sink: NewSink
) -> None:
    created = [create(client, f"{topic}-{way}") for way in ("driver", "tasks")]
    for name in created:
        sink = new_sink(name)
        sink.expect(0 if name == created[0] else FEW_RECORDS + 1)
        for batch, count in enumerate([500, 0, 7]):
            rows = kafka_rows(numbers(spark, name, count, start=1_000 * batch))
            written = sink.write(Unpacked(rows, count, Pack()), batch, {})
            assert (written.records, sink.last_batch) == (count, batch)
    by_driver, by_tasks = (
        {number: [(r.key, r.value, r.headers) for r in records] for number, records in committed(client, name).items()}
        for name in created
    )
    assert {number: sorted(found) for number, found in by_driver.items()} == {
        number: sorted(found) for number, found in by_tasks.items()
    }


def test_a_partition_that_the_topic_lacks_is_an_error_and_not_a_loss(
    spark: "SparkSession", client: Client, topic: str, new_sink: NewSink
) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    create(client, topic, 1)
    sink = new_sink(topic)
    with pytest.raises(Exception, match="numbered from 0 to 0"):
        sink.write(packed(numbers(spark, topic, 10).withColumn("partition", F.lit(7))), 0, {})
    assert values(client, topic) == []


def test_columns_that_cannot_be_written_are_named(spark: "SparkSession", topic: str) -> None:
    with pytest.raises(ValueError, match="`value` and `topic`"):
        packed(spark.range(1))
    with pytest.raises(ValueError, match="`value` is bigint"):
        packed(spark.sql(f"select 1L as value, '{topic}' as topic"))


# ---- batches


def test_a_batch_that_is_out_is_not_written_again(
    spark: "SparkSession", client: Client, topic: str, new_sink: NewSink
) -> None:
    create(client, topic)
    place = TopicPartition(create(client, f"{topic}-input", 1), 0)
    sink = new_sink(topic, group_id=f"group-{topic}")
    assert sink.last_batch == -1
    sink.write(packed(numbers(spark, topic, 10)), 0, {place: 17})
    again = new_sink(topic, group_id=f"group-{topic}")
    assert again.last_batch == 0
    assert again.write(packed(numbers(spark, topic, 10)), 0, {place: 17}).skipped
    assert not again.write(packed(numbers(spark, topic, 10, start=10)), 1, {place: 30}).skipped
    assert values(client, topic) == sorted(str(number) for number in range(20))
    group_is_at(client, f"group-{topic}", place, 30)
    assert new_sink(f"{topic}, after a reset").last_batch == -1


def test_a_batch_that_fails_leaves_nothing_and_can_be_written_again(
    spark: "SparkSession", client: Client, topic: str, new_sink: NewSink
) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    create(client, topic)
    place = TopicPartition(create(client, f"{topic}-input", 1), 0)
    sink = new_sink(topic, group_id=f"group-{topic}")
    rows = numbers(spark, topic, 100)
    broken = rows.withColumn("value", F.when(F.col("key") == "99", F.raise_error(F.lit("boom"))).otherwise("fine"))
    with pytest.raises(Exception, match="boom"):
        sink.write(packed(broken), 0, {place: 1})
    assert values(client, topic) == []
    assert groups.committed(client, f"group-{topic}") == {}
    sink.write(packed(rows), 0, {place: 2})
    assert len(values(client, topic)) == 100
    group_is_at(client, f"group-{topic}", place, 2)


# ---- crashes


def check(client: Client, topic: str, lines: list[str], batches: int) -> None:
    assert values(client, topic) == lines
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    for records in committed(client, topic).values():
        for record in records:
            by_key[record.key].append(record.timestamp)
    assert all(times == sorted(times) for times in by_key.values())
    group_is_at(client, f"{app.GROUP}-{topic}", app.input_of(topic), batches * app.LINES)


def test_a_query_that_dies_at_any_step_neither_loses_nor_doubles(
    spark: "SparkSession", bootstrap: str, client: Client, topic: str, tmp_path: Path
) -> None:
    create(client, topic)
    deaths = [(point, batch) for batch, point in enumerate((*app.POINTS, app.IN_PRODUCE, app.AFTER_END))]
    create(client, app.input_of(topic).topic, 1)
    lines = app.write_input(tmp_path / "in", len(deaths) + 1)
    for point, batch in deaths:
        with pytest.raises(Exception, match="Died"):
            app.run(spark, tmp_path, app.mortal_sink(bootstrap, topic, point, batch, app.die), topic)
        assert not (tmp_path / "checkpoint" / "commits" / str(batch)).exists()
    app.run(spark, tmp_path, app.mortal_sink(bootstrap, topic, app.NOWHERE, 0, app.die), topic)
    check(client, topic, lines, len(deaths) + 1)
    # As if the machine had lost the last file that Spark wrote.
    for name in (str(len(deaths)), f".{len(deaths)}.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    app.run(spark, tmp_path, app.mortal_sink(bootstrap, topic, app.NOWHERE, 0, app.die), topic)
    check(client, topic, lines, len(deaths) + 1)


@pytest.mark.matrix
def test_an_application_that_is_killed_goes_on_where_it_was(
    spark: "SparkSession", bootstrap: str, client: Client, topic: str, tmp_path: Path
) -> None:
    create(client, topic)
    points = os.environ.get("OTTLA_SINK_KILLS", app.IN_PRODUCE).split(",")
    create(client, app.input_of(topic).topic, 1)
    lines = app.write_input(tmp_path / "in", len(points) + 1)
    for batch, point in enumerate(points):
        words = [bootstrap, str(tmp_path), topic, point, str(batch)]
        # Into a file: a pipe would stay open for as long as the orphaned JVM takes to notice.
        with (tmp_path / "output").open("w") as output:
            killed = subprocess.run(
                [sys.executable, "-m", "tests.spark.sink_app", *words],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        assert killed.returncode == -signal.SIGKILL, (tmp_path / "output").read_text()
    app.run(spark, tmp_path, app.mortal_sink(bootstrap, topic, app.NOWHERE, 0, app.die), topic)
    check(client, topic, lines, len(points) + 1)


class PausedWrite(Write):
    """Writes one batch, tells so, and goes on when it is told to."""

    __slots__ = ("_go", "_there")

    def __init__(self, errand: Errand, there: str, go: str) -> None:
        super().__init__(errand)
        self._there, self._go = there, go

    def send(self, delivery: Delivery, place: TopicPartition, encoded: Encoded) -> None:
        super().send(delivery, place, encoded)
        delivery.flush()
        if os.path.exists(self._there):
            with open(self._there, "w") as there:
                there.write("here")
            os.unlink(self._there)
            with open(self._go) as go:
                go.read()


class PausedSink(TransactionalSink):
    def pause_at(self, there: str, go: str) -> None:
        self._pipes = (there, go)

    def _task(self, errand: Errand) -> Write:
        return PausedWrite(errand, *self._pipes)


def test_a_zombie_whose_tasks_still_write_is_fenced(
    spark: "SparkSession", bootstrap: str, client: Client, topic: str, new_sink: NewSink, tmp_path: Path
) -> None:
    create(client, topic, 1)
    there, go = str(tmp_path / "there"), str(tmp_path / "go")
    os.mkfifo(there)
    os.mkfifo(go)
    zombie = PausedSink(reach=Reach(bootstrap), transactional_id=f"id-{topic}", max_batch_bytes=300)
    zombie.open("a query", "a test")
    zombie.pause_at(there, go)
    ends: list[BaseException] = []

    def write() -> None:
        try:
            zombie.write(packed(numbers(spark, topic, 100)), 0, {})
        except Fenced as fenced:
            ends.append(fenced)
        finally:
            if os.path.exists(there):  # it never came so far, and the test would wait for ever
                with open(there, "w"):
                    pass

    thread = threading.Thread(target=write)
    thread.start()
    with open(there) as pipe:
        assert pipe.read() == "here"
    successor = new_sink(topic)
    successor.write(packed(numbers(spark, topic, 50)), 0, {})
    with open(go, "w") as pipe:
        pipe.write("on")
    thread.join(60)
    assert [type(end) for end in ends] == [Fenced]
    with pytest.raises(Fenced):  # it does not come back by itself
        zombie.write(packed(numbers(spark, topic, 100)), 0, {})
    zombie.close()
    assert values(client, topic) == sorted(str(number) for number in range(50))


# ---- for any Spark user


def test_any_stream_goes_into_a_topic_exactly_once(
    spark: "SparkSession", bootstrap: str, client: Client, topic: str, tmp_path: Path
) -> None:
    create(client, topic)
    lines = app.write_input(tmp_path / "in", 2)
    checkpoint = str(tmp_path / "checkpoint")

    def run() -> None:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
        sink = exactly_once(bootstrap_servers=bootstrap, topic=topic, checkpoint=checkpoint, group_id=f"group-{topic}")
        query = (
            stream.writeStream.option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .foreachBatch(sink)
            .start()
        )
        query.awaitTermination()

    run()
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink()
    run()
    assert values(client, topic) == lines
