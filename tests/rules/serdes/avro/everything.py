"""A schema with everything in it, and a value of it."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each[0], "type": each[1], **dict(each[2:])} for each in fields],
    }


def logical(kind: str, name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


ALL = record(
    ("text", "string"),
    ("yes", "boolean"),
    ("small", "int"),
    ("large", "long"),
    ("single", "float"),
    ("double", "double"),
    ("raw", "bytes"),
    ("four", {"type": "fixed", "name": "Four", "size": 4}),
    ("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    ("list", {"type": "array", "items": ["null", "int"]}),
    ("map", {"type": "map", "values": "long"}),
    ("inner", ["null", record(("x", "int"), name="Inner")]),
    ("day", logical("int", "date")),
    ("clock", logical("int", "time-millis")),
    ("clock_us", logical("long", "time-micros")),
    ("at", logical("long", "timestamp-millis")),
    ("at_us", ["null", logical("long", "timestamp-micros")]),
    ("price", logical("bytes", "decimal", precision=6, scale=2)),
    ("fixed_price", logical("fixed", "decimal", name="Price", size=8, precision=10, scale=1)),
    ("uuid", logical("string", "uuid")),
    ("number", ["int", "null", "long"]),
    ("either", ["null", "string", "double", {"type": "enum", "name": "Other", "symbols": ["P"]}]),
)
VALUE = {
    "text": "Grüße",
    "yes": True,
    "small": -5,
    "large": 1 << 40,
    "single": 0.5,
    "double": 1e300,
    "raw": b"\0\xff",
    "four": b"abcd",
    "kind": "B",
    "list": [1, None],
    "map": {"a": 1},
    "inner": {"x": 7},
    "day": date(2026, 12, 31),
    "clock": time(23, 59, 59, 999_000),
    "clock_us": time(1, 2, 3, 4000),
    "at": datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC),
    "at_us": datetime(1969, 12, 31, tzinfo=UTC),
    "price": Decimal("-1234.50"),
    "fixed_price": Decimal("1.5"),
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "number": 1 << 40,
    "either": {"member0": None, "member1": 2.5, "member2": None},
}
