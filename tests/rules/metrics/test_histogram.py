"""Times in buckets that double, and what can be told of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metrics.histogram import BUCKETS, Histogram, quantile_us


def observed(*times_us: int) -> Histogram:
    histogram = Histogram()
    for us in times_us:
        histogram.observe(us)
    return histogram


def test_a_time_is_counted_in_the_bucket_of_its_bits() -> None:
    histogram = observed(0, 1, 2, 3, 4, 7, 1000)
    assert [(bits, held) for bits, held in enumerate(histogram.buckets) if held] == [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
        (10, 1),
    ]
    assert (histogram.count, histogram.sum_us) == (7, 1017)


def test_a_clock_that_went_back_counts_as_no_time() -> None:
    histogram = observed(-5)
    assert (histogram.buckets[0], histogram.count, histogram.sum_us) == (1, 1, 0)


def test_one_observation_may_stand_for_several() -> None:
    histogram = Histogram()
    histogram.observe(3, 16)
    histogram.observe(-1, 16)
    assert (histogram.buckets[2], histogram.buckets[0], histogram.count, histogram.sum_us) == (16, 16, 32, 48)


def test_what_takes_longer_than_the_last_bucket_is_counted_there() -> None:
    histogram = observed(1 << 40)
    assert (histogram.buckets[BUCKETS - 1], histogram.count) == (1, 1)


def test_without_observations_every_quantile_is_zero() -> None:
    assert quantile_us(Histogram().buckets, 0.99) == 0


def test_a_quantile_lies_evenly_within_its_bucket() -> None:
    four_in_the_bucket_of_512_to_1023 = observed(600, 700, 800, 900).buckets
    assert quantile_us(four_in_the_bucket_of_512_to_1023, 0.25) == 640
    assert quantile_us(four_in_the_bucket_of_512_to_1023, 0.5) == 768
    assert quantile_us(four_in_the_bucket_of_512_to_1023, 1.0) == 1024


@given(st.lists(st.integers(0, 1 << 29), min_size=1, max_size=50), st.sampled_from([0.5, 0.75, 0.95, 0.99, 0.999]))
def test_a_quantile_is_never_off_by_more_than_its_bucket_is_wide(times_us: list[int], share: float) -> None:
    ordered = sorted(times_us)
    at = next(n for n in range(1, len(ordered) + 1) if n >= share * len(ordered))
    exact = ordered[at - 1]
    estimate = quantile_us(observed(*times_us).buckets, share)
    assert exact / 2 - 1 <= estimate <= 2 * exact + 1


@pytest.mark.parametrize("share", [0.5, 0.999])
def test_quantiles_do_not_fall_as_the_share_rises(share: float) -> None:
    buckets = observed(*range(0, 100_000, 7)).buckets
    assert quantile_us(buckets, share / 2) <= quantile_us(buckets, share)
