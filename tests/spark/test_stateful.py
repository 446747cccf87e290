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


def test_records_travel_in_cells_and_come_out_as_they_were() -> None:
    import numpy as np  # noqa: PLC0415

    from ottla.model.ids import TopicPartition  # noqa: PLC0415
    from ottla.pipelines.source.columns import HEADERS_TYPE, Columns  # noqa: PLC0415
    from ottla.streams.run.cells import cell, columns_in, records_in  # noqa: PLC0415

    headers = [[{"key": "h", "value": b"1"}], None, [{"key": "h", "value": None}]]
    columns = Columns(
        keys=pa.array([b"a", None, b"c"], pa.binary()),
        values=pa.array([None, b"2", b"3"], pa.binary()),
        offsets=np.array([5, 6, 9]),
        timestamps=np.array([10, 11, -1]),
        timestamp_types=np.array([0, 0, 0], np.int32),
        headers=pa.array(headers, HEADERS_TYPE),
        have_headers=np.array([True, False, True]),
    )
    (row,) = cell(7, TopicPartition("one", 3), columns).to_pylist()
    assert {**row, "records": None} == {
        "slot": 7,
        "task": 3,
        "topic": "one",
        "first": 5,
        "number": 3,
        "records": None,
        "more": None,
    }
    assert records_in("one", 3, columns_in(row["records"])) == [
        Raw("one", 3, 5, b"a", None, 10, (("h", b"1"),)),
        Raw("one", 3, 6, None, b"2", 11),
        Raw("one", 3, 9, b"c", b"3", -1, (("h", None),)),
    ]


def test_a_partition_that_came_later_is_an_error_that_says_what_to_do() -> None:
    from ottla.model.ids import TopicPartition  # noqa: PLC0415
    from ottla.streams.run.cells import slot_of  # noqa: PLC0415

    with pytest.raises(StreamsError, match="topic grown has got partition 2, but the application began with 2 and kee"):
        slot_of(TopicPartition("grown", 2), [7, 8])


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
