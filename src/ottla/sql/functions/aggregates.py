"""Functions of many rows. `undo` says which may follow a table, as in ksqlDB."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.serdes.types import LONG
from ottla.sql.functions.declare import AggregateFunction, Argument, Refused
from ottla.sql.functions.signatures import Signature, chosen
from ottla.streams import expressions as e
from ottla.streams.expressions import Aggregate

_SAME: Final = ("INT -> INT", "BIGINT -> BIGINT", "DOUBLE -> DOUBLE", "DECIMAL -> DECIMAL")
_LISTS: Final = (
    "ARRAY<INT> -> INT",
    "ARRAY<BIGINT> -> BIGINT",
    "ARRAY<DOUBLE> -> DOUBLE",
)
_NUMBERS: Final = ("INT -> DOUBLE", "BIGINT -> DOUBLE", "DOUBLE -> DOUBLE")


def _aggregate(
    name: str,
    build: Callable[..., Aggregate],
    *signatures: str,
    about: str,
    undo: bool = False,
) -> AggregateFunction:
    """`build` is given expressions. Without any argument, or with *, it is over ROWTIME."""
    known = [Signature.parse(each) for each in signatures]

    def make(args: Sequence[Argument]) -> Aggregate:
        made = chosen(name, known, list(args) or [Argument(e.timestamp, LONG)])
        return build(*[each.expression for each in made])

    return AggregateFunction(name, make, signatures, about, undo)


def _count(args: Sequence[Argument]) -> Aggregate:
    if len(args) > 1:
        raise Refused("COUNT takes * or one argument")
    return e.count(args[0].expression) if args else e.count()


def _whole(name: str, what: str, given: Argument, least: int = 1) -> int:
    if not given.is_literal or type(given.constant) is not int or given.constant < least:
        raise Refused(f"{what} of {name} is a whole number above 0, written out")
    return given.constant


def _by_offset(name: str, build: Callable[..., Aggregate]) -> Callable[[Sequence[Argument]], Aggregate]:
    def make(args: Sequence[Argument]) -> Aggregate:
        subject, *options = list(args) or [Argument(e.timestamp, LONG)]
        count: int | None = None
        ignore_nulls = True
        for option in options:
            if option.is_literal and isinstance(option.constant, bool):
                ignore_nulls = option.constant
            else:
                count = _whole(name, "how many values", option)
        if len(options) > 2:
            raise Refused(f"{name} takes a column, how many values, and whether nulls are ignored")
        return build(subject.expression, count, ignore_nulls=ignore_nulls)

    return make


def _ordered(name: str, args: Sequence[Argument]) -> list[Any]:
    subject, *others = chosen(name, [Signature.parse("C[, T...]")], args[:1])
    return [each.expression for each in (subject, *others)]


def _top(args: Sequence[Argument]) -> Aggregate:
    if len(args) < 2:
        raise Refused("TOPK takes a column, perhaps more columns, and how many values")
    (subject,) = _ordered("TOPK", args)
    return e.top_k(subject, *[each.expression for each in args[1:-1]], k=_whole("TOPK", "how many values", args[-1]))


def _top_distinct(args: Sequence[Argument]) -> Aggregate:
    if len(args) != 2:
        raise Refused("TOPKDISTINCT takes a column and how many values")
    (subject,) = _ordered("TOPKDISTINCT", args)
    return e.top_k_distinct(subject, _whole("TOPKDISTINCT", "how many values", args[1]))


FUNCTIONS: Final = {
    each.name: each
    for each in (
        AggregateFunction(
            "COUNT", _count, ("* -> BIGINT", "T -> BIGINT"), "How many rows, or values that are not null.", undo=True
        ),
        _aggregate("SUM", e.ksql_sum, *_SAME, about="Of the same type; integers wrap, 0 of nothing.", undo=True),
        _aggregate("SUM_LIST", e.ksql_sum_list, *_LISTS, about="Of all items of all arrays.", undo=True),
        _aggregate("AVG", e.ksql_avg, *_NUMBERS, about="A DOUBLE; 0.0 of nothing.", undo=True),
        _aggregate("MIN", e.min_, "C -> C", about="The smallest; null of nothing."),
        _aggregate("MAX", e.max_, "C -> C", about="The largest; null of nothing."),
        _aggregate(
            "COLLECT_LIST", e.collect_list, "T -> ARRAY<T>", about="All values as they came, nulls too.", undo=True
        ),
        _aggregate("COLLECT_SET", e.collect_set, "T -> ARRAY<T>", about="Each value once, null too."),
        AggregateFunction(
            "LATEST_BY_OFFSET",
            _by_offset("LATEST_BY_OFFSET", e.latest_by_offset),
            ("T[, BOOLEAN] -> T", "T, INT[, BOOLEAN] -> ARRAY<T>"),
            "The value that came last, or the last so many.",
        ),
        AggregateFunction(
            "EARLIEST_BY_OFFSET",
            _by_offset("EARLIEST_BY_OFFSET", e.earliest_by_offset),
            ("T[, BOOLEAN] -> T", "T, INT[, BOOLEAN] -> ARRAY<T>"),
            "The value that came first, or the first so many.",
        ),
        AggregateFunction(
            "TOPK",
            _top,
            ("C, INT -> ARRAY<C>", "C, T..., INT -> ARRAY<STRUCT<sort_col C, col0 T, ...>>"),
            "The largest so many, the largest first.",
        ),
        AggregateFunction(
            "TOPKDISTINCT", _top_distinct, ("C, INT -> ARRAY<C>",), "The largest so many, each once, the largest first."
        ),
        _aggregate(
            "HISTOGRAM", e.histogram, "STRING -> MAP<STRING, BIGINT>", about="How often each text came.", undo=True
        ),
        _aggregate(
            "COUNT_DISTINCT", e.count_distinct, "T -> BIGINT", about="About how many different values there are."
        ),
        _aggregate(
            "STDDEV_SAMP", e.var_samp, *_NUMBERS, about="The variance of a sample, as ksqlDB has it.", undo=True
        ),
        _aggregate("STDDEV_SAMPLE", e.stddev_samp, *_NUMBERS, about="The standard deviation of a sample.", undo=True),
        _aggregate("CORRELATION", e.correlation, "DOUBLE, DOUBLE -> DOUBLE", about="Pearson's.", undo=True),
        _aggregate("ATTR", e.attr, "T -> T", about="The value if all are equal, otherwise null.", undo=True),
    )
}
