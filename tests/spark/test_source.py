"""The source `ottla` in a Spark session, on a real node."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Producer as RealProducer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client import admin, groups
from ottla.client.addresses import parse_bootstrap
from ottla.client.blocking.cluster import Cluster
from ottla.client.blocking.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.pipelines.failures import RESTARTS, SLOW_WORKER, told
from ottla.pipelines.source.connector import FASTER, SMALL_BATCH, Choice, choose, decide, read_stream
from ottla.pipelines.source.data_source import OttlaDataSource, OttlaStreamReader, arrow_schema, source_schema
from ottla.pipelines.source.options import parse_options
from ottla.pipelines.source.planned import stream_of
from ottla.protocol.records import NewRecord
from ottla.streams import Consumed, Produced, Serdes, StreamsApp, StreamsBuilder
from tests.support.patience import eventually

T = TypeVar("T")
NOW = 1_700_000_000_000
KAFKA_SCHEMA = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
)
_numbers = count()


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession) -> None:
    OttlaDataSource.register(spark)


@pytest.fixture(scope="module")
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(parse_bootstrap(bootstrap)) as cluster:
        yield cluster


def new_topic(cluster: Cluster, partitions: int = 1) -> str:
    name = f"source-{next(_numbers)}"
    (created,) = admin.create_topics(cluster, [admin.NewTopic(name, partitions, 1)]).values()
    assert isinstance(created, admin.CreatedTopic), created
    return name


def produce(cluster: Cluster, topic: str, values: Sequence[bytes], *, partition: int = 0, codec: int = 0) -> None:
    send(cluster, topic, [NewRecord(None, value, NOW) for value in values], partition=partition, codec=codec)


def send(cluster: Cluster, topic: str, records: Sequence[NewRecord], *, partition: int = 0, codec: int = 0) -> None:
    producer = Producer(cluster, codec=codec)
    for record in records:
        producer.send(
            topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=partition,
            timestamp=record.timestamp,
        )
    producer.flush()


def patient(attempt: Callable[[], T]) -> T:
    """Tries again when Spark gave up on a Python process that was slow to start, as applications do."""
    for _ in range(RESTARTS):
        try:
            return attempt()
        except (PySparkException, Py4JError) as error:
            if SLOW_WORKER not in str(error):
                raise
    return attempt()


def read(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("ottla").options(subscribe=topic, **{"bootstrap.servers": bootstrap}, **options)
    return patient(reader.load)


def values(frame: DataFrame) -> list[bytes]:
    return [bytes(row.value) for row in in_order(patient(frame.collect))]


def in_order(rows: list[Row]) -> list[Row]:
    """Sorted here: for Spark it would be two jobs more."""
    return sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))


class Stream:
    """One streaming query, run again and again over one checkpoint; keeps the rows of each batch."""

    def __init__(self, spark: SparkSession, bootstrap: str, directory: Path, **options: str) -> None:
        self._spark = spark
        self._options = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest", **options}
        self._checkpoint = directory / "checkpoint"
        self.batches: dict[int, list[Row]] = {}

    def run(self, **options: str) -> StreamingQuery:
        """What is there now."""
        return patient(lambda: self._run(options))

    def _run(self, options: Mapping[str, str]) -> StreamingQuery:
        frame = self._spark.readStream.format("ottla").options(**{**self._options, **options}).load()
        return self.read(frame)

    def run_as_planned_here(self) -> StreamingQuery:
        return self.read(stream_of(self._spark, OttlaDataSource, self._options))

    def read(self, frame: DataFrame) -> StreamingQuery:
        query = (
            frame.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def _keep(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = in_order(frame.collect())

    def values(self) -> list[list[bytes]]:
        return [[bytes(row.value) for row in self.batches[batch]] for batch in sorted(self.batches)]

    def planned(self, batch: int) -> dict[str, dict[str, int]]:
        """The offsets in Spark's own file."""
        last: dict[str, dict[str, int]] = json.loads(
            (self._checkpoint / f"offsets/{batch}").read_text().splitlines()[-1]
        )
        return last

    def forget_last_commit(self) -> None:
        last = max(int(path.name) for path in (self._checkpoint / "commits").iterdir() if path.name.isdigit())
        for path in (self._checkpoint / f"commits/{last}", self._checkpoint / f"commits/.{last}.crc"):
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("options", [{}, {"includeHeaders": "true"}, {"includeHeaders": "true", "streamTime": "/x"}])
def test_columns_are_those_of_sparks_own_kafka_source(options: Mapping[str, str]) -> None:
    parsed = parse_options({"bootstrap.servers": "x", "subscribe": "t", **options})
    schema = source_schema(parsed)
    headers = ",headers:array<struct<key:string,value:binary>>" if "includeHeaders" in options else ""
    times = ",stream_time:bigint" if "streamTime" in options else ""
    assert schema.simpleString() == f"{KAFKA_SCHEMA}{headers}{times}>"
    assert arrow_schema(parsed) == to_arrow_schema(schema, timezone="UTC")


