"""Tables, sizes and times as people read them."""

import pytest

from ottla.cli.output import Table, size_text, time_text


def test_numbers_stand_to_the_right_words_to_the_left_unknowns_are_dashes() -> None:
    table = Table("NAME", "PARTITIONS", "RACK")
    table.add("orders", 3, None)
    table.add("a-longer-name", 12, "r1")
    assert table.text() == (
        "NAME           PARTITIONS  RACK\n"
        "orders                  3  -\n"
        "a-longer-name          12  r1\n"
    )  # fmt: skip


def test_a_table_without_rows_is_its_headings() -> None:
    assert Table("NAME", "LOG END").text() == "NAME  LOG END\n"


def test_control_characters_cannot_reach_the_terminal() -> None:
    table = Table("NAME")
    table.add("a\x1b[2Jb\n")
    assert table.text() == "NAME\na\\x1b[2Jb\\n\n"


def test_json_has_the_same_content_under_lower_case_names() -> None:
    table = Table("NAME", "LOG END")
    table.add("orders", 3)
    assert table.records() == [{"name": "orders", "log_end": 3}]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 20, "1.0 MiB"),
        (5 * (1 << 30), "5.0 GiB"), (1 << 40, "1.0 TiB"), (1 << 52, "4096.0 TiB"),
    ],
)  # fmt: skip
def test_sizes_have_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert size_text(size) == text


def test_times_are_utc_with_milliseconds() -> None:
    assert time_text(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert time_text(-1) == "-"
    assert time_text(2**62) == str(2**62)
