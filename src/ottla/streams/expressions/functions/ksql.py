"""Where ksqlDB has another rule than expressions have: arithmetic as in Java, and functions that treat edges otherwise.

Expressions give null for a sum that does not fit and for a division by zero, and their comparisons know three answers.
ksqlDB's integers wrap, its doubles become infinite, a comparison with null is false (`coalesce(a == b, False)`). SQL is
compiled to these; they may be called like any other.
"""

import math
import operator
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, Final

from ottla.serdes import decimals
from ottla.serdes import values as v
from ottla.serdes.types import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING
from ottla.streams.expressions.bound import Bound, Build, Evaluator, Spark
from ottla.streams.expressions.functions.declare import (
    FAILURES,
    by_type,
    element,
    family,
    number,
    one,
    some_list,
    strict,
    takes,
    text,
    text_or_binary,
    type_of_first,
    whole,
    zero,
)
from ottla.streams.expressions.functions.numbers import fitting_decimals, no_decimals, rounded, rounded_rule
from ottla.streams.expressions.functions.operators import arithmetic, calculated, calculating
from ottla.streams.expressions.functions.strings import concat_rule
from ottla.streams.expressions.limits import joined, replaced

__all__ = [
    "ksql_abs",
    "ksql_add",
    "ksql_ceil",
    "ksql_concat",
    "ksql_divide",
    "ksql_floor",
    "ksql_item",
    "ksql_length",
    "ksql_mod",
    "ksql_multiply",
    "ksql_negate",
    "ksql_replace",
    "ksql_round",
    "ksql_substring",
    "ksql_subtract",
    "ksql_to_boolean",
    "ksql_to_int",
    "ksql_to_long",
    "ksql_trim",
]
declare: Final = family("ksql")


# ---- integers that wrap


def wrap_int(given: int) -> int:
    return (given + (1 << 31)) % (1 << 32) - (1 << 31)


def wrap_long(given: int) -> int:
    return (given + (1 << 63)) % (1 << 64) - (1 << 63)


def _wrapping(function: Callable[..., Any]) -> Build:
    return by_type(
        int=lambda *given: wrap_int(function(*given)),
        long=lambda *given: wrap_long(function(*given)),
        double=function,
        decimal=function,
    )


def _wrapped_int(spark: Spark, made: Any) -> Any:
    """The low half of a long."""
    return spark.F.shiftright(spark.F.shiftleft(made, 32), 32).cast("int")


def _wrapped_sum(function_name: str) -> Callable[[Spark, Bound, list[Any]], Any]:
    """`try_add` or `try_subtract`; where it does not fit, both sides have their sign bits flipped so that it does."""

    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (left, right) = spark.F, args
        function = getattr(F, function_name)
        if node.type.name in {"double", "decimal"}:
            return calculated(function_name)(spark, node, args)
        if node.type == INT:
            return _wrapped_int(spark, function(left.cast("bigint"), right.cast("bigint")))
        lowest = F.lit(v.LONG_MIN)
        turned = right.bitwiseXOR(lowest)
        return F.coalesce(function(left, right), function(left.bitwiseXOR(lowest), turned))

    return column


