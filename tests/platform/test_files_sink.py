"""The sink into files, read back by others."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import fastavro
import pyarrow.parquet as pq
import pytest

from ottla.connect import spi
from ottla.connect.connectors.files.config import FilesConfig
from ottla.connect.connectors.files.sink import FilesSink
from ottla.connect.connectors.files.stores import Store, store_of
from ottla.connect.data.record import ConnectRecord


def _sink(directory: Path, **config: str) -> FilesSink:
    given = {"directory": str(directory), **{name.replace("_", "."): value for name, value in config.items()}}
    return FilesSink(spi.parse(FilesConfig, given), "files")


def _batch(sink: FilesSink, *values: Any, first: int = 0, time_ms: int = 0) -> list[spi.Refused]:
    records = [
        ConnectRecord("orders", 0, value=value, offset=first + at, timestamp=time_ms) for at, value in enumerate(values)
    ]
    spans = [spi.Span("orders", 0, first, first + len(records))]
    sink.begin(spans)
    return [*sink.write(spi.Batch(records, spans)), *sink.end()]


def _files(directory: Path) -> dict[str, bytes]:
    """All that are to be seen."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def test_a_file_is_named_after_the_first_offset_in_it_and_full_at_its_size(tmp_path: Path) -> None:
    assert _batch(_sink(tmp_path, flush_size="2"), {"n": 1}, {"n": 2}, {"n": 3}, first=40) == []
    assert _files(tmp_path) == {
        "topics/orders/partition=0/orders+0+0000000040.json": b'{"n":1}\n{"n":2}\n',
        "topics/orders/partition=0/orders+0+0000000042.json": b'{"n":3}\n',
    }


