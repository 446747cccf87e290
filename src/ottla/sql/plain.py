"""Records of tests: keys and values as plain data, to bytes and back.

JSON is the value itself, DELIMITED its text, KAFKA the bare value; BYTES are base64, dates and times the numbers that
JSON has for them, decimals `Decimal`. In rows of clients dates and times are texts, as ksqlDB sends them.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from ottla.serdes import dates
from ottla.serdes.base import Serde, Where, placed
from ottla.serdes.json import json_reader
from ottla.serdes.types import Type
from ottla.sql.analysis.scope import key_type
from ottla.sql.formats.format import Format
from ottla.sql.model import Columns

_NO_NUMBERS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def to_bytes(plain: Any, format: Format, columns: Columns, part: str, serde: Serde[Any], topic: str) -> bytes | None:
    if plain is None:
        return None
    serde = placed(serde, Where(topic))
    if format.name == "DELIMITED" and isinstance(plain, str):
        return plain.encode()
    if format.name in ("JSON", "NONE"):
        return json_text(plain).encode()
    kind = key_type(columns) if part == "key" else Type("struct", fields=columns)
    if _wraps_key(format, columns, part) and isinstance(plain, dict) and len(plain) == 1:
        (plain,) = plain.values()
    if part == "value" and not isinstance(plain, dict) and len(columns) == 1:
        plain = {columns[0][0]: plain}
    return serde.serialize(json_reader(kind)(_in_case(plain, kind)))


def _wraps_key(format: Format, columns: Columns, part: str) -> bool:
    """Protobuf has no bare values."""
    return part == "key" and len(columns) == 1 and format.name in ("PROTOBUF", "PROTOBUF_NOSR")


def _in_case(plain: Any, kind: Type) -> Any:
    """Fields by their names, or by their names in upper case."""
    if kind.name == "struct" and isinstance(plain, dict):
        known = {name for name, _ in kind.fields}
        found = {name if name in known else name.upper(): each for name, each in plain.items()}
        return {name: _in_case(found.get(name), part) for name, part in kind.fields}
    if kind.name == "array" and kind.element is not None and isinstance(plain, list):
        return [_in_case(each, kind.element) for each in plain]
    if kind.name == "map" and kind.element is not None and isinstance(plain, dict):
        return {key: _in_case(each, kind.element) for key, each in plain.items()}
    if kind.name == "double" and isinstance(plain, Decimal | int) and not isinstance(plain, bool):
        return float(plain)
    if kind.name == "decimal" and isinstance(plain, float | Decimal):
        return str(plain)
    if kind.name in ("int", "long") and isinstance(plain, float | Decimal) and plain == int(plain):
        return int(plain)
    return plain


def from_bytes(data: bytes | None, format: Format, columns: Columns, part: str, serde: Serde[Any], topic: str) -> Any:
    if data is None:
        return None
    serde = placed(serde, Where(topic))
    if format.name == "DELIMITED":
        return data.decode()
    if format.name == "NONE":
        return None
    value = serde.deserialize(data)
    if _wraps_key(format, columns, part):
        return {columns[0][0]: shown(value, columns[0][1])}
    if part == "key":
        return shown(value, key_type(columns))
    if value is not None and len(columns) == 1 and (format.name == "KAFKA" or format.wrap is False):
        return shown(value[columns[0][0]], columns[0][1])
    return shown(value, Type("struct", fields=columns))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _clock(value: time) -> str:
    """As Java's LocalTime is written: what is zero at the end is left out."""
    if value.microsecond:
        return value.isoformat(timespec="milliseconds")
    return value.isoformat(timespec="seconds" if value.second else "minutes")


Leaves = Mapping[type, Callable[[Any], Any]]
"""What becomes of values that JSON has no form for."""
NUMBERS: Final[Leaves] = {bytes: _base64, datetime: dates.ms_of, date: dates.days_of, time: dates.ms_of_day}
TEXTS: Final[Leaves] = {bytes: _base64, datetime: dates.timestamp_text, date: dates.date_text, time: _clock}


def shown(value: Any, kind: Type, leaves: Leaves = NUMBERS) -> Any:
    """A value of streams as plain data."""
    if value is None:
        return None
    match kind.name:
        case "struct":
            return {name: shown(value.get(name), part, leaves) for name, part in kind.fields}
        case "array" if kind.element is not None:
            return [shown(each, kind.element, leaves) for each in value]
        case "map" if kind.element is not None:
            return {key: shown(each, kind.element, leaves) for key, each in value.items()}
    leaf = leaves.get(type(value))
    return value if leaf is None else leaf(value)


_plain_json: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def json_text(plain: Any) -> str:
    """With decimals as numbers, all their digits."""
    try:
        return _plain_json(plain)
    except (TypeError, ValueError):  # a decimal is in it, or what is no number
        return _in_parts(plain)


def _in_parts(plain: Any) -> str:
    match plain:
        case dict():
            return "{" + ",".join(f"{json.dumps(str(key))}:{_in_parts(each)}" for key, each in plain.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_in_parts, plain)) + "]"
        case Decimal():
            return format(plain, "f")
        case float() if not math.isfinite(plain):
            return f'"{_NO_NUMBERS.get(plain, "NaN")}"'  # JSON has no number for them
    return json.dumps(plain)
