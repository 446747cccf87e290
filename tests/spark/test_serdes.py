"""Every serde reads and writes on Spark what it does in plain Python; bad bytes become errors and end nothing."""

import math
import random
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from ottla.serdes import dates
from ottla.serdes.base import Serde, SerdeError
from ottla.serdes.types import ANY, DOUBLE, INT, LONG, STRING, Type, array_of, parse_schema, parse_type
from ottla.streams.serdes import Serdes
from ottla.streams.windows import Window, Windowed

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

TRADE = Serdes.json("ticker STRING, price DOUBLE, size INT, id LONG, hot BOOLEAN, tags ARRAY<STRING>, raw BINARY")
NESTED = Serdes.json({"who": {"name": "string", "age": "int"}, "more": "any", "legs": [{"x": "long"}]})
ORDER = Serdes.json(
    "price DECIMAL(10,2), fine DECIMAL(38,12), at TIMESTAMP, day DATE, hour TIME, "
    "tags MAP<STRING, ARRAY<STRUCT<n: INT, d: DATE>>>, m MAP<STRING, STRING>"
)
SERDES: list[Serde[Any]] = [
    ORDER,
    Serdes.json("date"),
    Serdes.json("timestamp"),
    Serdes.json("decimal(6, 3)"),
    Serdes.json("map<string, decimal(5, 1)>"),
    Serdes.json("array<time>"),
    Serdes.time_windowed(Serdes.json("a int, d date"), 5000),
    Serdes.string,
    Serdes.bytes,
    Serdes.int,
    Serdes.long,
    Serdes.double,
    Serdes.boolean,
    Serdes.json,
    TRADE,
    NESTED,
    Serdes.json("array<int>"),
    Serdes.time_windowed(Serdes.string, 5000),
    Serdes.time_windowed(Serdes.long, 10),
    Serdes.session_windowed(Serdes.string),
    Serdes.session_windowed(Serdes.json("a int")),
]

DOUBLES = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    math.pi,
    1e300,
    1e-300,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    2.225073858507201e-308,
]
DOUBLES += [math.inf, -math.inf, math.nan, 1.7976931348623157e308, 2.0**52, 2.0**53 - 1, 0.1, 1 / 3, 9007199254740993.0]
DOUBLES += [near for power in range(-1074, 1024, 23) for near in (2.0**power, math.nextafter(2.0**power, 0))]


def _field(name: str, text: str) -> str:
    return f'{{"{name}":{text}}}'


