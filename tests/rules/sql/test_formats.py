"""How rows lie in records: what each format writes, what it reads, and what it refuses."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from ottla.registry.in_memory import MemoryRegistry
from ottla.serdes.base import SerdeError, Where, placed
from ottla.serdes.types import Type, decimal_of, parse_schema
from ottla.sql.formats import FORMATS, check, inferred, serde
from ottla.sql.formats.format import Format
from ottla.sql.functions.declare import Refused


def columns(text: str) -> tuple[tuple[str, Type], ...]:
    return parse_schema(text).fields


ROW = columns("ID long, NAME string, PRICE decimal(6, 2), DAY date, AT time, MOMENT timestamp, OK boolean, RAW binary")
VALUES = {
    "ID": 1,
    "NAME": "a,b",
    "PRICE": Decimal("1.50"),
    "DAY": date(2026, 11, 18),
    "AT": time(5, 10, 0, 7000),
    "MOMENT": datetime(2026, 11, 18, 5, 10, tzinfo=UTC),
    "OK": True,
    "RAW": b"\x00\xff",
}
NESTED = columns("A array<int>, M map<string, long>, S struct<X: double, Y: string>")
NESTED_VALUES = {"A": [1, 2], "M": {"a": 1}, "S": {"X": 1.5, "Y": "z"}}


# ---- what is written


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (
            Format("JSON"),
            b'{"ID":1,"NAME":"a,b","PRICE":1.50,"DAY":20775,"AT":18600007,"MOMENT":1794978600000,"OK":true,"RAW":"AP8="}',
        ),
        (Format("DELIMITED"), b'1,"a,b",1.50,20775,18600007,1794978600000,true,AP8='),
        (Format("DELIMITED", delimiter="|"), b"1|a,b|1.50|20775|18600007|1794978600000|true|AP8="),
        (Format("DELIMITED", delimiter="TAB"), b"1\ta,b\t1.50\t20775\t18600007\t1794978600000\ttrue\tAP8="),
    ],
)
def test_a_row_is_written_as_its_format_says_and_read_again(format: Format, expected: bytes) -> None:
    rows = serde(format, ROW, "value")
    assert rows.serialize(VALUES) == expected
    assert rows.deserialize(expected) == VALUES


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED"])
@pytest.mark.parametrize("part", ["key", "value"])
def test_every_format_gives_back_what_it_was_given(name: str, part: str) -> None:
    rows = serde(Format(name), ROW, part, MemoryRegistry())
    data = placed(rows, Where("t")).encode(VALUES)
    assert rows.deserialize(data) == VALUES


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"])
def test_lists_maps_and_structs_travel(name: str) -> None:
    rows = serde(Format(name), NESTED, "value", MemoryRegistry())
    assert rows.deserialize(placed(rows, Where("t")).encode(NESTED_VALUES)) == NESTED_VALUES


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO"])
def test_nulls_are_written_and_read_as_nulls(name: str) -> None:
    nothing = dict.fromkeys(name for name, _ in (*ROW, *NESTED))
    rows = serde(Format(name), (*ROW, *NESTED), "value", MemoryRegistry())
    assert rows.deserialize(placed(rows, Where("t")).encode(nothing)) == nothing


def test_an_absent_field_of_protobuf_is_its_default_unless_said_otherwise() -> None:
    wanted = columns("A int, B string")
    nothing: dict[str, Any] = {"A": None, "B": None}
    plain = serde(Format("PROTOBUF_NOSR"), wanted, "value")
    assert plain.deserialize(plain.serialize(nothing)) == {"A": 0, "B": ""}
    for how in ("OPTIONAL", "WRAPPER"):
        rows = serde(Format("PROTOBUF_NOSR", nullable_representation=how), wanted, "value")
        assert rows.deserialize(rows.serialize(nothing)) == nothing
        assert rows.deserialize(rows.serialize({"A": 0, "B": ""})) == {"A": 0, "B": ""}


def test_numbers_that_json_has_not_are_texts() -> None:
    rows = serde(Format("JSON"), columns("D double"), "value")
    for number, text in ((float("inf"), "Infinity"), (float("-inf"), "-Infinity")):
        assert rows.serialize({"D": number}) == f'{{"D":"{text}"}}'.encode()
        assert rows.deserialize(f'{{"D":"{text}"}}'.encode()) == {"D": number}


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"A": None, "B": None}, b","),
        ({"A": "", "B": "x"}, b'"",x'),
        ({"A": "x", "B": ' "y"'}, b'x," ""y"""'),
        ({"A": "a\nb", "B": "c "}, b'"a\nb","c "'),
    ],
)
def test_delimited_puts_quotes_where_a_reader_would_stumble(values: dict[str, Any], line: bytes) -> None:
    rows = serde(Format("DELIMITED"), columns("A string, B string"), "value")
    assert rows.serialize(values) == line
    assert rows.deserialize(line) == {name: each or None for name, each in values.items()}


