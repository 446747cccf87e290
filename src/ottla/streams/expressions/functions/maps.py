"""Maps, whose keys are strings. Where an order matters it is that of the keys."""

from collections.abc import Sequence
from typing import Any, Final

from ottla.serdes.types import NULL, STRING, Type, array_of, common, map_of, struct_of
from ottla.streams.expressions.bound import Bound, Refused, Spark
from ottla.streams.expressions.functions.declare import (
    anything,
    coerced,
    element,
    family,
    some_list,
    some_map,
    takes,
    text,
    unified,
)

__all__ = ["as_map", "create_map", "entries", "map_get", "map_keys", "map_union", "map_values", "split_to_map"]
declare: Final = family("maps")


def sorted_keys(F: Any, given: Any) -> Any:
    return F.array_sort(F.map_keys(given))


# ---- made of others


def _create_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if len(args) % 2:
        raise Refused("a key without a value is left over")
    keys = [text(node) for node in args[::2]]
    values = [anything(node) for node in unified(args[1::2])]
    pairs = [node for pair in zip(keys, values, strict=True) for node in pair]
    return Bound(name, map_of(values[0].type if values else STRING), tuple(pairs), options)


def _create(*pairs: Any) -> dict[str, Any] | None:
    keys = pairs[::2]
    return None if None in keys else dict(zip(keys, pairs[1::2], strict=True))


def _fixed_keys(node: Bound) -> str | None:
    keys = [each.options[0] if each.function == "lit" else None for each in node.args[::2]]
    if None in keys or len({*keys}) < len(keys):
        return "Spark ends a query for a key that is null or there twice"
    return None


def _create_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    made = spark.F.create_map(*args)
    return made if args else made.cast(spark.ddl(node.type))


create_map: Final = declare(
    "create_map",
    "*pairs",
    _create_rule,
    _create,
    typed_column=_create_column,
    no_column=_fixed_keys,
    nulls="null for a key; a value may be null",
    about="`create_map(key, value, key, value, ...)`; of equal keys the last one counts. ksqlDB's MAP(key := value).",
)


def _as_map_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    keys, values = map(some_list, args)
    if element(keys.type) != STRING:
        raise Refused(f"the keys of a map are strings, not {element(keys.type)}")
    return Bound(name, map_of(element(values.type)), (keys, values), options)


def _as_map(keys: list[str | None], values: list[Any]) -> dict[str, Any] | None:
    if None in keys:
        return None
    found = [*values[: len(keys)], *[None] * (len(keys) - len(values))]
    return {key: each for key, each in zip(keys, found, strict=True) if key is not None}


as_map: Final = declare(
    "as_map",
    "keys, values",
    _as_map_rule,
    _as_map,
    about="A map of two arrays; values that are missing are null, of equal keys the last one counts.",
)


def _split(given: str, between: str, within: str) -> dict[str, str] | None:
    if not between or not within or between == within:
        return None
    found = {}
    for part in given.split(between):
        key, separator, held = part.partition(within)
        if separator:
            found[key] = held.partition(within)[0]
    return found


split_to_map: Final = declare(
    "split_to_map",
    "text, entry_delimiter, key_value_delimiter",
    takes(text, gives=map_of(STRING)),
    _split,
    about="A map of a text such as `a=1;b=2`; parts without the second delimiter are left out, the last of equal keys "
    "counts, equal or empty delimiters give null.",
)


def _union_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    maps = [some_map(node) if node.type != NULL else node for node in args]
    kind: Type = NULL
    for node in maps:
        joined = common(kind, node.type)
        if joined is None:
            raise Refused(f"{kind} and {node.type} do not go together")
        kind = joined
    kind = map_of(STRING) if kind == NULL else kind
    return Bound(name, kind, tuple(coerced(node, kind) for node in maps), options)


def _union(left: dict[str, Any] | None, right: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if left is None and right is None else {**(left or {}), **(right or {})}


def _union_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (left, right) = spark.F, args
    new = F.map_filter(left, lambda key, _: ~F.array_contains(F.map_keys(right), key))
    return F.coalesce(F.map_concat(new, right), left, right)


map_union: Final = declare(
    "map_union",
    "left, right",
    _union_rule,
    _union,
    typed_column=_union_column,
    nulls="null if both are",
    about="The entries of both; where both have a key the right one counts.",
)


# ---- taken apart


map_get: Final = declare(
    "map_get",
    "map, key",
    takes(some_map, text, gives=lambda args: element(args[0].type)),
    lambda given, key: given.get(key),
    column=lambda F, given, key: F.try_element_at(given, key),
    about='The value of a key; null if there is none. A fixed key is also said as `map["key"]`.',
)
map_keys: Final = declare(
    "map_keys",
    "map",
    takes(some_map, gives=array_of(STRING)),
    sorted,
    column=sorted_keys,
    about="Its keys, in order.",
)
map_values: Final = declare(
    "map_values",
    "map",
    takes(some_map, gives=lambda args: array_of(element(args[0].type))),
    lambda given: [given[key] for key in sorted(given)],
    column=lambda F, given: F.transform(sorted_keys(F, given), lambda key: F.try_element_at(given, key)),
    about="Its values, in the order of the keys.",
)


def entries_column(F: Any, given: Any) -> Any:
    return F.transform(
        sorted_keys(F, given), lambda key: F.struct(key.alias("K"), F.try_element_at(given, key).alias("V"))
    )


entries: Final = declare(
    "entries",
    "map",
    takes(some_map, gives=lambda args: array_of(struct_of({"K": STRING, "V": element(args[0].type)}))),
    lambda given: [{"K": key, "V": given[key]} for key in sorted(given)],
    column=entries_column,
    about="An array of structs with K and V, in the order of the keys.",
)
