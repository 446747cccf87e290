"""Protobuf by schemas of a registry: types, both directions, message indexes, evolution, what is refused."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.registry.in_memory import MemoryRegistry
from ottla.serdes import columns
from ottla.serdes.base import SerdeError
from ottla.serdes.by_name import Serdes
from ottla.serdes.protobuf import ProtobufSerde
from ottla.serdes.types import ANY, parse_schema

ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  string id = 1;
  int32 size = 2;
  optional sint64 large = 3;
  uint32 unsigned = 4;
  uint64 huge = 5;
  float single = 6;
  bool hot = 7;
  bytes raw = 8;
  Kind kind = 9;
  repeated Line lines = 10;
  map<string, Line> named = 11;
  map<int32, string> numbered = 12;
  google.protobuf.Timestamp at = 13;
  google.protobuf.StringValue note = 14;
  oneof either { string text = 15; Line line = 16; }
  repeated int32 numbers = 17;
  enum Kind { NONE = 0; SOME = 1; }
  message Line { double price = 1; }
}
message Other { message Inner { int32 x = 1; } }
message Self { Self next = 1; int32 x = 2; }
"""
VALUE = {
    "id": "a",
    "size": -5,
    "large": None,
    "unsigned": 4_000_000_000,
    "huge": Decimal(18_000_000_000_000_000_000),
    "single": 0.5,
    "hot": True,
    "raw": b"\xff",
    "kind": "SOME",
    "lines": [{"price": 1.5}, {"price": 0.0}],
    "named": {"a": {"price": 2.5}},
    "numbered": [{"key": 7, "value": "seven"}],
    "at": datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
    "note": "",
    "text": None,
    "line": {"price": 0.0},
    "numbers": [1, 2],
}


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def test_every_type_has_one_of_ours_and_values_come_back(registry: MemoryRegistry) -> None:
    serde = Serdes.protobuf(registry, ORDER)
    assert serde.type == parse_schema(
        "id STRING, size INT, large LONG, unsigned LONG, huge DECIMAL(20,0), single DOUBLE, hot BOOLEAN, raw BINARY, "
        "kind STRING, lines ARRAY<STRUCT<price: DOUBLE>>, named MAP<STRING, STRUCT<price: DOUBLE>>, "
        "numbered ARRAY<STRUCT<key: INT, value: STRING>>, at TIMESTAMP, note STRING, text STRING, "
        "line STRUCT<price: DOUBLE>, numbers ARRAY<INT>"
    )
    data = serde.encode_for(VALUE, "t", [])
    assert data[:6] == b"\0\0\0\0\1\0"
    assert serde.decode_from(data, "t", ()) == VALUE
    assert registry.schemas[0].language == "PROTOBUF"


def test_what_is_not_set_is_null_only_where_protobuf_can_tell(registry: MemoryRegistry) -> None:
    found = Serdes.protobuf(registry, ORDER)
    read = found.decode_from(found.encode_for({}, "t", []), "t", ())
    assert {name for name, value in read.items() if value is None} == {"large", "at", "note", "text", "line"}
    assert (read["id"], read["kind"], read["lines"], read["huge"]) == ("", "NONE", [], Decimal(0))


@pytest.mark.parametrize(("message", "written"), [("shop.Other", "0202"), ("shop.Other.Inner", "040200")])
def test_a_message_is_known_by_its_place_in_the_schema(registry: MemoryRegistry, message: str, written: str) -> None:
    serde = Serdes.protobuf(registry, ORDER, message=message, naming="record")
    data = serde.encode_for({}, "t", [])
    assert data[5:].hex() == written
    assert list(registry.subjects) == [message]
    assert Serdes.protobuf(registry).decode_from(data, "t", ()) == serde.decode_from(data, "t", ())


def test_in_headers_the_place_stands_behind_the_guid(registry: MemoryRegistry) -> None:
    serde = Serdes.protobuf(registry, ORDER, message="shop.Other.Inner", ids="header")
    headers: list[tuple[str, bytes | None]] = []
    assert serde.encode_for({"x": 1}, "t", headers) == b"\x08\1"
    ((name, value),) = headers
    assert (name, (value or b"")[17:].hex()) == ("__value_schema_id", "040200")
    for reader in (serde, Serdes.protobuf(registry)):
        assert reader.decode_from(b"\x08\1", "t", headers) == {"x": 1}