def _product(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (left, right) = spark.F, args
    if node.type.name in {"double", "decimal"}:
        return calculated("try_multiply")(spark, node, args)
    if node.type == INT:
        return _wrapped_int(spark, left.cast("bigint") * right.cast("bigint"))
    # 38 digits hold the product of any two longs.
    exact = left.cast("decimal(19,0)") * right.cast("decimal(19,0)")
    size = F.lit("18446744073709551616").cast("decimal(20,0)")
    low = F.pmod(exact, size)
    wrapped = F.when(low >= F.lit("9223372036854775808").cast("decimal(20,0)"), low - size).otherwise(low)
    return F.coalesce(F.try_multiply(left, right), wrapped.try_cast("bigint"))


ksql_add: Final = declare(
    "ksql_add",
    "left, right",
    arithmetic,
    build=calculating(_wrapping(operator.add)),
    typed_column=_wrapped_sum("try_add"),
    about="A sum; integers wrap.",
)
ksql_subtract: Final = declare(
    "ksql_subtract",
    "left, right",
    arithmetic,
    build=calculating(_wrapping(operator.sub)),
    typed_column=_wrapped_sum("try_subtract"),
    about="A difference; integers wrap.",
)
ksql_multiply: Final = declare(
    "ksql_multiply",
    "left, right",
    arithmetic,
    build=calculating(_wrapping(operator.mul)),
    typed_column=_product,
    about="A product; integers wrap.",
)


def _quotient(left: int, right: int) -> int | None:
    if right == 0:
        return None
    made = abs(left) // abs(right)
    return made if (left < 0) == (right < 0) else -made


def _double_quotient(left: float, right: float) -> float:
    if right == 0:
        signs = math.copysign(1, left) * math.copysign(1, right)
        return math.nan if left == 0 or math.isnan(left) else signs * math.inf
    return left / right


def _divide_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (left, right) = spark.F, args
    if node.type == DOUBLE:
        # Spark knows no division by zero. The sign of a zero shows in its text alone.
        negative = F.startswith(right.cast("string"), F.lit("-")) != (left < 0)
        infinite = F.when(negative, F.lit(-math.inf)).otherwise(F.lit(math.inf))
        odd = F.when((left == 0) | F.isnan(left), F.lit(math.nan)).otherwise(infinite)
        return F.when(right == 0, F.when(left.isNotNull(), odd)).otherwise(F.try_divide(left, right))
    lowest = F.lit(v.INT_MIN if node.type == INT else v.LONG_MIN).cast(spark.ddl(node.type))
    overflows = (left == lowest) & (right == -1)
    # Null where `div` would end the query, which a branch alone does not keep from being computed.
    divisor = F.when(~overflows & (right != 0), right)
    return F.when(overflows, lowest).otherwise(F.call_function("div", left, divisor).cast(spark.ddl(node.type)))


_QUOTIENTS: Final = by_type(
    int=lambda left, right: None if right == 0 else wrap_int(_quotient(left, right) or 0),
    long=lambda left, right: None if right == 0 else wrap_long(_quotient(left, right) or 0),
    double=_double_quotient,
)


def _build_quotient(node: Bound, args: list[Evaluator]) -> Evaluator:
    if node.type.name != "decimal":
        return _QUOTIENTS(node, args)
    return strict(lambda left, right: decimals.exact_quotient(Decimal(left), Decimal(right), node.type))(node, args)


ksql_divide: Final = declare(
    "ksql_divide",
    "left, right",
    arithmetic,
    build=_build_quotient,
    typed_column=_divide_column,
    no_column=lambda node: "Spark rounds quotients of decimals" if node.type.name == "decimal" else None,
    about="A quotient of the type of its sides: 7 / 2 is 3, null for a division by zero; doubles become infinite, "
    "decimals whose digits do not end are null.",
)


def _double_remainder(left: float, right: float) -> float:
    return math.nan if right == 0 or math.isinf(left) or math.isnan(right) else math.fmod(left, right)


def _mod_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (left, right) = spark.F, args
    if node.type != DOUBLE:
        return calculated("try_mod")(spark, node, args)
    return F.when((right == 0) & left.isNotNull(), F.lit(math.nan)).otherwise(F.try_mod(left, right))


ksql_mod: Final = declare(
    "ksql_mod",
    "left, right",
    arithmetic,
    build=calculating(by_type(double=_double_remainder, other=v.remainder)),
    typed_column=_mod_column,
    about="The rest of a division, with the sign of the left side; NaN for doubles divided by zero.",
)


def _negate_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (given,) = spark.F, args
    if node.type.name in {"double", "decimal"}:
        return F.negative(given)
    return F.coalesce(F.try_subtract(zero(spark, node.type), given), given)


def _abs_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (given,) = spark.F, args
    if node.type.name in {"double", "decimal"}:
        return F.abs(given)
    return F.when(given < 0, _negate_column(spark, node, args)).otherwise(given)


ksql_negate: Final = declare(
    "ksql_negate",
    "number",
    arithmetic,
    build=_wrapping(v.negated),
    typed_column=_negate_column,
    about="With the other sign; the least int or long stays what it is.",
)
ksql_abs: Final = declare(
    "ksql_abs",
    "number",
    arithmetic,
    build=_wrapping(v.absolute),
    typed_column=_abs_column,
    about="Without its sign; the least int or long stays what it is.",
)


# ---- whole numbers


def _kept(function: Callable[[float], int]) -> Build:
    def of_double(given: float) -> float:
        return float(function(given)) + 0.0 if abs(given) < 1 << 52 else given

    mode = ROUND_FLOOR if function is math.floor else ROUND_CEILING

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        if node.type.name == "decimal":
            return one(lambda given: decimals.fit(rounded(given, 0, mode), node.type), args[0])
        return by_type(double=of_double, other=lambda given: given)(node, args)

    return build


def _kept_column(function: str) -> Callable[[Spark, Bound, list[Any]], Any]:
    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (given,) = spark.F, args
        if node.type.is_integer:
            return given
        return F.when(F.abs(given) < float(1 << 52), getattr(F, function)(given).cast("double")).otherwise(given)

    return column


ksql_floor: Final = declare(
    "ksql_floor",
    "number",
    takes(number, gives=type_of_first),
    build=_kept(math.floor),
    typed_column=_kept_column("floor"),
    no_column=no_decimals,
    about="The next whole number that is not above it, of the same type.",
)
ksql_ceil: Final = declare(
    "ksql_ceil",
    "number",
    takes(number, gives=type_of_first),
    build=_kept(math.ceil),
    typed_column=_kept_column("ceil"),
    no_column=no_decimals,
    about="The next whole number that is not below it, of the same type.",
)


def _round(given: Any, places: int | None = None) -> Any:
    if places is not None:
        return rounded(given, places, ROUND_HALF_UP if given >= 0 else ROUND_HALF_DOWN)
    if isinstance(given, int):
        return given
    if isinstance(given, Decimal):
        return rounded(given, 0, ROUND_HALF_UP if given >= 0 else ROUND_HALF_DOWN)
    if math.isnan(given):
        return 0
    if not -(2.0**63) <= given < 2.0**63:
        return v.LONG_MAX if given > 0 else v.LONG_MIN
    below = math.floor(given)
    return below if given - below < 0.5 else min(below + 1, v.LONG_MAX)


def _round_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (given,) = spark.F, args
    if node.args[0].type != DOUBLE:
        return given.cast("bigint")
    below = F.floor(given)
    near = F.when(given - below.cast("double") < 0.5, below).otherwise(below + 1)
    return (
        F.when(F.isnan(given), F.lit(0).cast("bigint"))
        .when(given >= 2.0**63, F.lit(v.LONG_MAX))
        .when(given < -(2.0**63), F.lit(v.LONG_MIN))
        .otherwise(near)
    )


ksql_round: Final = declare(
    "ksql_round",
    "number, places=None",
    rounded_rule,
    build=fitting_decimals(_round),
    typed_column=_round_column,
    no_column=lambda node: "Spark rounds ties away from zero" if len(node.args) > 1 else no_decimals(node),
    about="Ties go upwards: -1.5 becomes -1. A long; with places, which may be negative, a number of the same type.",
)


# ---- casts and items

_CONTROLS: Final = "".join(map(chr, range(0x21)))


def _to_integer(low: int, high: int) -> Build:
    """Java's narrowing: doubles stop at the ends, whole numbers wrap, decimals are cut and wrap."""
    wrap = wrap_int if high == v.INT_MAX else wrap_long

    def of_double(given: float) -> int:
        return 0 if math.isnan(given) else high if given >= high else low if given <= low else int(given)

    return by_type(double=of_double, other=lambda given: wrap(int(given)))


def _no_narrowing(node: Bound) -> str | None:
    return None if node.args[0].type.name in {"int", "double"} else "Spark's casts of wider numbers end a query"


def _to_integer_column(low: int, high: int) -> Callable[[Spark, Bound, list[Any]], Any]:
    def column(spark: Spark, node: Bound, args: list[Any]) -> Any:
        F, (given,), kind = spark.F, args, spark.ddl(node.type)
        if node.args[0].type == INT:
            return given.cast(kind)
        least, most = F.lit(low).cast(kind), F.lit(high).cast(kind)
        return (
            F.when(F.isnan(given), F.lit(0).cast(kind))
            .when(given >= float(high), most)
            .when(given <= float(low), least)
            .otherwise(given.try_cast(kind))
        )

    return column


ksql_to_int: Final = declare(
    "ksql_to_int",
    "number",
    takes(number, gives=INT),
    build=_to_integer(v.INT_MIN, v.INT_MAX),
    typed_column=_to_integer_column(v.INT_MIN, v.INT_MAX),
    no_column=_no_narrowing,
    about="CAST of a number to INT by Java's narrowing: towards zero, doubles stop at the ends, longs wrap.",
)
ksql_to_long: Final = declare(
    "ksql_to_long",
    "number",
    takes(number, gives=LONG),
    build=_to_integer(v.LONG_MIN, v.LONG_MAX),
    typed_column=_to_integer_column(v.LONG_MIN, v.LONG_MAX),
    no_column=_no_narrowing,
    about="CAST of a number to BIGINT by Java's narrowing.",
)
ksql_to_boolean: Final = declare(
    "ksql_to_boolean",
    "text",
    takes(text, gives=BOOLEAN),
    lambda given: given.strip(_CONTROLS).lower() in {"true", "t", "yes", "y"},
    column=lambda F, given: F.lower(F.btrim(given, F.lit(_CONTROLS))).isin("true", "t", "yes", "y"),
    about="CAST of a text to BOOLEAN: true, t, yes and y are true, all else is false.",
)


def _item(items: list[Any], place: int) -> Any:
    at = place - 1 if place > 0 else len(items) + place
    return items[at] if place != 0 and 0 <= at < len(items) else None


ksql_item: Final = declare(
    "ksql_item",
    "items, place",
    takes(some_list, whole, gives=lambda args: element(args[0].type)),
    _item,
    column=lambda F, items, place: F.when(place != 0, F.try_element_at(items, place)),
    about="`items[place]`: the first is 1, -1 is the last; null if there is none.",
)


# ---- texts


ksql_trim: Final = declare(
    "ksql_trim",
    "text",
    takes(text, gives=STRING),
    lambda given: given.strip(_CONTROLS),
    column=lambda F, given: F.btrim(given, F.lit(_CONTROLS)),
    about="Without blanks and control characters (all up to U+0020) at both ends.",
)
ksql_length: Final = declare(
    "ksql_length",
    "subject",
    takes(text_or_binary, gives=INT),
    build=by_type(string=lambda given: sum(2 if ord(each) > 0xFFFF else 1 for each in given), binary=len),
    typed_column=lambda spark, node, args: _length_column(spark, node, args[0]),
    about="In units of UTF-16, as Java counts: an emoji is two. Bytes: how many. ksqlDB's LEN.",
)


def _length_column(spark: Spark, node: Bound, given: Any) -> Any:
    F = spark.F
    if node.args[0].type == BINARY:
        return F.length(given)
    return F.shiftright(F.length(F.encode(given, "UTF-16BE")), 1)


ksql_replace: Final = declare(
    "ksql_replace",
    "text, search, replacement",
    takes(text, gives=STRING),
    replaced,
    fails=True,
    column=lambda F, given, search, replacement: F.replace(given, search, replacement),
    no_column=lambda node: (
        None
        if node.args[1].function == "lit" and node.args[1].options[0] != ""
        else "Spark's replace finds no empty text"
    ),
    about="With all occurrences replaced; an empty text is found between all characters.",
)


def _build_concat(node: Bound, args: list[Any]) -> Any:
    nothing: Any = b"" if node.type == BINARY else ""

    def evaluate(inputs: Any) -> Any:
        parts = [part for each in args if (part := each(inputs)) is not None]
        try:
            return joined(nothing, parts)
        except FAILURES:
            return None

    return evaluate


def _concat_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F = spark.F
    nothing = F.lit(b"" if node.type == BINARY else "").cast(spark.ddl(node.type))
    return F.concat(*[F.coalesce(part, nothing) for part in args])


ksql_concat: Final = declare(
    "ksql_concat",
    "first, *others",
    concat_rule,
    build=_build_concat,
    typed_column=_concat_column,
    nulls="left out",
    about="Strings, or bytes, put together.",
)


def _substring(given: Any, start: int, wanted: int | None = None) -> Any:
    first = max(len(given) + start, 0) if start < 0 else max(start - 1, 0)
    return given[first:] if wanted is None else given[first : first + max(wanted, 0)]


def _substring_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, given, start = spark.F, args[0], args[1]
    first = F.when(start < 0, F.greatest(F.length(given) + start + 1, F.lit(1))).otherwise(F.greatest(start, F.lit(1)))
    if len(args) == 2:
        return F.when(start.isNotNull(), F.substr(given, first))
    # The greatest of null and 0 would be 0.
    whole_part = F.substr(given, first, F.greatest(args[2], F.lit(0)))
    return F.when(start.isNotNull() & args[2].isNotNull(), whole_part)


ksql_substring: Final = declare(
    "ksql_substring",
    "subject, start, length=None",
    takes(text_or_binary, whole, gives=type_of_first),
    _substring,
    typed_column=_substring_column,
    about="A part of a text, or of bytes. A start before the beginning is the beginning, whatever the length.",
)
