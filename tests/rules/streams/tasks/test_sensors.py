"""Counts of a processor's own."""

import pytest

from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.record import Record
from ottla.streams.serdes import Serdes
from ottla.streams.tasks.sensors import TaskMetrics
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology.processor import Processor, ProcessorContext, PunctuationType


class Counted:
    def __init__(self) -> None:
        self.dropped: dict[str, int] = {}


def test_a_sensor_counts_under_its_scope_entity_and_operation() -> None:
    counted = Counted()
    sensor = TaskMetrics(counted).add_rate_total_sensor("shop", "orders", "refund")
    sensor.record()
    sensor.record(4)
    assert counted.dropped == {"sensor:shop/orders/refund": 5}


def test_one_of_latencies_also_adds_them_up_in_thousandths() -> None:
    counted = Counted()
    sensor = TaskMetrics(counted).add_latency_rate_total_sensor("shop", "orders", "pay")
    sensor.record(1.5)
    sensor.record(2)
    assert counted.dropped == {"sensor:shop/orders/pay": 2, "sensor:shop/orders/pay//latency": 3500}


class Timed(Processor):
    def init(self, context: ProcessorContext) -> None:
        self._paid = context.metrics.add_latency_rate_total_sensor("shop", "orders", "pay")
        context.schedule(10, PunctuationType.STREAM_TIME, lambda now: None)

    def process(self, record: Record) -> None:
        self._paid.record(3)


def test_what_sensors_count_is_not_dropped() -> None:
    builder = StreamsBuilder(default_key_serde=Serdes.string, default_value_serde=Serdes.string)
    builder.stream("in").process(Timed)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_many([("k", "v", 5), ("k", "v", 15)])
        assert driver.dropped_records == {}
        assert driver.metrics() == {"dropped-records-total": 0, "pay-total": 2, "punctuate-total": 2}


@pytest.mark.parametrize("word", ["", "a/b"])
def test_a_name_that_could_not_be_told_apart_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a sensor's name"):
        TaskMetrics(Counted()).add_rate_total_sensor("shop", word, "refund")
