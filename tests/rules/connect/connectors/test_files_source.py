"""The source of files: what the sink wrote comes back once and in order, whatever becomes of the files meanwhile."""

import gzip
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect import spi
from ottla.connect.catalogue import catalogue
from ottla.connect.connectors.files.config import FilesConfig, FilesSourceConfig
from ottla.connect.connectors.files.places import MOST_FOLDERS, UNFINISHED, File, Place, origin_of, unread
from ottla.connect.connectors.files.sink import FilesSink
from ottla.connect.connectors.files.source import FilesSource
from ottla.connect.connectors.files.stores import Listed
from ottla.connect.data.logical import OPTIONAL_DATE, OPTIONAL_TIMESTAMP, decimal_schema
from ottla.connect.data.record import ConnectRecord
from ottla.connect.data.schema import (
    BYTES,
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    Schema,
    array_schema,
    map_schema,
    struct_schema,
)
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant
from ottla.connect.plugins import PluginType
from ottla.testing import connect

ORDERS = {"topic": "orders", "partition": 0}


def given_keys(directory: Path, config: dict[str, str]) -> dict[str, str]:
    return {"directory": str(directory), **{name.replace("_", "."): value for name, value in config.items()}}


def written(directory: Path, *values: Any, first: int = 0, partition: int = 0, **config: str) -> None:
    """By the sink."""
    sink = FilesSink(spi.parse(FilesConfig, given_keys(directory, config)), "files")
    records = [
        ConnectRecord(
            "orders",
            partition,
            value=value,
            value_schema=getattr(value, "schema", BYTES if isinstance(value, bytes) else None),
            offset=first + at,
            timestamp=0,
        )
        for at, value in enumerate(values)
    ]
    sink.begin([])
    assert [*sink.write(spi.Batch(records, [])), *sink.end()] == []


def source_of(directory: Path, partition: spi.Partition = ORDERS, **config: str) -> FilesSource:
    return FilesSource(spi.parse(FilesSourceConfig, given_keys(directory, config)), "back", partition)


def drained(source: FilesSource, start: spi.Offset | None = None, limit: int = 1000) -> tuple[list[Any], Any]:
    """Values, and where the next read begins."""
    found: list[Any] = []
    while True:
        read = source.read(start, limit)
        found += [row.value for row in read.as_rows()]
        if read.end is None:
            return found, start
        start = read.end


def aged(path: Path) -> Path:
    """Nobody has written it for long."""
    os.utime(path, (1, 1))
    return path


def test_what_the_sink_wrote_is_read_in_the_order_of_offsets_to_its_topic_and_partition(tmp_path: Path) -> None:
    written(tmp_path, {"n": 1}, {"n": 2}, {"n": 3}, flush_size="2")
    written(tmp_path, {"n": 9}, partition=3)
    source = source_of(tmp_path, {})
    files = f"{tmp_path}/topics"
    assert source.partitions() == [
        {"files": files, "topic": "orders", "partition": 0},
        {"files": files, "topic": "orders", "partition": 3},
    ]
    read = source_of(tmp_path).read(None, 100)
    assert [(row.topic, row.partition, row.value) for row in read.as_rows()] == [
        ("orders", 0, {"n": 1}),
        ("orders", 0, {"n": 2}),
        ("orders", 0, {"n": 3}),
    ]
    assert read.end == {
        "folders": {"topics/orders/partition=0": ["orders+0+0000000002.json", 2, 1, 8]},
        "floor": [-1, ""],
    }
    assert source_of(tmp_path).read(read.end, 100) == spi.Read([], None, more=False)


def test_folders_by_field_do_not_change_the_order_of_files(tmp_path: Path) -> None:
    by_field: dict[str, Any] = {"partitioner_class": "FieldPartitioner", "partition_field_name": "at"}
    for n, folder in enumerate("zaz"):
        written(tmp_path, {"n": n, "at": folder}, first=n, **by_field)
    assert [each["n"] for each in drained(source_of(tmp_path))[0]] == [0, 1, 2]


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4))
def test_any_limit_reads_every_record_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    directory = tmp_path_factory.mktemp("files")
    first = 0
    for size in sizes:
        if size:
            written(directory, *({"n": first + n} for n in range(size)), first=first)
        first += size
    found, end = drained(source_of(directory), limit=limit)
    assert found == [{"n": n} for n in range(first)]
    # Whoever begins anew at any position gets the rest.
    assert drained(source_of(directory), end)[0] == []


