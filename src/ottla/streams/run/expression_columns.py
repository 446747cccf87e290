"""Expressions and aggregates as Spark columns. Each function does what its twin in `expressions.functions` does.

Every form is chosen so that it gives null where Spark in ANSI mode would end the query. Leaves are found by the
caller's `resolve`, which gives a column for a name; a column of type `any` is a VARIANT, a windowed key a struct of
key, start and end (milliseconds), `timestamp` a bigint of milliseconds, `headers` an array of structs of key and value.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.serdes.types import ANY, BOOLEAN, DOUBLE, INT, STRING, Type
from ottla.streams.expressions import BoundAggregate
from ottla.streams.expressions.functions import Bound

Resolve: TypeAlias = Callable[[str], Column]
Build: TypeAlias = Callable[[Bound, list[Column]], Column]

_SIMPLE_TYPES: Final = {
    "string": "string",
    "binary": "binary",
    "int": "int",
    "long": "bigint",
    "double": "double",
    "boolean": "boolean",
    "any": "variant",
    "null": "string",
}
_LONGEST_STRING: Final = (1 << 31) - 1


def spark_type(kind: Type) -> str:
    """As DDL, for casts and schemas."""
    if kind.name == "array" and kind.element is not None:
        return f"array<{spark_type(kind.element)}>"
    if kind.name == "windowed" and kind.element is not None:
        return f"struct<key: {spark_type(kind.element)}, start: bigint, end: bigint>"
    if kind.name == "struct":
        return "struct<" + ", ".join(f"`{name}`: {spark_type(part)}" for name, part in kind.fields) + ">"
    return _SIMPLE_TYPES[kind.name]


def to_column(node: Bound, resolve: Resolve) -> Column:
    match node.function:
        case "leaf":
            return resolve(node.options[0])
        case "header":
            named = F.filter(resolve("headers"), lambda header: header["key"] == F.lit(node.options[0]))
            return F.try_element_at(named, F.lit(-1))["value"]
        case "lit":
            return literal(node.options[0], node.type)
        case "json_field" | "json_item":
            return _from_json(node, ANY, resolve)
        case "cast" if node.args[0].type == ANY:
            return _from_json(node.args[0], node.type, resolve)
    return _COLUMNS[node.function](node, [to_column(argument, resolve) for argument in node.args])


def literal(constant: Any, kind: Type) -> Column:
    if constant is not None and kind in (BOOLEAN, DOUBLE, INT, STRING):
        return F.lit(constant)
    return F.lit(constant).cast(spark_type(kind))


def aggregate_column(aggregate: BoundAggregate, resolve: Resolve) -> Column:
    """For `groupBy(...).agg(...)`."""
    if aggregate.parts is not None:
        return F.struct(*[aggregate_column(part, resolve).alias(name) for name, part in aggregate.parts.items()])
    if aggregate.argument is None:
        return F.count(F.lit(1))
    return _AGGREGATES[aggregate.kind](to_column(aggregate.argument, resolve))


_AGGREGATES: Final[dict[str, Callable[[Column], Column]]] = {
    "count": F.count,
    "sum": F.try_sum,
    "min": F.min,
    "max": F.max,
    "avg": F.avg,
}


# ---- JSON without a schema


def _from_json(node: Bound, wanted: Type, resolve: Resolve) -> Column:
    """All steps into a document in one path, and the cast with it: the document is walked once."""
    path = ""
    while node.function in {"json_field", "json_item"}:
        path = _step(node.options[0]) + path
        node = node.args[0]
    column = to_column(node, resolve)
    return F.try_variant_get(column, f"${path}", spark_type(wanted)) if path or wanted != ANY else column


def _step(part: str | int) -> str:
    if isinstance(part, int):
        # A path has no negative places; no array is that long.
        return f"[{part if part >= 0 else _LONGEST_STRING}]"
    if '"' in part and "'" in part:
        raise ValueError(f"a field name with both kinds of quotes cannot be looked up on Spark: {part!r}")
    return f"['{part}']" if '"' in part else f'["{part}"]'


def _is_null(node: Bound, args: list[Column]) -> Column:
    (column,) = args
    if node.args[0].type == ANY:  # JSON's null is a value to Spark
        return column.isNull() | F.is_variant_null(column)
    return column.isNull()


# ---- numbers


def _cast(node: Bound, args: list[Column]) -> Column:
    text = args[0].try_cast(spark_type(node.type))
    # A string made of bytes that are no UTF-8 would be carried on as it is.
    return F.try_validate_utf8(text) if node.args[0].type.name == "binary" else text


def _zero(node: Bound) -> Column:
    return F.lit(0).cast(spark_type(node.type))


def _negate(node: Bound, args: list[Column]) -> Column:
    return F.negative(args[0]) if node.type == DOUBLE else F.try_subtract(_zero(node), args[0])


def _abs(node: Bound, args: list[Column]) -> Column:
    if node.type == DOUBLE:
        return F.abs(args[0])
    return F.when(args[0] < 0, F.try_subtract(_zero(node), args[0])).otherwise(args[0])


def _whole(function: Callable[[Column], Column]) -> Build:
    """Spark's own ends the query, or makes 0 of NaN and the largest long of what is larger."""

    def build(_: Bound, args: list[Column]) -> Column:
        (number,) = args
        return F.when((number >= F.lit(-(2.0**63))) & (number < F.lit(2.0**63)), function(number))

    return build


