"""print: a line per record."""

from pathlib import Path

import pytest

from ottla.streams import Printed, StreamsBuilder, TopologyError
from tests.rules.streams.driving import driver_of, feed

INPUTS = [("in", "k", "v", 1), ("in", None, "w", 2)]


def test_without_more_a_record_goes_to_the_standard_output_under_the_name_of_the_stream(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with driver_of(lambda builder: builder.stream("in").print()) as driver:
        feed(driver, INPUTS)
    assert capsys.readouterr().out == "[KSTREAM-SOURCE-0000000000]: k, v\n[KSTREAM-SOURCE-0000000000]: None, w\n"


def test_a_file_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("before\n")
    printed: Printed[str, str] = Printed.to_file(path, label="seen", mapper=lambda key, value: f"{value} of {key}")
    with driver_of(lambda builder: builder.stream("in").print(printed)) as driver:
        feed(driver, INPUTS)
    assert path.read_text() == "before\n[seen]: v of k\n[seen]: w of None\n"


def test_the_node_is_called_a_printer() -> None:
    builder = StreamsBuilder()
    builder.stream("in").print()
    assert "Processor: KSTREAM-PRINTER-0000000001 (stores: [])" in builder.build().describe()


def test_neither_file_nor_label_is_empty() -> None:
    with pytest.raises(TopologyError, match="with a name"):
        Printed.to_file("")
