"""What the server's texts become, by type and mode; the quick way to JSON says the same as the long one."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect import spi
from ottla.connect.connectors.postgresql.columns import WRITERS, TypeName, json_writer, kind_of
from ottla.connect.connectors.postgresql.config import PostgresConfig
from ottla.connect.connectors.postgresql.defaults import default_of
from ottla.connect.connectors.postgresql.texts import array_of, hstore_of, interval_of
from ottla.connect.data.struct import Struct
from ottla.connect.data.types import Instant


def config(**more: str) -> PostgresConfig:
    given_ = {name.replace("_", "."): value for name, value in more.items()}
    return spi.parse(PostgresConfig, {"database.dbname": "d", "topic.prefix": "p", **given_})


def modifier(precision: int, scale: int) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


CASES: list[tuple[str, str, Any]] = [
    ("bool", "t", True),
    ("int2", "-32768", -32768),
    ("int8", "9223372036854775807", 9223372036854775807),
    ("float4", "1.1", 1.100000023841858),
    ("float8", "1e+300", 1e300),
    ("text", 'a"\\\n', 'a"\\\n'),
    ("bytea", "\\x00ff", b"\x00\xff"),
    ("date", "2024-02-29", 19782),
    ("date", "0044-03-15 BC", -735160),
    ("date", "12024-02-29", 3672207),
    ("time", "12:34:56.789012", 45296789012),
    ("timestamp", "1969-12-31 23:59:59.5", -500000),
    ("timestamp", "0044-03-15 12:00:00 BC", -735160 * 86_400_000_000 + 43_200_000_000),
    ("timestamptz", "2024-02-29 12:34:56.7+00", "2024-02-29T12:34:56.700000Z"),
    ("timestamptz", "2024-02-29 00:30:00+01:30", "2024-02-28T23:00:00.000000Z"),
    ("timestamptz", "infinity", "infinity"),
    ("timetz", "12:00:00.5+02", "10:00:00.5Z"),
    ("timetz", "00:30:00+01", "23:30:00Z"),
    ("interval", "1 day -00:00:01", 86_399_000_000),
    ("bit", "1", True),
    ("money", "-$1,234.50", Decimal("-1234.50")),
    ("uuid", "76019d1a-ad2e-4b22-96e9-1a6d6543c818", "76019d1a-ad2e-4b22-96e9-1a6d6543c818"),
    ("int4range", "[1,5)", "[1,5)"),
]


@pytest.mark.parametrize(("name", "text", "value"), CASES)
def test_texts_become_values(name: str, text: str, value: Any) -> None:
    kind = kind_of(TypeName(name), config())
    assert kind is not None
    assert kind.read(text) == value
    assert json_writer(kind)(text) == WRITERS.of(kind.schema)(kind.read(text))


@pytest.mark.parametrize(
    ("mode", "value"),
    [
        ("adaptive", 1709210096789012),
        ("connect", Instant(1709210096789)),
        ("isostring", "2024-02-29T12:34:56.789012Z"),
        ("nanoseconds", 1709210096789012000),
    ],
)
def test_times_have_the_precision_that_is_asked_for(mode: str, value: Any) -> None:
    kind = kind_of(TypeName("timestamp"), config(time_precision_mode=mode))
    assert kind is not None and kind.read("2024-02-29 12:34:56.789012") == value


def test_decimals_come_in_three_modes() -> None:
    exact = kind_of(TypeName("numeric", modifier(10, 2)), config())
    free = kind_of(TypeName("numeric"), config())
    double = kind_of(TypeName("numeric"), config(decimal_handling_mode="double"))
    text = kind_of(TypeName("numeric"), config(decimal_handling_mode="string"))
    assert exact is not None and free is not None and double is not None and text is not None
    assert (exact.read("1.5"), exact.schema.parameters) == (
        Decimal("1.50"), {"scale": "2", "connect.decimal.precision": "10"},
    )  # fmt: skip
    assert free.read("-123.4500") == Struct.of(free.schema, [2, (-12345).to_bytes(2, "big", signed=True)])
    assert (double.read("1.5"), text.read("1.50"), text.read("NaN")) == (1.5, "1.50", "NAN")
    with pytest.raises(ValueError, match=r"decimal\.handling\.mode"):
        exact.read("NaN")


def test_enums_arrays_and_unknown_types() -> None:
    mood = TypeName("mood", labels=("sad", "it's fine"))
    enum, several = kind_of(mood, config()), kind_of(TypeName("_mood", element=mood), config())
    assert enum is not None and several is not None
    assert (enum.schema.parameters, enum.read("sad")) == ({"allowed": "sad,it's fine"}, "sad")
    assert several.read('{sad,"it\'s fine",NULL}') == ["sad", "it's fine", None]
    assert kind_of(TypeName("polygon"), config()) is None
    unknown = kind_of(TypeName("polygon"), config(include_unknown_datatypes="true"))
    assert unknown is not None and unknown.read("((0,0))") == b"((0,0))"


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.one_of(NUMBERS, st.floats(-1e8, 1e8), st.integers(-(10**9), 10**9).map(float)))
def test_floats_are_written_as_java_does_by_both_ways(number: float) -> None:
    kind = kind_of(TypeName("float8"), config())
    assert kind is not None
    text = repr(number).removesuffix(".0").replace("e-0", "e-")  # as PostgreSQL has it
    assert json_writer(kind)(text) == WRITERS.of(kind.schema)(number)


ELEMENTS = st.lists(st.one_of(st.none(), st.text(max_size=8)), max_size=6)


@given(ELEMENTS)
def test_arrays_are_read_as_the_server_writes_them(elements: list[str | None]) -> None:
    def written(each: str | None) -> str:
        return "NULL" if each is None else '"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"'

    assert array_of("{" + ",".join(map(written, elements)) + "}") == elements
    assert array_of("{{1,2},{3,NULL}}") == [["1", "2"], ["3", None]]
    assert array_of("[0:1]={a b,c}") == ["a b", "c"]


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.text(max_size=5)), max_size=4))
def test_hstores_are_read_as_the_server_writes_them(given_: dict[str, str | None]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = ", ".join(f"{quoted(key)}=>{'NULL' if each is None else quoted(each)}" for key, each in given_.items())
    assert hstore_of(text) == given_


@pytest.mark.parametrize("wrong", ["", "{", "{a", "{a}x", "{a,b}}", "a", "{{{{{{{1}}}}}}}"])
def test_what_is_no_array_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="array"):
        array_of(wrong)


def test_intervals_have_parts_with_signs() -> None:
    found = interval_of("1 year 2 mons -3 days +04:05:06.7")
    assert found == (1, 2, -3, 4, 5, Decimal("6.7"))
    assert found.iso_text() == "P1Y2M-3DT4H5M6.7S"


@pytest.mark.parametrize(
    ("expression", "name", "default"),
    [
        ("42", "int4", 42),
        ("nextval('t_id_seq'::regclass)", "int4", 0),
        ("'it''s'::text", "text", "it's"),
        ("true", "bool", True),
        ("NULL::character varying", "varchar", None),
        ("now()", "timestamptz", "1970-01-01T00:00:00.000000Z"),
        ("CURRENT_TIMESTAMP", "timestamp", 0),
        ("1 + 1", "int4", None),
        ("'\\x00'::bytea", "bytea", None),
        (None, "int4", None),
    ],
)
def test_defaults_are_literals_or_stand_ins(expression: str | None, name: str, default: Any) -> None:
    kind = kind_of(TypeName(name), config())
    assert kind is not None
    assert default_of(expression, TypeName(name), kind) == default