LONGS = [0, 1, -1, 255, 256, -256, (1 << 63) - 1, -(1 << 63), 1 << 31, -(1 << 31), (1 << 53) + 1]
DOCUMENTS = [
    '{"a":1,"a":2}', '{"price":1,"price":2}', '{"deep":[{"a":1,"a":2}]}',
    '{"ticker":"A","price":1.5,"size":3,"id":5000000000,"hot":true,"tags":["x",null],"raw":"AP8="}',
    '{"ticker":"A"}', "{}", '{"price":5}', '{"price":"5"}', '{"price":"NaN"}', '{"price":"Infinity"}',
    '{"price":"-INF"}', '{"size":3.0}', '{"size":2147483648}', '{"size":"3"}', '{"id":1e3}',
    '{"id":9223372036854775808}', '{"hot":1}', '{"hot":"true"}', '{"tags":"x"}', '{"tags":[]}', '{"tags":[1]}',
    '{"raw":"??"}', '{"ticker":5}', '{"ticker":true}', '{"ticker":{"a":1}}', '{"unknown":1,"ticker":null}',
    "null", " null ", "[]", "[1,2,3]", "[1,null]", '[1,"x"]', "5", '"text"', "true", "1.5", "1.0", '{"a":1}',
    '{"a":1,"b":{"d":[1,2,{"z":1,"y":null}],"c":"é"}}', '{"a":1', "", " ", '{"a":1} x', '{"a":1}{"a":2}',
    '{"a":NaN}', "{'a':1}", "{a:1}", '{"a":01}', '{"a":1,}', "nul", '"open', '{"a":"\\u00e9\\ud83d\\ude00"}',
    '{"price":1e400}', "-0", "\ufeff{}",
    '{"who":{"name":"Ann","age":7},"more":{"b":[1,"x"],"a":null},"legs":[{"x":1},{"x":null},{}]}', '{"who":[]}',
    '{"legs":{}}', '{"legs":[{"x":"1"}]}', '{"who":{"age":"old"}}', '{"who":null,"more":5}',
    '{"Ticker":"upper"}', '{"ticker":"\\n\\t\\u0001"}', '{"price":12345678901234567890}', '{"more":"text"}',
    *[_field("price", number) for number in (
        "1", "1.5", "1.50", "1.500", "1.505", "-0", "-0.00", "1e2", "1E-2", "1e-3", "12e-1", "120E-3", "100E-2",
        "0e-50",
        '"7.25"', '" 7.25 "', '"x"', '""', "true", "[]", "99999999.99", "99999999.991", "100000000", "1e400",
        "1e-400", "NaN",
        "1.000000000000000000000000000000000000000000000001", '"1."', '".5"', '"1d"', "0.10", "10.01e1", "1.0E1",
    )],
    *[_field("fine", number) for number in ("0", "0.000000000001", "1e-12", "1e-13", "-5e-7",
    "12345678901234567890123456")],
    *[_field("at", moment) for moment in (
        "0", "-1", "1767225600001", '"1767225600001"', '"2026-01-01"', '"2026-01-01T10:00:00.123456Z"',
        '"2026-01-01T10"',
        '"2026-01-01 10:00:00+01:30"', "1.0", "1e3", "true", "253402300799999", "253402300800000", "-62135596800000",
        "-62135596800001", '"9999-12-31T23:59:59-01:00"', '"2026-02-30"', "{}", "99999999999999999999",
    )],
    *[_field("day", moment) for moment in ("0", "-719162", "-719163", "2932896", '"2026-12-31"', '"12"',
    '"2026-12-31 "')],
    *[_field("hour", moment) for moment in ("0", "86399999", "86400000", "-1", '"10:00"', '"10:00:61"', '"1:00"')],
    '{"tags":{}}', '{"tags":{"b":[{"n":1,"d":5}],"a":null}}', '{"tags":{"a":[{"d":"x"}]}}', '{"tags":[]}',
    '{"m":{"a":1}}',
    '{"m":{"a":"x","a":"y"}}', '{"tags":{"a":[null,{}]}}', "20000", '"2026-12-31"', "1.5", "1.23456",
    '{"a":1.5,"b":null}',
    "[0,null,86399999]", "[86400000]",
    '{"more":null}', "[[1]]", '{"price":-0.0}', '{"price":0.1}', '{"size":-3}',
]  # fmt: skip


def _bytes() -> list[bytes | None]:
    dice = random.Random(6)
    found: list[bytes | None] = [
        None,
        b"",
        b"\0",
        b"\1",
        b"\2",
        b"abc",
        "Grüße 😀".encode(),
        b"\xff\xfe",
        b"a\xc3(b",
        b"\xed\xa0\x80",
    ]
    found += [struct.pack(">d", number) for number in DOUBLES]
    found += [struct.pack(">q", number) for number in LONGS]
    found += [struct.pack(">i", number) for number in (0, 1, -1, 2147483647, -2147483648, 65536)]
    found += [dice.randbytes(length) for length in (1, 3, 4, 5, 7, 8, 8, 8, 9, 15, 16, 17, 24, 100)]
    found += [b"key" + struct.pack(">q", start) for start in (0, 5000, (1 << 63) - 1, -5)]
    found += [b"key" + struct.pack(">qq", 9, 5), struct.pack(">qqq", 1, 2, 3), b'{"a":1}' + struct.pack(">qq", 9, 5)]
    return found + [document.encode() for document in DOCUMENTS]


def _same(given: Any) -> Any:
    """To compare: doubles by bits, windows as Spark shows them, numbers of JSON as numbers."""
    if isinstance(given, Windowed):
        return {"key": _same(given.key), "start": given.window.start, "end": given.window.end}
    if isinstance(given, float):
        return "NaN" if math.isnan(given) else struct.pack(">d", given)
    if hasattr(given, "toPython"):
        return _same_json(given.toPython())
    if hasattr(given, "asDict"):
        given = given.asDict()
    if isinstance(given, dict):
        return {name: _same(part) for name, part in given.items()}
    if isinstance(given, list):
        return [_same(part) for part in given]
    if isinstance(given, datetime):
        return given.replace(tzinfo=None)
    if isinstance(given, time):
        return dates.ms_of_day(given)
    if isinstance(given, Decimal):
        return str(given)
    return bytes(given) if isinstance(given, bytearray) else given


