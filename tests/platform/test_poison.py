"""What a target has is what was in the topic, after 100,000 records with poison among them: all of the poison is in the
letters, and the mended ones come in behind. JDBC has its own (`connect/test_jdbc_poison.py`)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns, Span
from tests.platform.systems.http_server import CommandedServer, commanded_server
from tests.platform.systems.opensearch import opensearch

COUNT, STEP = 100_000, 10_000
BROKEN = (b"{", b'{"id":}', b"\xff\xfe", b'{"id":1')
NO_OBJECTS = (b"[1]", b"7")
JSON = {
    "errors.tolerance": "all",
    "topics": "t",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class Target(NamedTuple):
    config: dict[str, str]
    ids: Callable[[], list[int]]
    poison: tuple[bytes, ...] = (*BROKEN, *NO_OBJECTS)


def _file(place: Path) -> Iterator[Target]:
    out = place / "out.txt"
    config = {"connector.class": "FileStreamSink", "file": str(out)}
    yield Target(config, lambda: [int(line[4:-1]) for line in out.read_text().splitlines()], BROKEN)


def _json_files(place: Path) -> Iterator[Target]:
    config = {"connector.class": "files-sink", "directory": str(place), "flush.size": "20000"}

    def ids() -> list[int]:
        lines = (line for file in place.rglob("*.json") for line in file.read_text().splitlines())
        return [json.loads(line)["id"] for line in lines]

    yield Target({**config, "format.class": "io.confluent.connect.s3.format.json.JsonFormat"}, ids, BROKEN)


def _parquet(place: Path) -> Iterator[Target]:
    import pyarrow.parquet as pq  # noqa: PLC0415

    config = {"connector.class": "files-sink", "directory": str(place), "flush.size": "20000"}
    config["format.class"] = "io.confluent.connect.s3.format.parquet.ParquetFormat"
    yield Target(config, lambda: [id for file in place.rglob("*.parquet") for id in _column(pq.read_table(file))])


def _delta(place: Path) -> Iterator[Target]:
    from deltalake import DeltaTable  # noqa: PLC0415

    config = {"connector.class": "delta-sink", "table.uri": str(place)}
    yield Target(config, lambda: _column(DeltaTable(str(place / "t")).to_pyarrow_table()))


def _iceberg(place: Path) -> Iterator[Target]:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    catalog = {"uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}"}
    config = {f"iceberg.catalog.{name}": value for name, value in catalog.items()}
    yield Target(
        {"connector.class": "iceberg-sink", **config},
        lambda: _column(load_catalog("iceberg", **catalog).load_table("default.t").scan().to_arrow()),
    )


def _http(place: Path) -> Iterator[Target]:
    def ids(server: CommandedServer) -> list[int]:
        return [each["id"] for got in server.taken for each in json.loads(got.body)]

    with commanded_server() as server:
        config = {"connector.class": "http-sink", "http.api.url": server.url, "batch.max.size": "500"}
        yield Target(config, lambda: ids(server), BROKEN)


def _opensearch(place: Path) -> Iterator[Target]:
    with opensearch() as server:
        config = {"connector.class": "OpensearchSinkConnector", "connection.url": server.url, "schema.ignore": "true"}
        yield Target(
            {**config, "key.ignore": "true", "read.timeout.ms": "60000"},
            lambda: [each["id"] for each in server.documents("t").values()],
        )


def _column(table: pa.Table) -> list[int]:
    found: list[int] = table.column("id").to_pylist()
    return found


@pytest.fixture(
    params=[
        _file,
        _json_files,
        _parquet,
        _delta,
        _iceberg,
        _http,
        pytest.param(_opensearch, marks=[pytest.mark.jvm, pytest.mark.matrix]),
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    yield from request.param(tmp_path)


def _columns(values: list[bytes], first: int) -> Iterator[Columns]:
    for start in range(0, len(values), STEP):
        part = values[start : start + STEP]
        offsets = np.arange(first + start, first + start + len(part))
        yield Columns(
            "t",
            0,
            pa.nulls(len(part), pa.binary()),
            pa.array(part, pa.binary()),
            offsets,
            np.zeros(len(part), np.int64),
        )


def test_all_that_is_good_is_there_once_and_all_that_is_not_in_the_letters(target: Target) -> None:
    def value(offset: int) -> bytes:
        if offset % 997 == 5:
            return target.poison[offset // 997 % len(target.poison)]
        return b'{"id":%d}' % offset

    task = SinkTask(JobSpec("c", {**JSON, **target.config}, "", "g", "o", ""))
    values = [value(offset) for offset in range(COUNT)]

    def run(first: int, given: list[bytes]) -> Any:
        return task.run(0, [Span("t", 0, first, first + len(given))], _columns(given, first))

    try:
        report = run(0, values)
        bad = [offset for offset in range(COUNT) if offset % 997 == 5]
        assert (report.failed, sorted(letter.offset for letter in report.letters)) == (None, bad)
        assert {letter.value for letter in report.letters} == set(target.poison)
        # Sent again by redrive, they lie behind the others.
        mended = run(COUNT, [b'{"id":%d}' % offset for offset in bad])
    finally:
        task.close()
    assert (mended.failed, list(mended.letters)) == (None, [])
    assert sorted(target.ids()) == list(range(COUNT))
