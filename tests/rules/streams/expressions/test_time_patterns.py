"""Patterns of dates: what Java's DateTimeFormatter writes and reads by them."""

from datetime import UTC, date, datetime, time

import pytest

from ottla.streams.expressions.time_patterns import check_readable, date_in, read, time_in, written

MOMENT = datetime(2026, 11, 19, 6, 5, 4, 120_000, UTC)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd['T'HH:mm[:ss[.SSS]]]", "2026-11-19T06:05:04.120"),
        ("G GGGG yyyy", "AD Anno Domini 2026"),
        ("Q QQ QQQ QQQQ qqqqq", "4 04 Q4 4th quarter 4"),
        ("'[' EEE ']'", "[ Thu ]"),
    ],
)
def test_a_moment_is_written(pattern: str, text: str) -> None:
    assert written(MOMENT, pattern) == text


@pytest.mark.parametrize(
    ("text", "of_time"),
    [
        ("2026-11-19", time()),
        ("2026-11-19T06:05", time(6, 5)),
        ("2026-11-19T06:05:04", time(6, 5, 4)),
        ("2026-11-19T06:05:04.12", time(6, 5, 4, 120_000)),
        ("2026-11-19T06:05:04.123", time(6, 5, 4, 123_000)),
    ],
)
def test_what_is_in_brackets_may_be_missing(text: str, of_time: time) -> None:
    found = read(text, "yyyy-MM-dd['T'HH:mm[:ss[.SSS][.SS]]]")
    assert (date_in(found), time_in(found)) == (date(2026, 11, 19), of_time)


def test_a_letter_that_stands_twice_has_to_say_the_same() -> None:
    assert read("11-11", "MM[-MM]") == {"M": "11"}
    with pytest.raises(ValueError, match="has M of 'MM\\[-MM\\]' twice, and they differ"):
        read("11-12", "MM[-MM]")
    with pytest.raises(ValueError, match="has M twice"):
        check_readable("MM-MM")


def test_an_era_before_the_first_year_is_no_date() -> None:
    assert date_in(read("2026 AD", "yyyy G")) == date(2026, 1, 1)
    with pytest.raises(ValueError, match="the year 1"):
        date_in(read("2026 BC", "yyyy G"))


@pytest.mark.parametrize("pattern", ["YYYY", "ww", "W", "e", "c", "B", "b", "[", "]", "[]]", "{", "#", "'", "y" * 501])
def test_what_is_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        check_readable(pattern)


def test_many_brackets_are_not_tried_in_all_ways() -> None:
    with pytest.raises(ValueError, match="is not of the pattern"):
        read("1" * 60 + "x", "[d]" * 80)
