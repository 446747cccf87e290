"""Records that are parsed where they are read: what Spark is given of them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ottla.model.ids import TopicPartition
from ottla.pipelines.source.columns import HEADERS_TYPE, Columns
from ottla.pipelines.source.data_source import Span
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import Type, parse_schema
from ottla.streams.run.parsed_records import ParsedRecords
from ottla.streams.run.reading_stages import ReadingTask, Seen, rows_of, schema_of

SPAN = Span(TopicPartition("in", 1), 4, 6, base=100)
VALUE = LenientJsonSerde(parse_schema("N int, `at` timestamp"))
KEY = LenientJsonSerde(Type("int"), single="K")


def read() -> Iterator[Columns]:
    yield Columns(
        pa.array([b"7", None], pa.binary()),
        pa.array([b'{"n": 1, "at": 1000}', b'{"n": tru}'], pa.binary()),
        np.array([4, 5]),
        np.array([40, 50]),
        np.zeros(2, np.int32),
        pa.array([[{"key": "h", "value": b"x"}], None], HEADERS_TYPE),
        np.array([True, False]),
    )


def rows(stage: ParsedRecords) -> list[dict[str, object]]:
    found = rows_of(stage, ReadingTask(SPAN, Seen()), read(), schema_of(stage.columns()))
    *records, told = [row for batch in found for row in batch.to_pylist()]
    assert told == {**dict.fromkeys(stage.columns()), "records": 2, "dropped": []}
    return [{name: cell for name, cell in row.items() if name not in ("records", "dropped")} for row in records]


def test_keys_and_values_come_typed_and_with_what_is_wrong_with_them() -> None:
    found = rows(ParsedRecords((("key", KEY), ("value", VALUE)), headers=False, origin=False, bytes_too=False))
    places = [{name: row[name] for name in ("topic", "partition", "offset", "timestamp")} for row in found]
    assert places == [
        {"topic": "in", "partition": 1, "offset": 4, "timestamp": 40},
        {"topic": "in", "partition": 1, "offset": 5, "timestamp": 50},
    ]
    assert [row["decoded_key"] for row in found] == [
        {"value": {"K": 7}, "error": None},
        {"value": None, "error": None},
    ]
    good, bad = (row["decoded_value"] for row in found)
    assert isinstance(good, dict) and isinstance(bad, dict)
    assert (good["value"]["N"], str(good["value"]["at"]), good["error"]) == (1, "1970-01-01 00:00:01", None)
    assert bad["value"] is None and "'{\"n\": tru}'" in bad["error"]
    assert {"key", "value", "headers", "origin"}.isdisjoint(found[0])


def test_bytes_headers_and_numbers_come_too_where_they_are_asked_for() -> None:
    found = rows(ParsedRecords((("value", VALUE),), headers=True, origin=True, bytes_too=True))
    assert [(row["key"], row["value"], row["headers"], row["origin"]) for row in found] == [
        (b"7", b'{"n": 1, "at": 1000}', [{"key": "h", "value": b"x"}], 104 << 1 | 1),
        (None, b'{"n": tru}', None, 105 << 1),
    ]
