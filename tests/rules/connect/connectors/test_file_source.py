"""FileStreamSource: every line once, whatever happens to the file."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect import spi
from ottla.connect.connectors.file_source import FileSourceConfig, FileStreamSource, cut_lines


def source_of(path: Path, **more: Any) -> FileStreamSource:
    return FileStreamSource(FileSourceConfig(file=str(path), topic="t", **more), "c")


def lines(read: spi.Read) -> list[str]:
    return read.rows.values.to_pylist() if isinstance(read.rows, spi.Lines) else []


def drained(
    source: FileStreamSource, start: spi.Offset | None, limit: int = 1000
) -> tuple[list[str], spi.Offset | None]:
    found: list[str] = []
    while True:
        read = source.read(start, limit)
        if read.end is None:
            return found, start
        found += lines(read)
        start = read.end


def test_a_line_without_an_end_is_held_until_it_has_one(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one\ntw")
    source = source_of(path)
    first, place = drained(source, None)
    assert first == ["one"]
    assert source.read(place, 10) == spi.Read((), None)
    with path.open("a") as file:
        file.write("o\nthree\n")
    assert drained(source, place)[0] == ["two", "three"]


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    source = source_of(tmp_path / "in")
    assert source.read(None, 10) == spi.Read((), None)
    (tmp_path / "in").write_text("a\n")
    assert drained(source, None)[0] == ["a"]


def test_a_file_that_was_rotated_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("a\nb\n")
    source = source_of(path)
    _, place = drained(source, None)
    with path.open("a") as file:
        file.write("c\nlast")
    path.rename(tmp_path / "in.1")
    path.write_text("new\n")
    found, _ = drained(source, place)
    assert found == ["c", "last", "new"]


def test_a_file_that_was_cut_off_or_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("aaaa\nbbbb\n")
    source = source_of(path)
    _, place = drained(source, None)
    path.write_text("x\n")
    assert drained(source, place)[0] == ["x"]
    with path.open("r+") as file:  # the same file, longer than before, with other content
        file.write("cccc\ndddd\neeee\n")
    assert drained(source, place)[0] == ["cccc", "dddd", "eeee"]


def test_a_position_of_javas_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one\ntwo\n")
    assert drained(source_of(path), {"position": 4})[0] == ["two"]


def test_bytes_that_are_no_utf_8_become_marks(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"\xff\n\xc3\xa4\n")
    assert drained(source_of(path), None)[0] == ["\ufffd", "ä"]


def test_a_batch_has_at_most_batch_size_lines_and_says_that_there_is_more(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("1\n2\n3\n")
    read = source_of(path, batch_size=2).read(None, 100)
    assert (lines(read), read.more) == (["1", "2"], True)


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"bc"]), max_size=30), st.integers(1, 5))
def test_lines_end_as_in_java_however_the_file_is_cut(pieces: list[bytes], most: int) -> None:
    data = b"".join(pieces)
    found: list[bytes] = []
    position = 0
    while True:
        values, used = cut_lines(data[position:], most)
        assert len(values) <= most
        if not used:
            break
        found += values.to_pylist()
        position += used
    whole = data[:position].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert found == whole.split(b"\n")[:-1]
    assert b"\n" not in data[position:]


def test_cut_lines_gives_arrow() -> None:
    values, used = cut_lines(b"a\n\nbc\nd", 10)
    assert (values.type, values.to_pylist(), used) == (pa.binary(), [b"a", b"", b"bc"], 6)
