"""Aggregates over the records of a group. Each is declared once: which types it takes and gives, its fold in Python
with its rule for nulls, whether it can take a record back (for tables), and whether Spark has the same
(`run.aggregate_columns`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ottla.serdes.types import (
    ANY,
    DOUBLE,
    LONG,
    MAX_PRECISION,
    NULL,
    STRING,
    Type,
    array_of,
    decimal_of,
    map_of,
    struct_of,
)
from ottla.streams.expressions import collecting, folds, ksql_folds, statistics
from ottla.streams.expressions.batches import BatchAggregate, BatchFold
from ottla.streams.expressions.bound import Bound, Refused
from ottla.streams.expressions.expression import Expression, ExpressionError, lit
from ottla.streams.expressions.folds import FoldFunctions, StructFold
from ottla.streams.expressions.functions.declare import coerced

_SUM_DIGITS: Final = 10
"""How many digits more than the summands a sum of decimals may have, as in Spark."""


class Aggregate:
    """A count, sum, list, ... over the records of a group, or several of them side by side.

    Spark computes some natively. Record by record it is a fold; what is stored and sent on is `result(state)`.
    """

    __slots__ = ("arguments", "kind", "options", "parts")

    def __init__(
        self,
        kind: str,
        arguments: Sequence[Expression] = (),
        options: Mapping[str, Any] | None = None,
        parts: "Mapping[str, Aggregate] | None" = None,
    ) -> None:
        self.kind = kind
        self.arguments = tuple(arguments)
        self.options = dict(options or {})
        self.parts = dict(parts or {})

    @property
    def counts_records(self) -> bool:
        """Whether it is `count()`, which looks at nothing."""
        return self.kind == "count" and not self.arguments

    def bind(self, types: Mapping[str, Type]) -> "BoundAggregate":
        if self.kind == "struct":
            parts = {name: part.bind(types) for name, part in self.parts.items()}
            return BoundAggregate("struct", struct_of({name: part.type for name, part in parts.items()}), parts=parts)
        bound = [argument.bind(types) for argument in self.arguments]
        try:
            kind, arguments = DECLARED[self.kind].rule(bound, self.options)
        except Refused as refused:
            raise ExpressionError(f"{self!r}: {refused}") from None
        return BoundAggregate(self.kind, kind, arguments, self.options)

    def each(self) -> "list[Aggregate]":
        """Itself, or those that stand side by side."""
        return [each for part in self.parts.values() for each in part.each()] if self.kind == "struct" else [self]

    def expressions(self) -> list[Expression]:
        """All that it reads."""
        return [argument for each in self.each() for argument in each.arguments]

    @property
    def needs_spark(self) -> bool:
        return any(argument.needs_spark for argument in self.expressions())

    @property
    def batched(self) -> bool:
        """Whether one of them is given many records at once."""
        return any(each.kind == "own" for each in self.each())

    def why_not_native(self) -> str | None:
        """None: Spark has all of it, with the same results."""
        missing = next((each for each in self.each() if not DECLARED[each.kind].native), None)
        if missing is None:
            return None
        if missing.kind == "own":
            return f"{type(missing.options['own']).__name__} is a class of Python"
        return f"Spark has no aggregate that does what {missing.kind} does"

    def why_no_undo(self) -> str | None:
        """None: what was added can be taken back, so that it can follow a table."""
        missing = [each for each in self.each() if not _can_undo(each)]
        return f"{missing[0]!r} cannot take back what it was given" if missing else None

    def keeps_state(self, *, undo: bool = False) -> bool:
        """Whether the state has to be kept beside the result, which does not tell it."""
        return any(
            (undo and DECLARED[each.kind].undoing is not None) or not DECLARED[each.kind].resumes(each.options)
            for each in self.each()
        )

    def __repr__(self) -> str:
        if self.kind == "struct":
            return f"aggregates({', '.join(f'{name}={part!r}' for name, part in self.parts.items())})"
        name = f"{self.kind}_" if self.kind in {"sum", "min", "max"} else self.kind
        given = [option for option in self.options.items() if option[1] is not None and option[0] != "own"]
        if self.kind == "own":
            name = type(self.options["own"]).__name__
        return f"{name}({', '.join([*map(repr, self.arguments), *(f'{key}={value!r}' for key, value in given)])})"


def _can_undo(aggregate: Aggregate) -> bool:
    if aggregate.kind == "own":
        return bool(aggregate.options["own"].can_undo)
    declared = DECLARED[aggregate.kind]
    return declared.undo or declared.undoing is not None


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """An aggregate with types, and its fold for plain Python."""

    kind: str
    type: Type
    arguments: tuple[Bound, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: "Mapping[str, BoundAggregate] | None" = None

    def fold(self, *, undo: bool = False) -> FoldFunctions:
        """`undo`: one that can take records back."""
        if self.parts is not None:
            return StructFold({name: part.fold(undo=undo) for name, part in self.parts.items()})
        declared = DECLARED[self.kind]
        return (declared.undoing if undo and declared.undoing is not None else declared.fold)(self)


Rule: TypeAlias = Callable[[Sequence[Bound], Mapping[str, Any]], tuple[Type, tuple[Bound, ...]]]
"""From the arguments to the type of the result, and the arguments with every conversion written out."""


def _always(_: Mapping[str, Any]) -> bool:
    return True


def _never(_: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Declared:
    rule: Rule
    fold: Callable[[BoundAggregate], FoldFunctions]
    undo: bool = False
    """Whether the fold can take back."""
    undoing: Callable[[BoundAggregate], FoldFunctions] | None = None
    """Another fold that can, and keeps more for it."""
    native: bool = False
    """Whether Spark has the same."""
    resumes: Callable[[Mapping[str, Any]], bool] = _always
    """Whether a result tells its state."""


# ---- rules


def _number(argument: Bound) -> Bound:
    if argument.type in (ANY, NULL):
        return coerced(argument, DOUBLE)
    if not argument.type.is_number:
        raise Refused(f"a number is needed, not {argument.type}; use .cast('double') or .cast('long')")
    return argument


def _known(argument: Bound) -> Bound:
    """A value that will be kept needs a type that says how."""
    if argument.type.has("any", "null", "windowed"):
        raise Refused(f"values of type {argument.type} cannot be kept; cast them, or give the serde a schema")
    return argument


def _ordered(argument: Bound) -> Bound:
    if argument.type.name in {"array", "map", "struct", "windowed", "any", "null"}:
        raise Refused(f"{argument.type} has no order; cast it")
    return argument


def _count(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return LONG, tuple(arguments)


def _sum_type(kind: Type) -> Type:
    if kind.name == "decimal":
        return decimal_of(min(kind.precision + _SUM_DIGITS, MAX_PRECISION), kind.scale)
    return LONG if kind.is_integer else DOUBLE


def _sum(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    number = _number(arguments[0])
    total = _sum_type(number.type)
    return total, (number if number.type.name == "decimal" else coerced(number, total),)


def _sum_of_lists(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    element = arguments[0].type.element
    if arguments[0].type.name != "array" or element is None or not element.is_number:
        raise Refused(f"an array of numbers is needed, not {arguments[0].type}")
    return _sum_type(element), (arguments[0],)


def _same_number(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    number = _number(arguments[0])
    return number.type, (number,)


def _same_numbers(arguments: Sequence[Bound], options: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    _sum_of_lists(arguments, options)
    element = arguments[0].type.element
    assert element is not None
    return element, tuple(arguments)


def _averaged(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    number = _number(arguments[0])
    if number.type.name == "decimal":
        raise Refused("decimals have no average here; cast them to double")
    return DOUBLE, (number,)


def _of_doubles(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return DOUBLE, tuple(coerced(_number(each), DOUBLE) for each in arguments)


def _extreme(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return _ordered(arguments[0]).type, tuple(arguments)


def _kept(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return _known(arguments[0]).type, tuple(arguments)


def _list(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return array_of(_known(arguments[0]).type), tuple(arguments)


def _by_offset(arguments: Sequence[Bound], options: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return (_kept if options["n"] is None else _list)(arguments, options)


def _top(arguments: Sequence[Bound], options: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    first, *more = arguments
    _ordered(first)
    if not more:
        return _list(arguments, options)
    columns = {f"col{place}": _known(each).type for place, each in enumerate(more)}
    return array_of(struct_of({"sort_col": first.type, **columns})), tuple(arguments)


def _histogram(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    if arguments[0].type not in (STRING, ANY, NULL):
        raise Refused(f"a string is needed, not {arguments[0].type}; use .cast('string')")
    return map_of(LONG), (coerced(arguments[0], STRING),)


def _distinct(arguments: Sequence[Bound], _: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    return LONG, (_known(arguments[0]),)


def _own(arguments: Sequence[Bound], options: Mapping[str, Any]) -> tuple[Type, tuple[Bound, ...]]:
    own: BatchAggregate = options["own"]
    return own.result_type(), tuple(
        coerced(each, kind) for each, kind in zip(arguments, own.argument_types(), strict=True)
    )


DECLARED: Final[dict[str, Declared]] = {
    "count": Declared(_count, folds.Count, undo=True, native=True),
    "sum": Declared(_sum, folds.Sum, undoing=folds.UndoableSum, native=True),
    "min": Declared(_extreme, folds.Extreme, undoing=folds.UndoableExtreme, native=True),
    "max": Declared(_extreme, folds.Maximum, undoing=folds.UndoableMaximum, native=True),
    "avg": Declared(_of_doubles, folds.Average, undo=True, native=True, resumes=_never),
    "sum_list": Declared(_sum_of_lists, folds.SumOfLists, undo=True, resumes=_never),
    "collect_list": Declared(_list, collecting.CollectList, undo=True),
    "collect_set": Declared(_list, collecting.CollectSet),
    "latest_by_offset": Declared(_by_offset, collecting.Latest),
    "earliest_by_offset": Declared(
        _by_offset,
        collecting.Earliest,
        resumes=lambda options: options["n"] is not None or options["ignore_nulls"],
    ),
    "top_k": Declared(_top, collecting.TopK),
    "top_k_distinct": Declared(_top, collecting.TopKDistinct),
    "histogram": Declared(_histogram, collecting.Histogram, undo=True),
    "attr": Declared(_kept, collecting.Attribute, undo=True, resumes=_never),
    "count_distinct": Declared(_distinct, statistics.CountDistinct, resumes=_never),
    "var_samp": Declared(_of_doubles, statistics.Variance, undo=True, native=True, resumes=_never),
    "stddev_samp": Declared(_of_doubles, statistics.Deviation, undo=True, native=True, resumes=_never),
    "correlation": Declared(_of_doubles, statistics.Correlation, undo=True, native=True, resumes=_never),
    "ksql_sum": Declared(_same_number, ksql_folds.WrappingSum, undo=True, native=True),
    "ksql_sum_list": Declared(_same_numbers, ksql_folds.WrappingSumOfLists, undo=True),
    "ksql_avg": Declared(_averaged, ksql_folds.WrappingAverage, undo=True, native=True, resumes=_never),
    "own": Declared(_own, BatchFold, undo=True, resumes=_never),
}


# ---- what users call


def count(expression: Expression | None = None) -> Aggregate:
    """The number of records, or of those for which the expression is not null. A long."""
    return Aggregate("count", [] if expression is None else [expression])


def sum_(expression: Expression) -> Aggregate:
    """A long for integers, a double for doubles, for decimals one with ten digits more; null where it does not fit.
    Null without any value."""
    return _of("sum", expression)


def sum_list(expression: Expression) -> Aggregate:
    """Of all items of all lists; as `sum_`."""
    return _of("sum_list", expression)


def min_(expression: Expression) -> Aggregate:
    """On a table it keeps every value that there is."""
    return _of("min", expression)


def max_(expression: Expression) -> Aggregate:
    """On a table it keeps every value that there is."""
    return _of("max", expression)


def avg(expression: Expression) -> Aggregate:
    """A double. Null without any value."""
    return _of("avg", expression)


def collect_list(expression: Expression, *, limit: int | None = None) -> Aggregate:
    """All values in the order of arrival, nulls too; what comes after `limit` is ignored."""
    return _of("collect_list", expression, limit=_positive("limit", limit))


def collect_set(expression: Expression, *, limit: int | None = None) -> Aggregate:
    """Each value once, in the order of first arrival, null too."""
    return _of("collect_set", expression, limit=_positive("limit", limit))


def latest_by_offset(expression: Expression, n: int | None = None, *, ignore_nulls: bool = True) -> Aggregate:
    """The value that came last, or with n the list of the last n, oldest first."""
    return _of("latest_by_offset", expression, n=_positive("n", n), ignore_nulls=ignore_nulls)


def earliest_by_offset(expression: Expression, n: int | None = None, *, ignore_nulls: bool = True) -> Aggregate:
    """The value that came first, or with n the list of the first n."""
    return _of("earliest_by_offset", expression, n=_positive("n", n), ignore_nulls=ignore_nulls)


def top_k(expression: Expression, *columns: Expression, k: int) -> Aggregate:
    """The k largest values, the largest first; of equal ones those that came first. With more columns a list of
    structs: the value as `sort_col`, the others as `col0`, `col1`, ..."""
    return Aggregate("top_k", [lit(each) for each in (expression, *columns)], {"k": _positive("k", k)})


def top_k_distinct(expression: Expression, k: int) -> Aggregate:
    """The k largest different values, the largest first."""
    return _of("top_k_distinct", expression, k=_positive("k", k))


def histogram(expression: Expression) -> Aggregate:
    """How often each text came, as a map. Of at most 1,000 texts: later ones are ignored."""
    return _of("histogram", expression)


def count_distinct(expression: Expression) -> Aggregate:
    """How many different values there were: exact up to 1,024, then about one per cent off."""
    return _of("count_distinct", expression)


def var_samp(expression: Expression) -> Aggregate:
    """The variance of a sample, a double: 0.0 below two values. ksqlDB's STDDEV_SAMP."""
    return _of("var_samp", expression)