def test_files_that_come_later_are_found_and_one_that_grew_is_read_on(tmp_path: Path) -> None:
    source = source_of(tmp_path, s3_poll_interval_ms="1")
    written(tmp_path, {"n": 0}, {"n": 1})
    found, place = drained(source)
    assert found == [{"n": 0}, {"n": 1}]
    # The batch came again, and longer; then another one.
    written(tmp_path, {"n": 0}, {"n": 1}, {"n": 2})
    written(tmp_path, {"n": 3}, first=3)
    assert drained(source_of(tmp_path), place)[0] == [{"n": 2}, {"n": 3}]


def test_a_file_late_in_another_folder_is_found_though_its_offset_is_lower(tmp_path: Path) -> None:
    by_field: dict[str, Any] = {"partitioner_class": "FieldPartitioner", "partition_field_name": "at"}
    written(tmp_path, {"at": "b"}, first=5, **by_field)
    _, place = drained(source_of(tmp_path))
    written(tmp_path, {"at": "a"}, first=4, **by_field)
    assert drained(source_of(tmp_path), place)[0] == [{"at": "a"}]


def test_a_file_that_vanishes_is_passed_over(tmp_path: Path) -> None:
    written(tmp_path, *({"n": n} for n in range(6)), flush_size="2")
    source = source_of(tmp_path)
    first = source.read(None, 1)
    next(tmp_path.rglob("*2.json")).unlink()  # which was listed
    assert drained(source, first.end)[0] == [{"n": 1}, {"n": 4}, {"n": 5}]
    next(tmp_path.rglob("*0.json")).unlink()  # which was read half
    assert drained(source_of(tmp_path), first.end)[0] == [{"n": 4}, {"n": 5}]


def test_a_last_line_without_an_end_is_held_while_somebody_may_write_it(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0}, {"n": 1}, flush_size="1")
    path = next(tmp_path.rglob("*0.json"))
    path.write_bytes(b'{"n":0}\n{"n":')
    source = source_of(tmp_path)
    found, place = drained(source)
    assert found == [{"n": 0}]  # and none of the file behind it
    path.write_bytes(b'{"n":0}\n{"n":7}\n')
    assert drained(source, place)[0] == [{"n": 7}, {"n": 1}]


def test_a_last_line_of_a_file_that_nobody_writes_needs_no_end(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0})
    aged(next(tmp_path.rglob("*.json"))).write_bytes(b'{"n":0}\n\n{"n":1}')
    aged(next(tmp_path.rglob("*.json")))
    assert drained(source_of(tmp_path))[0] == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("format_class", ["ParquetFormat", "AvroFormat"])
def test_half_a_file_is_waited_for_and_then_a_dead_letter(tmp_path: Path, format_class: str) -> None:
    written(tmp_path, {"n": 0}, {"n": 1}, format_class=format_class)
    path = next(each for each in tmp_path.rglob("orders*") if each.is_file())
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    source = source_of(tmp_path, format_class=format_class)
    assert drained(source) == ([], None)
    aged(path)
    ((letter,), place) = drained(source_of(tmp_path, format_class=format_class))
    assert letter.data == whole[:40]
    assert f"topics/orders/partition=0/{path.name}, behind record 0: it is no " in letter.reason
    # Made whole after all, it is read.
    path.write_bytes(whole)
    found, _ = drained(source_of(tmp_path, format_class=format_class), place)
    assert [each.get("n") for each in found] == [0, 1]


def test_a_bad_line_is_a_dead_letter_with_its_file_and_number_and_the_others_go_on(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0})
    path = next(tmp_path.rglob("*.json"))
    path.write_bytes(b'{"n":0}\n{"n":\n{"n":2}\n')
    tried = connect(FilesSource, {"directory": tmp_path, "errors.tolerance": "all"})
    assert tried.values == [{"n": 0}, {"n": 2}]
    (letter,) = tried.letters
    assert (letter.value, letter.topic, letter.partition) == (b'{"n":', "orders", 0)
    assert letter.failure.stage == "TASK_POLL"
    assert letter.failure.message.startswith("topics/orders/partition=0/orders+0+0000000000.json, record 2: ")
    with pytest.raises(AssertionError, match="record 2"):
        connect(FilesSource, {"directory": tmp_path})


# Formats.

EVERYTHING = struct_schema(
    [
        ("yes", OPTIONAL_BOOLEAN),
        ("small", OPTIONAL_INT32),
        ("big", OPTIONAL_INT64),
        ("ratio", OPTIONAL_FLOAT64),
        ("text", OPTIONAL_STRING),
        ("data", OPTIONAL_BYTES),
        ("at", OPTIONAL_TIMESTAMP),
        ("day", OPTIONAL_DATE),
        ("price", decimal_schema(2, optional=True)),
        ("tags", array_schema(OPTIONAL_STRING, optional=True)),
        ("counts", map_schema(OPTIONAL_STRING, OPTIONAL_INT64, optional=True)),
        ("inner", struct_schema([("x", OPTIONAL_INT64)], optional=True)),
    ]
)