def test_a_batch_query_reads_every_record_of_every_partition(
    spark: SparkSession, bootstrap: str, cluster: Cluster
) -> None:
    topic = new_topic(cluster, 2)
    send(
        cluster,
        topic,
        [NewRecord(b"k", b"v", NOW, (("a", b"1"), ("a", None))), NewRecord(None, None, NOW + 1)],
        partition=1,
    )
    send(cluster, topic, [NewRecord(b"", b"", NOW + 2)], partition=0, codec=3)
    rows = in_order(patient(read(spark, bootstrap, topic, includeHeaders="true").collect))
    assert [(*row[:5], row[6]) for row in rows] == [
        (b"", b"", topic, 0, 0, 0),
        (b"k", b"v", topic, 1, 0, 0),
        (None, None, topic, 1, 1, 0),
    ]
    assert [round(row.timestamp.timestamp() * 1000) for row in rows] == [NOW + 2, NOW, NOW + 1]
    assert [row.headers for row in rows] == [None, [("a", b"1"), ("a", None)], None]


def test_exact_offsets_are_read_wherever_batches_begin_and_end(
    spark: SparkSession, bootstrap: str, cluster: Cluster
) -> None:
    topic = new_topic(cluster)
    for each in range(3):
        produce(cluster, topic, [b"%d" % (each * 10 + i) for i in range(10)], codec=each)
    frame = read(
        spark,
        bootstrap,
        topic,
        startingOffsets=json.dumps({topic: {"0": 7}}),
        endingOffsets=json.dumps({topic: {"0": 23}}),
    )
    assert values(frame) == [b"%d" % i for i in range(7, 23)]


def test_a_stream_takes_no_more_per_batch_than_it_is_told_and_goes_on_from_its_checkpoint(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    stream = Stream(spark, bootstrap, tmp_path, subscribe=topic, maxOffsetsPerTrigger="4")
    produce(cluster, topic, [b"%d" % i for i in range(10)])
    stream.run()
    assert stream.values() == [[b"0", b"1", b"2", b"3"], [b"4", b"5", b"6", b"7"], [b"8", b"9"]]
    assert stream.planned(1) == {topic: {"0": 8}}

    produce(cluster, topic, [b"10"])
    admin.create_partitions(cluster, topic, 2)
    produce(cluster, topic, [b"new"], partition=1)
    query = stream.run()
    assert stream.values()[3:] == [[b"10", b"new"]]
    assert stream.planned(3) == {topic: {"0": 11, "1": 1}}
    progress = query.lastProgress
    assert progress is not None
    assert json.loads(str(progress.sources[0].endOffset)) == {topic: {"0": 11, "1": 1}}


def test_aborted_and_open_transactions_are_not_read(spark: SparkSession, bootstrap: str, cluster: Cluster) -> None:
    topic = new_topic(cluster)
    # The broker must not end the last transaction while Spark still reads.
    settings = {"bootstrap.servers": bootstrap, "transactional.id": topic, "transaction.timeout.ms": 600_000}
    writer = RealProducer(settings)
    writer.init_transactions(30)
    for kept, value in ((True, b"one"), (False, b"two"), (True, b"three"), (None, b"open")):
        writer.begin_transaction()
        writer.produce(topic, value)
        writer.flush(30)
        if kept is not None:
            (writer.commit_transaction if kept else writer.abort_transaction)(30)
    assert values(read(spark, bootstrap, topic)) == [b"one", b"three"]
    everything = read(spark, bootstrap, topic, isolationLevel="read_uncommitted")
    assert values(everything) == [b"one", b"two", b"three", b"open"]
    writer.abort_transaction(30)
    del writer


def test_deleted_offsets_are_an_error_unless_they_may_be_skipped(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    produce(cluster, topic, [b"%d" % i for i in range(10)])
    (gone,) = admin.delete_records(cluster, {TopicPartition(topic, 0): 6}).values()
    assert gone == 6
    from_zero = json.dumps({topic: {"0": 0}})
    with pytest.raises(Exception, match=f"offsets 0 to 5 of {topic}-0 cannot be read: the log begins at 6"):
        values(read(spark, bootstrap, topic, startingOffsets=from_zero))
    frame = read(spark, bootstrap, topic, startingOffsets=from_zero, failOnDataLoss="false")
    assert values(frame) == [b"6", b"7", b"8", b"9"]

    stream = Stream(spark, bootstrap, tmp_path, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 50}}))
    with pytest.raises(Exception, match=f"offsets 10 to 49 of {topic}-0 cannot be read: the log ends at 10"):
        stream.run()


