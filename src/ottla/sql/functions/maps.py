"""Maps, whose keys are texts."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression


def _entries(given: Expression, _: Expression) -> Expression:
    """They are in order whether that is asked for or not."""
    return e.entries(given)


FUNCTIONS: Final = table(
    scalar(
        "AS_MAP",
        e.as_map,
        "ARRAY<STRING>, ARRAY<T> -> MAP<STRING, T>",
        about="Of keys and values; values that are missing are null.",
    ),
    scalar("MAP_KEYS", e.map_keys, "MAP<STRING, T> -> ARRAY<STRING>", about="Its keys."),
    scalar("MAP_VALUES", e.map_values, "MAP<STRING, T> -> ARRAY<T>", about="Its values."),
    scalar(
        "MAP_UNION",
        e.map_union,
        "MAP<STRING, T>, MAP<STRING, T> -> MAP<STRING, T>",
        about="The entries of both; the second wins. Null only if both are.",
    ),
    scalar(
        "ENTRIES",
        _entries,
        "MAP<STRING, T>, BOOLEAN -> ARRAY<STRUCT<K STRING, V T>>",
        about="An array of structs with K and V, sorted by key if the second argument says so.",
    ),
)