def test_an_evolved_reader_takes_what_it_knows(registry: MemoryRegistry) -> None:
    data = Serdes.protobuf(registry, ORDER).encode_for(VALUE, "t", [])
    newer = 'syntax = "proto3"; message Renamed { int64 count = 2; optional string added = 99; }'
    assert Serdes.protobuf(registry, newer).decode_from(data, "t", ()) == {"count": -5, "added": None}


def test_a_message_of_very_many_parts_has_no_type_and_is_read(registry: MemoryRegistry) -> None:
    levels = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(30))
    serde = Serdes.protobuf(registry, f'syntax = "proto3"; {levels} message M30 {{ int32 x = 1; }}')
    assert serde.type == ANY
    assert serde.decode_from(serde.encode_for({"b": {"a": None, "b": None}}, "t", []), "t", ()) is not None


def test_a_message_that_contains_itself_has_no_type_and_is_read(registry: MemoryRegistry) -> None:
    serde = Serdes.protobuf(registry, ORDER, message="shop.Self")
    value = {"next": {"next": None, "x": 2}, "x": 1}
    assert serde.type == ANY
    assert serde.decode_from(serde.encode_for(value, "t", []), "t", ()) == value
    deep = b""
    for _ in range(10_000):  # each inside of the next
        length = len(deep)
        varint = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14 & 0x7F])
        deep = b"\x0a" + varint + deep
    with pytest.raises(SerdeError):
        serde.decode_from(b"\0\0\0\0\1\2\4" + deep, "t", ())


UNWRITABLE: list[tuple[Any, str]] = [
    ({"size": 1 << 40}, "size: "),
    ({"id": 5}, "id: "),
    ({"kind": "MANY"}, "kind: one of NONE, SOME expected, not 'MANY'"),
    ({"lines": [{"nope": 1}]}, "lines: shop.Order.Line has no field nope"),
    ({"huge": Decimal(-1)}, "huge: "),
    ({"at": 5}, "at: a datetime expected, not int 5"),
    ([], "a dict expected, not list []"),
]


@pytest.mark.parametrize(("value", "reason"), UNWRITABLE)
def test_a_value_that_is_not_of_the_schema_is_told_where(registry: MemoryRegistry, value: Any, reason: str) -> None:
    with pytest.raises(SerdeError) as told:
        Serdes.protobuf(registry, ORDER).encode_for(value, "t", [])
    assert reason in str(told.value)


_ANY_BYTES = Serdes.protobuf(MemoryRegistry(), ORDER)
_WHOLE = _ANY_BYTES.encode_for(VALUE, "t", [])


@given(st.binary(max_size=60), st.integers(5, len(_WHOLE)))
def test_no_bytes_do_worse_than_not_be_read(noise: bytes, place: int) -> None:
    for reader in (_ANY_BYTES, ProtobufSerde(_ANY_BYTES.registry)):
        try:
            reader.decode_from(_WHOLE[:place] + noise, "t", ())
        except SerdeError as error:
            assert "Serdes.protobuf" in str(error)


def test_records_are_columns_too(registry: MemoryRegistry) -> None:
    serde = Serdes.protobuf(registry, ORDER)
    assert serde.has_columns
    data = pa.array([serde.encode_for(VALUE, "t", []), None, b"\0\0\0\0\1\0\x0a"])
    values, errors = columns.decode(serde, data)
    assert columns.values_of(serde.type, values) == [VALUE, None, None]
    assert [error is None for error in errors.to_pylist()] == [True, True, False]
    assert columns.encode(serde, values, pa.array(["t"] * 3)).to_pylist()[:2] == data.to_pylist()[:2]


@pytest.mark.parametrize("wrong", [{"message": "shop.Nope"}, {"schema": "message {"}])
def test_options_that_are_none_are_refused_when_the_serde_is_made(registry: MemoryRegistry, wrong: Any) -> None:
    with pytest.raises(ValueError):
        Serdes.protobuf(registry, **{"schema": ORDER, **wrong})