def test_a_query_begins_where_a_group_is_or_at_a_time(spark: SparkSession, bootstrap: str, cluster: Cluster) -> None:
    topic = new_topic(cluster, 2)
    for partition in (0, 1):
        records = [NewRecord(None, b"%d-%d" % (partition, i), NOW + 10 * i) for i in range(4)]
        send(cluster, topic, records, partition=partition)
    groups.commit(cluster, f"{topic}-group", {TopicPartition(topic, 1): 3})
    by_group = read(spark, bootstrap, topic, startingOffsets=f"group:{topic}-group")
    assert values(by_group) == [b"0-0", b"0-1", b"0-2", b"0-3", b"1-3"]
    by_time = read(spark, bootstrap, topic, startingOffsets=f"timestamp:{NOW + 15}", endingTimestamp=str(NOW + 30))
    assert values(by_time) == [b"0-2", b"1-2"]
    with pytest.raises(Exception, match=r"no record of .* has a timestamp of"):
        values(read(spark, bootstrap, topic, startingTimestamp=str(NOW + 1000)))


def test_stream_time_is_carried_from_batch_to_batch_and_the_same_in_a_replay(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    offsets = [5, 3, 9, 2, 1, 12, 4]
    send(cluster, topic, [NewRecord(None, b"x", NOW + each) for each in offsets])
    carried = tmp_path / "times"
    stream = Stream(spark, bootstrap, tmp_path, subscribe=topic, maxOffsetsPerTrigger="2", streamTime=str(carried))
    stream.run()
    expected = {0: [5, 5], 1: [9, 9], 2: [9, 12], 3: [12]}
    assert {n: [row.stream_time - NOW for row in rows] for n, rows in stream.batches.items()} == expected
    assert sorted(int(path.name) for path in (carried / f"{topic}-0").iterdir()) == [2, 4, 6, 7]

    stream.forget_last_commit()
    stream.batches.clear()
    stream.run()
    assert [[row.stream_time - NOW for row in rows] for rows in stream.batches.values()] == [[12]]


def test_a_first_batch_that_is_replayed_begins_where_it_began(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    produce(cluster, topic, [b"old"])
    kept = tmp_path / "initial"
    kept.write_text(json.dumps({topic: {"0": 0}}))  # what an earlier attempt found
    stream = Stream(spark, bootstrap, tmp_path, subscribe=topic, startingOffsets="latest", initialOffsetsFile=str(kept))
    stream.run()
    assert stream.values() == [[b"old"]]
    stream.forget_last_commit()
    stream.run()
    assert stream.values() == [[b"old"]]

    kept.unlink()
    stream.forget_last_commit()
    produce(cluster, topic, [b"new"])
    with pytest.raises(Exception, match="needs the option initialOffsetsFile"):
        stream.run(initialOffsetsFile=str(tmp_path / "other"))


def test_a_stream_that_runs_takes_what_comes(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    arrived: list[bytes] = []

    def started() -> StreamingQuery:
        frame = (
            spark.readStream.format("ottla")
            .options(**{"bootstrap.servers": bootstrap, "subscribePattern": f"{topic}|{topic}-more"})
            .load()
        )
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: arrived.extend(bytes(row.value) for row in batch.collect()))
            .option("checkpointLocation", str(tmp_path))
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        eventually(lambda: query.lastProgress is not None or not query.isActive, "the first look at the topic")
        if not query.isActive:
            query.awaitTermination()  # raises what ended it
        return query

    query = patient(started)
    try:
        produce(cluster, topic, [b"a"])
        admin.create_topics(cluster, [admin.NewTopic(f"{topic}-more", 1, 1)])
        produce(cluster, f"{topic}-more", [b"b"])
        eventually(lambda: len(arrived) >= 2, "both records")
    finally:
        query.stop()
    assert sorted(arrived) == [b"a", b"b"]


def test_bytes_limit_a_batch_about(spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path) -> None:
    topic = new_topic(cluster)
    produce(cluster, topic, [bytes(1000)] * 100)
    stream = Stream(spark, bootstrap, tmp_path, subscribe=topic, maxBytesPerTrigger="40000")
    stream.run()
    sizes = [len(rows) for rows in stream.batches.values()]
    assert sum(sizes) == 100
    assert all(30 <= size <= 40 for size in sizes[:-1])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subscribe": "no-such-topic"}, "no-such-topic.*UNKNOWN_TOPIC_OR_PARTITION"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "is startingOffsets meant"),
        ({"subscribe": "t", "kafka.security.protocol": "SSL"}, "shown in Spark"),
        ({}, "one of subscribe, assign and subscribePattern has to be set"),
    ],
)
def test_what_is_wrong_is_told(spark: SparkSession, bootstrap: str, options: dict[str, str], text: str) -> None:
    reader = spark.read.format("ottla").options(**{"bootstrap.servers": bootstrap}, **options)
    with pytest.raises(Exception, match=text):
        patient(lambda: reader.load().collect())


