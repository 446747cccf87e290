"""How a broker paces its cleaners."""

from ottla.broker.housekeeping.cleaning import Throttle


def test_each_waits_for_what_was_taken_before_it() -> None:
    throttle = Throttle(1000.0)
    assert throttle.take(500, 10.0) == 0.0
    assert throttle.take(250, 10.0) == 0.5
    assert throttle.take(100, 10.5) == 0.25
    assert throttle.take(100, 20.0) == 0.0


def test_a_pause_is_not_saved_up() -> None:
    throttle = Throttle(1000.0)
    throttle.take(1, 0.0)
    assert [throttle.take(1000, 100.0), throttle.take(1000, 100.0)] == [0.0, 1.0]


def test_another_rate_forgets_debts() -> None:
    throttle = Throttle(1.0)
    throttle.take(1000, 0.0)
    throttle.limit(1.0)
    assert throttle.take(1, 0.0) == 1000.0
    throttle.limit(2.0)
    assert [throttle.take(1, 0.0), throttle.take(1, 0.0)] == [0.0, 0.5]
