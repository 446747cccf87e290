"""Avro by schemas of a registry: bytes, types, evolution, and what is said of bytes and values that do not fit."""

import io
import json
import pickle
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.registry.in_memory import MemoryRegistry
from ottla.registry.lookup import RegistryUnavailable
from ottla.registry.schemas.base import Reference
from ottla.serdes.avro import AvroSerde
from ottla.serdes.base import SerdeError
from ottla.serdes.by_name import Serdes
from ottla.serdes.types import ANY, parse_schema
from tests.rules.serdes.avro.everything import ALL, VALUE, logical, record


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def written(serde: AvroSerde, value: Any, topic: str = "t") -> bytes:
    return serde.encode_for(value, topic, [])


def test_every_type_has_one_of_ours(registry: MemoryRegistry) -> None:
    assert Serdes.avro(registry, ALL).type == parse_schema(
        "text STRING, yes BOOLEAN, small INT, large LONG, single DOUBLE, double DOUBLE, raw BINARY, four BINARY, "
        "kind STRING, list ARRAY<INT>, map MAP<STRING, LONG>, inner STRUCT<x: INT>, day DATE, clock TIME, "
        "clock_us TIME, at TIMESTAMP, at_us TIMESTAMP, price DECIMAL(6,2), fixed_price DECIMAL(10,1), uuid STRING, "
        "number LONG, either STRUCT<member0: STRING, member1: DOUBLE, member2: STRING>"
    )


def test_values_come_back_as_they_were_written(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, ALL)
    assert serde.decode_from(written(serde, VALUE), "t", ()) == VALUE
    others = {**VALUE, "inner": None, "at_us": None, "number": None, "either": None}
    assert serde.decode_from(written(serde, others), "t", ()) == others
    chosen = {**VALUE, "either": {"member0": None, "member1": None, "member2": "P"}}
    assert serde.decode_from(written(serde, chosen), "t", ()) == chosen


def test_bytes_are_those_that_any_avro_writes(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, ALL)
    stream = io.BytesIO()
    raw = {**VALUE, "either": 2.5}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(ALL))), raw)
    assert written(serde, VALUE) == b"\0\0\0\0\1" + stream.getvalue()


def test_names_of_any_script_and_of_no_namespace_inside_of_one_are_taken(registry: MemoryRegistry) -> None:
    enum = {"type": "enum", "name": "A", "namespace": "", "symbols": ["é", "Ж"]}
    other = {"type": "fixed", "name": "n.A", "size": 1}
    serde = Serdes.avro(registry, record(("é", ["null", enum, other, "string"]), name="n.R"))
    for value in (
        {"member0": "Ж", "member1": None, "member2": None},
        {"member0": None, "member1": b"x", "member2": None},
    ):
        assert serde.decode_from(written(serde, {"é": value}), "t", ()) == {"é": value}


DECIMALS = [("0", "00"), ("1.27", "7f"), ("1.28", "0080"), ("-1.28", "80"), ("-1.29", "ff7f"), ("9999.99", "0f423f")]


@pytest.mark.parametrize(("number", "digits"), DECIMALS)
def test_a_decimal_takes_as_few_bytes_as_in_java(registry: MemoryRegistry, number: str, digits: str) -> None:
    serde = Serdes.avro(registry, logical("bytes", "decimal", precision=6, scale=2))
    data = written(serde, Decimal(number))
    assert data[6:].hex() == digits
    assert serde.decode_from(data, "t", ()) == Decimal(number)


def test_a_schema_may_be_given_as_fields(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, "ticker STRING, price DECIMAL(6,2), days ARRAY<DATE>", record="Tick")
    value = {"ticker": "ACME", "price": Decimal("1.50"), "days": [date(2026, 1, 1), None]}
    assert serde.decode_from(written(serde, value), "t", ()) == value
    assert serde.decode_from(written(serde, {"ticker": "X"}), "t", ()) == {"ticker": "X", "price": None, "days": None}
    assert json.loads(registry.schemas[0].text)["name"] == "Tick"


def test_a_schema_may_be_the_latest_of_a_subject_and_its_references_with_it(registry: MemoryRegistry) -> None:
    registry.register("money", "AVRO", json.dumps(record(("cents", "long"), name="Money")))
    reference = Reference("Money", "money", 1)
    registry.register("orders", "AVRO", json.dumps(record(("price", "Money"), name="Order")), [reference])
    serde = Serdes.avro(registry, subject="orders")
    assert serde.type == parse_schema("price STRUCT<cents: LONG>")
    assert serde.decode_from(written(serde, {"price": {"cents": 5}}), "t", ()) == {"price": {"cents": 5}}


# ---- evolution