def test_a_stream_of_our_own_plan_goes_on_where_one_of_sparks_left_off_and_the_other_way_round(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    stream = Stream(spark, bootstrap, tmp_path, subscribe=topic)
    for number, run in enumerate((stream.run, stream.run_as_planned_here, stream.run)):
        produce(cluster, topic, [b"%d" % number])
        run()
    assert stream.values() == [[b"0"], [b"1"], [b"2"]]


def test_what_is_wrong_with_a_stream_of_our_own_plan_is_told_as_it_is(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"bootstrap\.servers"):
        stream_of(spark, OttlaDataSource, {"subscribe": "lines"})


def test_the_driver_plans_a_stream_itself_and_one_that_waits_for_records_ends_at_once(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster)
    arrived: list[bytes] = []
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = stream_of(spark, OttlaDataSource, {**options, "waitMillis": "240000"})
    query = (
        rows.writeStream.foreachBatch(lambda batch, _: arrived.extend(bytes(row.value) for row in batch.collect()))
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        produce(cluster, topic, [b"first"])
        eventually(lambda: arrived == [b"first"] or not query.isActive, "the record")
        assert not [each for each in processes_below(os.getpid()) if "python_streaming_source_runner" in each]
    finally:
        query.stop()
    assert query.exception() is None
    assert arrived == [b"first"]


def processes_below(pid: int) -> list[str]:
    """Their command lines."""
    found: list[str] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
            found += [command, *processes_below(child)]
    return found


def test_what_a_stream_of_our_own_plan_is_refused_with_ends_its_query(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "there-is-none", "startingOffsets": "earliest"}
    stream = Stream(spark, bootstrap, tmp_path)
    with pytest.raises(StreamingQueryException) as told_by_spark:
        stream.read(stream_of(spark, OttlaDataSource, options))
    assert "there-is-none" in told(told_by_spark.value)


def test_functions_of_machine_learning_are_there_for_who_imports_them_first_or_names_their_extension() -> None:
    program = """
import sys
{first}
from ottla.pipelines.session import new_session
session = new_session("vectors", "local[1]", **{settings})
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import Vectors
rows = session.createDataFrame([(Vectors.dense([1.0]),)], ["v"])
try:
    print(rows.select(vector_to_array("v").alias("a")).collect()[0].a)
except Exception as error:
    print(type(error).__name__)
"""
    extension = {"spark.sql.extensions": "org.apache.spark.sql.ml.InternalFunctionRegistration"}
    found = [
        subprocess.run(
            [sys.executable, "-c", program.format(first=first, settings=settings)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[-1]
        for first, settings in (("", {}), ("import pyspark.ml", {}), ("", extension))
    ]
    assert found == ["AnalysisException", "[1.0]", "[1.0]"]


def test_without_the_connectors_jars_the_source_is_ours(
    spark: SparkSession, bootstrap: str, cluster: Cluster, tmp_path: Path
) -> None:
    options = {"bootstrap.servers": bootstrap, "subscribe": new_topic(cluster)}
    assert choose(spark, options) == Choice("ottla", "the JVM connector's jars are not on the session")
    assert choose(spark, {**options, "source": "ottla"}) == Choice("ottla", "it was asked for")
    with pytest.raises(ValueError, match="the connector's jars are not on the Spark session"):
        choose(spark, {**options, "source": "kafka"})
    with pytest.raises(ValueError, match="the connector has no column of stream time"):
        choose(spark, {**options, "source": "kafka", "streamTime": str(tmp_path)})
    frame = patient(lambda: read_stream(spark, options))
    assert frame.isStreaming
    assert frame.schema == source_schema(parse_options(options))


def test_with_them_the_connector_reads_what_comes_in_small_batches_and_what_it_is_asked_for() -> None:
    options = {"bootstrap.servers": "127.0.0.1:9092", "subscribe": "topic"}
    small = {**options, "maxOffsetsPerTrigger": str(SMALL_BATCH)}
    assert decide(options, there=True) == Choice("ottla", FASTER)
    assert decide({**options, "maxOffsetsPerTrigger": str(SMALL_BATCH + 1)}, there=True) == Choice("ottla", FASTER)
    assert decide(small, there=True).format == "kafka"
    assert decide(small, there=False).format == "ottla"
    assert decide({**small, "streamTime": "times"}, there=True) == Choice(
        "ottla", "the connector has no column of stream time"
    )
    assert decide({**small, "source": "ottla"}, there=True) == Choice("ottla", "it was asked for")
    assert decide({**options, "source": "kafka"}, there=True) == Choice("kafka", "it was asked for")


def test_explain_tells_what_reads() -> None:
    builder = StreamsBuilder()
    builder.stream("in", Consumed(Serdes.string, Serdes.string)).to("out", Produced(Serdes.string, Serdes.string))
    told = StreamsApp("app", builder.build()).explain().splitlines()
    assert told[-1] == f"Input is read by the data source ottla: {FASTER}"


# ---- waiting


def waiting_reader(bootstrap: str, topic: str, wait_ms: int) -> OttlaStreamReader:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return OttlaStreamReader(parse_options({**options, "waitMillis": str(wait_ms)}))


def test_a_source_that_waits_says_that_nothing_came_when_its_time_is_over(cluster: Cluster, bootstrap: str) -> None:
    topic = new_topic(cluster)
    reader = waiting_reader(bootstrap, topic, 200)
    begin, began = reader.initialOffset(), time.monotonic()
    assert reader.latestOffset(begin, ReadAllAvailable()) == begin == {topic: {"0": 0}}
    assert time.monotonic() - began >= 0.2
    reader.stop()


def test_a_source_that_waits_answers_as_soon_as_records_come(cluster: Cluster, bootstrap: str) -> None:
    topic = new_topic(cluster)
    reader = waiting_reader(bootstrap, topic, 240_000)
    begin, found = reader.initialOffset(), []
    waiting = threading.Thread(target=lambda: found.append(reader.latestOffset(begin, ReadAllAvailable())))
    waiting.start()
    produce(cluster, topic, [b"first"])
    waiting.join(120)
    assert found == [{topic: {"0": 1}}]
    reader.stop()


def test_a_query_that_is_to_end_waits_for_nothing(cluster: Cluster, bootstrap: str) -> None:
    reader = waiting_reader(bootstrap, new_topic(cluster), 240_000)
    reader.prepareForTriggerAvailableNow()
    begin = reader.initialOffset()
    assert reader.latestOffset(begin, ReadAllAvailable()) == begin
    reader.stop()
