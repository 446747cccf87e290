"""Random structs and maps through random chains: fixed seeds, the same cases every time."""

import random
from base64 import b64encode
from typing import Any

from tests.oracle.connect.tables import HEADERS, NAMED, STAGES, enveloped, record

_SCALARS = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")
_NAMES = ("i8", "i16", "i32", "i64", "f32", "f64", "flag", "text", "raw", "at", "inner", "list")
_LOGICAL = {"int32": "Date", "int64": "Timestamp"}
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def random_cases(count: int = 600, seed: int = 17) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    cases = []
    for _ in range(count):
        chain = [dice.choice(STAGES) for _ in range(dice.randint(1, 4))]
        if dice.random() < 0.5:
            schema = _struct(dice, 0)
            value = enveloped(schema, _value(dice, schema))
        else:
            value = enveloped(None, _plain(dice, 0))
        cases.append({"chain": chain, "record": record(value, headers=HEADERS[: dice.randint(0, 4)])})
    return cases


def _struct(dice: random.Random, depth: int) -> dict[str, Any]:
    names = dice.sample(_NAMES, dice.randint(0, 6))
    return {
        "type": "struct",
        "optional": dice.random() < 0.3,
        **({"name": "n", "version": 1} if dice.random() < 0.5 else {}),
        "fields": [{**_schema(dice, depth + 1), "field": name} for name in names],
    }


def _schema(dice: random.Random, depth: int) -> dict[str, Any]:
    roll = dice.random()
    optional = dice.random() < 0.4
    if roll < 0.15 and depth < 3:
        return {**_struct(dice, depth), "optional": optional}
    if roll < 0.25 and depth < 3:
        return {"type": "array", "items": _schema(dice, depth + 1), "optional": optional}
    kind = dice.choice(_SCALARS)
    made: dict[str, Any] = {"type": kind, "optional": optional}
    if kind in _LOGICAL and dice.random() < 0.3:
        made |= {"name": NAMED + _LOGICAL[kind], "version": 1}
    elif dice.random() < 0.2:
        made["default"] = _value(dice, {**made, "optional": False})
    return made


def _value(dice: random.Random, schema: dict[str, Any]) -> Any:
    if schema["optional"] and dice.random() < 0.3:
        return None
    kind = schema["type"]
    if kind == "struct":
        return {field["field"]: _value(dice, field) for field in schema["fields"]}
    if kind == "array":
        return [_value(dice, schema["items"]) for _ in range(dice.randint(0, 3))]
    if kind in _BITS:
        bits = dice.randint(1, 20 if "name" in schema else _BITS[kind])
        return dice.randint(-(1 << bits), (1 << bits) - 1)
    if kind in ("float", "double"):
        return dice.randint(-1000, 1000) / 8 * 10 ** dice.choice((-3, 0, 0, 2))
    if kind == "boolean":
        return dice.random() < 0.5
    return _text(dice) if kind == "string" else b64encode(_text(dice).encode()).decode()


def _text(dice: random.Random) -> str:
    return "".join(dice.choice('aé"\\\n\x1f12.-€ ') for _ in range(dice.randint(0, 6)))


def _plain(dice: random.Random, depth: int) -> Any:
    roll = dice.random()
    if depth == 0 or (roll < 0.2 and depth < 3):
        return {name: _plain(dice, depth + 1) for name in dice.sample(_NAMES, dice.randint(0, 6))}
    if roll < 0.3 and depth < 3:
        return [_plain(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return dice.choice((None, True, dice.randint(-(1 << 40), 1 << 40), dice.randint(-80, 80) / 8, _text(dice), "12"))