def _same_json(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _same_json(part) for name, part in given.items()}
    if isinstance(given, list):
        return [_same_json(part) for part in given]
    return given if given is None or isinstance(given, (str, bool)) else float(given)


def _here(serde: Serde[Any], data: bytes | None) -> tuple[Any, bool]:
    try:
        found = serde.deserialize(data)
    except SerdeError:
        return None, True
    same = _same_json(found) if serde.type == ANY else _same(found)
    if serde is NESTED and found is not None:
        same["more"] = _same_json(found["more"])
    return same, False


class Own(Serde[str]):
    """A serde that Spark knows nothing of."""

    def encode(self, value: str) -> bytes:
        return value.encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


def test_every_serde_reads_on_spark_what_it_reads_in_python(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import decode_column, decoded  # noqa: PLC0415

    cases = _bytes()
    frame = spark.createDataFrame([(data,) for data in cases], "data binary").coalesce(1)
    columns: list[Column] = []
    for place, serde in enumerate(SERDES):
        apart = decode_column(serde, F.col("data"))
        columns += [F.struct(apart.value, apart.error).alias(f"a{place}"), decoded(serde, F.col("data"))]
    answers = frame.select(*columns).collect()
    wrong = []
    for place, serde in enumerate(SERDES):
        for data, row in zip(cases, answers, strict=True):
            apart_value, error = row[2 * place]
            there = (_same(apart_value), error is not None)
            together = row[2 * place + 1]
            if _here(serde, data) != there or there != (_same(together[0]), together[1] is not None):
                wrong.append(f"{serde!r} of {data!r}: Python {_here(serde, data)}, Spark {there}")
    assert not wrong, "\n".join(wrong)


def test_json_is_parsed_once_however_many_filters_follow(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import decoded  # noqa: PLC0415

    frame = spark.createDataFrame([(b'{"price":5}',)], "data binary")
    both = frame.select(decoded(TRADE, F.col("data")).alias("d"))
    read = both.select(F.col("d.value").alias("v"), F.col("d.error").alias("e"))
    used = read.where("e is null").where("v.price > 1").where("v.ticker is null").select("v.price", "v.size")
    assert used.collect() == [(5.0, None)]
    assert used._jdf.queryExecution().optimizedPlan().toString().count("from_json") == 1


STRUCT = parse_schema("b int, a struct<y: string, x: double>, c array<struct<z: int, y: long>>")
ORDER_VALUE = {
    "price": Decimal("-3.50"), "fine": Decimal("0.000000000001"), "at": datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    "day": date(2026, 10, 25), "hour": time(9, 5, 3, 7000), "m": {"z": "ü\n", "a": None},
    "tags": {"b": [{"n": 1, "d": date(1969, 12, 31)}, None], "a": None, "": []},
}  # fmt: skip
COARSE = parse_schema("price DECIMAL(10,2), at TIMESTAMP, tags MAP<STRING, ARRAY<STRUCT<n: INT, d: DATE>>>")
WRITTEN: list[tuple[Serde[Any], Type, list[Any]]] = [
    (Serdes.string, STRING, [None, "", "Grüße 😀", "a"]),
    (Serdes.bytes, Serdes.bytes.type, [None, b"", b"\0\xff"]),
    (Serdes.int, INT, [None, 0, 1, -1, 2147483647, -2147483648]),
    (Serdes.long, LONG, [None, *LONGS]),
    (Serdes.long, INT, [None, 5, -5]),
    (Serdes.double, DOUBLE, [None, *DOUBLES]),
    (Serdes.double, LONG, [None, 5, -5]),
    (Serdes.boolean, Serdes.boolean.type, [None, True, False]),
    (ORDER, ORDER.type, [None, ORDER_VALUE, dict.fromkeys(dict(ORDER.type.fields))]),
    (Serdes.json, ORDER.type, [None, ORDER_VALUE]),
    (Serdes.json(COARSE), COARSE, [{name: ORDER_VALUE[name] for name, _ in COARSE.fields}]),
    (Serdes.json("date"), parse_type("date"), [None, date(1970, 1, 2), date(1, 1, 1), date(9999, 12, 31)]),
    (Serdes.json("time"), parse_type("time"), [None, time(1), time(23, 59, 59, 999000)]),
    (Serdes.json("timestamp"), parse_type("timestamp"), [None, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)]),
    (Serdes.json("decimal(20, 10)"), parse_type("decimal(12, 9)"), [None, *map(Decimal, ("1.5", "1E-9", "-1E-7",
    "0"))]),
    (Serdes.json("decimal(12, 2)"), INT, [None, 5, -5]),
    (Serdes.json("map<string, long>"), parse_type("map<string, int>"), [None, {}, {"b": 1, "ä": None, "a": 2,
    'q"': 3}]),
    (Serdes.json, STRUCT, [None, {"b": 1, "a": {"y": "q\"\n\x01é/", "x": 1e10}, "c": [{"z": 1, "y": None}, None]}]),
    (Serdes.json, STRUCT, [{"b": None}]),
    (Serdes.json, STRING, [None, "", 'quo"te', "é"]),
    (Serdes.json, LONG, [None, 5, -(1 << 63)]),
    (Serdes.json, DOUBLE, [None, 1.0, 1e-4, 1e7, -0.0, 12345678.9, 0.001, math.nan, math.inf]),
    (Serdes.json, Serdes.boolean.type, [None, True]),
    (Serdes.json, array_of(STRING), [None, [], ["a", None]]),
    (Serdes.json, ANY, [None, '{"b":1,"a":[1.5,"x",null,{"d":1,"c":true}]}', "5", '"x"', "[]"]),
    (Serdes.json(STRUCT), STRUCT, [None, {"b": 1, "a": {"y": "q", "x": 2.5}, "c": []}, {"b": None}]),
    (TRADE, parse_schema("price long, ticker string"), [None, {"price": 3, "ticker": None}]),
]  # fmt: skip


def test_every_serde_writes_on_spark_what_it_writes_in_python(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.serdes.arrow import to_column  # noqa: PLC0415
    from ottla.streams.run.serde_columns import encode_column  # noqa: PLC0415
    from ottla.streams.run.type_columns import spark_type  # noqa: PLC0415

    frames = []
    expected = []
    for place, (serde, kind, cases) in enumerate(WRITTEN):
        plain = "string" if kind == ANY else spark_type(kind)
        convert = to_column(kind) or (lambda given: given)
        rows = [(row, convert(_filled(kind, case) if kind != ANY else case)) for row, case in enumerate(cases)]
        frame = spark.createDataFrame(rows, f"row int, v {plain}").coalesce(1)
        column = F.parse_json("v") if kind == ANY else F.col("v")
        encoded = encode_column(serde, column, kind).alias("data")
        frames.append(frame.select(F.lit(place).alias("place"), "row", encoded))
        values = [_filled(kind, case) if serde == Serdes.json else case for case in cases]
        expected += [(place, row, serde.serialize(each)) for row, each in enumerate(values)]
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    found = [(row["place"], row["row"], _same(row["data"])) for row in union.orderBy("place", "row").collect()]
    assert found == expected


def _filled(kind: Type, value: Any) -> Any:
    """A struct column has all its fields, and a VARIANT came from JSON."""
    if kind == ANY:
        return None if value is None else Serdes.json.decode(value.encode())
    if kind.name == "struct" and isinstance(value, dict):
        return {name: _filled(part, value.get(name)) for name, part in kind.fields}
    return value


def test_windowed_keys_are_written_as_kafka_streams_does(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import encode_column  # noqa: PLC0415

    time, session = Serdes.time_windowed(Serdes.string, 5000), Serdes.session_windowed(Serdes.string)
    keys = [Windowed("k", Window(5000, 10000)), Windowed("é", Window(0, 5000)), Windowed("", Window(1, 5001))]
    frame = spark.createDataFrame(
        [((key.key, *key.window),) for key in keys], "key struct<key: string, start: bigint, end: bigint>"
    ).coalesce(1)
    rows = frame.select(encode_column(time, F.col("key")), encode_column(session, F.col("key"))).collect()
    assert [tuple(map(_same, row)) for row in rows] == [(time.serialize(key), session.serialize(key)) for key in keys]


def test_a_column_that_the_serde_cannot_write_is_refused_when_planned(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import encode_column, is_native  # noqa: PLC0415

    with pytest.raises(SerdeError, match=r"Serdes.long cannot write a column of type string"):
        encode_column(Serdes.long, F.lit("x"), STRING)
    with pytest.raises(SerdeError, match="cannot write"):
        encode_column(Serdes.json("a int"), F.lit("x"), parse_type("struct<b: int>"))
    assert is_native(Serdes.time_windowed(Serdes.long, 5))
    assert not is_native(Own())
