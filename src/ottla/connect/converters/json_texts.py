"""JSON as Jackson reads and writes it, where it differs from what Python's libraries do."""

import json
import re
from _json import encode_basestring
from decimal import Decimal
from typing import Any, Final

import msgspec

from ottla.connect.data.errors import DataException

_READ: Final = msgspec.json.Decoder()
_READ_EXACT: Final = msgspec.json.Decoder(float_hook=Decimal)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![0-9.eE+])(-?)0+(?=[0-9])', re.S)
_CONTROL: Final = re.compile(r"\\u00[01][0-9a-f]")
_NOT_JSON: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
MOST_DEPTH: Final = 200
"""Of arrays and objects in each other. Jackson goes to 1,000; here a sink that prints a value, or a transform that
walks through it, would end at half of that, and with it the connector, for the sake of one record."""
_TOO_DEEP: Final = f"{_NOT_JSON}arrays and objects in each other more than {MOST_DEPTH} deep"
MISSING: Final = object()
"""What empty bytes are: no value at all."""


def quoted(text: str) -> str:
    """Control characters have capitals in their codes, in Jackson; the rest is as everywhere."""
    found: str = encode_basestring(text)
    return _CONTROL.sub(lambda code: code[0][:4] + code[0][4:].upper(), found) if "\\u00" in found else found


def parsed(data: bytes, *, exact: bool = False) -> Any:
    """Numbers with a point are Decimal if `exact`, else float. Raises DataException."""
    try:
        found = (_READ_EXACT if exact else _READ).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = _leniently(data, exact, error)
    except RecursionError as error:
        raise DataException(_TOO_DEEP) from error
    if len(data) > 2 * MOST_DEPTH and _has_brackets(data) and _is_deep(found):
        raise DataException(_TOO_DEEP)
    return found


def _has_brackets(data: bytes | msgspec.Raw) -> bool:
    """Enough of them to be deep: most records have not."""
    text = bytes(data)
    return text.count(b"{") + text.count(b"[") > MOST_DEPTH


def _is_deep(value: Any) -> bool:
    """Level by level: what recurses is what such a value would break."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [
            part
            for each in level
            for part in (each.values() if type(each) is dict else each if type(each) is list else ())
            if type(part) is dict or type(part) is list
        ]
        if not level:
            return False
    return True


def _leniently(data: bytes, exact: bool, why: Exception) -> Any:
    """Jackson stops behind the first value, lets numbers begin with zeros and takes nothing for a value."""
    try:
        text = data.decode("utf-8-sig").lstrip(" \t\r\n")
        if not text:
            return MISSING
        text = _TOKEN.sub(lambda token: token[0] if token[0][0] == '"' else token[1], text)
        decoder = json.JSONDecoder(parse_float=Decimal if exact else float, parse_constant=_no_constant)
        found, end = decoder.raw_decode(text)
        if not isinstance(found, str | dict | list) and not _ends(text, end, found):
            raise ValueError("something stands on end with it")
        return found
    except (ValueError, RecursionError):
        raise DataException(f"{_NOT_JSON}{why}") from why


def _ends(text: str, end: int, found: Any) -> bool:
    """A number has to be followed by a blank or nothing, a word by anything but a letter."""
    behind = text[end : end + 1]
    if found is None or isinstance(found, bool):
        return not (behind.isalnum() or behind == "_")
    return behind in ("", " ", "\t", "\r", "\n")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
