"""The driver itself: topics, time, loops, stores, and that it is light."""

import re
import subprocess
import sys
from typing import Any

import pytest

from ottla.streams import NeedsSparkError
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.options import Materialized
from ottla.streams.expressions import spark, value
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.heap import Heap
from ottla.streams.test_driver import EmptyTopicError
from tests.rules.streams.driving import driver_of, feed, results


def copying(builder: StreamsBuilder) -> None:
    builder.stream("in").to("out")


def test_an_input_topic_counts_time_on_its_own() -> None:
    with driver_of(copying) as driver:
        topic = driver.create_input_topic("in", Serdes.string, Serdes.string, start_timestamp=100, auto_advance_ms=10)
        topic.pipe_many([("a", "1"), ("b", "2"), ("c", "3", 7), ("d", "4", 8, {"h": b"x"})])
        topic.advance_time(1000)
        topic.pipe_values(["5"])
        out = driver.create_output_topic("out", Serdes.string, Serdes.string)
        assert len(out) == 5
        assert out.read_key_value() == ("a", "1")
        assert out.read_value() == "2"
        assert out.read_all() == [("c", "3", 7, ()), ("d", "4", 8, (("h", b"x"),)), (None, "5", 1120, ())]
        assert out.is_empty()
        with pytest.raises(EmptyTopicError, match="was written to out"):
            out.read_record()


def test_what_is_read_as_a_whole_may_be_a_list_or_a_dict() -> None:
    with driver_of(copying) as driver:
        feed(driver, [("in", "a", "1", 1), ("in", "a", "2", 2)])
        assert driver.create_output_topic("out").read_key_values() == [("a", "1"), ("a", "2")]
        feed(driver, [("in", "a", "1", 1), ("in", "a", "2", 2)])
        assert driver.create_output_topic("out").read_to_dict() == {"a": "2"}
        feed(driver, [("in", "a", "1", 1)])
        assert driver.create_output_topic("out").read_values() == ["1"]


def test_a_topic_that_is_written_and_read_leads_back_in() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").to("between")
        again = builder.stream("between")
        again.filter(lambda key, value: len(value) < 3).map_values(lambda value: value + "+").to("between")
        again.to("out")

    with driver_of(build) as driver:
        feed(driver, [("in", "k", "a", 1)])
        assert [value for _, value, _ in results(driver)] == ["a", "a+", "a++"]


def test_a_pattern_reads_every_topic_that_matches() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream(re.compile("in-.*")).to("out")

    with driver_of(build) as driver:
        feed(driver, [("in-1", "a", "1", 1), ("in-2", "b", "2", 2)])
        assert results(driver) == [("a", "1", 1), ("b", "2", 2)]


def test_names_that_are_not_there_are_errors_that_tell_what_is() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(Materialized("counts")).to_stream().to("out")

    with driver_of(build) as driver:
        with pytest.raises(LookupError, match="does not read the topic nowhere"):
            driver.create_input_topic("nowhere")
        with pytest.raises(LookupError, match="there is no store stock; there are counts"):
            driver.get_key_value_store("stock")
        with pytest.raises(LookupError, match="store counts is of another kind: key-value"):
            driver.get_window_store("counts")


def test_a_store_may_be_filled_beforehand() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(Materialized("counts")).to_stream().to("out")

    with driver_of(build) as driver:
        driver.get_key_value_store("counts").put("k", 41)
        feed(driver, [("in", "k", "v", 5)])
        assert results(driver) == [("k", 42, 5)]
        assert driver.produced_topic_names() == {"out", "app-counts-changelog"}


def test_time_does_not_go_back() -> None:
    with driver_of(copying) as driver, pytest.raises(ValueError, match="time does not go back"):
        driver.advance_wall_clock_time(-1)


def test_a_function_of_sparks_columns_is_refused_by_name_with_what_to_do_instead() -> None:
    def initcap(column: Any) -> Any: ...

    def shouting(builder: StreamsBuilder) -> None:
        builder.stream("in").map_values(spark(initcap, value)).to("out")

    with pytest.raises(NeedsSparkError, match=r"initcap.*without Spark.*callable.*ottla\.testing\.Cluster"):
        driver_of(shouting)


def test_the_driver_needs_neither_spark_nor_numpy() -> None:
    heavy = ("pyspark", "pyarrow", "numpy", "pandas", "asyncio", "socket")
    code = (
        "import sys, ottla.streams.test_driver, ottla.streams.dsl.builder; "
        f"print([n for n in {heavy} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_priority_queue_breaks_ties_as_javas_does() -> None:
    heap: Heap[str] = Heap()
    for item in "abcde":
        heap.add(1, item)
    assert [heap.take()[1] for _ in range(5)] == ["a", "e", "d", "c", "b"]