# ---- single columns


@pytest.mark.parametrize(
    ("format", "kind", "value", "data"),
    [
        (Format("JSON"), "long", {"C": 5}, b'{"C":5}'),
        (Format("JSON", wrap=True), "long", {"C": 5}, b'{"C":5}'),
        (Format("JSON", wrap=False), "long", {"C": 5}, b"5"),
        (Format("JSON", wrap=False), "array<int>", {"C": [1]}, b"[1]"),
        (Format("KAFKA"), "int", {"C": 5}, b"\0\0\0\5"),
        (Format("KAFKA"), "string", {"C": "x"}, b"x"),
        (Format("KAFKA"), "binary", {"C": b"\1\xff"}, b"\1\xff"),
        (Format("DELIMITED"), "string", {"C": "x"}, b"x"),
    ],
)
def test_a_single_value_column_is_a_field_unless_unwrapped(format: Format, kind: str, value: Any, data: bytes) -> None:
    rows = serde(format, columns(f"C {kind}"), "value")
    assert rows.serialize(value) == data
    assert rows.deserialize(data) == value


def test_an_unwrapped_null_has_no_bytes() -> None:
    for format in (Format("JSON", wrap=False), Format("KAFKA")):
        assert serde(format, columns("C long"), "value").serialize({"C": None}) is None


@pytest.mark.parametrize(("format", "data"), [("JSON", b"5"), ("KAFKA", b"\0\0\0\5"), ("DELIMITED", b"5")])
def test_a_single_key_column_is_bare(format: str, data: bytes) -> None:
    rows = serde(Format(format), columns("K int"), "key")
    assert rows.serialize(5) == data
    assert rows.deserialize(data) == 5


def test_several_key_columns_are_a_struct() -> None:
    rows = serde(Format("JSON"), columns("A int, B string"), "key")
    assert rows.serialize({"A": 1, "B": None}) == b'{"A":1,"B":null}'


def test_a_key_of_none_is_never_there() -> None:
    rows = serde(Format("NONE"), (), "key")
    assert rows.deserialize(b"whatever") is None
    assert rows.serialize("whatever") is None


def test_a_single_key_of_protobuf_is_a_message() -> None:
    rows = serde(Format("PROTOBUF_NOSR"), columns("K long"), "key")
    assert rows.serialize(5) == b"\x08\x05"
    assert rows.deserialize(b"\x08\x05") == 5


# ---- what JSON takes


