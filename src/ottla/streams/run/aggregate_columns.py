"""Aggregates as Spark has them, for `groupBy(...).agg(...)`: those that are declared to be native.

Sums of doubles, and what is made of them, may differ in the last digits: Spark adds in no certain order.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.serdes.types import DOUBLE, INT, Type
from ottla.streams.expressions import BoundAggregate
from ottla.streams.run.expression_columns import Resolve, to_column
from ottla.streams.run.type_columns import spark_type


def aggregate_column(aggregate: BoundAggregate, resolve: Resolve) -> Column:
    if aggregate.parts is not None:
        return F.struct(*[aggregate_column(part, resolve).alias(name) for name, part in aggregate.parts.items()])
    if not aggregate.arguments:
        return F.count(F.lit(1))
    if aggregate.kind in _TYPED:
        (argument,) = aggregate.arguments
        return _TYPED[aggregate.kind](to_column(argument, resolve), argument.type)
    found = _AGGREGATES[aggregate.kind](*[to_column(argument, resolve) for argument in aggregate.arguments])
    return found.cast(spark_type(aggregate.type))


_AGGREGATES: Final[dict[str, Callable[..., Column]]] = {
    "count": F.count,
    "sum": F.try_sum,
    "min": F.min,
    "max": F.max,
    "avg": F.avg,
    "var_samp": lambda column: F.coalesce(F.var_samp(column), F.lit(0.0)),
    "stddev_samp": lambda column: F.coalesce(F.stddev_samp(column), F.lit(0.0)),
    "correlation": lambda first, second: F.coalesce(F.corr(first, second), F.lit(float("nan"))),
}


def _wrapped_sum(column: Column, kind: Type) -> Column:
    """Of longs in two halves, since Spark's own sum has no result where one of Java wraps."""
    if kind == INT:
        total = F.coalesce(F.sum(column.cast("bigint")), F.lit(0).cast("bigint"))
        return F.shiftright(F.shiftleft(total, 32), 32).cast("int")
    low_half = F.lit(0xFFFFFFFF).cast("bigint")
    low = F.coalesce(F.sum(column.bitwiseAND(low_half)), F.lit(0).cast("bigint"))
    high = F.coalesce(F.sum(F.shiftright(column, 32)), F.lit(0).cast("bigint"))
    return F.shiftleft(high + F.shiftright(low, 32), 32).bitwiseOR(low.bitwiseAND(low_half))


def _ksql_sum(column: Column, kind: Type) -> Column:
    if kind.is_integer:
        return _wrapped_sum(column, kind)
    if kind == DOUBLE:
        return F.coalesce(F.sum(column), F.lit(0.0))
    total = F.coalesce(F.try_sum(column), F.lit(0).cast(spark_type(kind)))
    fitted = total.try_cast(spark_type(kind))
    return F.when(fitted.isNull(), F.raise_error(F.lit(f"a sum has more digits than {kind} has room for"))).otherwise(
        fitted
    )


def _ksql_avg(column: Column, kind: Type) -> Column:
    total = _wrapped_sum(column, kind) if kind.is_integer else F.sum(column)
    return F.coalesce(F.try_divide(total.cast("double"), F.count(column).cast("double")), F.lit(0.0))


_TYPED: Final[dict[str, Callable[[Column, Type], Column]]] = {"ksql_sum": _ksql_sum, "ksql_avg": _ksql_avg}
