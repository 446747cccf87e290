"""Where two answers, written down as plain values, differ."""

from typing import Any


def differences(expected: Any, seen: Any, place: str = "") -> list[tuple[str, Any, Any]]:
    """Where two plain values differ: place, expected, seen."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        return [
            found
            for key in {**expected, **seen}
            for found in differences(expected.get(key, "(absent)"), seen.get(key, "(absent)"), f"{place}.{key}")
        ]
    if isinstance(expected, list) and isinstance(seen, list):
        return differences(_named(expected), _named(seen), place) if expected != seen else []
    return [] if expected == seen else [(place, expected, seen)]


def _named(items: list[Any]) -> dict[str, Any]:
    """A list by what its items are called, so that one more or less does not shift the rest."""
    keys = (
        *("name", "feature", "resource_name", "key", "api_key", "partition_index", "index", "partition", "topic"),
        *("group_id", "member_id", "transactional_id"),
    )
    named: dict[str, Any] = {}
    for number, item in enumerate(items):
        key = next((f"{k}={item[k]}" for k in keys if isinstance(item, dict) and item.get(k) is not None), f"#{number}")
        named[key if key not in named else f"{key}#{number}"] = item
    return named
