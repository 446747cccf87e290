"""Which windows hold a record, and which windows cannot be."""

import pytest

from ottla.streams import JoinWindows, SessionWindows, TimeWindows, Window


def starts(windows: TimeWindows, timestamp: int) -> list[int]:
    return [window.start for window in windows.windows_for(timestamp)]


def test_tumbling_windows_hold_their_start_and_not_their_end() -> None:
    windows = TimeWindows.of(10, grace_ms=0)
    assert list(windows.windows_for(0)) == [Window(0, 10)]
    assert list(windows.windows_for(9)) == [Window(0, 10)]
    assert list(windows.windows_for(10)) == [Window(10, 20)]


def test_hopping_windows_overlap_the_oldest_first() -> None:
    windows = TimeWindows.of(12, advance_ms=5, grace_ms=0)
    assert starts(windows, 21) == [10, 15, 20]
    assert starts(windows, 20) == [10, 15, 20]
    assert starts(windows, 19) == [10, 15]
    assert starts(windows, 24) == [15, 20]


def test_no_window_begins_before_the_epoch() -> None:
    windows = TimeWindows.of(10, advance_ms=3, grace_ms=0)
    assert starts(windows, 0) == [0]
    assert starts(windows, 5) == [0, 3]


@pytest.mark.parametrize(
    ("size", "advance", "grace"), [(0, None, 0), (-1, None, 0), (10, 0, 0), (10, 11, 0), (10, 5, -1)]
)
def test_time_windows_that_cannot_be(size: int, advance: int | None, grace: int) -> None:
    with pytest.raises(ValueError):
        TimeWindows.of(size, advance_ms=advance, grace_ms=grace)


@pytest.mark.parametrize(("gap", "grace"), [(0, 0), (-5, 0), (10, -1)])
def test_sessions_that_cannot_be(gap: int, grace: int) -> None:
    with pytest.raises(ValueError):
        SessionWindows.of(gap, grace_ms=grace)


def test_a_join_window_may_lie_wholly_on_one_side() -> None:
    """Kafka allows after(-x): the partner has to come earlier."""
    windows = JoinWindows.between(before_ms=10, after_ms=-5, grace_ms=0)
    assert (windows.before_ms, windows.after_ms, windows.size_ms) == (10, -5, 5)


def test_a_join_window_that_ends_before_it_begins_cannot_be() -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        JoinWindows.between(before_ms=2, after_ms=-5, grace_ms=0)
    with pytest.raises(ValueError, match="negative"):
        JoinWindows.of(5, grace_ms=-1)


def test_times_are_whole_milliseconds() -> None:
    with pytest.raises(ValueError, match=r"size_ms is a whole number of milliseconds, not 1000\.0"):
        TimeWindows.of(1e3, grace_ms=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gap_ms is a whole number"):
        SessionWindows.of("5s", grace_ms=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="grace_ms is a whole number"):
        JoinWindows.of(5, grace_ms=None)  # type: ignore[arg-type]
