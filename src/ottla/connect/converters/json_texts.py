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
MISSING: Final = object()
"""What empty bytes are: no value at all."""


def quoted(text: str) -> str:
    """Control characters have capitals in their codes, in Jackson; the rest is as everywhere."""
    found: str = encode_basestring(text)
    return _CONTROL.sub(lambda code: code[0][:4] + code[0][4:].upper(), found) if "\\u00" in found else found


def parsed(data: bytes, *, exact: bool = False) -> Any:
    """Numbers with a point are Decimal if `exact`, else float. Raises DataException."""
    try:
        return (_READ_EXACT if exact else _READ).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _leniently(data, exact, error)
    except RecursionError as error:
        raise DataException(_NOT_JSON + "arrays and objects in each other too deeply") from error


def _leniently(data: bytes, exact: bool, why: Exception) -> Any:
    """Jackson stops behind the first value, lets numbers begin with zeros and takes nothing for a value."""
    try:
        text = data.decode("utf-8-sig").lstrip(" \t\r\n")
        if not text:
            return MISSING
        text = _TOKEN.sub(lambda token: token[0] if token[0][0] == '"' else token[1], text)
        decoder = json.JSONDecoder(parse_float=Decimal if exact else float, parse_constant=_no_constant)
        return decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise DataException(f"{_NOT_JSON}{why}") from why


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
