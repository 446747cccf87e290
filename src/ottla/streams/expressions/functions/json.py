"""JSON in texts: what a topic carries as a string, or as a field of one. JSON as a format is a matter of serdes.

Python computes all of it: Spark's own functions read on behind the end of a document, or drop its nulls.
"""

import base64
import datetime
import json
import re
from decimal import Decimal
from typing import Any, Final, NoReturn

from ottla.serdes import values as v
from ottla.serdes.types import BOOLEAN, INT, STRING, array_of, map_of
from ottla.streams.expressions.functions.declare import anything, family, takes, text
from ottla.streams.expressions.limits import within

__all__ = [
    "extract_json_field",
    "is_json_string",
    "json_array_contains",
    "json_array_length",
    "json_concat",
    "json_items",
    "json_keys",
    "json_records",
    "to_json_string",
]
declare: Final = family("json")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def parsed(document: str) -> Any:
    return json.loads(document, parse_constant=_no_number)


def written(document: Any, sort: bool = False) -> str:
    """As Jackson writes it: no blanks, doubles as in Java."""
    match document:
        case None:
            return "null"
        case bool():
            return "true" if document else "false"
        case str():
            return v.json_quoted(document)
        case float():
            return v.json_number(document)
        case int():
            return str(document)
        case Decimal():
            return format(document, "f")
        case bytes():
            return f'"{base64.b64encode(document).decode()}"'
        case datetime.datetime():
            return f'"{document.isoformat(timespec="milliseconds")}"'
        case datetime.date() | datetime.time():
            return f'"{document.isoformat()}"'
        case dict():
            fields = sorted(document.items()) if sort else document.items()
            return "{" + ",".join(f"{v.json_quoted(name)}:{written(part, sort)}" for name, part in fields) + "}"
    return "[" + ",".join(written(part, sort) for part in document) + "]"


# ---- a field by its path

_STEP: Final = re.compile(r"""\.([^.\[\]'"\s]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")


def _steps(path: str) -> list[str | int]:
    if not path.startswith("$"):
        raise ValueError(f"the path {path!r} does not begin with $")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise ValueError(f"the path {path!r} cannot be read at {path[at:]!r}")
        plain, index, *quoted = found.groups()
        steps.append(int(index) if index is not None else plain or next(each for each in quoted if each is not None))
        at = found.end()
    return steps


def _extract(document: str, path: str) -> str | None:
    found = parsed(document)
    for step in _steps(path):
        if isinstance(step, int):
            if not isinstance(found, list) or step >= len(found):
                return None
            found = found[step]
        else:
            if not isinstance(found, dict) or step not in found:
                return None
            found = found[step]
    return found if isinstance(found, str) else written(found)


extract_json_field: Final = declare(
    "extract_json_field",
    "document, path",
    takes(text, gives=STRING),
    _extract,
    fails=True,
    about="What is at a path such as `$.a['b c'][0]`: a text as it is, all else as JSON; null if there is nothing.",
)


def _is_json(document: str | None) -> bool:
    if document is None:
        return False
    try:
        parsed(document)
    except (ValueError, RecursionError):
        return False
    return True


is_json_string: Final = declare(
    "is_json_string",
    "text",
    takes(text, gives=BOOLEAN),
    _is_json,
    nulls="false",
    about="Whether it is JSON.",
)


# ---- arrays and objects


def _contains(document: str | None, item: Any) -> bool:
    if document is None:
        return False
    try:
        items = parsed(document)
    except (ValueError, RecursionError):
        return False
    if not isinstance(items, list):
        return False
    return any(type(each) is type(item) and each == item for each in items)


json_array_contains: Final = declare(
    "json_array_contains",
    "document, item",
    takes(text, anything, gives=BOOLEAN),
    _contains,
    nulls="false for the document; a null item is looked for",
    about="Whether the document is an array with that item, of that type.",
)


def _of_array(document: str) -> list[Any]:
    items = parsed(document)
    if not isinstance(items, list):
        raise ValueError("it is no array")
    return items


def _of_object(document: str) -> dict[str, Any]:
    fields = parsed(document)
    if not isinstance(fields, dict):
        raise ValueError("it is no object")
    return fields


json_array_length: Final = declare(
    "json_array_length",
    "document",
    takes(text, gives=INT),
    lambda document: len(_of_array(document)),
    fails=True,
    about="How many items the document has; null if it is no array.",
)
json_items: Final = declare(
    "json_items",
    "document",
    takes(text, gives=array_of(STRING)),
    lambda document: [written(item) for item in _of_array(document)],
    fails=True,
    about="The items of an array, each as JSON; null if it is none.",
)
json_records: Final = declare(
    "json_records",
    "document",
    takes(text, gives=map_of(STRING)),
    lambda document: {name: written(part) for name, part in _of_object(document).items()},
    fails=True,
    about="The fields of an object as a map, each as JSON; null if it is none.",
)
json_keys: Final = declare(
    "json_keys",
    "document",
    takes(text, gives=array_of(STRING)),
    lambda document: list(_of_object(document)),
    fails=True,
    about="The names of the fields of an object; null if it is none.",
)


def _joined(left: Any, right: Any) -> Any:
    """As Postgres joins jsonb: objects to an object, all else to an array."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left | right
    return [*(left if isinstance(left, list) else [left]), *(right if isinstance(right, list) else [right])]


def _json_concat(*documents: str) -> str:
    first, *others = map(parsed, documents)
    for each in others:
        first = _joined(first, each)
    return _within(written(first))


def _within(document: str) -> str:
    within(len(document))
    return document


json_concat: Final = declare(
    "json_concat",
    "first, *others",
    takes(text, gives=STRING),
    _json_concat,
    fails=True,
    about="Objects made one (later fields win); anything else put into one array.",
)
to_json_string: Final = declare(
    "to_json_string",
    "subject",
    takes(anything, gives=STRING),
    lambda given: _within(written(given, sort=True)),
    fails=True,
    nulls="`null`, as text",
    about="As JSON: fields in the order of their names, nulls kept, bytes as base64, times as ISO 8601.",
)
