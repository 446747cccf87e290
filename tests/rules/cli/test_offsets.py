"""What `-o` and `-p` mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.offsets import BadOffset, Bounds, OffsetRange, Point, Span, duration_ms, parse_partitions, parse_range

NOW = 1_700_000_000_000
HOUR = 3_600_000
NOV_FIRST = 1_793_491_200_000  # 2026-11-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", OffsetRange(Point("start"), None)),
        ("earliest", OffsetRange(Point("start"), None)),
        ("end", OffsetRange(Point("end"), None)),
        ("latest", OffsetRange(Point("end"), None)),
        ("42", OffsetRange(Point("exact", 42), None)),
        ("+5", OffsetRange(Point("after start", 5), None)),
        ("-10", OffsetRange(Point("before end", 10), None)),
        ("10:20", OffsetRange(Point("exact", 10), Point("exact", 20))),
        (":20", OffsetRange(Point("start"), Point("exact", 20))),
        ("10:", OffsetRange(Point("exact", 10), Point("end"))),
        (":", OffsetRange(Point("start"), Point("end"))),
        ("-10:end", OffsetRange(Point("before end", 10), Point("end"))),
        ("+5:+7", OffsetRange(Point("after start", 5), Point("after start", 7))),
    ],
)
def test_offsets_and_ranges_of_offsets(text: str, expected: OffsetRange) -> None:
    assert parse_range(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("@1650000000000", 1650000000000, None),
        ("@1650000000", 1650000000000, None),
        ("@5", 5, None),
        ("@now", NOW, None),
        ("@-1h", NOW - HOUR, None),
        ("@-1h30m", NOW - HOUR * 3 // 2, None),
        ("@2026-11-01", NOV_FIRST, None),
        ("@2026-11-01T00:00:01.500Z", NOV_FIRST + 1500, None),
        ("@2026-11-01T02:00:00+02:00", NOV_FIRST, None),
        ("@2026-11-01T00:00:00Z:2026-11-01T01:00:00Z", NOV_FIRST, NOV_FIRST + HOUR),
        ("@2026-11-01:2026-11-02", NOV_FIRST, NOV_FIRST + 24 * HOUR),
        ("@2026-11-01:6h", NOV_FIRST, NOV_FIRST + 6 * HOUR),
        ("@2026-11-01T00:00:30Z:500ms", NOV_FIRST + 30_000, NOV_FIRST + 30_500),
        ("@-2h:-1h", NOW - 2 * HOUR, NOW - HOUR),
        ("@1650000000000:1650000000001", 1650000000000, 1650000000001),
    ],
)
def test_times_and_ranges_of_times(text: str, first: int, last: int | None) -> None:
    end = None if last is None else Point("time", last)
    assert parse_range(text, NOW) == OffsetRange(Point("time", first), end)


def test_a_time_may_be_bounded_by_the_end_or_the_start() -> None:
    assert parse_range("@-1h:end", NOW) == OffsetRange(Point("time", NOW - HOUR), Point("end"))
    assert parse_range("@-1h:", NOW) == OffsetRange(Point("time", NOW - HOUR), Point("end"))
    assert parse_range("@:-1h", NOW) == OffsetRange(Point("start"), Point("time", NOW - HOUR))


@pytest.mark.parametrize(
    "text", ["", "x", "1x", "10:x", "--5", "@", "@x", "@1h", "@-", "@-1y", "@12:x", "٣", "1_0", "1:2:3"]
)
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    if text == "@":
        text = "@ "
    with pytest.raises(BadOffset, match="is not a"):
        parse_range(text, NOW)


@given(st.text(max_size=20))
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    try:
        parse_range(text, NOW)
    except BadOffset:
        return


def never(moment: int) -> int:
    raise AssertionError(f"nobody asked for the time {moment}")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("start", Span(5, None)),
        ("end", Span(20, None)),
        ("+3", Span(8, None)),
        ("+99", Span(20, None)),
        ("-3", Span(17, None)),
        ("-99", Span(5, None)),
        ("2", Span(5, None)),
        ("7", Span(7, None)),
        ("99", Span(99, None)),
        ("10:12", Span(10, 12)),
        ("10:99", Span(10, 20)),
        ("99:120", Span(99, 99)),
        ("12:10", Span(12, 12)),
        ("-3:end", Span(17, 20)),
        (":end", Span(5, 20)),
    ],
)
def test_a_range_meets_a_partition_that_holds_5_to_19(text: str, span: Span) -> None:
    assert parse_range(text, NOW).resolve(Bounds(5, 20), never) == span


def test_times_are_looked_up_and_stay_inside_the_partition() -> None:
    wanted = parse_range("@100:200", NOW)
    assert wanted.times == (100, 200)
    assert wanted.resolve(Bounds(5, 20), {100: 7, 200: 12}.__getitem__) == Span(7, 12)


def test_exit_at_end_turns_following_into_a_range() -> None:
    assert parse_range("7", NOW).until_end().resolve(Bounds(5, 20), never) == Span(7, 20)
    assert parse_range("7:9", NOW).until_end().resolve(Bounds(5, 20), never) == Span(7, 9)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1ms", 1),
        ("2s", 2000),
        ("1m", 60_000),
        ("1h", HOUR),
        ("1d", 24 * HOUR),
        ("1h30m", 5_400_000),
        ("1m1ms", 60_001),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "1", "h", "1x", "h1", "1h2", "-1h", "0s", "1 h"])
def test_what_is_no_duration(text: str) -> None:
    assert duration_ms(text) is None


def test_partitions_are_numbers_lists_and_ranges() -> None:
    assert parse_partitions(["0", "4-6,2", "5"]) == [0, 4, 5, 6, 2]
    assert parse_partitions([]) == []
    for bad in ("", "x", "1-", "-1", "3-1", "0-99999999"):
        with pytest.raises(BadOffset, match="is not a"):
            parse_partitions([bad])
