"""FileStreamSink: Java's lines, and each of them once."""

import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ottla.connect import spi
from ottla.connect.connectors.file_sink import FileSinkConfig, FileStreamSink
from ottla.connect.data.schema import FLOAT32, INT32, STRING, struct_schema
from ottla.connect.data.struct import Struct
from ottla.testing import connect


def columns(*values: bytes | None) -> spi.Columns:
    count = len(values)
    return spi.Columns(
        "t", 0, pa.nulls(count, pa.binary()), pa.array(values, pa.binary()), np.arange(count), np.zeros(count)
    )


def write(path: Path, start: int, *values: bytes | None, end: bool = True, topic_id: str = "") -> None:
    sink = FileStreamSink(FileSinkConfig(file=str(path)), "c")
    spans = [spi.Span("t", 0, start, start + len(values), topic_id)]
    try:
        sink.prepare(spans)
        sink.begin(spans)
        sink.write(spi.Batch((), spans, (columns(*values),)))
        if end:
            sink.end()
    finally:
        sink.close()


def test_a_batch_that_comes_again_leaves_nothing_twice_even_if_it_is_longer_now(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 0, b"a", b"b")
    write(path, 2, b"c", end=False)
    write(path, 2, b"c", b"d")
    write(path, 4, b"e")
    assert path.read_text() == "a\nb\nc\nd\ne\n"


def test_tasks_that_write_side_by_side_are_cut_back_together(tmp_path: Path) -> None:
    path = tmp_path / "out"
    config = FileSinkConfig(file=str(path))
    spans = [spi.Span("t", partition, 0, 1) for partition in (0, 1)]
    prepares, *tasks = [FileStreamSink(config, "c") for _ in range(3)]
    for _ in range(2):  # what died after both had written comes again
        prepares.prepare(spans)
        for task, span in zip(tasks, spans, strict=True):
            task.begin([span])
        for task, span in zip(tasks, spans, strict=True):
            task.write(spi.Batch((), [span], (columns(b"of %d" % span.partition),)))
            task.end()
            task.close()
    assert path.read_text() == "of 0\nof 1\n"


def test_a_topic_that_was_deleted_and_made_again_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 0, b"a", topic_id="one")
    write(path, 0, b"b", topic_id="another")
    assert path.read_text() == "a\nb\n"


def test_what_a_full_disk_took_of_a_batch_is_cut_off_when_it_comes_again(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 0, b"a")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # as if there were no room for more
    try:
        with pytest.raises(OSError, match="too large"):
            write(path, 1, b"b" * 600, b"c" * 600)
        assert path.stat().st_size == 1000
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    write(path, 1, b"b" * 600, b"c" * 600)
    assert path.read_bytes() == b"a\n" + b"b" * 600 + b"\n" + b"c" * 600 + b"\n"


def test_a_file_that_somebody_moved_away_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, 0, b"a")
    path.rename(tmp_path / "kept")
    write(path, 0, b"a")
    assert ((tmp_path / "kept").read_text(), path.read_text()) == ("a\n", "a\n")


def test_null_is_written_as_java_writes_it(tmp_path: Path) -> None:
    write(tmp_path / "out", 0, b"a", None, b"")
    assert (tmp_path / "out").read_text() == "a\nnull\n\n"


@pytest.mark.parametrize(
    ("value", "line"),
    [({"a": 1, "b": "x"}, "{a=1, b=x}"), ([1, None, True], "[1, null, true]"), ("text", "text"), (None, "null")],
)
def test_values_are_printed_by_string_value_of(tmp_path: Path, value: object, line: str) -> None:
    connect(FileStreamSink, {"file": tmp_path / "out"}, [value])
    assert (tmp_path / "out").read_text() == f"{line}\n"


def test_a_struct_is_printed_with_its_name(tmp_path: Path) -> None:
    from ottla.connect.data.java_text import java_text  # noqa: PLC0415

    schema = struct_schema({"a": INT32, "b": STRING, "f": FLOAT32})
    assert java_text(Struct(schema, {"a": 1, "b": "x", "f": 0.5})) == "Struct{a=1,b=x,f=0.5}"


def test_a_folder_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    """It may come: the worker starts the connector again."""
    with pytest.raises(spi.ConnectorFailed, match="cannot be opened: No such file or directory"):
        write(tmp_path / "nowhere" / "out", 0, b"a")


def test_a_disk_that_was_full_leaves_every_record_once(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: both cut a write short and then refuse."""
    path = tmp_path / "out.txt"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    write(path, 0, *(b"a%d" % number for number in range(100)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(path, 100, *(b"b%d" % number for number in range(100)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    write(path, 100, *(b"b%d" % number for number in range(100)))
    assert path.read_text().splitlines() == [f"{kind}{number}" for kind in "ab" for number in range(100)]
