"""Topics that nobody declared: their columns by what lies in them."""

import json
from typing import Any

from ottla.registry.in_memory import MemoryRegistry
from ottla.sql.parser import parse
from ottla.sql.undeclared import Undeclared, inferred


def of_values(*values: Any, keys: tuple[bytes | None, ...] = ()) -> Undeclared:
    sample = [json.dumps(each).encode() if not isinstance(each, bytes) else each for each in values]
    return inferred("orders", list(zip(keys or [None] * len(sample), sample, strict=True)))


def test_objects_give_columns_in_the_order_of_their_fields_and_a_statement_that_keeps_them() -> None:
    found = of_values({"id": 1, "who": "ann", "price": 1}, {"id": 2, "price": 2.5, "tags": ["a"]}, keys=(b"x", b"y"))
    assert found.statement == (
        "CREATE STREAM `orders` (`ROWKEY` STRING KEY, `ID` BIGINT, `WHO` STRING, `PRICE` DOUBLE, `TAGS` ARRAY<STRING>) "
        "WITH (KAFKA_TOPIC='orders', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON');"
    )
    assert found.because == "keys: 2 of 2 are text; values: 2 of 2 are JSON objects"
    parse(found.statement)


def test_a_field_of_different_kinds_is_a_string_and_one_that_is_never_there_too() -> None:
    found = of_values({"a": 1, "b": None, "c": {"x": 1}}, {"a": "one", "c": {"y": None}})
    assert found.source.schema_text() == "`A` STRING, `B` STRING, `C` STRUCT<`x` BIGINT, `y` STRING>"


def test_names_that_differ_in_case_alone_stay_apart() -> None:
    assert of_values({"a": 1, "A": 2}).source.schema_text() == "`a` BIGINT, `A` BIGINT"


def test_what_is_no_object_is_one_column() -> None:
    assert of_values(b"plain words", b"more").source.schema_text() == "`VALUE` STRING"
    assert of_values(b"1", b"2.5").source.schema_text() == "`VALUE` DOUBLE"
    assert of_values(b"\x00\xff", b"\x01").source.schema_text() == "`VALUE` BYTES"


def test_keys_of_four_or_eight_bytes_are_numbers() -> None:
    keys: tuple[bytes | None, ...] = (b"\0\0\0\1", b"\0\0\0\2")
    assert of_values({"a": 1}, {"a": 2}, keys=keys).source.schema_text() == "`ROWKEY` INTEGER KEY, `A` BIGINT"


def test_a_schema_of_the_registry_says_it_all() -> None:
    registry = MemoryRegistry()
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}
    registry.register("orders-value", "AVRO", json.dumps(schema))
    found = inferred("orders", [], registry)
    assert (found.source.value_format.name, found.source.schema_text()) == ("AVRO", "`ID` INTEGER")


def test_one_record_in_twenty_that_is_no_json_does_not_change_the_columns() -> None:
    documents: list[Any] = [{"a": n} for n in range(19)]
    assert of_values(*documents, b"oops").source.schema_text() == "`A` BIGINT"


def test_a_stream_may_have_another_name_than_its_topic() -> None:
    found = inferred("orders", [(None, b'{"a": 1}')], None, "ORDERS")
    assert (found.source.name, found.source.topic) == ("ORDERS", "orders")
    assert found.statement == (
        "CREATE STREAM `ORDERS` (`A` BIGINT) WITH (KAFKA_TOPIC='orders', KEY_FORMAT='NONE', VALUE_FORMAT='JSON');"
    )


def test_what_is_told_and_what_is_not() -> None:
    assert of_values({"a": 1}).is_told
    assert of_values(b"plain words").is_told
    assert not of_values(b"\x00\xff", b"\x01").is_told
    assert not inferred("orders", []).is_told
    assert not inferred("orders", [(b"key", None)]).is_told


def test_an_object_with_very_many_names_is_a_string() -> None:
    many = [{"counts": {f"user {n}-{m}": 1 for m in range(100)}, "n": n} for n in range(11)]
    assert of_values(*many).source.schema_text() == "`COUNTS` STRING, `N` BIGINT"
    found = of_values(*(each["counts"] for each in many))
    assert (found.source.schema_text(), found.source.value_format.wrap) == ("`VALUE` STRING", False)


def test_lists_of_objects_have_the_fields_of_all_of_them() -> None:
    found = of_values({"l": [{"a": 1}, None, {"b": 2.5, "a": 1.5}]}, {"l": []}, {"l": None})
    assert found.source.schema_text() == "`L` ARRAY<STRUCT<`a` DOUBLE, `b` DOUBLE>>"


def test_an_empty_object_tells_nothing_and_hides_nothing() -> None:
    assert of_values({"m": {}, "e": {}}, {"m": {"a": 1}}).source.schema_text() == "`M` STRUCT<`a` BIGINT>, `E` STRING"
    assert of_values({"m": {"a": 1}}, {"m": [1]}).source.schema_text() == "`M` STRING"