def test_a_batch_that_comes_again_and_longer_leaves_every_record_once(tmp_path: Path) -> None:
    sink = _sink(tmp_path, flush_size="2")
    _batch(sink, {"n": 1}, {"n": 2}, {"n": 3})
    _batch(_sink(tmp_path, flush_size="2"), {"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}, {"n": 5})
    assert b"".join(_files(tmp_path).values()) == b"".join(b'{"n":%d}\n' % n for n in range(1, 6))


def test_a_store_that_was_away_is_given_only_what_it_lacks(tmp_path: Path) -> None:
    class Flaky:
        """Refuses the second file once."""

        def __init__(self, behind: Store) -> None:
            self.calls: list[str] = []
            self._behind = behind

        def put(self, path: str, data: bytes, allowed: Callable[[], None]) -> None:
            self.calls.append(path)
            if len(self.calls) == 2:
                raise spi.TryAgain("away")
            self._behind.put(path, data, allowed)

    sink = _sink(tmp_path, flush_size="1")
    records = [ConnectRecord("orders", 0, value={"n": n}, offset=n) for n in range(3)]
    sink.begin([])
    sink.write(spi.Batch(records, []))
    flaky = Flaky(store_of(sink.config))
    sink._store = cast("Store", flaky)
    with pytest.raises(spi.TryAgain):
        sink.end()
    assert list(sink.end()) == []
    assert len(_files(tmp_path)) == 3
    assert len(flaky.calls) == 4


class Died(Exception):
    """Stands for a process that is gone."""


class Mortal:
    """A store whose user dies before it has put so many files."""

    def __init__(self, behind: Store, lives: int) -> None:
        self.shows_halves = behind.shows_halves
        self._behind = behind
        self._lives = lives
        self.delete, self.notes, self.files, self.get = behind.delete, behind.notes, behind.files, behind.get

    def put(self, path: str, data: bytes, allowed: Callable[[], None] = lambda: None) -> None:
        if not self._lives:
            raise Died
        self._lives -= 1
        self._behind.put(path, data, allowed)


def _life(directory: Path, dice: random.Random, starts: list[int], ends: list[int], **config: str) -> None:
    """Batches of portions as they come, until it dies or all is written; `starts` is what was committed."""
    preparing, writing = _sink(directory, **config), _sink(directory, **config)
    for sink in (preparing, writing):
        sink._store = Mortal(store_of(sink.config), dice.choice((0, 1, 3, 7, 50)))
    while starts != ends:
        until = [dice.randint(min(start + 1, end), end) for start, end in zip(starts, ends, strict=True)]
        spans = [
            spi.Span("orders", partition, start, end)
            for partition, (start, end) in enumerate(zip(starts, until, strict=True))
            if start < end
        ]
        preparing.prepare(spans)
        writing.begin(spans)
        for span in spans:
            numbers = range(span.start, span.end)
            records = [
                ConnectRecord("orders", span.partition, value={"n": n, "f": n % 3, "p": span.partition}, offset=n)
                for n in numbers
            ]
            assert list(writing.write(spi.Batch(records, spans))) == []
        assert list(writing.end()) == []
        if dice.random() < 0.3:
            raise Died
        starts[:] = until


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "config",
    [
        {"flush_size": "7"},
        {"flush_size": "100", "flush_size_bytes": "60"},
        {"flush_size": "5", "partitioner_class": "FieldPartitioner", "partition_field_name": "f"},
    ],
    ids=["count", "bytes", "folders"],
)
def test_lives_that_die_anywhere_leave_every_record_once(tmp_path: Path, config: dict[str, str], seed: int) -> None:
    dice = random.Random(seed)
    starts, ends = [0, 0, 0], [90, 40, 120]
    while starts != ends:
        with suppress(Died):
            _life(tmp_path, dice, starts, ends, **config)
    found = [
        (row["p"], row["n"])
        for path in tmp_path.rglob("orders+*.json")
        for row in map(json.loads, path.read_text().splitlines())
    ]
    assert sorted(found) == [(partition, n) for partition, end in enumerate(ends) for n in range(end)]


def test_what_was_committed_is_not_deleted_nor_what_is_of_another_topic_of_that_name(tmp_path: Path) -> None:
    def prepared(start: int, topic_id: str) -> dict[str, bytes]:
        _sink(tmp_path, flush_size="1").prepare([spi.Span("orders", 0, start, 9, topic_id)])
        return _files(tmp_path)

    sink = _sink(tmp_path, flush_size="1")
    sink.begin([spi.Span("orders", 0, 4, 6, "id")])
    sink.write(spi.Batch([ConnectRecord("orders", 0, value={"n": n}, offset=n) for n in (4, 5)], []))
    sink.end()
    names = [f"topics/orders/partition=0/orders+0+000000000{n}.json" for n in (4, 5)]
    assert list(prepared(6, "id")) == names, "it went on behind them"
    assert list(prepared(4, "another")) == names
    assert list(prepared(4, "id")) == names[:1], "the first is written over"


class Away:
    """A store that refuses to delete once, in the midst of it."""

    def __init__(self, behind: Store) -> None:
        self.notes, self.get = behind.notes, behind.get
        self.asked = 0
        self._behind = behind

    def delete(self, path: str) -> None:
        self.asked += 1
        if self.asked == 2:
            raise spi.TryAgain("away")
        self._behind.delete(path)


def dead_batch(directory: Path) -> spi.Span:
    """Four files, three of which are noted."""
    sink, span = _sink(directory, flush_size="1"), spi.Span("orders", 0, 4, 8, "id")
    sink.begin([span])
    sink.write(spi.Batch([ConnectRecord("orders", 0, value={"n": n}, offset=n) for n in range(4, 8)], []))
    sink.end()
    return span


def test_what_was_not_deleted_as_the_store_was_away_is_at_the_next_attempt(tmp_path: Path) -> None:
    span = dead_batch(tmp_path)
    sink = _sink(tmp_path, flush_size="1")
    sink._store = cast("Store", Away(store_of(sink.config)))
    with pytest.raises(spi.TryAgain):
        sink.prepare([span])
    sink.prepare([span])
    assert list(_files(tmp_path)) == ["topics/orders/partition=0/orders+0+0000000004.json"]


def test_nothing_is_deleted_by_whom_another_has_taken_over(tmp_path: Path) -> None:
    """A store that was away, say, let him wait for so long."""

    def taken_over() -> None:
        raise Died

    span = dead_batch(tmp_path)
    sink = _sink(tmp_path, flush_size="1")
    sink.require_ours = taken_over
    with pytest.raises(Died):
        sink.prepare([span])
    assert len(_files(tmp_path)) == 4


def test_a_batch_that_comes_again_in_another_hour_leaves_no_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = iter((0, 3_600))
    monkeypatch.setattr("ottla.connect.connectors.files.sink.time.time", lambda: next(hours))
    config = {"partitioner_class": "HourlyPartitioner", "timestamp_extractor": "Wallclock"}
    for _ in range(2):
        sink = _sink(tmp_path, **config)
        sink.prepare([spi.Span("orders", 0, 0, 1)])
        assert _batch(sink, {"n": 1}) == []
    assert list(_files(tmp_path)) == ["topics/orders/year=1970/month=01/day=01/hour=01/orders+0+0000000000.json"]


def test_nothing_is_made_visible_for_whom_another_has_taken_over(tmp_path: Path) -> None:
    def taken_over() -> None:
        raise Died

    sink = _sink(tmp_path)
    sink.require_ours = taken_over
    with pytest.raises(Died):
        _batch(sink, {"n": 1})
    assert _files(tmp_path) == {}


def _parquet(data: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return rows


def _avro(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def _csv(data: bytes) -> list[dict[str, Any]]:
    return [{"n": int(row["n"]), "s": row["s"]} for row in csv.DictReader(io.StringIO(data.decode()))]


def _json(data: bytes) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(data).splitlines()]


@pytest.mark.parametrize(
    ("config", "extension", "read"),
    [
        ({"format_class": "ParquetFormat"}, ".snappy.parquet", _parquet),
        ({"format_class": "AvroFormat", "avro_codec": "deflate"}, ".avro", _avro),
        ({"format_class": "CsvFormat"}, ".csv", _csv),
        ({"s3_compression_type": "gzip"}, ".json.gz", _json),
    ],
)
def test_every_format_is_read_by_those_who_know_it_and_written_again_alike(
    tmp_path: Path, config: dict[str, str], extension: str, read: Callable[[bytes], list[Any]]
) -> None:
    rows = [{"n": 1, "s": "ä"}, {"n": 2, "s": "b"}]
    for place in ("one", "two"):
        assert _batch(_sink(tmp_path / place, **config), *rows) == []
    ((name, data),) = _files(tmp_path / "one").items()
    assert name.endswith(f"orders+0+0000000000{extension}")
    assert read(data) == rows
    assert _files(tmp_path / "two") == {name: data}


def test_raw_bytes_are_written_as_they_are_and_objects_refused(tmp_path: Path) -> None:
    (refused,) = _batch(_sink(tmp_path, format_class="ByteArrayFormat"), b"\x00\x01", {"n": 1}, b"x")
    assert (refused.at, "ByteArrayConverter" in str(refused.error)) == (1, True)
    assert list(_files(tmp_path).values()) == [b"\x00\x01\nx\n"]


def test_folders_are_fields_of_the_record_and_never_lead_out(tmp_path: Path) -> None:
    sink = _sink(tmp_path, partitioner_class="FieldPartitioner", partition_field_name="country")
    refused = _batch(sink, {"country": "cz"}, {"country": "../../etc"}, {"other": 1}, {"country": None})
    assert [each.at for each in refused] == [2, 3]
    assert sorted(_files(tmp_path)) == [
        "topics/orders/country=.._.._etc/orders+0+0000000001.json",
        "topics/orders/country=cz/orders+0+0000000000.json",
    ]


def test_folders_are_times_in_the_zone_that_was_named(tmp_path: Path) -> None:
    midnight = 1_700_000_000_000 // 86_400_000 * 86_400_000  # 2023-11-14T00:00:00Z
    sink = _sink(tmp_path, partitioner_class="HourlyPartitioner", timezone="America/New_York")
    assert _batch(sink, {"n": 1}, time_ms=midnight) == []
    assert list(_files(tmp_path)) == ["topics/orders/year=2023/month=11/day=13/hour=19/orders+0+0000000000.json"]


def test_a_time_may_be_a_field(tmp_path: Path) -> None:
    sink = _sink(
        tmp_path,
        partitioner_class="TimeBasedPartitioner",
        path_format="YYYY-MM-dd",
        timestamp_extractor="RecordField",
        timestamp_field="at.when",
    )
    values = ({"at": {"when": "2024-02-29T12:00:00Z"}}, {"at": {"when": 0}}, {"at": {"when": "soon"}})
    (refused,) = _batch(sink, *values)
    assert (refused.at, "is no time" in str(refused.error)) == (2, True)
    assert sorted(path.split("/")[2] for path in _files(tmp_path)) == ["1970-01-01", "2024-02-29"]


def test_tombstones_are_refused_or_passed_over(tmp_path: Path) -> None:
    (refused,) = _batch(_sink(tmp_path), None)
    assert "behavior.on.null.values=ignore" in str(refused.error)
    assert _batch(_sink(tmp_path, behavior_on_null_values="ignore"), None) == []
    assert _files(tmp_path) == {}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"format_class": "OrcFormat"}, "format.class"),
        ({"partitioner_class": "Mine"}, "partitioner.class"),
        ({"partitioner_class": "TimeBasedPartitioner"}, "path.format"),
        ({"partitioner_class": "HourlyPartitioner", "timezone": "Nowhere/X"}, "timezone"),
        ({"partitioner_class": "FieldPartitioner"}, "partition.field.name"),
        ({"s3_bucket_name": "both"}, "s3.bucket.name"),
    ],
)
def test_what_is_not_known_or_missing_is_refused_by_its_key(tmp_path: Path, config: dict[str, str], key: str) -> None:
    with pytest.raises(spi.ConfigRefused) as refused:
        _sink(tmp_path, **config).validate()
    assert refused.value.key == key
