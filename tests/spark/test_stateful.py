"""What surrounds a task inside Spark: which partition it lands in, and how records come to it and results leave it."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ottla.streams.errors import StreamsError
from ottla.streams.record import Raw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_are_spread_over_all_partitions_by_sparks_own_hash(spark: "SparkSession") -> None:
    from ottla.streams.run.stateful import slots, spark_hash  # noqa: PLC0415  imports pyspark

    for tasks in (1, 2, 7):
        assert [spark_hash(slot) % tasks for slot in slots(tasks)] == list(range(tasks))
    numbers = [0, 1, 42, 1_000_003]
    hashed = spark.sql("SELECT " + ", ".join(f"hash({number})" for number in numbers)).head()
    assert hashed is not None
    assert list(hashed) == [spark_hash(number) for number in numbers]


def test_records_are_packed_by_topic_partition_and_come_out_as_they_were() -> None:
    from ottla.pipelines.source.columns import HEADERS_TYPE  # noqa: PLC0415
    from ottla.streams.run.stages import records_of  # noqa: PLC0415
    from ottla.streams.run.stateful import Packing  # noqa: PLC0415

    headers = [[{"key": "h", "value": b"1"}], None, None, [{"key": "h", "value": None}]]
    columns = {
        "key": pa.array([b"a", None, b"c", b"d"], pa.binary()),
        "value": pa.array([None, b"2", b"3", b"4"], pa.binary()),
        "topic": pa.array(["one", "one", "two", "one"]),
        "partition": pa.array([0, 0, 0, 1], pa.int32()),
        "offset": pa.array([5, 6, 1, 9], pa.int64()),
        "timestamp": pa.array([10, 11, 12, 13], pa.int64()),
        "headers": pa.array(headers, HEADERS_TYPE),
    }
    cells = [row for batch in Packing([7, 8])(iter([pa.record_batch(columns)])) for row in batch.to_pylist()]
    assert [(cell["slot"], cell["task"], cell["topic"], cell["first"]) for cell in cells] == [
        (7, 0, "one", 5),
        (7, 0, "two", 1),
        (8, 1, "one", 9),
    ]
    found = [record for cell in cells for batch in pa.ipc.open_stream(cell["records"]) for record in records_of(batch)]
    assert found == [
        Raw("one", 0, 5, b"a", None, 10, (("h", b"1"),)),
        Raw("one", 0, 6, None, b"2", 11),
        Raw("two", 0, 1, b"c", b"3", 12),
        Raw("one", 1, 9, b"d", b"4", 13, (("h", None),)),
    ]


def test_a_partition_that_came_later_is_an_error_that_says_what_to_do() -> None:
    from ottla.streams.run.stateful import Packing  # noqa: PLC0415

    columns = {"topic": pa.array(["grown"]), "partition": pa.array([2], pa.int32())}
    with pytest.raises(StreamsError, match="topic grown has got partition 2, but the application began with 2 and kee"):
        list(Packing([7, 8])(iter([pa.record_batch(columns)])))


def test_results_keep_their_order_and_leave_the_partition_to_the_sink_where_nobody_chose_one() -> None:
    from ottla.streams.run.stages import output_batch  # noqa: PLC0415

    batch = output_batch([Raw("out", -1, -1, b"k", b"v", 3), Raw("log", 2, -1, b"k", None, 4, (("h", b"x"),))], 5, 17)
    assert batch.to_pylist() == [
        {
            "topic": "out",
            "partition": None,
            "key": b"k",
            "value": b"v",
            "headers": None,
            "timestamp": 3,
            "src_partition": 5,
            "src_offset": 17,
            "seq": 0,
        },
        {
            "topic": "log",
            "partition": 2,
            "key": b"k",
            "value": None,
            "headers": [{"key": "h", "value": b"x"}],
            "timestamp": 4,
            "src_partition": 5,
            "src_offset": 17,
            "seq": 1,
        },
    ]
