"""Functions of ours that Kafka Streams calls while it runs a case: over the pipes that cases go through.

What a function takes and gives is a text to Java. Keys and values are JSON that tells every type of ours; what an
aggregate keeps is its state beside its result, and whoever reads it as a value reads the result. A windowed key comes
as [key, start, end].
"""

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ottla.serdes.base import SerdeError
from ottla.streams.windows import Window, Windowed

Text = str | None
"""A value as Java has it."""


class Kept(NamedTuple):
    """What an aggregate keeps of a group."""

    state: Any
    result: Any


def answered(function: Callable[..., Any], arguments: Sequence[Any]) -> dict[str, Any]:
    """The line that goes back. What cannot be read is an error there, too."""
    try:
        return {"answer": function(*arguments)}
    except SerdeError as error:
        return {"answer": None, "error": str(error)}


def text_of(value: Any) -> Text:
    if value is None:
        return None
    if isinstance(value, Kept):
        return json.dumps({"kept": [_told(value.state), _told(value.result)]})
    return json.dumps(_told(value))


def key_of(given: Any) -> Any:
    if isinstance(given, list):
        inner, start, end = given
        return Windowed(value_of(inner), Window(start, end))
    return value_of(given)


def value_of(text: Text) -> Any:
    if text is None:
        return None
    told = json.loads(text)
    return _read(told["kept"][1] if isinstance(told, dict) and "kept" in told else told)


def state_of(text: Text) -> Any:
    assert text is not None
    return _read(json.loads(text)["kept"][0])


def _told(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case list() | tuple():
            return [_told(each) for each in value]
        case dict():
            return {"dict": [[_told(name), _told(each)] for name, each in value.items()]}
        case float():
            return {"float": repr(value)}
        case bytes():
            return {"bytes": value.hex()}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case time():
            return {"time": value.isoformat()}
    raise TypeError(f"{value!r} does not go to Java")


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "float": float,
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def _read(told: Any) -> Any:
    if isinstance(told, list):
        return [_read(each) for each in told]
    if not isinstance(told, dict):
        return told
    if "dict" in told:
        return {_read(name): _read(each) for name, each in told["dict"]}
    ((kind, text),) = told.items()
    return _READ[kind](text)
