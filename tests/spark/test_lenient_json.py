"""JSON with ksqlDB's conversions: Spark's columns read and write what the Python body does, whatever the document."""

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from ottla.serdes.base import SerdeError
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.types import INT, STRING, parse_schema, parse_type, struct_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = parse_schema("ID long, N int, NAME string, X double, OK boolean, AMOUNT decimal(6, 2)")
TIMES = parse_schema("DAY date, AT time, MOMENT timestamp, RAW binary, `small` string")
NESTED = parse_schema("WHO struct<NAME: string, AGE: int>, LIST array<int>, WORDS array<string>, M map<string, long>")
SERDES = [
    LenientJsonSerde(ROW),
    *(
        pytest.param(each, marks=pytest.mark.matrix)
        for each in (
            LenientJsonSerde(TIMES),
            LenientJsonSerde(NESTED),
            LenientJsonSerde(struct_of({"a`b": INT, "C D": STRING})),
            LenientJsonSerde(parse_type("long")),
            LenientJsonSerde(parse_type("string")),
            LenientJsonSerde(parse_type("int"), single="ONLY"),
            LenientJsonSerde(parse_type("array<double>"), single="ONLY"),
        )
    ),
]
EXPONENTS = ["1e3", "1.5E-2", "1e20", "-1e300", "0.10", '{"Name":3,"AGE":1.9}']
"""Not for texts: there Spark writes numbers and objects in its own way (docs/SQL.md)."""
SCALARS = [
    "null", "true", "false", "0", "1", "-7", "12", "2147483647", "2147483648", "-2147483649", "9223372036854775807",
    "9223372036854775808", "123456789012345678901234567890", "1.5", "-2.75", "12.75",
    '""', '"a"', '"12"', '"-7"', '"1.5"', '" 12"', '"1e3"',
    '"true"', '"x y"', '"42 roads"', '"{no json"',
    '"AAECAw=="', '"not base64!"', '"é"', '"\\u0041\\n"', "NaN", "Infinity", '"NaN"', '"Infinity"', "[]", "{}", "[1,2]",
    '["a","b"]', '[1,null,"x"]', '{"a":1}', '{"b":{"c":[1.5,true]}}', '{"age":"7","name":"ann"}', '{"NAME":null}',
    '{"AGE":1.9,"Name":3}', '["1",2,3.7]', '{"q":1,"r":"2"}', "19000", "86399999", "1700000000000", "-1",
]  # fmt: skip


def documents(serde: LenientJsonSerde, dice: random.Random) -> list[bytes | None]:
    found: list[bytes | None] = [
        None,
        b"",
        b"  ",
        b"\xff",
        b"{",
        b"nul",
        b"{}",
        b"[]",
        b"{} x",
        *map(str.encode, SCALARS),
    ]
    scalars = SCALARS if serde.content.has("string") else [*SCALARS, *EXPONENTS]
    names = [name for name, _ in serde.content.fields]
    for _ in range(200 if names else 0):
        fields = []
        for name in dice.sample(names, dice.randint(0, len(names))):
            spelt = dice.choice([name, name, name.lower(), name.lower(), name.capitalize(), f"other{name}"])
            fields.append(f"{json.dumps(spelt)}{dice.choice(['', ' '])}:{dice.choice(scalars)}")
        found.append(("{" + ",".join(fields) + "}").encode())
    return found


def by_python(serde: LenientJsonSerde, data: bytes | None) -> Any:
    """What is written of what was read; the word for a document that cannot be."""
    try:
        return serde.serialize(serde.deserialize(data))
    except SerdeError:
        return "unreadable"


@pytest.mark.parametrize("serde", SERDES, ids=repr)
def test_columns_read_and_write_what_the_body_does(serde: LenientJsonSerde, spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from ottla.streams.run.serde_columns import decoded, encode_column  # noqa: PLC0415

    given = documents(serde, random.Random(7))
    frame = spark.createDataFrame([(place, each) for place, each in enumerate(given)], "at int, data binary")
    read = frame.select("at", decoded(serde, F.col("data")).alias("d"))
    written = encode_column(serde, F.col("d")["value"])
    rows = read.select("at", F.col("d")["error"].alias("error"), written.alias("data")).orderBy("at").collect()
    found = ["unreadable" if row.error is not None else None if row.data is None else bytes(row.data) for row in rows]
    wrong = [
        (each, expected, there)
        for each, expected, there in zip(given, [by_python(serde, each) for each in given], found, strict=True)
        if expected != there
    ]
    assert wrong == []
