"""What Kafka's serdes write, byte for byte, and what they say about bytes they cannot read."""

import math
from typing import Any
from uuid import UUID

import pytest

from ottla.serdes.base import Serde, SerdeError
from ottla.serdes.by_name import Serdes, serde_for
from ottla.serdes.json import JsonSerde
from ottla.serdes.types import ANY, BINARY, BOOLEAN, DOUBLE, INT, LONG, NULL, STRING, array_of, parse_schema, parse_type

# As org.apache.kafka.common.serialization writes them.
JAVA: list[tuple[Serde[Any], object, str]] = [
    (Serdes.string, "", ""),
    (Serdes.string, "Grüße", "4772c3bcc39f65"),
    (Serdes.string, "😀", "f09f9880"),
    (Serdes.bytes, b"\0\xff", "00ff"),
    (Serdes.int, 0, "00000000"),
    (Serdes.int, 1, "00000001"),
    (Serdes.int, -1, "ffffffff"),
    (Serdes.int, 2147483647, "7fffffff"),
    (Serdes.int, -2147483648, "80000000"),
    (Serdes.long, 1, "0000000000000001"),
    (Serdes.long, -2, "fffffffffffffffe"),
    (Serdes.long, (1 << 63) - 1, "7fffffffffffffff"),
    (Serdes.double, 1.5, "3ff8000000000000"),
    (Serdes.double, -0.0, "8000000000000000"),
    (Serdes.double, math.inf, "7ff0000000000000"),
    (Serdes.boolean, True, "01"),
    (Serdes.boolean, False, "00"),
]


@pytest.mark.parametrize(("serde", "value", "written"), JAVA)
def test_bytes_are_those_of_java_and_read_back(serde: Serde[Any], value: object, written: str) -> None:
    assert serde.serialize(value) == bytes.fromhex(written)
    assert serde.deserialize(bytes.fromhex(written)) == value


def test_nothing_is_nothing_in_both_directions() -> None:
    for serde in (Serdes.string, Serdes.long, Serdes.json):
        assert serde.serialize(None) is None
        assert serde.deserialize(None) is None


def test_every_nan_is_written_as_javas_one() -> None:
    assert Serdes.double.serialize(-math.nan) == bytes.fromhex("7ff8000000000000")


def test_an_int_may_stand_for_a_double() -> None:
    assert Serdes.double.serialize(2) == Serdes.double.serialize(2.0)


def test_a_string_that_is_no_utf8_is_read_with_replacement_characters_as_java_does() -> None:
    assert Serdes.string.deserialize(b"a\xc3(b\xff") == "a�(b�"


UNREADABLE: list[tuple[Serde[Any], bytes, str]] = [
    (Serdes.int, b"\0" * 8, r"Serdes.int: 4 bytes expected, found b'\x00\x00\x00\x00\x00\x00\x00\x00'"),
    (Serdes.long, b"hello", "Serdes.long: 8 bytes expected, found b'hello'"),
    (Serdes.double, b"", "Serdes.double: 8 bytes expected, found b''"),
    (Serdes.boolean, b"\2", r"Serdes.boolean: one byte, 0 or 1, expected, found b'\x02'"),
    (Serdes.json, b"{", "Serdes.json: JSON expected, found b'{': "),
    (Serdes.json, b"", "Serdes.json: JSON expected, found b''"),
    (Serdes.json, b'{"a":1} x', "Extra data"),
    (Serdes.json, b'{"a":NaN}', "NaN is no JSON"),
    (Serdes.json, b'{"a":1,"a":2}', "a field is there twice"),
    (Serdes.json, b"\xff", "JSON expected"),
    (Serdes.json("a int"), b'{"a":"x"}', "int expected at a, found"),
    (Serdes.json("a int"), b'{"a":1.0}', "int expected at a"),
    (Serdes.json("a int"), b"[]", "struct expected, found b'[]'"),
    (Serdes.json({"a": [{"b": "long"}]}), b'{"a":[{"b":1},{"b":true}]}', "long expected at a[1].b"),
    (Serdes.json("a binary"), b'{"a":"?"}', "base64 expected at a"),
]