OLD = record(("a", "int"), ("b", "string"), ("c", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}))
EVOLVED: list[tuple[Any, Any, Any, Any]] = [
    (OLD, record(("b", "string")), {"a": 1, "b": "x", "c": "Q"}, {"b": "x"}),
    (
        OLD,
        record(("new", "int", ("aliases", ["a"])), ("d", "long", ("default", 9))),
        {"a": 1, "b": "", "c": "P"},
        {"new": 1, "d": 9},
    ),
    (
        OLD,
        record(("a", "double"), ("b", ["null", "bytes"])),
        {"a": 1, "b": "é", "c": "P"},
        {"a": 1.0, "b": "é".encode()},
    ),
    (
        OLD,
        record(("c", {"type": "enum", "name": "E", "symbols": ["P", "U"], "default": "U"})),
        {"a": 1, "b": "", "c": "Q"},
        {"c": "U"},
    ),
    (
        record(("x", ["null", "int"])),
        record(("x", ["null", "string", "long"])),
        {"x": 5},
        {"x": {"member0": None, "member1": 5}},
    ),
    (
        record(),
        record(
            ("d", logical("int", "date"), ("default", 1)),
            ("raw", "bytes", ("default", "\u00ff")),
            ("l", {"type": "array", "items": "double"}, ("default", [1])),
            ("r", record(("x", "int", ("default", 3)), ("y", "string"), name="Q"), ("default", {"y": "z"})),
            ("u", ["null", "int"], ("default", None)),
        ),
        {},
        {"d": date(1970, 1, 2), "raw": b"\xff", "l": [1.0], "r": {"x": 3, "y": "z"}, "u": None},
    ),
]


@pytest.mark.parametrize(("writer", "reader", "value", "expected"), EVOLVED)
def test_what_was_written_with_one_schema_is_read_with_another(
    registry: MemoryRegistry, writer: Any, reader: Any, value: Any, expected: Any
) -> None:
    data = written(Serdes.avro(registry, writer), value)
    assert Serdes.avro(registry, reader).decode_from(data, "t", ()) == expected


def test_defaults_are_not_shared_between_records(registry: MemoryRegistry) -> None:
    data = written(Serdes.avro(registry, record()), {})
    reader = Serdes.avro(registry, record(("l", {"type": "array", "items": "int"}, ("default", []))))
    reader.decode_from(data, "t", ())["l"].append(1)
    assert reader.decode_from(data, "t", ()) == {"l": []}


UNREADABLE: list[tuple[Any, Any, Any, str]] = [
    (OLD, record(("a", "string")), {"a": 1, "b": "", "c": "P"}, "the reader has string where int was written at a"),
    (OLD, record(("z", "int")), {"a": 1, "b": "", "c": "P"}, "field z of R is not in the data and has no default"),
    (
        OLD,
        record(("c", {"type": "enum", "name": "E", "symbols": ["P"]})),
        {"a": 1, "b": "", "c": "Q"},
        "enum E of the reader has no symbol Q at c",
    ),
]


@pytest.mark.parametrize(("writer", "reader", "value", "reason"), UNREADABLE)
def test_data_that_has_no_place_in_the_readers_schema_is_told_where(
    registry: MemoryRegistry, writer: Any, reader: Any, value: Any, reason: str
) -> None:
    data = written(Serdes.avro(registry, writer), value)
    with pytest.raises(SerdeError) as told:
        Serdes.avro(registry, reader).decode_from(data, "t", ())
    assert reason in str(told.value)


def test_a_branch_that_the_reader_lacks_harms_only_the_records_that_have_it(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, record(("x", ["null", "string"])))
    reader = Serdes.avro(registry, record(("x", "string")))
    assert reader.decode_from(written(serde, {"x": "there"}), "t", ()) == {"x": "there"}
    with pytest.raises(SerdeError, match="the reader has string where null was written at x"):
        reader.decode_from(written(serde, {"x": None}), "t", ())


# ---- bad bytes, bad values


def test_bytes_that_are_not_of_their_schema_are_told_with_it(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, OLD)
    data = written(serde, {"a": 1, "b": "text", "c": "P"})
    bad = {
        data[:8]: "AVRO of schema id 1 expected",
        b"\0\0\0\0\x09x": "schema id 9 is not known: Schema 9 not found",
        b"{}": "no schema id in front of it",
        data[:6] + b"\x03" + data[7:]: "AVRO of schema id 1 expected",
        data[:7] + b"\xff\xff\xff\xff" + data[11:]: "can't decode byte",
    }
    for wrong, reason in bad.items():
        with pytest.raises(SerdeError) as told:
            serde.decode_from(wrong, "t", ())
        assert reason in str(told.value), wrong


_ANY_BYTES = Serdes.avro(MemoryRegistry(), ALL)
_WHOLE = _ANY_BYTES.encode_for(VALUE, "t", [])


