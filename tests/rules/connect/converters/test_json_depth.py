"""JSON in which arrays and objects lie in each other: too deep is one record that is no good, not a connector's end."""

import json
from pathlib import Path

import pytest

from ottla.connect.connectors.file_sink import FileStreamSink
from ottla.connect.connectors.files.sink import FilesSink
from ottla.connect.converters.json_texts import MOST_DEPTH, parsed
from ottla.connect.data.errors import DataException
from ottla.testing import connect


def nested(levels: int, kind: str) -> bytes:
    start, end = {"objects": (b'{"a":', b"}"), "arrays": (b"[", b"]")}[kind]
    return start * levels + b"1" + end * levels


@pytest.mark.parametrize("kind", ["objects", "arrays"])
def test_so_many_levels_are_read_and_no_more(kind: str) -> None:
    assert parsed(nested(MOST_DEPTH, kind)) == json.loads(nested(MOST_DEPTH, kind))
    for levels in (MOST_DEPTH + 1, 900, 100_000):
        with pytest.raises(DataException, match="more than 200 deep"):
            parsed(nested(levels, kind))


def test_brackets_side_by_side_or_in_texts_are_not_deep() -> None:
    wide = json.dumps([{"a": [1]}] * 1_000).encode()
    assert len(parsed(wide)) == 1_000
    assert parsed(json.dumps("[" * 1_000).encode()) == "[" * 1_000


@pytest.mark.parametrize("kind", ["objects", "arrays"])
def test_what_is_read_can_be_written_by_sinks_that_walk_through_it(tmp_path: Path, kind: str) -> None:
    value = json.loads(nested(MOST_DEPTH, kind))
    tried = connect(FileStreamSink, {"file": str(tmp_path / "out")}, [value])
    assert tried.letters == []
    config = {"directory": str(tmp_path), "format.class": "io.confluent.connect.s3.format.json.JsonFormat"}
    assert connect(FilesSink, config, [value]).letters == []
