"""Expressions over a record: the fast way to say what a stream does.

    stream.filter(value["amount"] > 100).map_values(value["name"].lower())

On Spark such an expression becomes a column and never leaves the JVM. In the test driver and in Python stages the same
object computes on plain Python values, with the same result. Nothing here needs Spark.

An `Expression` is a tree of calls. Bound to the types of a record (`bound`) every conversion is written out, and each
call is one function of a family in `functions`: declared once, with the types it takes, its Python body and its Spark
column. `docs/EXPRESSIONS.md` lists them. What has no column is computed by Python, and the planner says so.

Nulls follow SQL: an operation on null gives null, a comparison with null is neither true nor false, `filter` keeps a
record only if its condition is true. What has no answer (a sum that does not fit its type, division by zero, a cast
that fails, an array item that is not there) gives null as well and never ends a query, whatever Spark's ANSI mode is.
Arithmetic keeps the wider of the two types, of decimals it gives the one that SQL says; `/` gives a double unless one
side is a decimal and none a double; `%` has the sign of its left side, as in Java.
"""

from ottla.streams.expressions.aggregates import (
    Aggregate,
    BoundAggregate,
    aggregates,
    attr,
    avg,
    collect_list,
    collect_set,
    correlation,
    count,
    count_distinct,
    earliest_by_offset,
    histogram,
    ksql_avg,
    ksql_sum,
    ksql_sum_list,
    latest_by_offset,
    max_,
    min_,
    own,
    stddev_samp,
    sum_,
    sum_list,
    top_k,
    top_k_distinct,
    var_samp,
)
from ottla.streams.expressions.batches import BatchAggregate
from ottla.streams.expressions.bound import Inputs
from ottla.streams.expressions.expression import (
    Expression,
    ExpressionError,
    array,
    header,
    headers,
    key,
    left,
    lit,
    offset,
    partition,
    right,
    spark,
    struct,
    timestamp,
    topic,
    value,
    when,
)
from ottla.streams.expressions.functions import (
    bytes,
    conditional,
    dates,
    geo,
    json,
    ksql,
    ksql_casts,
    lambdas,
    lists,
    maps,
    numbers,
    operators,
    regex,
    strings,
    urls,
)
from ottla.streams.expressions.functions.bytes import *  # noqa: F403
from ottla.streams.expressions.functions.conditional import *  # noqa: F403
from ottla.streams.expressions.functions.dates import *  # noqa: F403
from ottla.streams.expressions.functions.geo import *  # noqa: F403
from ottla.streams.expressions.functions.json import *  # noqa: F403
from ottla.streams.expressions.functions.ksql import *  # noqa: F403
from ottla.streams.expressions.functions.ksql_casts import *  # noqa: F403
from ottla.streams.expressions.functions.lambdas import *  # noqa: F403
from ottla.streams.expressions.functions.lists import *  # noqa: F403
from ottla.streams.expressions.functions.maps import *  # noqa: F403
from ottla.streams.expressions.functions.numbers import *  # noqa: F403
from ottla.streams.expressions.functions.operators import *  # noqa: F403
from ottla.streams.expressions.functions.regex import *  # noqa: F403
from ottla.streams.expressions.functions.strings import *  # noqa: F403
from ottla.streams.expressions.functions.urls import *  # noqa: F403

__all__ = [
    "Aggregate",
    "BatchAggregate",
    "BoundAggregate",
    "Expression",
    "ExpressionError",
    "Inputs",
    "aggregates",
    "array",
    "attr",
    "avg",
    "collect_list",
    "collect_set",
    "correlation",
    "count",
    "count_distinct",
    "earliest_by_offset",
    "header",
    "headers",
    "histogram",
    "key",
    "ksql_avg",
    "ksql_sum",
    "ksql_sum_list",
    "latest_by_offset",
    "left",
    "lit",
    "max_",
    "min_",
    "offset",
    "own",
    "partition",
    "right",
    "spark",
    "stddev_samp",
    "struct",
    "sum_",
    "sum_list",
    "timestamp",
    "top_k",
    "top_k_distinct",
    "topic",
    "value",
    "var_samp",
    "when",
]
__all__ += bytes.__all__
__all__ += conditional.__all__
__all__ += dates.__all__
__all__ += geo.__all__
__all__ += json.__all__
__all__ += ksql.__all__
__all__ += ksql_casts.__all__
__all__ += lambdas.__all__
__all__ += lists.__all__
__all__ += maps.__all__
__all__ += numbers.__all__
__all__ += operators.__all__
__all__ += regex.__all__
__all__ += strings.__all__
__all__ += urls.__all__
