"""Aggregates as Spark has them, for `groupBy(...).agg(...)`: those that are declared to be native, of records or of
parts of results (`expressions.parts`).

Sums of doubles, and what is made of them, may differ in the last digits: Spark adds in no certain order.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from ottla.serdes.types import DOUBLE, INT, LONG, Type
from ottla.streams.expressions import BoundAggregate
from ottla.streams.expressions.parts import RECORDS, Merge, Part, extreme, present, total
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
        return _as_int(F.coalesce(F.sum(column.cast("bigint")), F.lit(0).cast("bigint")))
    low = F.coalesce(F.sum(column.bitwiseAND(_low_half())), F.lit(0).cast("bigint"))
    high = F.coalesce(F.sum(F.shiftright(column, 32)), F.lit(0).cast("bigint"))
    return _of_halves(high, low)[1]


def _low_half() -> Column:
    return F.lit(0xFFFFFFFF).cast("bigint")


def _of_halves(high: Column, low: Column) -> tuple[Column, Column]:
    """Sums of the halves of longs: what is above the low half of all, and the whole as Java has it, wrapped."""
    above = high + F.shiftright(low, 32)
    return above, F.shiftleft(above, 32).bitwiseOR(low.bitwiseAND(_low_half()))


def _as_int(total: Column) -> Column:
    """As Java has it, wrapped."""
    return F.shiftright(F.shiftleft(total, 32), 32).cast("int")


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


# ---- of parts


def merged_part(part: Part) -> Column:
    return _MERGED[part.merge](part.name).alias(part.name)


_MERGED: Final[dict[Merge, Callable[[str], Column]]] = {Merge.SUM: F.sum, Merge.MIN: F.min, Merge.MAX: F.max}


def result_column(aggregate: BoundAggregate) -> Column:
    """What users see, of columns with merged parts. The arguments are leaves."""
    if aggregate.parts is not None:
        return F.struct(*[result_column(part).alias(name) for name, part in aggregate.parts.items()])
    if not aggregate.arguments:
        return F.col(RECORDS.name)
    (argument,) = aggregate.arguments
    return _RESULTS[aggregate.kind](argument.options[0], argument.type).cast(spark_type(aggregate.type))


def _count_of_parts(name: str, _: Type) -> Column:
    return F.col(present(name).name)


def _total_of_parts(name: str, kind: Type) -> Column:
    """Of longs null while it does not fit."""
    parts = [F.col(part.name) for part in total(name, kind) or ()]
    if kind != LONG:
        return parts[0]
    high, whole = _of_halves(*parts)
    return F.when((high >= F.lit(-(1 << 31))) & (high < F.lit(1 << 31)), whole)


def _wrapped_total_of_parts(name: str, kind: Type) -> Column:
    parts = [F.col(part.name) for part in total(name, kind) or ()]
    if kind == LONG:
        return F.coalesce(_of_halves(*parts)[1], F.lit(0).cast("bigint"))
    sum_of = F.coalesce(parts[0], F.lit(0).cast(spark_type(LONG if kind == INT else kind)))
    return _as_int(sum_of) if kind == INT else sum_of


def _average_of_parts(name: str, kind: Type) -> Column:
    return F.try_divide(_total_of_parts(name, kind), _count_of_parts(name, kind))


def _ksql_average_of_parts(name: str, kind: Type) -> Column:
    sum_of, number = _wrapped_total_of_parts(name, kind).cast("double"), _count_of_parts(name, kind).cast("double")
    return F.coalesce(F.try_divide(sum_of, number), F.lit(0.0))


def _least_of_parts(name: str, kind: Type) -> Column:
    found, *nan = [F.col(part.name) for part in extreme(name, kind, Merge.MIN) or ()]
    return F.coalesce(found, F.when(nan[0] == 1, F.lit(float("nan")))) if nan else found


def _largest_of_parts(name: str, kind: Type) -> Column:
    found, *nan = [F.col(part.name) for part in extreme(name, kind, Merge.MAX) or ()]
    return F.when(nan[0] == 1, F.lit(float("nan"))).otherwise(found) if nan else found


_RESULTS: Final[dict[str, Callable[[str, Type], Column]]] = {
    "count": _count_of_parts,
    "sum": _total_of_parts,
    "avg": _average_of_parts,
    "min": _least_of_parts,
    "max": _largest_of_parts,
    "ksql_sum": _wrapped_total_of_parts,
    "ksql_avg": _ksql_average_of_parts,
}