def stddev_samp(expression: Expression) -> Aggregate:
    """The standard deviation of a sample, a double: 0.0 below two values. ksqlDB's STDDEV_SAMPLE."""
    return _of("stddev_samp", expression)


def correlation(first: Expression, second: Expression) -> Aggregate:
    """Pearson's, a double; pairs with a null are left out. NaN below two pairs, or if one of the two never changes."""
    return Aggregate("correlation", [lit(first), lit(second)])


def attr(expression: Expression) -> Aggregate:
    """The value, if all are equal; otherwise null."""
    return _of("attr", expression)


def ksql_sum(expression: Expression) -> Aggregate:
    """Of the same type as what is added: integers wrap, a decimal that does not fit ends the query. 0 of nothing."""
    return _of("ksql_sum", expression)


def ksql_sum_list(expression: Expression) -> Aggregate:
    """Of all items of all lists; as `ksql_sum`."""
    return _of("ksql_sum_list", expression)


def ksql_avg(expression: Expression) -> Aggregate:
    """A double; 0.0 of nothing. The sum of integers that it is made of wraps."""
    return _of("ksql_avg", expression)


def own(aggregate: BatchAggregate, *arguments: Expression) -> Aggregate:
    """An aggregate of your own, over the values of these expressions."""
    if len(arguments) != len(aggregate.takes):
        raise TypeError(f"{type(aggregate).__name__} takes {len(aggregate.takes)} arguments, not {len(arguments)}")
    return Aggregate("own", [lit(each) for each in arguments], {"own": aggregate})


def aggregates(**parts: Aggregate) -> Aggregate:
    """Several at once: `aggregates(low=min_(value["price"]), trades=count())` gives {"low": ..., "trades": ...}."""
    if not parts:
        raise TypeError("aggregates() needs at least one: aggregates(name=count(), ...)")
    for name, part in parts.items():
        if not isinstance(part, Aggregate):
            raise TypeError(f"{name} has to be an aggregate such as count() or sum_(...), not {part!r}")
    return Aggregate("struct", parts=parts)


def _of(kind: str, expression: Expression, **options: Any) -> Aggregate:
    return Aggregate(kind, [lit(expression)], options)


def _positive(name: str, number: int | None) -> int | None:
    if number is not None and (not isinstance(number, int) or number < 1):
        raise ValueError(f"{name} has to be a number above 0, not {number!r}")
    return number
