"""A column of documents is read as the serde reads each of them, whichever way it goes."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ottla.serdes.base import SerdeError
from ottla.serdes.columns import values_of
from ottla.serdes.lenient_json import LenientJsonSerde
from ottla.serdes.lenient_json_arrow import decoded
from ottla.serdes.types import Type, parse_schema, parse_type

ORDER = parse_schema("ID long, N int, NAME string, X double, OK boolean, AMOUNT decimal(6, 2)")
SERDES = [
    LenientJsonSerde(ORDER),
    LenientJsonSerde(parse_schema("DAY date, AT time, MOMENT timestamp, `small` string, SMALL string")),
    LenientJsonSerde(
        parse_schema("WHO struct<NAME: string, INNER: struct<Z: double>>, LIST array<int>, SUMS array<decimal(4, 1)>")
    ),
    LenientJsonSerde(parse_schema("RAW binary, M map<string, int>, MANY array<struct<A: int>>")),
    LenientJsonSerde(parse_type("long")),
    LenientJsonSerde(parse_type("int"), single="ONLY"),
]
FITTING: dict[str, list[str]] = {
    "string": ['"a"', '"b c"', '"\\u00e9\\n"', '"é"', '""', '"Info: Infinity"', '"-0 "', '"\\ud83d\\ude00"'],
    "int": ["0", "7", "-7", "2147483647"],
    "long": ["0", "-1", "9223372036854775807"],
    "double": ["0", "1", "1.5", "-2.75e3", "0.0", "123456789012345678901234567890"],
    "decimal": ["1", "1.5", "-0.5", "1e1"],
    "boolean": ["true", "false"],
    "date": ["0", "19000"],
    "time": ["0", "86399999"],
    "timestamp": ["0", "1700000000000"],
    "binary": ['"AAEC"'],
}
ODD = [
    "null", "NaN", "-Infinity", "-0", "-0.0", "1.0", "1.005", "12345678", "1e400", '"12"', '" 12"', '"1.5"', '".5"',
    '"5."', '"."', '"+1"', '"1e1"', '""', "86400000", "-1", "99999999999999999999", "[]", "{}", '["1"]', "[1, null]",
    "[-0]", '{"NAME": 1}', '{"name": "x", "Name": "y"}', '{"INNER": {"z": -0}}', '"\\ud800"', '"a\tb"', "tru", '"a',
]  # fmt: skip
BROKEN = [
    None,
    b"",
    b" {}",
    b"{} ",
    b"{}{}",
    b"null",
    b"[]",
    b"{",
    b'{"ID":1}}',
    b'{"ID":\n1}',
    b'{"a":"\xff"}',
    b"\xff",
]


def fitting(kind: Type, dice: random.Random) -> str:
    match kind.name:
        case "array":
            assert kind.element is not None
            return json.dumps([0]).replace(
                "0", ",".join(fitting(kind.element, dice) for _ in range(dice.randint(1, 3)))
            )
        case "struct":
            return document(kind, dice, odd=0)
        case "map":
            return '{"a": 1}'
    return dice.choice(FITTING[kind.name])


def spelt(name: str, dice: random.Random) -> str:
    return dice.choice([name, name, name, name.lower(), name.lower(), name.capitalize(), f"other{name}"])


def document(kind: Type, dice: random.Random, odd: float) -> str:
    """An object of the type; as often as `odd` says a field is something else, or spelt otherwise."""
    fields = []
    for name, part in kind.fields:
        if dice.random() < odd:
            continue
        called = json.dumps(spelt(name, dice) if dice.random() < odd else dice.choice([name, name.lower()]))
        if dice.random() < odd:
            called = '"' + "".join(f"\\u{ord(letter):04x}" for letter in called.strip('"')) + '"'
        fields.append(f"{called}: {dice.choice(ODD) if dice.random() < odd else fitting(part, dice)}")
    fields += ['"unknown": ' + dice.choice(ODD)] if dice.random() < odd else []
    return "{" + ",".join(fields) + "}"


def batches(kind: Type) -> Iterator[list[bytes | None]]:
    dice = random.Random(11)
    for odd in (0.0, 0.02, 0.2):
        for size in (1, 3, 200, 1200):
            made: list[bytes | None] = [document(kind, dice, odd).encode() for _ in range(size)]
            yield [dice.choice(BROKEN) if dice.random() < odd / 4 else each for each in made]


def one_by_one(serde: LenientJsonSerde, record: bytes | None) -> Any:
    try:
        return serde.deserialize(record)
    except SerdeError as error:
        return f"unreadable: {error}"


def in_utf8(value: Any) -> str:
    """0.0 is not -0.0, and half of a character is `?`."""
    return repr(value).replace("\\ud800", "?")


@pytest.mark.parametrize("serde", SERDES, ids=repr)
def test_a_column_is_read_as_its_documents_are(serde: LenientJsonSerde) -> None:
    for records in batches(serde.content):
        found = decoded(serde, pa.array(records, pa.binary()))
        found.values.validate(full=True)
        values = values_of(serde.type, found.values)
        read = [
            in_utf8(value if error is None else f"unreadable: {error}")
            for value, error in zip(values, found.errors.to_pylist(), strict=True)
        ]
        assert read == [in_utf8(one_by_one(serde, record)) for record in records]


@pytest.mark.parametrize("records", [[], [None], BROKEN, [None, b'{"ID":1}'], [b'{"\\u0049D": null, "id": 1}']])
@pytest.mark.parametrize("times", [1, 200])
def test_a_column_may_hold_little_that_can_be_read(records: list[bytes | None], times: int) -> None:
    serde = LenientJsonSerde(ORDER)
    found = decoded(serde, pa.array(records * times, pa.binary()))
    expected = [one_by_one(serde, record) for record in records] * times
    assert values_of(serde.type, found.values) == [None if isinstance(each, str) else each for each in expected]
    assert found.errors.is_valid().to_pylist() == [isinstance(each, str) for each in expected]


def test_a_column_is_a_part_of_a_longer_one() -> None:
    serde = LenientJsonSerde(ORDER)
    whole = pa.array([b'{"id":1}', b'{"id":"2"}', b'{"id":3}', b'{"id":4}'] * 200, pa.binary())
    found = decoded(serde, whole.slice(1, 600))
    assert [row["ID"] for row in values_of(serde.type, found.values)] == [2, 3, 4, 1] * 150


class Counted(LenientJsonSerde):
    """How many documents it was given by itself."""

    def __init__(self, content: Type) -> None:
        super().__init__(content)
        self.given = 0

    def deserialize(self, data: bytes | None) -> Any:
        self.given += 1
        return super().deserialize(data)


def test_documents_that_are_what_the_schema_says_are_not_read_one_by_one() -> None:
    serde = Counted(ORDER)
    plain = b'{"id": 1, "N": 2, "NAME": "ann", "unknown": {"a": [1]}}'
    decoded(serde, pa.array([plain] * 3_000, pa.binary()))
    assert serde.given == 0
    decoded(serde, pa.array([plain] * 2_999 + [b'{"N": "3"}'], pa.binary()))
    assert 0 < serde.given < 1_000  # only those around the odd one