def everything() -> list[Struct]:
    inner = EVERYTHING.fields[-1].schema
    when = int(datetime(2024, 2, 29, 12, 30, 1, 250_000, tzinfo=UTC).timestamp() * 1000)
    row = {
        "yes": True, "small": 7, "big": 1 << 60, "ratio": 0.25, "text": "ä,\"\n", "data": b"\x00\xff",
        "at": Instant(when), "day": Instant(86_400_000 * 19_000), "price": Decimal("12.50"), "tags": ["a", None],
        "counts": {"k": 1}, "inner": Struct(inner, {"x": 1}),
    }  # fmt: skip
    return [Struct(EVERYTHING, row), Struct(EVERYTHING, {})]


@pytest.mark.parametrize(
    "config",
    [
        {"format_class": "ParquetFormat"},
        {"format_class": "ParquetFormat", "parquet_codec": "zstd"},
        {"format_class": "AvroFormat"},
        {"format_class": "AvroFormat", "avro_codec": "deflate"},
    ],
)
def test_rows_with_types_come_back_with_them(tmp_path: Path, config: dict[str, Any]) -> None:
    written(tmp_path, *everything(), **config)
    read = source_of(tmp_path, format_class=config["format_class"]).read(None, 100)
    assert [row.value for row in read.as_rows()] == everything()
    schemas: list[Schema] = [row.value_schema for row in read.as_rows()]
    assert schemas == [EVERYTHING, EVERYTHING]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"s3_compression_type": "gzip"},
        {"format_class": "CsvFormat"},
        {"format_class": "CsvFormat", "s3_compression_type": "gzip"},
        {"format_class": "ParquetFormat"},
        {"format_class": "AvroFormat"},
    ],
)
def test_files_are_the_same_bytes_after_the_way_there_and_back(tmp_path: Path, config: dict[str, Any]) -> None:
    """Sink, source, sink."""
    rows = [{"n": n, "s": "ä\n,", "half": n / 2, "none": None, "in": {"x": n}, "yes": True} for n in range(5)]
    if config.get("format_class") == "CsvFormat":
        rows = [{"n": str(n), "s": 'ä"\r\n,'} for n in range(5)]
    written(tmp_path / "there", *rows, flush_size="2", **config)
    read = {name: value for name, value in config.items() if name == "format_class"}
    found, _ = drained(source_of(tmp_path / "there", **read), limit=3)
    written(tmp_path / "back", *found, flush_size="2", **config)

    def files(root: Path) -> dict[str, bytes]:
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    assert len(files(tmp_path / "there")) == 3
    assert files(tmp_path / "back") == files(tmp_path / "there")


def test_values_are_the_same_bytes_in_the_topic_again(tmp_path: Path) -> None:
    lines = [b'{"n":1,"s":"\xc3\xa4","f":0.1,"in":{"l":[1,null,true]}}', b'"text"', b"17", b"[]"]
    connect(FilesSink, {"directory": tmp_path}, lines, topic="orders")
    assert [record.value for record in connect(FilesSource, {"directory": tmp_path}).records] == lines
    raw = {
        "format.class": "ByteArrayFormat",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "format.bytearray.separator": "--",
        "s3.compression.type": "gzip",
    }
    given_bytes = [b"\x00\xff", b"", b"a\nb"]
    connect(FilesSink, {"directory": tmp_path, **raw}, given_bytes, topic="raw")
    back = connect(FilesSource, {"directory": tmp_path, **raw})
    assert [(record.topic, record.value) for record in back.records] == [("raw", each) for each in given_bytes]


def test_cells_are_texts_and_bad_rows_are_told_alone(tmp_path: Path) -> None:
    written(tmp_path, {"a": "1", "b": "2"}, format_class="CsvFormat")
    path = next(tmp_path.rglob("*.csv"))
    path.write_bytes(b'a,b\n1,\n1,2,3\n\xff,1\n"x\ny",2\n')
    found, _ = drained(source_of(tmp_path, format_class="CsvFormat"))
    schema = struct_schema([("a", OPTIONAL_STRING), ("b", OPTIONAL_STRING)])
    name = "topics/orders/partition=0/orders+0+0000000000.csv"
    assert found == [
        Struct(schema, {"a": "1"}),
        spi.Unreadable(b"1,2,3", f"{name}, record 2: it has 3 cells, and 2 columns have names"),
        spi.Unreadable(b"\xff,1", f"{name}, record 3: it is no UTF-8"),
        Struct(schema, {"a": "x\ny", "b": "2"}),
    ]


