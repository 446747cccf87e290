"""The same small language as column expressions, as far as they can say it. None where they cannot."""

from ottla.streams.expressions import (
    Aggregate,
    Expression,
    coalesce,
    count,
    earliest_by_offset,
    key,
    latest_by_offset,
    left,
    lit,
    max_,
    min_,
    right,
    sum_,
    value,
    when,
)

NOTHING = "null"


def predicate(name: str) -> Expression | None:
    argument = name.replace(">", ":", 1).partition(":")[2]
    if name.startswith("length>"):
        return value.is_not_null() & (value.length() > int(argument))
    if name.startswith("value>"):
        return value.is_not_null() & (value > int(argument))
    if name.startswith("starts:"):
        return value.is_not_null() & value.startswith(argument)
    if name.startswith("key-starts:"):
        return key.is_not_null() & key.startswith(argument)
    known = {"all": lit(True), "none": lit(False), "value-null": value.is_null(), "key-null": key.is_null()}
    return known.get(name)


def value_mapper(name: str) -> Expression | None:
    if name.startswith("null-if:"):
        return when(~value.startswith(name.removeprefix("null-if:")), value)
    known = {
        "same": value,
        "with-key": coalesce(key, NOTHING) + "=" + coalesce(value, NOTHING),
        "text": coalesce(value, NOTHING),
        "upper": value.upper(),
        "lower": value.lower(),
        "exclaim": value + "!",
        "length": value.length().cast("long"),
    }
    return known.get(name)


def key_selector(name: str) -> Expression | None:
    known = {
        "key": key,
        "value": value,
        "first-letter": when(value.length() > 0, value.substr(1, 1)),
        "key-upper": key.upper(),
        "key-letter": when(key.length() > 0, key.substr(1, 1)),
    }
    return known.get(name)


def aggregator(name: str) -> Aggregate | None:
    whole = coalesce(value, NOTHING)
    known = {
        "sum-length": sum_(whole.length().cast("long")),
        "latest": latest_by_offset(whole),
        "earliest": earliest_by_offset(whole),
        "largest": max_(whole),
        "smallest": min_(whole),
        "one-more": count(),
    }
    return known.get(name)


def joiner(name: str) -> Expression | None:
    return coalesce(left, NOTHING) + "/" + coalesce(right, NOTHING) if name == "pair" else None
