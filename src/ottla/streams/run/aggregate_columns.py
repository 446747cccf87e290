"""Aggregates as Spark has them, for `groupBy(...).agg(...)`: those that are declared to be native.

Sums of doubles, and what is made of them, may differ in the last digits: Spark adds in no certain order.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.streams.expressions import BoundAggregate
from ottla.streams.run.expression_columns import Resolve, to_column
from ottla.streams.run.type_columns import spark_type


def aggregate_column(aggregate: BoundAggregate, resolve: Resolve) -> Column:
    if aggregate.parts is not None:
        return F.struct(*[aggregate_column(part, resolve).alias(name) for name, part in aggregate.parts.items()])
    if not aggregate.arguments:
        return F.count(F.lit(1))
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
