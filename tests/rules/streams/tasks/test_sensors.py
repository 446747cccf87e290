"""Counts of a processor's own."""

import pytest

from ottla.streams.tasks.sensors import TaskMetrics


class Counted:
    def __init__(self) -> None:
        self.dropped: dict[str, int] = {}


def test_a_sensor_counts_under_its_scope_entity_and_operation() -> None:
    counted = Counted()
    sensor = TaskMetrics(counted).add_rate_total_sensor("shop", "orders", "refund")
    sensor.record()
    sensor.record(4)
    assert counted.dropped == {"sensor:shop/orders/refund": 5}


@pytest.mark.parametrize("word", ["", "a/b"])
def test_a_name_that_could_not_be_told_apart_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a sensor's name"):
        TaskMetrics(Counted()).add_rate_total_sensor("shop", word, "refund")
