"""Comparisons, logic and arithmetic: what Python's operators become."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.serdes import decimals
from ottla.serdes import values as v
from ottla.serdes.types import ANY, BOOLEAN, DOUBLE, LONG, MAX_PRECISION, NULL, STRING, as_decimal, decimal_of
from ottla.streams.expressions.bound import FUNCTIONS, Bound, Build, BuildColumn, Evaluator, Refused, Spark
from ottla.streams.expressions.functions.declare import (
    boolean,
    by_type,
    coerced,
    family,
    number,
    one,
    ordered,
    strict,
    takes,
    unified,
    zero,
)

__all__ = ["is_distinct"]
declare: Final = family("operators")


# ---- comparisons


def _comparison(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if any(node.type == NULL for node in args):
        raise Refused("a comparison with None is never true; use .is_null() or .is_not_null()")
    if all(node.type == ANY for node in args):
        raise Refused("neither side has a known type; cast one of them, or give the JSON serde a schema")
    for node in args:
        if node.type.name in {"array", "struct", "windowed", "map"}:
            raise Refused(f"{node.type} cannot be compared; compare its fields")
    return Bound(name, BOOLEAN, tuple(unified(args)), options)


def _compare(
    name: str, symbol: str, of_doubles: Callable[..., bool], of_others: Callable[..., bool], column: Callable[..., Any]
) -> None:
    declare(
        name,
        "left, right",
        _comparison,
        build=by_type(double=of_doubles, other=of_others),
        column=lambda F, left, right: column(left, right),
        about=f"`left {symbol} right`. NaN equals itself and is above every other number.",
    )


_compare("eq", "==", v.equal_doubles, operator.eq, operator.eq)
_compare("ne", "!=", lambda left, right: not v.equal_doubles(left, right), operator.ne, operator.ne)
_compare("lt", "<", v.less_doubles, operator.lt, operator.lt)
_compare("gt", ">", lambda left, right: v.less_doubles(right, left), operator.gt, operator.gt)
_compare("le", "<=", lambda left, right: not v.less_doubles(right, left), operator.le, operator.le)
_compare("ge", ">=", lambda left, right: not v.less_doubles(left, right), operator.ge, operator.ge)


def ordered_pair(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    return Bound(name, BOOLEAN, ordered(name, args, options).args, options)


def _isin(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if all(node.type in (ANY, NULL) for node in args):
        raise Refused("no side has a known type; cast one of them")
    return Bound(name, BOOLEAN, tuple(unified(args)), options)


def _build_isin(node: Bound, args: list[Evaluator]) -> Evaluator:
    same = v.equal_doubles if node.args[0].type == DOUBLE else operator.eq
    subject, choices = args[0], args[1:]

    def evaluate(inputs: Any) -> Any:
        given = subject(inputs)
        if given is None:
            return None
        answer: bool | None = False
        for choice in choices:
            other = choice(inputs)
            if other is None:
                answer = None
            elif same(given, other):
                return True
        return answer

    return evaluate


declare(
    "isin",
    "subject, *choices",
    _isin,
    build=_build_isin,
    column=lambda F, subject, *choices: subject.isin(*choices),
    about="Whether it is one of the choices; null if it is none and one of them is null.",
)


def _is_distinct(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is not right
    return bool(v.order_key(left) != v.order_key(right))


is_distinct: Final = declare(
    "is_distinct",
    "left, right",
    ordered_pair,
    _is_distinct,
    column=lambda F, left, right: ~left.eqNullSafe(right),
    nulls="never null: two nulls are not distinct",
    about="Whether the two differ; SQL's IS DISTINCT FROM.",
)
declare(
    "is_null",
    "subject",
    lambda name, args, options: Bound(name, BOOLEAN, tuple(args), options),
    build=lambda _, args: lambda inputs: args[0](inputs) is None,
    nulls="true",
    typed_column=lambda spark, node, args: _is_null(spark, node, args[0]),
    about="Whether there is no value.",
)
declare(
    "is_not_null",
    "subject",
    lambda name, args, options: Bound(name, BOOLEAN, tuple(args), options),
    build=lambda _, args: lambda inputs: args[0](inputs) is not None,
    nulls="false",
    typed_column=lambda spark, node, args: ~_is_null(spark, node, args[0]),
    about="Whether there is a value.",
)


def _is_null(spark: Spark, node: Bound, column: Any) -> Any:
    if node.args[0].type == ANY:  # JSON's null is a value to Spark
        return column.isNull() | spark.F.is_variant_null(column)
    return column.isNull()


# ---- logic


def _build_and(_: Bound, args: list[Evaluator]) -> Evaluator:
    left, right = args

    def evaluate(inputs: Any) -> Any:
        first = left(inputs)
        if first is False:
            return False
        second = right(inputs)
        return False if second is False else None if first is None or second is None else True

    return evaluate


def _build_or(_: Bound, args: list[Evaluator]) -> Evaluator:
    left, right = args

    def evaluate(inputs: Any) -> Any:
        first = left(inputs)
        if first is True:
            return True
        second = right(inputs)
        return True if second is True else None if first is None or second is None else False

    return evaluate


declare(
    "and",
    "left, right",
    takes(boolean, gives=BOOLEAN),
    build=_build_and,
    column=lambda F, left, right: left & right,
    nulls="as in SQL: false wins over null",
    about="`left & right`.",
)
declare(
    "or",
    "left, right",
    takes(boolean, gives=BOOLEAN),
    build=_build_or,
    column=lambda F, left, right: left | right,
    nulls="as in SQL: true wins over null",
    about="`left | right`.",
)
declare(
    "not",
    "subject",
    takes(boolean, gives=BOOLEAN),
    operator.not_,
    column=lambda F, given: ~given,
    about="`~subject`.",
)


# ---- arithmetic


def arithmetic(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """In the wider of the types."""
    numbers = [number(node) for node in args]
    if len(numbers) == 2 and are_decimals(numbers):
        return _decimal_arithmetic(name, numbers, options)
    numbers = unified(numbers)
    return Bound(name, numbers[0].type, tuple(numbers), options)


def are_decimals(numbers: Sequence[Bound]) -> bool:
    """Whether a calculation over these is one of decimals: a double beside them makes it one of doubles."""
    kinds = {node.type.name for node in numbers}
    return "decimal" in kinds and "double" not in kinds


def _decimal_arithmetic(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    left, right = (coerced(node, as_decimal(node.type)) for node in args)
    return Bound(name, decimals.result_type(plain_name(name), left.type, right.type), (left, right), options)


def plain_name(name: str) -> str:
    """ksqlDB calculates with decimals as all do."""
    return _KSQL_NAMES.get(name, name)


_KSQL_NAMES: Final = {
    "ksql_add": "add",
    "ksql_subtract": "sub",
    "ksql_multiply": "mul",
    "ksql_divide": "div",
    "ksql_mod": "mod",
}


def calculating(otherwise: Build) -> Build:
    """Of two decimals by their own rules."""

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        if node.type.name == "decimal":
            return strict(decimals.calculation(plain_name(node.function), node.type))(node, args)
        return otherwise(node, args)

    return build


def calculated(function: str) -> BuildColumn:
    """A sum of decimals has the type that binding says, whatever the session thinks of precision."""

    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        found = getattr(spark.F, function)(*args)
        return found.try_cast(spark.ddl(node.type)) if node.type.name == "decimal" else found

    return column


def _addition(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if any(node.type == STRING for node in args):
        return FUNCTIONS["concat"].rule("concat", args, options)
    if all(node.type == ANY for node in args):
        raise Refused("neither side has a known type, so + may mean a sum or a text; cast one of them")
    return arithmetic(name, args, options)


def fitting(function: Callable[..., Any], of_doubles: Callable[..., Any]) -> Build:
    """Null where the result does not fit the type."""
    return by_type(
        int=lambda *given: v.fit_int(function(*given)),
        long=lambda *given: v.fit_long(function(*given)),
        double=of_doubles,
        decimal=function,
    )


def _division(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    numbers = [number(node) for node in args]
    if are_decimals(numbers):
        return _decimal_arithmetic(name, numbers, options)
    return Bound(name, DOUBLE, tuple(coerced(node, DOUBLE) for node in numbers), options)


declare(
    "add",
    "left, right",
    _addition,
    build=calculating(fitting(operator.add, operator.add)),
    typed_column=calculated("try_add"),
    about="`left + right`: a sum (null if it does not fit the type), or two strings put together.",
)
declare(
    "sub",
    "left, right",
    arithmetic,
    build=calculating(fitting(operator.sub, operator.sub)),
    typed_column=calculated("try_subtract"),
    about="`left - right`.",
)
declare(
    "mul",
    "left, right",
    arithmetic,
    build=calculating(fitting(operator.mul, operator.mul)),
    typed_column=calculated("try_multiply"),
    about="`left * right`.",
)
declare(
    "div",
    "left, right",
    _division,
    build=calculating(strict(v.divide)),
    typed_column=calculated("try_divide"),
    about="`left / right`: a double, or of decimals a decimal; null for a division by zero.",
)
declare(
    "mod",
    "left, right",
    arithmetic,
    build=calculating(by_type(double=v.remainder_double, other=v.remainder)),
    typed_column=calculated("try_mod"),
    about="`left % right`, with the sign of the left side, as in Java.",
)


def _negate(spark: Spark, node: Bound, args: list[Any]) -> Any:
    return (
        spark.F.negative(args[0])
        if node.type.name in {"double", "decimal"}
        else spark.F.try_subtract(zero(spark, node.type), args[0])
    )


def _abs(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (given,) = spark.F, args
    if node.type.name in {"double", "decimal"}:
        return F.abs(given)
    return F.when(given < 0, F.try_subtract(zero(spark, node.type), given)).otherwise(given)


declare(
    "negate",
    "number",
    arithmetic,
    build=fitting(v.negated, operator.neg),
    typed_column=_negate,
    about="`-number`.",
)
declare(
    "abs",
    "number",
    arithmetic,
    build=fitting(v.absolute, abs),
    typed_column=_abs,
    about="Without its sign, also `abs(number)`; null for the least int or long.",
)


# ---- whole numbers


def _to_long(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    given = number(args[0])
    return coerced(given, LONG) if given.type.is_integer else Bound(name, LONG, (given,), options)


def _whole_column(function: str) -> BuildColumn:
    """Spark's own ends the query, or makes 0 of NaN and the largest long of what is larger."""

    def build(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (given,) = spark.F, args
        made = getattr(F, function)(given)
        if node.args[0].type != DOUBLE:
            return made.try_cast("bigint")
        return F.when((given >= F.lit(-(2.0**63))) & (given < F.lit(2.0**63)), made)

    return build


declare(
    "floor",
    "number",
    _to_long,
    lambda given: v.whole(given, math.floor),
    typed_column=_whole_column("floor"),
    about="The largest long that is not above it; null where no long is near.",
)
declare(
    "ceil",
    "number",
    _to_long,
    lambda given: v.whole(given, math.ceil),
    typed_column=_whole_column("ceil"),
    about="The least long that is not below it; null where no long is near.",
)


def _round(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    given = number(args[0])
    kind, places = given.type, options[0]
    if kind.name == "decimal" and places < kind.scale:
        digits = kind.precision - kind.scale
        return coerced(given, decimal_of(min(digits + places + 1, MAX_PRECISION), places))  # which rounds half up
    return Bound(name, DOUBLE, (given,), options) if kind == DOUBLE else given


declare(
    "round",
    "number, places=0",
    _round,
    build=lambda node, args: one(lambda given: v.round_half_up(given, node.options[0]), args[0]),
    typed_column=lambda spark, node, args: spark.F.round(args[0], node.options[0]),
    about="Half away from zero, as in SQL. Integers stay what they are.",
)