@pytest.mark.parametrize(("serde", "data", "message"), UNREADABLE)
def test_bytes_that_cannot_be_read_are_named(serde: Serde[Any], data: bytes, message: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde.deserialize(data)
    assert message in str(caught.value)


def test_only_a_bounded_piece_of_bad_bytes_is_shown() -> None:
    with pytest.raises(SerdeError) as caught:
        Serdes.long.deserialize(b"x" * 1_000_000)
    assert str(caught.value) == f"Serdes.long: 8 bytes expected, found b'{'x' * 40}' ... (1000000 bytes)"


def test_json_nested_too_deep_is_an_error_and_no_crash() -> None:
    with pytest.raises(SerdeError):
        Serdes.json.deserialize(b"[" * 100_000)


UNWRITABLE: list[tuple[Serde[Any], object, str]] = [
    (Serdes.string, 5, "Serdes.string: a str expected, not int 5"),
    (Serdes.string, "\ud800", "lone surrogates"),
    (Serdes.bytes, "text", "bytes expected, not str 'text'"),
    (Serdes.int, True, "an int expected, not bool True"),
    (Serdes.int, 1 << 31, "at most 4 bytes expected"),
    (Serdes.long, 1.0, "an int expected, not float 1.0"),
    (Serdes.double, "1.0", "a float expected"),
    (Serdes.boolean, 1, "a bool expected"),
    (Serdes.json, {1, 2}, "Serdes.json: "),
    (Serdes.json("a int"), {"b": 1}, "the schema has no field b"),
    (Serdes.json("a int"), {"a": "x"}, "a: an int expected, not str 'x'"),
    (Serdes.json("a int"), {"a": 1 << 31}, "a: 2147483648 does not fit"),
    (Serdes.json("a int"), [1], "a dict expected"),
]


@pytest.mark.parametrize(("serde", "value", "message"), UNWRITABLE)
def test_a_value_of_another_type_is_refused(serde: Serde[Any], value: object, message: str) -> None:
    with pytest.raises(SerdeError) as caught:
        serde.serialize(value)
    assert message in str(caught.value)


WRITTEN_JSON: list[tuple[JsonSerde, object, str]] = [
    (Serdes.json, {"b": 1, "a": [1.5, None, True, "é"]}, '{"a":[1.5,null,true,"é"],"b":1}'),
    (Serdes.json, "text", '"text"'),
    (Serdes.json, 1e10, "1.0E10"),
    (Serdes.json, {"big": 1e7, "tiny": 5e-324, "z": 0.001}, '{"big":1.0E7,"tiny":4.9E-324,"z":0.001}'),
    (Serdes.json, [math.nan, -math.inf], '["NaN","-Infinity"]'),
    (Serdes.json, "\x1f\\u001f\n", '"\\u001F\\\\u001f\\n"'),
    (Serdes.json("b int, a double"), {"b": 1, "a": 2}, '{"b":1,"a":2.0}'),
    (Serdes.json("b int, a double"), {}, '{"b":null,"a":null}'),
    (
        Serdes.json({"x": ["string"], "y": {"z": "binary"}, "w": "any"}),
        {"x": ["a", None], "y": {"z": b"\0\xff"}, "w": {"q": 1}},
        '{"x":["a",null],"y":{"z":"AP8="},"w":{"q":1}}',
    ),
    (Serdes.json("array<long>"), [1, None], "[1,null]"),
]


@pytest.mark.parametrize(("serde", "value", "text"), WRITTEN_JSON)
def test_json_has_one_form_so_that_equal_keys_have_equal_bytes(serde: JsonSerde, value: object, text: str) -> None:
    assert serde.serialize(value) == text.encode()


def test_a_schema_gives_all_its_fields_and_no_others() -> None:
    serde = Serdes.json("ticker STRING, price DOUBLE, n STRUCT<a: BIGINT>")
    assert serde.deserialize(b'{"price":5,"extra":1}') == {"ticker": None, "price": 5.0, "n": None}
    assert serde.deserialize(b'{"ticker":7,"price":"NaN","n":{}}') is not None
    assert serde.deserialize(b"null") is None


def test_serdes_say_what_they_are() -> None:
    shown = [repr(each) for each in (Serdes.long, Serdes.json, Serdes.json("a INT"))]
    assert shown == [
        "Serdes.long",
        "Serdes.json",
        "Serdes.json('struct<a: int>')",
    ]
    assert Serdes.json("a int") == Serdes.json({"a": "int"})
    assert hash(Serdes.json("a int")) == hash(Serdes.json({"a": "int"}))
    assert Serdes.json("a int") != Serdes.json


def test_a_type_finds_its_serde() -> None:
    kinds = [STRING, BINARY, INT, LONG, DOUBLE, BOOLEAN, ANY, parse_schema("a int"), array_of(STRING)]
    assert [serde_for(kind).type for kind in kinds] == kinds
    with pytest.raises(ValueError, match="there is no serde for null"):
        serde_for(NULL)


def test_types_are_read_in_sqls_words_and_in_ours() -> None:
    assert str(parse_type("ARRAY<STRUCT<a: BIGINT, `b c` STRING>>")) == "array<struct<a: long, b c: string>>"
    assert parse_schema("ticker STRING, price DOUBLE") == parse_schema({"ticker": "string", "price": "double"})


@pytest.mark.parametrize("text", ["decimal", "array<int", "struct<>", "a", "a int, a int", "a int b", "int;", ""])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no type"):
        parse_schema(text)


MORE: list[tuple[Serde[Any], object, str]] = [
    (Serdes.short, -2, "fffe"),
    (Serdes.float, 1.5, "3fc00000"),
    (Serdes.float, math.nan, "7fc00000"),
    (Serdes.uuid, UUID(int=1), b"00000000-0000-0000-0000-000000000001".hex()),
    (Serdes.list(Serdes.string), ["a", None, ""], "01 00000003 00000001 61 ffffffff 00000000"),
    (Serdes.list(Serdes.int), [7, None], "00 00000001 00000001 00000002 00000007"),
    (Serdes.list(Serdes.long), [], "00 00000000 00000000"),
]


@pytest.mark.parametrize(("serde", "value", "data"), MORE)
def test_numbers_uuids_and_lists_are_written_as_by_javas_serdes(serde: Serde[Any], value: Any, data: str) -> None:
    assert serde.serialize(value) == bytes.fromhex(data)
    assert repr(serde.deserialize(bytes.fromhex(data))) == repr(value)


UNFIT: list[tuple[Serde[Any], object]] = [(Serdes.short, 1 << 15), (Serdes.float, 1e39), (Serdes.uuid, "x")]


@pytest.mark.parametrize(("serde", "value"), UNFIT)
def test_what_does_not_fit_a_small_serde_is_refused(serde: Serde[Any], value: Any) -> None:
    with pytest.raises(SerdeError):
        serde.serialize(value)


@pytest.mark.parametrize("data", [b"", b"\1\0\0\0\1", b"\1\0\0\0\1\0\0\0\5ab", b"\0\0\0\0\0\0\0\0\1\0"])
def test_a_list_that_does_not_end_is_refused(data: bytes) -> None:
    inner: Serde[Any] = Serdes.int if data[:1] == b"\0" else Serdes.string
    with pytest.raises(SerdeError):
        Serdes.list(inner).deserialize(data)
