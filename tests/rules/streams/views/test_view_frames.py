"""A store as a data frame."""

import pytest

from ottla.streams.views.frames import frame_of, rows_of
from ottla.streams.views.lookups import Found
from ottla.streams.windows import Window

ENTRIES = [Found("a", 3, 1000), Found("b", {"low": 1, "high": 2}, 2000, Window(0, 5000))]


def test_a_row_has_key_value_and_time_and_the_fields_of_a_struct_as_columns() -> None:
    assert rows_of(ENTRIES) == [
        {"key": "a", "value": 3, "timestamp": 1000},
        {"key": "b", "low": 1, "high": 2, "timestamp": 2000, "window_start": 0, "window_end": 5000},
    ]


def test_times_are_utc() -> None:
    pytest.importorskip("pandas")
    frame = frame_of(ENTRIES[:1])
    assert list(frame.columns) == ["key", "value", "timestamp"]
    assert frame["timestamp"][0].isoformat() == "1970-01-01T00:00:01+00:00"
    assert frame_of([]).empty