def _extreme(function: Callable[..., Column]) -> Build:
    return lambda _, args: args[0] if len(args) == 1 else function(*args)


# ---- the rest


def _case(_: Bound, args: list[Column]) -> Column:
    pairs = list(zip(args[:-1:2], args[1:-1:2], strict=True))
    (condition, result), more = pairs[0], pairs[1:]
    return reduce(lambda case, pair: case.when(*pair), more, F.when(condition, result)).otherwise(args[-1])


def _substr(node: Bound, args: list[Column]) -> Column:
    start, length = node.options
    return F.substring(args[0], start, _LONGEST_STRING if length is None else max(length, 0))


def _split(node: Bound, args: list[Column]) -> Column:
    return F.split(args[0], node.options[0].pattern, -1)


def _struct(node: Bound, args: list[Column]) -> Column:
    return F.struct(*[column.alias(name) for name, column in zip(node.options, args, strict=True)])


def _array(node: Bound, args: list[Column]) -> Column:
    return F.array(*args).cast(spark_type(node.type)) if not args else F.array(*args)


def _plain(function: Callable[..., Column]) -> Build:
    return lambda _, args: function(*args)


_COLUMNS: Final[dict[str, Build]] = {
    "eq": _plain(lambda left, right: left == right),
    "ne": _plain(lambda left, right: left != right),
    "lt": _plain(lambda left, right: left < right),
    "le": _plain(lambda left, right: left <= right),
    "gt": _plain(lambda left, right: left > right),
    "ge": _plain(lambda left, right: left >= right),
    "and": _plain(lambda left, right: left & right),
    "or": _plain(lambda left, right: left | right),
    "not": _plain(lambda given: ~given),
    "add": _plain(F.try_add),
    "sub": _plain(F.try_subtract),
    "mul": _plain(F.try_multiply),
    "div": _plain(F.try_divide),
    "mod": _plain(F.try_mod),
    "negate": _negate,
    "abs": _abs,
    "floor": _whole(F.floor),
    "ceil": _whole(F.ceil),
    "round": lambda node, args: F.round(args[0], node.options[0]),
    "is_null": _is_null,
    "is_not_null": lambda node, args: ~_is_null(node, args),
    "isin": lambda _, args: args[0].isin(*args[1:]),
    "cast": _cast,
    "field": lambda node, args: args[0].getField(node.options[0]),
    "window_field": lambda node, args: args[0].getField(node.options[0]),
    "item": lambda node, args: F.get(args[0], node.options[0]),
    "lower": _plain(F.lower),
    "upper": _plain(F.upper),
    "trim": _plain(F.trim),
    "length": _plain(F.length),
    "substr": _substr,
    "contains": _plain(F.contains),
    "startswith": _plain(F.startswith),
    "endswith": _plain(F.endswith),
    "rlike": lambda node, args: args[0].rlike(node.options[0].pattern),
    "replace": _plain(F.replace),
    "split": _split,
    "concat": _plain(F.concat),
    "case": _case,
    "coalesce": _plain(F.coalesce),
    "least": _extreme(F.least),
    "greatest": _extreme(F.greatest),
    "struct": _struct,
    "array": _array,
    "spark": lambda node, args: node.options[0](*args),
}
