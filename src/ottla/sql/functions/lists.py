"""Arrays: the first item is number 1, two nulls are equal to each other."""

from typing import Final

from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e

_TWO: Final = "ARRAY<T>, ARRAY<T> -> ARRAY<T>"

FUNCTIONS: Final = table(
    scalar("ARRAY_CONCAT", e.array_concat, _TWO, about="One after the other; null only if both are."),
    scalar("ARRAY_CONTAINS", e.array_contains, "ARRAY<T>, T -> BOOLEAN", about="Whether it has the item; never null."),
    scalar("ARRAY_DISTINCT", e.array_distinct, "ARRAY<T> -> ARRAY<T>", about="Each item once."),
    scalar("ARRAY_EXCEPT", e.array_except, _TWO, about="The items of the first that the second has not, each once."),
    scalar("ARRAY_INTERSECT", e.array_intersect, _TWO, about="The items that both have, each once."),
    scalar("ARRAY_UNION", e.array_union, _TWO, about="The items of both, each once."),
    scalar(
        "ARRAY_JOIN",
        e.array_join,
        "ARRAY<C>[, STRING] -> STRING",
        about="The items as text with a separator between them, a comma if none is said; null is `null`.",
    ),
    scalar("ARRAY_LENGTH", e.array_length, "ARRAY<T> -> INT", about="How many items there are."),
    scalar("ARRAY_MAX", e.array_max, "ARRAY<C> -> C", about="The largest item; nulls do not count."),
    scalar("ARRAY_MIN", e.array_min, "ARRAY<C> -> C", about="The smallest item; nulls do not count."),
    scalar("ARRAY_REMOVE", e.array_remove, "ARRAY<T>, T -> ARRAY<T>", about="Without all items that equal the second."),
    scalar(
        "ARRAY_SORT",
        e.array_sort,
        "ARRAY<C>[, STRING] -> ARRAY<C>",
        about="In order, 'ASC' or 'DESC'; nulls are last both ways.",
    ),
    scalar(
        "SLICE",
        e.slice_,
        "ARRAY<T>, INT, INT -> ARRAY<T>",
        about="From one place to another; a place that is null is open.",
    ),
)
