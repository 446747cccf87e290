"""States of folds as bytes, for the store beside the results. Every value comes back as what it was.

It is JSON in which an object has exactly one field, which says what it stands for: nothing can be taken for something
else. A state of numbers and lists looks like itself.
"""

import base64
import json
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from ottla.serdes import dates
from ottla.serdes.base import Serde


class StateSerde(Serde[Any]):
    name = "state"

    def encode(self, value: Any) -> bytes:
        return json.dumps(_marked(value)).encode()

    def decode(self, data: bytes) -> Any:
        return _DECODER.decode(str(data, "utf-8"))


_THEMSELVES: Final = frozenset({int, float, str, bool, type(None)})


def _marked(value: Any) -> Any:
    if type(value) in _THEMSELVES:
        return value
    match value:
        case list() | tuple():
            return [_marked(each) for each in value]
        case dict():
            return {"map": [[key, _marked(each)] for key, each in value.items()]}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": dates.ms_of(value)}
        case date():
            return {"date": dates.days_of(value)}
        case time():
            return {"time": dates.ms_of_day(value)}
        case bytes():
            return {"binary": base64.b64encode(value).decode()}
    return value


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "map": dict,
    "decimal": Decimal,
    "timestamp": dates.timestamp_of,
    "date": dates.date_of,
    "time": dates.time_of,
    "binary": base64.b64decode,
}


def _unmarked(found: dict[str, Any]) -> Any:
    ((name, content),) = found.items()
    return _READ[name](content)


_DECODER: Final = json.JSONDecoder(object_hook=_unmarked)
