"""What records become on their way into a search engine."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ottla.connect import spi
from ottla.connect.connectors.elasticsearch.config import ElasticsearchConfig
from ottla.connect.connectors.elasticsearch.documents import Documents, mapping_of
from ottla.connect.data.logical import TIMESTAMP, decimal_schema
from ottla.connect.data.record import ConnectRecord, Header
from ottla.connect.data.schema import Field, Schema
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant, Type


def _documents(**config: str) -> Documents:
    given = {"connection.url": "http://localhost:9200", **{name.replace("_", "."): config[name] for name in config}}
    return Documents(spi.parse(ElasticsearchConfig, given))


def _record(value: Any, key: Any = "k", **parts: Any) -> ConnectRecord:
    return ConnectRecord("Orders", 2, key=key, value=value, offset=7, timestamp=1_000, **parts)


def _lines(documents: Documents, record: ConnectRecord) -> list[Any]:
    action = documents.action(record)
    assert action is not None
    return [json.loads(line) for line in action.lines.splitlines()]


def test_a_keyed_record_is_a_document_with_its_offset_as_version() -> None:
    assert _lines(_documents(), _record({"a": 1})) == [
        {"index": {"_index": "orders", "_id": "k", "version": 7, "version_type": "external"}},
        {"a": 1},
    ]


def test_without_its_key_a_document_is_named_after_its_place() -> None:
    expected = {"index": {"_index": "orders", "_id": "Orders+2+7"}}
    assert _lines(_documents(key_ignore="true"), _record({"a": 1}))[0] == expected
    assert _lines(_documents(topic_key_ignore="Orders"), _record({"a": 1}, key=None))[0] == expected


def test_an_upsert_merges_into_what_is_there() -> None:
    assert _lines(_documents(write_method="upsert"), _record({"a": 1})) == [
        {"update": {"_index": "orders", "_id": "k"}},
        {"doc": {"a": 1}, "doc_as_upsert": True},
    ]


def test_a_tombstone_is_refused_left_out_or_deletes() -> None:
    with pytest.raises(spi.BadRecord, match="it has no value"):
        _documents().action(_record(None))
    assert _documents(behavior_on_null_values="ignore").action(_record(None)) is None
    assert _lines(_documents(behavior_on_null_values="DELETE"), _record(None)) == [
        {"delete": {"_index": "orders", "_id": "k", "version": 7, "version_type": "external"}}
    ]
    assert _documents(behavior_on_null_values="DELETE").action(_record(None, key=None)) is None


def test_a_version_may_come_from_a_header() -> None:
    documents = _documents(external_version_header="v")
    line = _lines(documents, _record({}, headers=(Header("v", None, b"41"), Header("v", None, "42"))))[0]
    assert line["index"]["version"] == 42
    with pytest.raises(spi.BadRecord, match="header v is no number"):
        documents.action(_record({}))


@pytest.mark.parametrize(
    ("key", "said"),
    [(None, "it has no key"), ({"a": 1}, "no single value"), (b"\xff", "no text"), ("x" * 513, "more than 512 bytes")],
)
def test_a_key_that_is_no_id_is_refused_with_what_helps(key: Any, said: str) -> None:
    with pytest.raises(spi.BadRecord, match=said):
        _documents().action(_record({"a": 1}, key=key))


@pytest.mark.parametrize("key", [5, "5", b"5"])
def test_numbers_and_bytes_of_text_are_ids(key: Any) -> None:
    assert _lines(_documents(), _record({}, key=key))[0]["index"]["_id"] == "5"


def test_a_value_without_fields_is_no_document() -> None:
    with pytest.raises(spi.BadRecord, match="HoistField gives it one"):
        _documents().action(_record("text"))


def test_a_struct_is_a_document_with_times_in_milliseconds_and_decimals_as_numbers() -> None:
    money = decimal_schema(2)
    schema = Schema(
        Type.STRUCT,
        fields=(
            Field("price", 0, money),
            Field("at", 1, TIMESTAMP),
            Field("raw", 2, Schema(Type.BYTES)),
            Field("tags", 3, Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=Schema(Type.INT32))),
            Field("counts", 4, Schema(Type.MAP, key_schema=Schema(Type.INT32), value_schema=Schema(Type.INT32))),
        ),
    )
    value = Struct.of(schema, [Decimal("1.50"), Instant(5), b"\x00\x01", {"x": 1}, {1: 2}])
    record = _record(value, value_schema=schema)
    plain = {"price": 1.5, "at": 5, "raw": "AAE=", "counts": [{"key": 1, "value": 2}]}
    assert _lines(_documents(), record)[1] == {**plain, "tags": {"x": 1}}
    listed = _lines(_documents(compact_map_entries="false"), record)[1]
    assert listed == {**plain, "tags": [{"key": "x", "value": 1}]}
    assert mapping_of(schema) == {
        "properties": {
            "price": {"type": "double"},
            "at": {"type": "date"},
            "raw": {"type": "binary"},
            "tags": {"type": "object"},
            "counts": {"type": "object"},
        }
    }


def test_deep_nesting_is_refused_and_never_a_crash() -> None:
    value: Any = {}
    for _ in range(5_000):
        value = {"a": value}
    with pytest.raises(spi.BadRecord, match="nested deeper"):
        _documents().action(_record(value))


def test_data_streams_take_a_time_and_are_only_added_to() -> None:
    documents = _documents(data_stream_type="logs", data_stream_dataset="shop", data_stream_timestamp_field="when")
    assert _lines(documents, _record({"when": 9})) == [
        {"create": {"_index": "logs-shop-orders", "_id": "Orders+2+7"}},
        {"when": 9, "@timestamp": 9},
    ]
    assert _lines(documents, _record({}))[1] == {"@timestamp": 1_000}


def test_topics_may_be_called_otherwise() -> None:
    assert _documents(topic_index_map="Orders:sales,x:y").index_of("Orders") == "sales"
    with pytest.raises(spi.ConfigRefused, match="topic:index"):
        _documents(topic_index_map="nonsense")


def test_json_as_it_lies_becomes_what_its_records_become() -> None:
    values = [b'{"a":1,"b":"x"}', b'{"a":{"b":[1,2.5,null]},"c":true}', b' {"a": 1e3, "a": 2} ', b"{}"]
    columns = spi.Columns(
        "T", 3, pa.nulls(len(values)), pa.array(values), np.arange(7, 7 + len(values)), np.zeros(len(values))
    )
    documents = _documents(**{"key.ignore": "true"})
    records = [ConnectRecord("T", 3, value=json.loads(value), offset=offset) for offset, value in enumerate(values, 7)]
    assert documents.takes_json
    assert documents.actions(columns) == [documents.action(record) for record in records]


@pytest.mark.parametrize("value", [None, b"", b"[1]", b"7", b"{", b'{"a":' * 150 + b"1" + b"}" * 150])
def test_json_that_is_no_document_is_for_one_by_one(value: bytes | None) -> None:
    values = pa.array([b"{}", value], pa.binary())
    columns = spi.Columns("t", 0, pa.nulls(2), values, np.arange(2), np.zeros(2))
    with pytest.raises(spi.OneByOne):
        _documents(**{"key.ignore": "true"}).actions(columns)


@pytest.mark.parametrize(
    "config",
    [
        {"key.ignore": "false"},
        {"write.method": "UPSERT"},
        {"use.autogenerated.ids": "true"},
        {"compact.map.entries": "false"},
        {"data.stream.type": "LOGS", "data.stream.dataset": "x"},
    ],
)
def test_where_more_than_the_value_counts_records_are_asked_for(config: dict[str, str]) -> None:
    assert not _documents(**{"key.ignore": "true", **config}).takes_json
