"""Whatever JSON there is in a topic, a sink writes each record or makes it a letter, and goes on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.connect.jobs.sink_task import SinkTask
from ottla.connect.jobs.spec import JobSpec
from ottla.connect.spi import Columns, Span
from tests.support.examples import examples

WHOLE = st.integers(-5, 5) | st.integers(-(2**63) - 5, 2**63 + 5) | st.integers(-(2**80), 2**80)
TEXTS = st.text(max_size=5) | st.sampled_from(["\ud800", "half of it: \udc00"])
SCALARS = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b", "A", "ü", "", "a b", 'q"', "x" * 70, "\ud800"]), VALUES, max_size=3
)
RECORDS = st.lists(OBJECTS | VALUES, min_size=1, max_size=6)
FORMATS = "io.confluent.connect.s3.format"
SINKS = {
    "lines": {"connector.class": "FileStreamSink", "file": "{place}/out"},
    "json": {"connector.class": "files-sink", "directory": "{place}"},
    "csv": {"connector.class": "files-sink", "directory": "{place}", "format.class": f"{FORMATS}.csv.CsvFormat"},
    "avro": {"connector.class": "files-sink", "directory": "{place}", "format.class": f"{FORMATS}.avro.AvroFormat"},
    "parquet": {
        "connector.class": "files-sink",
        "directory": "{place}",
        "format.class": f"{FORMATS}.parquet.ParquetFormat",
    },
    "sqlite": {
        "connector.class": "jdbc-sink",
        "connection.url": "jdbc:sqlite:{place}/db",
        "auto.create": "true",
        "auto.evolve": "true",
    },
    "delta": {"connector.class": "delta-sink", "table.uri": "{place}/delta"},
    "iceberg": {
        "connector.class": "iceberg-sink",
        "iceberg.catalog.uri": "sqlite:///{place}/catalog.db",
        "iceberg.catalog.warehouse": "file://{place}",
    },
}
JSON = {
    "errors.tolerance": "all",
    "topics": "t",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def columns(values: Sequence[Any], first: int) -> Columns:
    texts = pa.array([json.dumps(each).encode() for each in values], pa.binary())
    offsets = np.arange(first, first + len(values))
    return Columns("t", 0, pa.nulls(len(values), pa.binary()), texts, offsets, np.zeros(len(values), np.int64))


@pytest.mark.parametrize("sink", SINKS)
@settings(max_examples=examples(60))
@given(first=RECORDS, second=RECORDS)
def test_each_is_written_or_a_letter(
    tmp_path_factory: pytest.TempPathFactory, sink: str, first: list[Any], second: list[Any]
) -> None:
    place: Path = tmp_path_factory.mktemp(sink)
    config = {key: value.format(place=place) for key, value in SINKS[sink].items()}
    task = SinkTask(JobSpec("c", {**JSON, **config}, "", "g", "o", ""))
    try:
        for given, start in ((first, 0), (second, len(first))):
            report = task.run(0, [Span("t", 0, start, start + len(given))], iter((columns(given, start),)))
            assert report.failed is None
            assert report.counts.written + len(report.letters) == len(given)
    finally:
        task.close()