@given(st.binary(max_size=60), st.integers(5, len(_WHOLE)), st.integers(0, 60))
@example(b"\xff" * 9 + b"\x01", 5, 0)
@example(b"\xfe" * 9 + b"\x01", 5, 0)
def test_no_bytes_do_worse_than_not_be_read(noise: bytes, place: int, gone: int) -> None:
    for for_columns in (False, True):
        with suppress(SerdeError):
            _ANY_BYTES.read(_WHOLE[:place] + noise + _WHOLE[place + gone :], (), for_columns=for_columns)


def test_data_that_contains_itself_is_read_and_a_thousandfold_is_refused_not_crashed(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, record(("x", "int"), ("next", ["null", "R"])))
    assert serde.type == ANY
    value = {"x": 1, "next": {"x": 2, "next": None}}
    assert serde.decode_from(written(serde, value), "t", ()) == value
    for depth in (5_000, 1_000_000):
        with pytest.raises(SerdeError, match="recursion"):
            serde.decode_from(b"\0\0\0\0\1" + b"\2\2" * depth, "t", ())


def test_an_array_of_nothing_is_not_read(registry: MemoryRegistry) -> None:
    registry.register("t-value", "AVRO", json.dumps({"type": "array", "items": "null"}))
    with pytest.raises(SerdeError, match="could have any number of them"):
        Serdes.avro(registry).decode_from(b"\0\0\0\0\1" + b"\xfe" * 9 + b"\x01", "t", ())


def test_what_cannot_be_read_in_one_place_cannot_be_read_in_another(registry: MemoryRegistry) -> None:
    """The record is the same, and the first of its places is empty."""
    old = record(("x", "int"), name="Part")
    new = record(("x", "int"), ("y", "int"), name="Part")
    writer, reader = (
        Serdes.avro(registry, record(("first", ["null", part]), ("second", ["null", "Part"]))) for part in (old, new)
    )
    data = written(writer, {"first": None, "second": {"x": 1}})
    with pytest.raises(SerdeError, match="field y of Part is not in the data and has no default"):
        reader.decode_from(data, "t", ())


def doubled(levels: int, innermost: Any) -> Any:
    """A record that holds two, of which each holds two."""
    for level in range(levels):
        fields = [{"name": "a", "type": innermost}, {"name": "b", "type": f"R{level - 1}" if level else "null"}]
        innermost = {"type": "record", "name": f"R{level}", "fields": fields}
    return innermost


def test_records_of_records_of_nothing_are_read_unless_they_are_very_many(registry: MemoryRegistry) -> None:
    """Thirty levels of two are a billion values, and no byte that somebody would have to send."""
    for levels in (8, 30):
        registry.register(f"{levels}-value", "AVRO", json.dumps(doubled(levels, "null")))
    serde = Serdes.avro(registry)
    assert serde.decode_from(b"\0\0\0\0\1", "t", ()).keys() == {"a", "b"}
    with pytest.raises(SerdeError, match="too many values that have no bytes"):
        serde.decode_from(b"\0\0\0\0\2", "t", ())
    few = record(("yes", "boolean"), ("n", "null"), ("m", "null"), name="Few")
    serde = Serdes.avro(registry, record(("list", {"type": "array", "items": few})))
    value = {"list": [{"yes": True, "n": None, "m": None}] * 100_000}
    assert serde.decode_from(written(serde, value), "t", ()) == value


def test_a_type_of_very_many_parts_is_any(registry: MemoryRegistry) -> None:
    assert Serdes.avro(registry, doubled(30, "string")).type == ANY


UNWRITABLE: list[tuple[Any, str]] = [
    ({"a": 1 << 31, "b": "", "c": "P"}, "a: 2147483648 does not fit int"),
    ({"a": "1", "b": "", "c": "P"}, "a: an int expected, not str '1'"),
    ({"a": 1, "b": None, "c": "P"}, "b: a str expected, not NoneType None"),
    ({"a": 1, "b": "", "c": "Z"}, "c: one of P, Q expected, not 'Z'"),
    ({"a": 1, "b": ""}, "c: there is no value, and the schema has no default"),
    ({"a": 1, "b": "", "c": "P", "d": 1}, "the schema has no field d"),
    ([], "a dict expected, not list []"),
]


@pytest.mark.parametrize(("value", "reason"), UNWRITABLE)
def test_a_value_that_is_not_of_the_schema_is_told_where(registry: MemoryRegistry, value: Any, reason: str) -> None:
    with pytest.raises(SerdeError) as told:
        written(Serdes.avro(registry, OLD), value)
    assert reason in str(told.value)


# ---- the registry


