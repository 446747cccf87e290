"""The small language of functions that a case names; java/Functions.java means the same by the same names."""

from collections.abc import Callable
from typing import Any

from ottla.streams.windows import Windowed


class AskedToFailError(Exception):
    pass


def text(value: Any) -> str:
    if isinstance(value, Windowed):
        return f"[{text(value.key)}@{value.window.start}/{value.window.end}]"
    return "null" if value is None else str(value)


def _argument(name: str) -> str:
    for mark in (":", ">", "<"):
        if mark in name:
            return name.split(mark, 1)[1]
    return ""


def predicate(name: str) -> Callable[[Any, Any], bool]:
    """(key, value) -> bool"""
    argument = _argument(name)

    def fail(key: Any, value: Any) -> bool:
        if text(value) == argument:
            raise AskedToFailError("asked to fail")
        return True

    known: dict[str, Callable[[Any, Any], bool]] = {
        "all": lambda key, value: True,
        "none": lambda key, value: False,
        "value-null": lambda key, value: value is None,
        "key-null": lambda key, value: key is None,
        "length": lambda key, value: value is not None and len(text(value)) > int(argument),
        "value": lambda key, value: value is not None and value > int(argument),
        "starts": lambda key, value: value is not None and text(value).startswith(argument),
        "key-starts": lambda key, value: key is not None and text(key).startswith(argument),
        "fail": fail,
    }
    return known[_stem(name)]


def _stem(name: str) -> str:
    for mark in (":", ">", "<"):
        name = name.split(mark, 1)[0]
    return name


def value_mapper(name: str) -> Callable[[Any, Any], Any]:
    """(key, value) -> value"""
    argument = _argument(name)
    known: dict[str, Callable[[Any, Any], Any]] = {
        "same": lambda key, value: value,
        "text": lambda key, value: text(value),
        "with-key": lambda key, value: f"{text(key)}={text(value)}",
        "null": lambda key, value: None,
        "upper": lambda key, value: None if value is None else text(value).upper(),
        "lower": lambda key, value: None if value is None else text(value).lower(),
        "exclaim": lambda key, value: None if value is None else text(value) + "!",
        "length": lambda key, value: None if value is None else len(text(value)),
        "null-if": lambda key, value: None if value is None or text(value).startswith(argument) else value,
        "plus": lambda key, value: None if value is None else value + int(argument),
    }
    return known[_stem(name)]


def key_selector(name: str) -> Callable[[Any, Any], Any]:
    """(key, value) -> key"""
    if name.startswith("fail:"):
        letter, safe = key_selector("first-letter"), predicate(name)
        return lambda key, value: letter(key, value) if safe(key, value) else None
    known: dict[str, Callable[[Any, Any], Any]] = {
        "key": lambda key, value: key,
        "null": lambda key, value: None,
        "number": lambda key, value: value,
        "key-text": lambda key, value: text(key),
        "value": lambda key, value: None if value is None else text(value),
        "first-letter": lambda key, value: None if value is None else text(value)[:1] or None,
        "key-upper": lambda key, value: None if key is None else text(key).upper(),
        "key-letter": lambda key, value: None if key is None else text(key)[:1] or None,
        "unwindowed": lambda key, value: key.key if isinstance(key, Windowed) else key,
    }
    return known[name]


def flat_mapper(name: str) -> Callable[[Any, Any], list[Any]]:
    """(key, value) -> values"""
    known: dict[str, Callable[[Any], list[Any]]] = {
        "split-words": lambda value: [word for word in text(value).split(" ") if word],
        "twice": lambda value: [value, value],
        "letters": lambda value: list(text(value)),
    }
    function = known[name]
    return lambda key, value: [] if value is None else function(value)


def reducer(name: str) -> Callable[[Any, Any], Any]:
    """(aggregate, value) -> aggregate"""
    argument = _argument(name)
    if argument:
        return lambda left, right: _short(text(left) + text(right), argument)
    known: dict[str, Callable[[Any, Any], Any]] = {
        "concat": lambda left, right: text(left) + text(right),
        "sum": lambda left, right: left + right,
        "minus": lambda left, right: left - right,
        "max": lambda left, right: left if text(left) >= text(right) else right,
        "min": lambda left, right: left if text(left) <= text(right) else right,
        "first": lambda left, right: left,
        "last": lambda left, right: right,
        "without": lambda left, right: f"{text(left)}-{text(right)}",
    }
    return known[name]


def _short(whole: str, limit: str) -> str | None:
    return whole if len(whole) < int(limit) else None


def initializer(name: str) -> Callable[[], Any]:
    first = {"empty": "", "zero": 0, "null": None}[name]
    return lambda: first


def aggregator(name: str) -> Callable[[Any, Any, Any], Any]:
    """(key, value, aggregate) -> aggregate"""
    argument = _argument(name)
    if argument:
        return lambda key, value, whole: _short(text(whole) + text(value), argument)
    known: dict[str, Callable[[Any, Any, Any], Any]] = {
        "append": lambda key, value, whole: f"{text(whole)}+{text(key)}{text(value)}",
        "remove": lambda key, value, whole: f"{text(whole)}-{text(key)}{text(value)}",
        "sum-length": lambda key, value, whole: (whole or 0) + len(text(value)),
        "minus-length": lambda key, value, whole: (whole or 0) - len(text(value)),
        "latest": lambda key, value, whole: text(value),
        "earliest": lambda key, value, whole: text(value) if whole is None else whole,
        "largest": lambda key, value, whole: text(value) if whole is None else max(whole, text(value)),
        "smallest": lambda key, value, whole: text(value) if whole is None else min(whole, text(value)),
        "one-more": lambda key, value, whole: (whole or 0) + 1,
        "one-less": lambda key, value, whole: (whole or 0) - 1,
    }
    return known[name]


def merger(name: str) -> Callable[[Any, Any, Any], Any]:
    """(key, left aggregate, right aggregate) -> aggregate"""
    known: dict[str, Callable[[Any, Any, Any], Any]] = {
        "concat": lambda key, left, right: f"{text(left)}&{text(right)}",
        "sum": lambda key, left, right: left + right,
        **{each: _merged(each) for each in ("latest", "earliest", "largest", "smallest")},
    }
    return known[name]


def _merged(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda key, left, right: left if right is None else aggregator(name)(key, right, left)


def joiner(name: str) -> Callable[[Any, Any, Any], Any]:
    """(key, left value, right value) -> value"""
    known: dict[str, Callable[[Any, Any, Any], Any]] = {
        "pair": lambda key, left, right: f"{text(left)}/{text(right)}",
        "pair-key": lambda key, left, right: f"{text(key)}:{text(left)}/{text(right)}",
        "right": lambda key, left, right: right,
    }
    return known[name]


def constant(number: int) -> Callable[[], int]:
    return lambda: number
