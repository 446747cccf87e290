"""Expressions over a record: the fast way to say what a stream does.

    stream.filter(value["amount"] > 100).map_values(value["name"].lower())

On Spark such an expression becomes a column and never leaves the JVM. In the test driver and in Python stages the same
object computes on plain Python values, with the same result. Nothing here needs Spark.

Nulls follow SQL: an operation on null gives null, a comparison with null is neither true nor false, `filter` keeps a
record only if its condition is true. What has no answer (a sum that does not fit its type, division by zero, a cast
that fails, an array item that is not there) gives null as well and never ends a query, whatever Spark's ANSI mode is.
Arithmetic keeps the wider of the two types; `/` always gives a double; `%` has the sign of its left side, as in Java.
"""

from ottla.streams.expressions.expression import (
    Aggregate,
    BoundAggregate,
    Expression,
    ExpressionError,
    Inputs,
    aggregates,
    array,
    avg,
    coalesce,
    concat,
    count,
    greatest,
    header,
    key,
    least,
    left,
    lit,
    max_,
    min_,
    offset,
    partition,
    right,
    spark,
    struct,
    sum_,
    timestamp,
    topic,
    value,
    when,
)

__all__ = [
    "Aggregate",
    "BoundAggregate",
    "Expression",
    "ExpressionError",
    "Inputs",
    "aggregates",
    "array",
    "avg",
    "coalesce",
    "concat",
    "count",
    "greatest",
    "header",
    "key",
    "least",
    "left",
    "lit",
    "max_",
    "min_",
    "offset",
    "partition",
    "right",
    "spark",
    "struct",
    "sum_",
    "timestamp",
    "topic",
    "value",
    "when",
]