@pytest.mark.parametrize(
    ("kind", "document", "expected"),
    [
        ("int", "1", 1),
        ("int", '"12"', 12),
        ("int", "1.9", 1),
        ("int", "4294967297", 1),
        ("long", '"-7"', -7),
        ("double", '"1.5"', 1.5),
        ("double", "1", 1.0),
        ("boolean", "true", True),
        ("string", "true", "true"),
        ("string", "12", "12"),
        ("string", "1.50", "1.50"),
        ("string", '{"b":1,"a":[null]}', '{"b":1,"a":[null]}'),
        ("string", '[1,"x",null]', "[1, x, null]"),
        ("decimal(4, 2)", "1.5", Decimal("1.50")),
        ("decimal(4, 2)", '"1.5"', Decimal("1.50")),
        ("timestamp", "0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("timestamp", '"1000"', datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("date", "1", date(1970, 1, 2)),
        ("time", "1000", time(0, 0, 1)),
        ("binary", '"AP8="', b"\x00\xff"),
        ("array<int>", '["1",null]', [1, None]),
        ("map<string, int>", '{"a":"1"}', {"a": 1}),
        ("struct<X: int>", '{"x":3,"y":4}', {"X": 3}),
        ("int", "null", None),
    ],
)
def test_json_is_lenient_about_numbers_and_texts(kind: str, document: str, expected: Any) -> None:
    rows = serde(Format("JSON"), columns(f"C {kind}"), "value")
    assert rows.deserialize(f'{{"C":{document}}}'.encode()) == {"C": expected}


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("int", "true"),
        ("int", '"x"'),
        ("int", '""'),
        ("int", "{}"),
        ("boolean", '"true"'),
        ("boolean", "1"),
        ("double", "[]"),
        ("decimal(4, 2)", "1.555"),
        ("decimal(4, 2)", "123.4"),
        ("binary", '"?"'),
        ("array<int>", "{}"),
        ("map<string, int>", "[]"),
        ("struct<X: int>", "1"),
        ("struct<X: int>", '{"X":"a"}'),
        ("date", '"2020-01-01"'),
        ("string", "nul"),
    ],
)
def test_one_wrong_field_makes_a_record_unreadable(kind: str, document: str) -> None:
    rows = serde(Format("JSON"), columns(f"C {kind}"), "value")
    with pytest.raises(SerdeError):
        rows.deserialize(f'{{"C":{document}}}'.encode())


@pytest.mark.parametrize("document", [b"", b"1", b"[1]", b'"x"', b"{", b"\xff", b'{"A":NaN}', b"[" * 100_000])
def test_an_object_is_needed_where_columns_are_fields(document: bytes) -> None:
    with pytest.raises(SerdeError):
        serde(Format("JSON"), columns("A int, B int"), "value").deserialize(document)


def test_the_exact_name_counts_before_the_one_in_capitals() -> None:
    rows = serde(Format("JSON"), columns("A int, b int"), "value")
    assert rows.deserialize(b'{"a":1,"A":2,"b":3}') == {"A": 2, "b": 3}
    assert rows.deserialize(b'{"a":1,"b":3}') == {"A": 1, "b": 3}


@pytest.mark.parametrize(
    ("format", "kind", "data"),
    [
        ("KAFKA", "int", b"\0\0\5"),
        ("KAFKA", "long", b"12"),
        ("DELIMITED", "int", b"x"),
        ("DELIMITED", "int", b"1,2"),
        ("DELIMITED", "int", b"1_000"),
        ("DELIMITED", "decimal(3, 1)", b"1.55"),
        ("PROTOBUF_NOSR", "int", b"\xff\xff"),
        ("AVRO", "int", b"\x01\x02\x03"),
        ("JSON_SR", "int", b'{"C":1}'),
        ("PROTOBUF", "int", b"\x08\x05"),
    ],
)
def test_what_a_format_cannot_read_is_said_with_a_reason(format: str, kind: str, data: bytes) -> None:
    rows = serde(Format(format), columns(f"C {kind}"), "value", MemoryRegistry())
    with pytest.raises(SerdeError):
        rows.deserialize(data)


# ---- registries


def test_avro_is_registered_under_its_topic_with_ksqldbs_record() -> None:
    registry = MemoryRegistry()
    rows = serde(Format("AVRO"), columns("ID int"), "value", registry)
    rows.encode_for({"ID": 1}, "orders", [])  # type: ignore[attr-defined]
    text = registry.latest("orders-value").text
    assert '"KsqlDataSourceSchema"' in text
    assert '"io.confluent.ksql.avro_schemas"' in text
    named = serde(Format("AVRO", schema_full_name="shop.Order"), columns("ID int"), "value", registry)
    named.encode_for({"ID": 1}, "others", [])  # type: ignore[attr-defined]
    assert '"Order"' in registry.latest("others-value").text


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_columns_are_taken_from_the_schema_that_a_topic_has(name: str) -> None:
    registry = MemoryRegistry()
    wanted = columns("ID long, NAME string, DAY date, MOMENT timestamp, TAGS array<string>, S struct<X: double>")
    written = {"ID": 1, "NAME": "x", "DAY": date(2026, 1, 1), "MOMENT": None, "TAGS": ["a"], "S": {"X": 1.5}}
    written["MOMENT"] = VALUES["MOMENT"]
    rows = serde(Format(name), wanted, "value", registry)
    data = rows.encode_for(written, "t", [])  # type: ignore[attr-defined]
    found = inferred(Format(name), "t", "value", registry)
    assert found == wanted
    assert serde(Format(name), found, "value", registry).deserialize(data) == written


