"""Decimals, dates, times, timestamps, maps and what is made of them: their names, their values, their JSON."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ottla.serdes import dates, decimals
from ottla.serdes.base import SerdeError
from ottla.serdes.by_name import Serdes, serde_for
from ottla.serdes.casts import caster
from ottla.serdes.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    Type,
    array_of,
    common,
    decimal_of,
    literal_type,
    map_of,
    parse_schema,
    parse_type,
)

ORDER = Serdes.json(
    "price DECIMAL(10,2), at TIMESTAMP, day DATE, hour TIME, raw BYTES, "
    "tags MAP<STRING, ARRAY<STRUCT<n: INT, d: DATE>>>"
)


def test_the_text_of_a_type_reads_back_as_the_type() -> None:
    text = (
        "struct<price: decimal(10, 2), at: timestamp, day: date, hour: time, tags: map<string, array<struct<n: int>>>>"
    )
    assert str(parse_type(text)) == text
    assert parse_type("NUMERIC(5)") == decimal_of(5, 0)
    assert parse_type("Map<VARCHAR, Bytes>") == map_of(parse_type("binary"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("decimal", "say how many digits"),
        ("decimal(39, 2)", "1 to 38 digits"),
        ("decimal(2, 3)", "is no type"),
        ("decimal(a)", "a number expected"),
        ("map<int, string>", "the keys of a map are strings"),
        ("map<string>", ", expected"),
        ("datetime", "'datetime' is none of"),
    ],
)
def test_what_is_no_type_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="is no type") as caught:
        parse_type(text)
    assert reason in str(caught.value)


def test_a_json_serde_takes_the_text_of_a_type_or_of_fields() -> None:
    assert Serdes.json("date").type == DATE
    assert Serdes.json("decimal(4, 1)").type == decimal_of(4, 1)
    assert Serdes.json("date date, time time").type == parse_schema({"date": "date", "time": "time"})


def test_a_literal_has_just_the_digits_that_are_written() -> None:
    assert literal_type(Decimal("1.50")) == decimal_of(3, 2)
    assert literal_type(Decimal("0.001")) == decimal_of(3, 3)
    assert literal_type(Decimal("1E3")) == decimal_of(4, 0)
    assert literal_type(Decimal("NaN")) is None
    kinds = [literal_type(each) for each in (date(2026, 1, 1), datetime(2026, 1, 1), time(1))]
    assert kinds == [DATE, TIMESTAMP, TIME]


def test_two_types_meet_in_the_one_that_holds_both() -> None:
    assert common(INT, decimal_of(5, 2)) == decimal_of(12, 2)
    assert common(LONG, decimal_of(5, 2)) == decimal_of(21, 2)
    assert common(decimal_of(5, 4), decimal_of(6, 0)) == decimal_of(10, 4)
    assert common(decimal_of(5, 2), DOUBLE) == DOUBLE
    assert common(decimal_of(38, 0), decimal_of(38, 38)) is None
    assert common(array_of(INT), array_of(LONG)) == array_of(LONG)
    assert common(map_of(INT), map_of(DOUBLE)) == map_of(DOUBLE)
    left, right = parse_schema("a int, b string"), parse_schema("a long, c date")
    assert common(left, right) == parse_schema("a long, b string, c date")
    assert common(DATE, TIMESTAMP) is None


# ---- decimals


@pytest.mark.parametrize(
    ("given", "kind", "fitted"),
    [
        ("1.005", decimal_of(4, 2), "1.01"),
        ("-1.005", decimal_of(4, 2), "-1.01"),
        ("1.0049", decimal_of(4, 2), "1.00"),
        ("99.995", decimal_of(4, 2), None),
        ("99.994", decimal_of(4, 2), "99.99"),
        ("-0.001", decimal_of(4, 2), "0.00"),
        ("1E999999", decimal_of(38, 0), None),
        ("1E-999999", decimal_of(38, 38), "0E-38"),
        ("7", decimal_of(1, 0), "7"),
        ("10", decimal_of(1, 0), None),
        ("0.5", decimal_of(1, 1), "0.5"),
        ("1", decimal_of(1, 1), None),
    ],
)
def test_a_decimal_is_rounded_half_up_and_is_null_where_it_does_not_fit(
    given: str, kind: Type, fitted: str | None
) -> None:
    found = decimals.fit(Decimal(given), kind)
    assert (None if found is None else str(found)) == fitted


def test_calculations_have_the_types_of_sql() -> None:
    left, right = decimal_of(10, 2), decimal_of(6, 4)
    kinds = {name: decimals.result_type(name, left, right) for name in ("add", "sub", "mul", "div", "mod")}
    assert kinds == {
        "add": decimal_of(13, 4),
        "sub": decimal_of(13, 4),
        "mul": decimal_of(17, 6),
        "div": decimal_of(21, 9),
        "mod": decimal_of(6, 4),
    }
    assert decimals.result_type("mul", decimal_of(30, 2), LONG) == decimal_of(38, 2)


def test_a_quotient_is_rounded_and_a_division_by_zero_gives_nothing() -> None:
    kind = decimals.result_type("div", decimal_of(3, 0), decimal_of(1, 0))
    divide = decimals.calculation("div", kind)
    assert divide(Decimal(2), Decimal(3)) == Decimal("0.666667")
    assert divide(Decimal(2), Decimal(0)) is None


# ---- dates


def test_a_timestamp_is_in_utc_to_the_millisecond_whatever_zone_it_came_with() -> None:
    moment = datetime(2026, 7, 1, 12, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=2)))
    assert dates.in_utc(moment) == datetime(2026, 7, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    assert dates.in_utc(datetime(2026, 7, 1, 10)) == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert dates.ms_of(datetime(1969, 12, 31, 23, 59, 59, 999_500)) == -1


def test_the_hour_that_is_there_twice_is_two_timestamps() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))
    assert dates.ms_of(second) - dates.ms_of(first) == 3_600_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-31", datetime(2026, 12, 31, tzinfo=UTC)),
        ("2026-12-31T23:59", datetime(2026, 12, 31, 23, 59, tzinfo=UTC)),
        ("2026-12-31 23:59:59.9", datetime(2026, 12, 31, 23, 59, 59, 900_000, tzinfo=UTC)),
        ("2026-12-31T23:59:59.123456789Z", datetime(2026, 12, 31, 23, 59, 59, 123_000, tzinfo=UTC)),
        ("2026-01-01T00:30:00+02:00", datetime(2025, 12, 31, 22, 30, tzinfo=UTC)),
        ("2026-02-30", None),
        ("2026-1-1", None),
        ("2026-01-01T24:00", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("2026-01-01\n", None),
        ("٢٠٢٦-01-01", None),
    ],
)
def test_a_timestamp_is_read_from_iso_text(text: str, moment: datetime | None) -> None:
    assert dates.parse_timestamp(text) == moment


# ---- JSON


def test_every_type_has_one_form_in_json_and_reads_back() -> None:
    value = {
        "price": Decimal("3.50"),
        "at": datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
        "day": date(1970, 1, 2),
        "hour": time(0, 0, 1, 5000),
        "raw": b"\0\xff",
        "tags": {"b": [{"n": 1, "d": None}], "a": None, "ä": []},
    }
    text = (
        '{"price":3.50,"at":1767225600001,"day":1,"hour":1005,"raw":"AP8=",'
        '"tags":{"a":null,"b":[{"n":1,"d":null}],"ä":[]}}'
    )
    assert ORDER.serialize(value) == text.encode()
    assert ORDER.deserialize(text.encode()) == value


def test_numbers_may_be_text_and_moments_iso() -> None:
    found = ORDER.deserialize(b'{"price":"3.5","at":"2026-01-01T01:00:00+01:00","day":"1970-01-02","hour":"00:00:01"}')
    assert found is not None
    assert found["price"].as_tuple() == Decimal("3.50").as_tuple()
    assert found["at"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert (found["day"], found["hour"]) == (date(1970, 1, 2), time(0, 0, 1))


def test_a_decimal_is_read_by_its_digits_and_not_by_way_of_a_double() -> None:
    serde = Serdes.json("d decimal(38, 20), e double, x any, s string")
    assert serde.deserialize(b'{"d":0.12345678901234567890,"e":0.1,"x":[1.5,{"y":2.5}],"s":1.5}') == {
        "d": Decimal("0.12345678901234567890"),
        "e": 0.1,
        "x": [1.5, {"y": 2.5}],
        "s": "1.5",
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b'{"price":1.005}', "decimal(10, 2) expected at price"),
        (b'{"price":123456789.01}', "decimal(10, 2) expected at price"),
        (b'{"price":true}', "decimal(10, 2) expected at price"),
        (b'{"at":"yesterday"}', "timestamp expected at at"),
        (b'{"at":1.5}', "timestamp expected at at"),
        (b'{"day":99999999}', "date expected at day"),
        (b'{"hour":86400000}', "time expected at hour"),
        (b'{"tags":[]}', "map expected at tags"),
        (b'{"tags":{"a":[],"a":[]}}', "map expected at tags"),
        (b'{"tags":{"a":[{"n":1},{"d":"x"}]}}', "date expected at tags.a[1].d"),
    ],
)
def test_what_is_not_of_its_type_is_named(document: bytes, message: str) -> None:
    with pytest.raises(SerdeError) as caught:
        ORDER.deserialize(document)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"price": Decimal("1.005")}, "price: 1.005 does not fit decimal(10, 2) without rounding"),
        ({"price": Decimal("NaN")}, "price: NaN does not fit"),
        ({"price": 1.5}, "price: a Decimal expected, not float 1.5"),
        ({"day": datetime(2026, 1, 1)}, "day: a date expected, not datetime"),
        ({"at": date(2026, 1, 1)}, "at: a datetime expected, not date"),
        ({"hour": time(1, tzinfo=UTC)}, "hour: a time without a zone expected"),
        ({"tags": {1: []}}, "tags: a str expected as key of a map, not int 1"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_not_written(value: dict[str, Any], message: str) -> None:
    with pytest.raises(SerdeError) as caught:
        ORDER.serialize(value)
    assert message in str(caught.value)


def test_json_without_a_schema_writes_them_in_the_same_form() -> None:
    value = {"b": Decimal("1.50"), "a": [date(1970, 1, 2), time(0, 0, 1), datetime(1970, 1, 1, 0, 0, 2), b"\0"]}
    assert Serdes.json.serialize(value) == b'{"a":[1,1000,2000,"AA=="],"b":1.50}'


def test_small_decimals_are_written_without_an_exponent() -> None:
    assert Serdes.json("decimal(12, 10)").serialize(Decimal("0.00000001")) == b"0.0000000100"


def test_every_type_but_a_windowed_key_finds_its_serde() -> None:
    for kind in (decimal_of(4, 2), DATE, TIME, TIMESTAMP, map_of(DATE), array_of(decimal_of(3, 1))):
        assert serde_for(kind).type == kind


# ---- casts

CASTS: list[tuple[Type, Any, Type, Any]] = [
    (STRING, " 1.005 ", decimal_of(4, 2), Decimal("1.01")),
    (STRING, "x", decimal_of(4, 2), None),
    (DOUBLE, 0.1, decimal_of(4, 2), Decimal("0.10")),
    (DOUBLE, float("nan"), decimal_of(4, 2), None),
    (INT, 100, decimal_of(4, 2), None),
    (decimal_of(4, 2), Decimal("-1.99"), INT, -1),
    (decimal_of(4, 2), Decimal("1.50"), STRING, "1.50"),
    (decimal_of(4, 2), Decimal("0.00"), BOOLEAN, False),
    (LONG, 1, TIMESTAMP, datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)),
    (TIMESTAMP, datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC), STRING, "1970-01-01T00:00:00.001"),
    (TIMESTAMP, datetime(1970, 1, 2, 3, tzinfo=UTC), DATE, date(1970, 1, 2)),
    (TIMESTAMP, datetime(1970, 1, 2, 3, tzinfo=UTC), TIME, time(3)),
    (DATE, date(1970, 1, 2), TIMESTAMP, datetime(1970, 1, 2, tzinfo=UTC)),
    (TIME, time(3, 4), STRING, "03:04:00.000"),
    (array_of(STRING), ["1", None, "x"], array_of(INT), [1, None, None]),
    (map_of(INT), {"a": 1, "b": None}, map_of(STRING), {"a": "1", "b": None}),
    (parse_schema("a int, b int"), {"a": 1, "b": 2}, parse_schema("b long, c date"), {"b": 2, "c": None}),
]


@pytest.mark.parametrize(("source", "given", "wanted", "result"), CASTS)
def test_a_value_becomes_one_of_another_type_or_nothing(source: Type, given: Any, wanted: Type, result: Any) -> None:
    cast = caster(source, wanted)
    assert cast is not None
    assert cast(given) == result


def test_what_cannot_be_told_is_no_cast() -> None:
    assert caster(DATE, INT) is not None
    assert caster(DATE, TIME) is None
    assert caster(BOOLEAN, decimal_of(1, 0)) is None
    assert caster(map_of(DATE), map_of(TIME)) is None
