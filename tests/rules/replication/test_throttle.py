"""How fast replicas that have fallen behind may be copied."""

import pytest

from ottla.replication.throttle import ByteRate, is_throttled


def test_a_rate_is_taken_over_the_time_since_the_oldest_sample() -> None:
    rate = ByteRate(samples=3, sample_ms=1000)
    assert rate.per_second(0) == 0
    rate.record(4000, 0)
    rate.record(2000, 1500)
    assert rate.per_second(2000) == 3000


def test_a_burst_counts_as_if_it_had_taken_a_whole_sample() -> None:
    rate = ByteRate(samples=3, sample_ms=1000)
    rate.record(500, 0)
    assert rate.per_second(1) == 500


def test_samples_that_are_too_old_do_not_count() -> None:
    rate = ByteRate(samples=3, sample_ms=1000)
    rate.record(9000, 0)
    rate.record(1000, 2000)
    assert [rate.per_second(now) for now in (2999, 3000, 5000)] == [pytest.approx(10000 / 2.999), 1000, 0]


@pytest.mark.parametrize(
    ("replicas", "held"),
    [((), False), (("0:1", "2:3"), True), (("2:1", "0:3"), False), (("*",), True), (("12:3", "2:33"), False)],
)
def test_replicas_are_named_one_by_one_or_all_at_once(replicas: tuple[str, ...], held: bool) -> None:
    assert is_throttled(replicas, partition=2, broker_id=3) is held
