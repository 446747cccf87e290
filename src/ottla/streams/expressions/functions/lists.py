"""Arrays. The first item is number 1 where places are counted, as in SQL; two nulls are equal to each other here."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.serdes import values as v
from ottla.serdes.types import BOOLEAN, DOUBLE, INT, NULL, STRING, Type, common
from ottla.streams.expressions.bound import Bound, Refused, Rule, Spark
from ottla.streams.expressions.functions.declare import (
    FAILURES,
    UNORDERED,
    coerced,
    element,
    family,
    not_literal,
    some_list,
    takes,
    text,
    type_of_first,
    whole,
)
from ottla.streams.expressions.limits import MOST_ITEMS, joined, within

__all__ = [
    "array_concat",
    "array_contains",
    "array_distinct",
    "array_except",
    "array_intersect",
    "array_join",
    "array_length",
    "array_max",
    "array_min",
    "array_remove",
    "array_sort",
    "array_union",
    "slice_",
]
declare: Final = family("lists")


# ---- rules


def _lists(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """Arrays of one type."""
    lists = [some_list(node) for node in args]
    known = [node.type for node in args if node.type != NULL]
    if any(kind != known[0] for kind in known[1:]):
        raise Refused(f"{known[0]} and {known[1]} do not go together")
    kind = known[0] if known else lists[0].type
    return Bound(name, kind, tuple(coerced(node, kind) for node in args), options)


def _list_and_item(gives: "Type | Callable[[Sequence[Bound]], Type]") -> Rule:
    def rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
        items = some_list(args[0])
        own = element(items.type)
        joined = common(own, args[1].type)
        if joined != own and not (own.is_integer and args[1].type.is_integer):
            raise Refused(f"an array of {own} has no {args[1].type}; cast it")
        item = coerced(args[1], own)
        return Bound(name, gives if isinstance(gives, Type) else gives([items]), (items, item), options)

    return rule


def _of_ordered(node: Bound) -> Bound:
    items = some_list(node)
    if element(items.type).name in UNORDERED:
        raise Refused(f"{element(items.type)} has no order")
    return items


def _of_simple(node: Bound) -> Bound:
    items = some_list(node)
    if element(items.type).name in {"array", "struct", "map", "any", "binary"}:
        raise Refused(f"items of {element(items.type)} cannot be joined to a text")
    return items


def same_as(item: Any) -> Any:
    """Equal for equal items: NaN equals itself, a zero has no sign."""
    match item:
        case float():
            return "NaN" if item != item else item + 0.0  # noqa: PLR0124
        case dict():
            return tuple((name, same_as(part)) for name, part in item.items())
        case list() | tuple():
            return tuple(map(same_as, item))
    return item


def _first_of_each(items: Sequence[Any]) -> list[Any]:
    seen: dict[Any, Any] = {}
    for item in items:
        seen.setdefault(same_as(item), item)
    return list(seen.values())


def _except(items: list[Any], others: list[Any]) -> list[Any]:
    unwanted = {same_as(item) for item in others}
    return [item for item in _first_of_each(items) if same_as(item) not in unwanted]


def _intersect(items: list[Any], others: list[Any]) -> list[Any]:
    wanted = {same_as(item) for item in others}
    return [item for item in _first_of_each(items) if same_as(item) in wanted]


# ---- sets


array_distinct: Final = declare(
    "array_distinct",
    "items",
    takes(some_list, gives=type_of_first),
    _first_of_each,
    column=lambda F, items: F.array_distinct(items),
    about="Each item once, in the order of first occurrence.",
)
array_union: Final = declare(
    "array_union",
    "items, others",
    _lists,
    lambda items, others: _first_of_each([*items, *others]),
    column=lambda F, items, others: F.array_union(items, others),
    about="The items of both, each once.",
)
array_except: Final = declare(
    "array_except",
    "items, others",
    _lists,
    _except,
    column=lambda F, items, others: F.array_except(items, others),
    about="The items that the other array does not have, each once.",
)
array_intersect: Final = declare(
    "array_intersect",
    "items, others",
    _lists,
    _intersect,
    column=lambda F, items, others: F.array_intersect(items, others),
    about="The items that the other array has as well, each once.",
)


def _concat(items: list[Any] | None, others: list[Any] | None) -> list[Any] | None:
    if items is None and others is None:
        return None
    within(len(items or ()) + len(others or ()), MOST_ITEMS)
    return [*(items or ()), *(others or ())]


array_concat: Final = declare(
    "array_concat",
    "items, others",
    _lists,
    _concat,
    fails=True,
    typed_column=lambda spark, node, args: _concat_column(spark, node, *args),
    nulls="null if both are",
    about="The items of one array after those of another.",
)


def _concat_column(spark: Spark, node: Bound, items: Any, others: Any) -> Any:
    F, nothing = spark.F, spark.F.array().cast(spark.ddl(node.type))
    both = F.concat(F.coalesce(items, nothing), F.coalesce(others, nothing))
    return F.when(items.isNotNull() | others.isNotNull(), both)


# ---- single items


def _contains(items: list[Any] | None, item: Any) -> bool:
    return items is not None and same_as(item) in map(same_as, items)


array_contains: Final = declare(
    "array_contains",
    "items, item",
    _list_and_item(BOOLEAN),
    _contains,
    column=lambda F, items, item: F.coalesce(F.exists(items, lambda each: each.eqNullSafe(item)), F.lit(False)),
    nulls="false for the array; a null item is looked for",
    about="Whether it has the item.",
)
array_remove: Final = declare(
    "array_remove",
    "items, item",
    _list_and_item(type_of_first),
    lambda items, item: None if items is None else [each for each in items if same_as(each) != same_as(item)],
    column=lambda F, items, item: F.filter(items, lambda each: ~each.eqNullSafe(item)),
    nulls="null for the array; a null item is taken out",
    about="Without all items that are equal to this one.",
)
array_length: Final = declare(
    "array_length",
    "items",
    takes(some_list, gives=INT),
    len,
    column=lambda F, items: F.array_size(items),
    about="How many items there are.",
)
array_max: Final = declare(
    "array_max",
    "items",
    takes(_of_ordered, gives=lambda args: element(args[0].type)),
    lambda items: v.extreme(items, largest=True),
    column=lambda F, items: F.array_max(items),
    about="The largest item; nulls do not count, NaN is above every number.",
)
array_min: Final = declare(
    "array_min",
    "items",
    takes(_of_ordered, gives=lambda args: element(args[0].type)),
    lambda items: v.extreme(items, largest=False),
    column=lambda F, items: F.array_min(items),
    about="The smallest item; nulls do not count.",
)


# ---- order


def _sort(items: list[Any], direction: str) -> list[Any] | None:
    if direction.upper() not in {"ASC", "ASCENDING", "DESC", "DESCENDING"}:
        return None
    present = sorted((item for item in items if item is not None), key=v.order_key)
    if direction.upper().startswith("DESC"):
        present = sorted(present, key=v.order_key, reverse=True)
    return [*present, *[None] * (len(items) - len(present))]


def _sort_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (items, _), direction = spark.F, args, node.args[1].options[0]
    match None if direction is None else direction.upper():
        case "ASC" | "ASCENDING":
            return F.array_sort(items)
        case "DESC" | "DESCENDING":
            return F.sort_array(items, asc=False)
    return F.lit(None).cast(spark.ddl(node.type))


array_sort: Final = declare(
    "array_sort",
    "items, direction='ASC'",
    takes(_of_ordered, text, gives=type_of_first),
    _sort,
    typed_column=_sort_column,
    no_column=not_literal(1, "the direction"),
    about="In order, `ASC` or `DESC`; nulls are last both ways.",
)


# ---- parts


def _slice(items: list[Any] | None, first: int | None, last: int | None) -> list[Any] | None:
    if items is None:
        return None
    start, end = 1 if first is None else first, len(items) if last is None else last
    if start < 1 or end > len(items) or start > end + 1:
        return None
    return items[start - 1 : end]


def _slice_column(F: Any, items: Any, first: Any, last: Any) -> Any:
    start, end = F.coalesce(first, F.lit(1)), F.coalesce(last, F.array_size(items))
    inside = (start >= 1) & (end <= F.array_size(items)) & (start.cast("bigint") <= end.cast("bigint") + 1)
    return F.when(inside, F.slice(items, start, end - start + 1))


slice_: Final = declare(
    "slice",
    "items, first, last",
    takes(some_list, whole, gives=type_of_first),
    _slice,
    column=_slice_column,
    nulls="null for the array; an end that is null is open",
    about="The items from one place to another, both included; null if a place is outside.",
)


def _texts(kind: Type) -> Callable[[Any], str]:
    if kind == DOUBLE:
        return v.double_text
    if kind == BOOLEAN:
        return lambda item: "true" if item else "false"
    return str


def _build_join(node: Bound, args: list[Any]) -> Any:
    items, separator = args
    text_of_item = _texts(element(node.args[0].type))

    def evaluate(inputs: Any) -> Any:
        given, between = items(inputs), separator(inputs)
        if given is None or between is None:
            return None
        try:
            return joined(between, ["null" if item is None else text_of_item(item) for item in given])
        except FAILURES:
            return None

    return evaluate


array_join: Final = declare(
    "array_join",
    "items, separator=','",
    takes(_of_simple, text, gives=STRING),
    build=_build_join,
    typed_column=lambda spark, node, args: spark.F.call_function(
        "array_join", args[0].cast("array<string>"), args[1], spark.F.lit("null")
    ),
    # Java before 19 writes some doubles with a digit too many (JDK-4511638).
    no_column=lambda node: "Java writes doubles in its own way" if element(node.args[0].type) == DOUBLE else None,
    about="The items as text with a separator between them; an item that is null is `null`.",
)
