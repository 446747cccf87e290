"""Expressions as Spark columns: those that are declared with each function, put together.

Every form gives null where Spark in ANSI mode would end the query. Leaves are found by the caller's `resolve`, which
gives a column for a name; a column of type `any` is a VARIANT, a windowed key a struct of key, start and end
(milliseconds), `timestamp` a bigint of milliseconds, `headers` an array of structs of key and value.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.serdes.types import ANY, STRING, Type
from ottla.streams.expressions.bound import FUNCTIONS, Bound
from ottla.streams.expressions.functions.structure import json_path
from ottla.streams.run.type_columns import READ_AS_TEXT, cast_column, literal, read_text, spark_type

Resolve: TypeAlias = Callable[[str], Column]


class _OnSpark:
    """What declarations make columns with."""

    F: Final = F

    @staticmethod
    def ddl(kind: Type) -> str:
        return spark_type(kind)

    @staticmethod
    def cast(column: Column, given: Type, wanted: Type) -> Column:
        return cast_column(column, given, wanted)


_SPARK: Final = _OnSpark()


def to_column(node: Bound, resolve: Resolve) -> Column:
    match node.function:
        case "leaf" | "variable":
            return resolve(node.options[0])
        case "header":
            named = F.filter(resolve("headers"), lambda header: header["key"] == F.lit(node.options[0]))
            return F.try_element_at(named, F.lit(-1))["value"]
        case "headers":
            pair = lambda header: F.struct(header["key"].alias("KEY"), header["value"].alias("VALUE"))  # noqa: E731
            return F.transform(F.coalesce(resolve("headers"), F.array()), pair)
        case "lit":
            return literal(node.options[0], node.type)
        case "json_field" | "json_item":
            return _from_json(node, ANY, resolve)
        case "cast" if node.args[0].type == ANY:
            return _from_json(node.args[0], node.type, resolve)
    column = FUNCTIONS[node.function].column
    assert column is not None, f"the planner let {node.function} through, which has no column"
    args: list[Any] = [
        _lambda(each, resolve) if each.function == "lambda" else to_column(each, resolve) for each in node.args
    ]
    made: Column = column(_SPARK, node, args)
    return made


def _lambda(node: Bound, resolve: Resolve) -> Callable[..., Column]:
    """As Spark's higher-order functions want it: with just as many parameters as they look for."""

    def body(*given: Column) -> Column:
        own = dict(zip(node.options, given, strict=True))
        return to_column(node.args[0], lambda name: own[name] if name in own else resolve(name))

    def of_one(only: Column) -> Column:
        return body(only)

    def of_two(first: Column, second: Column) -> Column:
        return body(first, second)

    def of_three(first: Column, second: Column, third: Column) -> Column:
        return body(first, second, third)

    return (of_one, of_two, of_three)[len(node.options) - 1]


# ---- JSON without a schema


def _from_json(node: Bound, wanted: Type, resolve: Resolve) -> Column:
    """All steps into a document in one path, and the cast with it: the document is walked once."""
    path = ""
    while node.function in {"json_field", "json_item"}:
        path = json_path(node.options[0]) + path
        node = node.args[0]
    column = to_column(node, resolve)
    if wanted.name in READ_AS_TEXT:
        text = F.try_variant_get(column, f"${path}", "string")
        return cast_column(text, STRING, wanted) if wanted.name == "decimal" else read_text(text, wanted)
    return F.try_variant_get(column, f"${path}", spark_type(wanted)) if path or wanted != ANY else column