def test_a_file_that_is_too_large_packed_or_not_is_a_dead_letter(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0}, s3_compression_type="gzip")
    path = next(tmp_path.rglob("*.gz"))
    path.write_bytes(gzip.compress(b" " * 100_000))
    written(tmp_path, {"n": "x" * 200}, first=1)
    for each in tmp_path.rglob("*.json*"):
        aged(each)
    found, _ = drained(source_of(tmp_path, file_max_bytes="150"))
    assert ["larger than 150 bytes" in each.reason for each in found] == [True, True]


def test_files_packed_in_several_pieces_are_read_whole(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0}, s3_compression_type="gzip")
    next(tmp_path.rglob("*.gz")).write_bytes(gzip.compress(b'{"n":0}\n') + gzip.compress(b'{"n":1}\n'))
    assert drained(source_of(tmp_path))[0] == [{"n": 0}, {"n": 1}]


# Which files.


def test_any_files_go_to_the_topics_that_their_paths_are_told_to(tmp_path: Path) -> None:
    for name in ("in/b.json", "in/a/x.json", "in/a/.hidden.json", "in/a/x.txt", "else/c.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'"{name}"\n')
    config = {"mode": "GENERIC", "topics_dir": "in", "topic_regex_list": "deep:in/a/.*, flat:.*"}
    source = source_of(tmp_path, {}, **config)
    assert [each["topic"] for each in source.partitions()] == ["deep", "flat"]
    assert drained(source_of(tmp_path, {"topic": "deep"}, **config))[0] == ["in/a/x.json"]
    row = source_of(tmp_path, {"topic": "flat"}, **config).read(None, 10).as_rows()[0]
    assert (row.topic, row.partition, row.value) == ("flat", None, "in/b.json")


def test_files_from_before_a_time_are_left_out(tmp_path: Path) -> None:
    written(tmp_path, {"n": 0}, {"n": 1}, flush_size="1")
    aged(next(tmp_path.rglob("*0.json")))
    assert drained(source_of(tmp_path, file_discovery_starting_timestamp="2000"))[0] == [{"n": 1}]


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("topics/orders/partition=0/orders+0+0000000042.json", ("orders", 0, 42)),
        ("topics/a+b/year=2024/a+b+3+7.snappy.parquet", ("a+b", 3, 7)),
        ("topics/orders/orders+0+x.json", None),
        ("topics/orders/other.json", None),
        ("topics/orders+0+1.json", None),
        (f"topics/orders/orders+0+{'9' * 30}.json", None),
    ],
)
def test_a_name_of_the_sinks_tells_where_records_lay(path: str, origin: tuple[str, int, int] | None) -> None:
    assert origin_of(path, "topics", "+") == origin


def test_a_position_stays_small_and_what_it_forgets_counts_as_read() -> None:
    files = [File(Listed(f"t/{n:04}/f{n}", 1, 0), n) for n in range(MOST_FOLDERS + 10)]
    place = Place()
    for file in files:
        place = place.behind(file, 1, 1)
    assert (len(place.folders), place.floor) == (MOST_FOLDERS, (9, "t/0009/f9"))
    assert unread(files, place) == []
    late = File(Listed("t/late/f", 1, 0), 10)
    grown = File(Listed(files[-1].listed.path, 2, 0), files[-1].offset)
    assert unread([grown, late], place) == [(late, 0), (grown, 1)]
    assert Place.of(place.as_offset()) == place
    assert place.behind(late, 3, UNFINISHED).begin(late) == 3


def test_a_position_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(spi.ConnectorFailed, match="cannot be understood"):
        source_of(tmp_path).read({"folders": 7}, 1)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"format_class": "OrcFormat"}, "format.class"),
        ({"s3_bucket_name": "both"}, "s3.bucket.name"),
        ({"mode": "GENERIC"}, "topic.regex.list"),
        ({"mode": "GENERIC", "topic_regex_list": "no colon"}, "topic.regex.list"),
        ({"mode": "GENERIC", "topic_regex_list": "t:("}, "topic.regex.list"),
        ({"mode": "OTHER"}, "mode"),
        ({"file_delim": ""}, "file.delim"),
    ],
)
def test_what_is_not_known_or_missing_is_refused_by_its_key(tmp_path: Path, config: dict[str, Any], key: str) -> None:
    with pytest.raises(spi.ConfigRefused) as refused:
        source_of(tmp_path, **config).validate()
    assert refused.value.key == key


@pytest.mark.parametrize("name", ["io.confluent.connect.s3.source.S3SourceConnector", "files-source"])
def test_it_is_known_by_its_usual_name_and_by_a_short_one(name: str) -> None:
    found = catalogue().find(name, PluginType.SOURCE)
    assert found is not None
    loaded: object = found.load()
    assert loaded is FilesSource