def test_an_avro_record_of_others_is_read_by_name_whatever_its_case() -> None:
    registry = MemoryRegistry()
    schema = '{"type":"record","name":"O","fields":[{"name":"Id","type":"int"},{"name":"more","type":"string"}]}'
    from ottla.serdes.avro import AvroSerde  # noqa: PLC0415

    data = AvroSerde(registry, schema).encode_for({"Id": 7, "more": "x"}, "t", [])
    assert inferred(Format("AVRO"), "t", "value", registry) == columns("ID int, MORE string")
    rows = serde(Format("AVRO"), columns("MISSING string, ID long"), "value", registry)
    assert rows.deserialize(data) == {"MISSING": None, "ID": 7}


def test_a_schema_by_its_id_is_what_is_written() -> None:
    registry = MemoryRegistry()
    schema = '{"type":"record","name":"O","fields":[{"name":"id","type":["null","int"]}]}'
    known = registry.register("elsewhere", "AVRO", schema)
    rows = serde(Format("AVRO", schema_id=known.id), columns("ID int"), "value", registry)
    data = rows.encode_for({"ID": 7}, "t", [])  # type: ignore[attr-defined]
    assert rows.deserialize(data) == {"ID": 7}
    assert '"id"' in registry.latest("t-value").text


def test_a_topic_without_schema_has_no_columns_to_take() -> None:
    with pytest.raises(Refused, match=r"t-value"):
        inferred(Format("AVRO"), "t", "value", MemoryRegistry())
    with pytest.raises(Refused, match="declare them"):
        inferred(Format("JSON"), "t", "value", MemoryRegistry())
    with pytest.raises(Refused, match="schema registry"):
        serde(Format("AVRO"), columns("A int"), "value")


# ---- what is refused when it is declared


@pytest.mark.parametrize(
    ("format", "text", "part", "words"),
    [
        (Format("KAFKA"), "A int, B int", "value", "one value column"),
        (Format("KAFKA"), "A boolean", "key", "BOOLEAN"),
        (Format("DELIMITED"), "A array<int>", "value", "ARRAY"),
        (Format("DELIMITED", delimiter="ab"), "A int", "value", "one character"),
        (Format("JSON", delimiter=","), "A int", "value", "DELIMITED"),
        (Format("JSON", wrap=False), "A int, B int", "value", "single value column"),
        (Format("PROTOBUF", wrap=False), "A int", "value", "always wraps"),
        (Format("PROTOBUF"), "A array<array<int>>", "value", "lists of lists"),
        (Format("AVRO"), "`a-b` int", "value", "a-b"),
        (Format("NONE"), "A int", "value", "keys alone"),
        (Format("NONE"), "A int", "key", "without key columns"),
        (Format("PROTOBUF", nullable_representation="X"), "A int", "value", "WRAPPER"),
    ],
)
def test_columns_that_a_format_cannot_hold_are_refused(format: Format, text: str, part: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        check(format, columns(text), part)


def test_every_format_holds_a_string_as_a_value_but_none() -> None:
    for name in FORMATS:
        if name != "NONE":
            check(Format(name), columns("A string"), "value")


def test_a_decimal_of_protobuf_keeps_its_digits() -> None:
    rows = serde(Format("PROTOBUF_NOSR"), (("D", decimal_of(20, 3)),), "value")
    for text in ("-12345678901234567.890", "0.001", "-0.001", "99999999999999999.999"):
        assert rows.deserialize(rows.serialize({"D": Decimal(text)})) == {"D": Decimal(text)}