def test_a_schema_is_registered_once_and_asked_for_once(registry: MemoryRegistry) -> None:
    serde, reader = Serdes.avro(registry, OLD), Serdes.avro(registry, record(("a", "int")))
    for _ in range(3):
        data = written(serde, {"a": 1, "b": "", "c": "P"})
        reader.decode_from(data, "t", ())
    assert registry.asked == ["register t-value", "id 1"]


SUBJECTS = [
    ({}, "t-value"),
    ({"part": "key"}, "t-key"),
    ({"naming": "record"}, "n.R"),
    ({"naming": "topic_record"}, "t-n.R"),
    ({"subject": "own"}, "own"),
]


@pytest.mark.parametrize(("options", "subject"), SUBJECTS)
def test_a_schema_belongs_to_the_subject_that_its_strategy_names(
    registry: MemoryRegistry, options: dict[str, Any], subject: str
) -> None:
    written(Serdes.avro(registry, record(name="n.R"), **options), {})
    assert list(registry.subjects) == [subject]


def test_without_registering_the_schema_has_to_be_there(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, record(("a", "int")), register=False)
    with pytest.raises(SerdeError, match="nothing can be written to topic 't': Schema not found"):
        written(serde, {"a": 1})
    written(Serdes.avro(registry, record(("a", "int"))), {"a": 1})
    assert written(serde, {"a": 1}) == b"\0\0\0\0\1\2"


def test_guids_in_headers_leave_the_payload_plain(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, record(("a", "int")), ids="header")
    headers: list[tuple[str, bytes | None]] = []
    assert serde.encode_for({"a": 1}, "t", headers) == b"\2"
    assert headers == [("__value_schema_id", b"\1" + bytes.fromhex(registry.schemas[0].guid.replace("-", "")))]
    assert serde.decode_from(b"\2", "t", headers) == {"a": 1}
    assert serde.encode_kept({"a": 1}, "app-store-changelog") == b"\0\0\0\0\1\2"


@pytest.mark.parametrize("ids", ["payload", "header"])
def test_headers_that_named_the_schema_of_another_record_are_replaced(registry: MemoryRegistry, ids: Any) -> None:
    passed_on: list[tuple[str, bytes | None]] = [("trace", b"7")]
    Serdes.avro(registry, record(("a", "string")), ids="header").encode_for({"a": "old"}, "t", passed_on)
    serde = Serdes.avro(registry, record(("a", "int")), ids=ids)
    data = serde.encode_for({"a": 1}, "t", passed_on)
    assert [name for name, _ in passed_on] == ["trace"] + (["__value_schema_id"] if ids == "header" else [])
    assert serde.decode_from(data, "t", passed_on) == {"a": 1}


def test_without_a_schema_of_its_own_it_reads_what_there_is_and_writes_the_latest(registry: MemoryRegistry) -> None:
    data = written(Serdes.avro(registry, record(("a", ["int", "string"]))), {"a": {"member0": None, "member1": "x"}})
    plain = Serdes.avro(registry)
    assert (plain.type, plain.decode_from(data, "t", ())) == (ANY, {"a": "x"})
    assert written(plain, {"a": "x"}) == data


def test_a_registry_that_is_away_is_no_fault_of_the_record(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, OLD)
    data = written(serde, {"a": 1, "b": "", "c": "P"})
    registry.is_away = True
    with pytest.raises(RegistryUnavailable):
        Serdes.avro(registry, record(("a", "int"))).decode_from(data, "t", ())


def test_a_schema_of_another_language_is_refused(registry: MemoryRegistry) -> None:
    registry.register("t-value", "JSON", "{}")
    with pytest.raises(SerdeError, match="schema id 1 is of JSON, not of AVRO"):
        Serdes.avro(registry, OLD).decode_from(b"\0\0\0\0\1{}", "t", ())
    with pytest.raises(ValueError, match="subject t-value has schemas of JSON, not of AVRO"):
        Serdes.avro(registry, subject="t-value")


def test_serdes_travel_without_what_they_have_met_and_stay_equal(registry: MemoryRegistry) -> None:
    serde = Serdes.avro(registry, OLD)
    data = written(serde, {"a": 1, "b": "", "c": "P"})
    copy = pickle.loads(pickle.dumps(serde))
    assert copy == serde != Serdes.avro(registry, ALL)
    assert copy.decode_from(data, "t", ()) == {"a": 1, "b": "", "c": "P"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"part": "both"},
        {"ids": "guid"},
        {"naming": "mine"},
        {"schema": "{"},
        {"schema": '"Gone"'},
        {"schema": "no type"},
    ],
)
def test_options_that_are_none_are_refused_when_the_serde_is_made(registry: MemoryRegistry, wrong: Any) -> None:
    with pytest.raises(ValueError):
        Serdes.avro(registry, **wrong)
