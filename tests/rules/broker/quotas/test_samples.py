"""Rates and buckets: Kafka's arithmetic, by its rules and beside a plain twin."""

from dataclasses import dataclass, field
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.quotas.samples import MAX_THROTTLE, Rate
from ottla.broker.quotas.tokens import TokenBucket
from ottla.model.ids import Millis


def test_a_rate_is_never_taken_over_less_than_all_samples_but_one() -> None:
    rate = Rate(11, 1000)
    rate.record(5_000_000, Millis(70_000))
    assert rate.window_ms(Millis(70_000)) == 10_000
    assert rate.per_second(Millis(70_000)) == 500_000
    assert rate.throttle_ms(500_000, Millis(70_000)) == 0


def test_who_is_above_the_quota_waits_until_the_rate_is_right_again() -> None:
    rate = Rate(11, 1000)
    rate.record(6_000_000, Millis(70_000))
    assert rate.throttle_ms(500_000, Millis(70_000)) == 2_000  # 600 kB/s where 500 are allowed, over ten seconds
    # The fraction of the present sample counts, and the ten before it; Kafka's rule, which leads to waves.
    assert rate.throttle_ms(500_000, Millis(71_999)) == 1_001
    assert rate.throttle_ms(500_000, Millis(72_000)) == 2_000
    assert rate.throttle_ms(500_000, Millis(81_000)) == 0


def test_a_sample_is_forgotten_when_its_last_event_is_a_whole_window_old() -> None:
    rate = Rate(11, 1000)
    rate.record(1_000, Millis(0))
    rate.record(1_000, Millis(900))
    assert rate.per_second(Millis(11_899)) == 2_000 / 11.899
    assert rate.per_second(Millis(11_900)) == 0.0


def test_what_is_given_back_was_never_used() -> None:
    rate = Rate(11, 1000)
    rate.record(7_000_000, Millis(5))
    rate.record(-7_000_000, Millis(5))
    assert rate.throttle_ms(1, Millis(5)) == 0


def test_an_answer_can_say_no_more_than_an_int32() -> None:
    rate = Rate(11, 1000)
    rate.record(1e12, Millis(0))
    assert rate.throttle_ms(1, Millis(0)) == MAX_THROTTLE


def test_kip_599_a_bucket_is_full_at_first_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(11, 1000)
    bucket.take(10, 1.0, Millis(0))
    assert bucket.tokens(1.0, Millis(0)) == 1
    bucket.take(10, 1.0, Millis(0))
    assert bucket.throttle_ms(1.0, Millis(0)) == 9_000
    assert bucket.throttle_ms(1.0, Millis(8_000)) == 1_000
    assert bucket.throttle_ms(1.0, Millis(9_000)) == 0
    assert bucket.tokens(1.0, Millis(1_000_000)) == 11


@dataclass
class PlainSample:
    start: int
    last: int
    value: float = 0.0


@dataclass
class PlainRate:
    """As Kafka's classes are written: every sample looked at each time."""

    samples: int
    sample_ms: int
    kept: list[PlainSample] = field(default_factory=list)
    current: int = 0

    def record(self, value: float, now: int) -> None:
        if not self.kept:
            self.kept.append(PlainSample(now, now))
        sample = self.kept[self.current]
        if now - sample.start >= self.sample_ms:
            self.current = (self.current + 1) % (self.samples + 1)
            if self.current >= len(self.kept):
                self.kept.append(PlainSample(now, now))
            else:
                self.kept[self.current] = PlainSample(now, now)
            sample = self.kept[self.current]
        sample.value += value
        sample.last = now

    def purge(self, now: int) -> None:
        for at, sample in enumerate(self.kept):
            if now - sample.last >= self.samples * self.sample_ms:
                self.kept[at] = PlainSample(now, now)

    def measure(self, now: int) -> tuple[float, int]:
        self.purge(now)
        if not self.kept:
            self.kept.append(PlainSample(now, now))
        elapsed = now - min(sample.start for sample in self.kept)
        full = elapsed // self.sample_ms
        if full < self.samples - 1:
            elapsed += (self.samples - 1 - full) * self.sample_ms
        window = max(elapsed, 1)
        return sum(sample.value for sample in self.kept) / (window / 1000), window

    def throttle_ms(self, bound: float, now: int) -> int:
        rate, window = self.measure(now)
        return 0 if rate <= bound else min(MAX_THROTTLE, floor((rate - bound) / bound * window + 0.5))


pauses = st.one_of(st.integers(0, 50), st.integers(900, 1100), st.integers(0, 30_000))
events = st.lists(st.tuples(pauses, st.integers(0, 1 << 24), st.sampled_from(["record", "look", "both"])), max_size=80)


@given(events, st.sampled_from([(11, 1000), (2, 1000), (1, 1000), (11, 3000), (5, 100)]))
def test_the_running_sum_gives_what_all_samples_give(
    script: list[tuple[int, int, str]], windows: tuple[int, int]
) -> None:
    fast, plain = Rate(*windows), PlainRate(*windows)
    now = 100_000
    for pause, amount, kind in script:
        now += pause
        if kind != "look":
            fast.record(amount, Millis(now))
            plain.record(amount, now)
        if kind != "record":
            assert fast.window_ms(Millis(now)) == plain.measure(now)[1]
            assert fast.per_second(Millis(now)) == pytest.approx(plain.measure(now)[0], rel=1e-12)
            assert fast.throttle_ms(50_000, Millis(now)) == plain.throttle_ms(50_000, now)


@pytest.mark.parametrize("next_to_nothing", [5e-324, 1e-300])
def test_a_quota_next_to_nothing_holds_for_as_long_as_can_be_told(next_to_nothing: float) -> None:
    """Kafka takes such values, and so does the controller: what follows from them is no whole number."""
    rate, bucket = Rate(11, 1_000), TokenBucket(11, 1_000)
    rate.record(1e6, Millis(0))
    bucket.take(20.0, next_to_nothing, Millis(0))
    assert rate.throttle_ms(next_to_nothing, Millis(0)) == MAX_THROTTLE
    assert bucket.throttle_ms(next_to_nothing, Millis(0)) == MAX_THROTTLE
