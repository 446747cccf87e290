"""A record as one line of JSON, both ways: what `consume --json` writes, `produce --json` reads.

Bytes that are no UTF-8 go under a name of their own (`value_base64`), so that `value` is always a text or null.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import NamedTuple

from ottla.cli.formats import Formatted
from ottla.cli.output import Json
from ottla.protocol.records import Header

_NAMES = ("key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp")
_IGNORED = ("topic", "offset")
"""What `consume --json` writes too: a copy has a place of its own."""


class BadRecord(ValueError):
    """A line that is no record; the text says what is wrong with it."""


class InputRecord(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp: int | None = None


def record_line(formatted: Formatted) -> bytes:
    record = formatted.record
    document: dict[str, Json] = {
        "topic": formatted.topic,
        "partition": formatted.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(document, "key", record.key)
    _put(document, "value", record.value)
    if record.headers:
        headers: list[Json] = []
        for name, value in record.headers:
            header: dict[str, Json] = {"key": name}
            _put(header, "value", value)
            headers.append(header)
        document["headers"] = headers
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _put(document: dict[str, Json], name: str, value: bytes | None) -> None:
    if value is None:
        document[name] = None
        return
    try:
        document[name] = value.decode()
    except UnicodeDecodeError:
        document[f"{name}_base64"] = b64encode(value).decode()


def parse_record(line: bytes) -> InputRecord:
    try:
        document = json.loads(line)
    except ValueError as error:
        raise BadRecord(f"it is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise BadRecord('an object is expected, such as {"key": "a", "value": "b"}')
    # Without this, a line of somebody's own JSON would be written as a tombstone.
    strange = next((name for name in document if name not in _NAMES and name not in _IGNORED), None)
    if strange is not None:
        raise BadRecord(
            f"{strange!r} is not part of a record, which has {', '.join(_NAMES)}; an object that is the value goes "
            'under "value", or in without --json'
        )
    return InputRecord(
        _bytes(document, "value"),
        _bytes(document, "key"),
        tuple(_headers(document.get("headers"))),
        _number(document, "partition"),
        _number(document, "timestamp"),
    )


def _bytes(document: dict[str, object], name: str) -> bytes | None:
    encoded = document.get(f"{name}_base64")
    if encoded is not None:
        try:
            return b64decode(str(encoded), validate=True)
        except ValueError as error:
            raise BadRecord(f"{name}_base64 is not base64") from error
    value = document.get(name)
    if value is None:
        return None
    # {"value": {"total": 3}} is what people pipe out of jq: written as the JSON it is.
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def _headers(given: object) -> list[Header]:
    if given is None:
        return []
    if isinstance(given, dict):
        return [(str(name), _bytes({"value": value}, "value")) for name, value in given.items()]
    if not isinstance(given, list):
        raise BadRecord('headers are an object, or a list of {"key": "a", "value": "b"}')
    headers: list[Header] = []
    for header in given:
        if not isinstance(header, dict) or not isinstance(header.get("key"), str):
            raise BadRecord('a header is an object with "key" and "value"')
        headers.append((header["key"], _bytes(header, "value")))
    return headers


def _number(document: dict[str, object], name: str) -> int | None:
    value = document.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise BadRecord(f"{name} is a whole number, not {value!r}")


Parser = Callable[[bytes], InputRecord]
