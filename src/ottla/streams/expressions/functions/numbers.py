"""Numbers: roots, logarithms, angles, series, and dice that fall alike when a batch runs again."""

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, Decimal, localcontext
from typing import Any, Final

from ottla.serdes import decimals
from ottla.serdes import values as v
from ottla.serdes.types import DOUBLE, INT, LONG, STRING, Type, array_of, decimal_of
from ottla.streams.expressions.bound import Bound, Build, Evaluator, Refused, Spark
from ottla.streams.expressions.expression import Expression, Function, lit, offset, partition, topic
from ottla.streams.expressions.functions.declare import (
    double,
    family,
    long,
    number,
    strict,
    takes,
    text,
    whole,
)
from ottla.streams.expressions.functions.strings import md5_digits
from ottla.streams.expressions.limits import MOST_ITEMS

__all__ = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "cos",
    "cosh",
    "cot",
    "degrees",
    "exp",
    "generate_series",
    "ln",
    "log",
    "pi",
    "power",
    "radians",
    "random_",
    "random_uuid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
declare: Final = family("numbers")


def as_in_java(function: Callable[..., float], overflow: float = math.inf) -> Callable[..., float]:
    """Where Python raises, Java gives NaN (outside of what the function is for) or infinity."""

    def computed(*given: float) -> float:
        try:
            return function(*given)
        except ValueError:
            return math.nan
        except OverflowError:
            return overflow

    return computed


def _of_double(name: str, body: Callable[..., float], about: str, exact: bool = False) -> Function:
    return declare(
        name,
        "number",
        takes(double, gives=DOUBLE),
        as_in_java(body),
        column=lambda F, given: getattr(F, name)(given),
        exact=exact,
        about=about,
    )


acos: Final = _of_double("acos", math.acos, "The angle with that cosine, in radians.")
asin: Final = _of_double("asin", math.asin, "The angle with that sine, in radians.")
atan: Final = _of_double("atan", math.atan, "The angle with that tangent, in radians.")
cos: Final = _of_double("cos", math.cos, "Cosine of radians.")
sin: Final = _of_double("sin", math.sin, "Sine of radians.")
tan: Final = _of_double("tan", math.tan, "Tangent of radians.")
cosh: Final = _of_double("cosh", math.cosh, "Hyperbolic cosine.")
tanh: Final = _of_double("tanh", math.tanh, "Hyperbolic tangent.")
exp: Final = _of_double("exp", math.exp, "e to the power of the number.")
cbrt: Final = _of_double("cbrt", math.cbrt, "The cube root.")
sqrt: Final = _of_double("sqrt", math.sqrt, "The square root; NaN for a negative number.", exact=True)
degrees: Final = _of_double("degrees", math.degrees, "Radians as degrees.", exact=True)
radians: Final = _of_double("radians", math.radians, "Degrees as radians.", exact=True)


def _sinh(given: float) -> float:
    try:
        return math.sinh(given)
    except OverflowError:
        return math.copysign(math.inf, given)


def _cot(given: float) -> float:
    tangent = math.tan(given)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


sinh: Final = _of_double("sinh", _sinh, "Hyperbolic sine.")
cot: Final = _of_double("cot", _cot, "Cotangent of radians; infinity at 0.")
atan2: Final = declare(
    "atan2",
    "y, x",
    takes(double, gives=DOUBLE),
    math.atan2,
    column=lambda F, y, x: F.atan2(y, x),
    exact=False,
    about="The angle of the point (x, y), in radians.",
)


def _power(base: float, exponent: float) -> float:
    if exponent != 0 and (math.isnan(exponent) or (math.isinf(exponent) and abs(base) == 1)):
        return math.nan  # C says 1
    odd = math.isfinite(exponent) and exponent == math.floor(exponent) and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except ValueError:
        return math.copysign(math.inf, base if odd else 1.0) if base == 0 else math.nan
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf


power: Final = declare(
    "power",
    "base, exponent",
    takes(double, gives=DOUBLE),
    _power,
    column=lambda F, base, exponent: F.power(base, exponent),
    exact=False,
    about="The base to the power of the exponent.",
)


def natural_log(given: float) -> float:
    return -math.inf if given == 0 else math.nan if given < 0 else math.log(given)


def _log(base: float, given: float) -> float:
    if not base > 0 or base == 1:
        return math.nan
    return natural_log(given) / natural_log(base)


def _ln_column(F: Any, given: Any) -> Any:
    return F.when(given > 0, F.ln(given)).when(given == 0, F.lit(-math.inf)).when(given < 0, F.lit(math.nan))


ln: Final = declare(
    "ln",
    "number",
    takes(double, gives=DOUBLE),
    natural_log,
    column=_ln_column,
    exact=False,
    about="The natural logarithm; minus infinity for 0, NaN below. ksqlDB's LN, and its LOG of one argument.",
)
log: Final = declare(
    "log",
    "base, number",
    takes(double, gives=DOUBLE),
    _log,
    column=lambda F, base, given: F.when(
        (base <= 0) | (base == 1) | F.isnan(base), F.when(given.isNotNull(), F.lit(math.nan))
    ).otherwise(F.try_divide(_ln_column(F, given), _ln_column(F, base))),
    exact=False,
    about="The logarithm to a base; NaN for a base that is 1 or not above 0.",
)
pi: Final = declare("pi", "", takes(double, gives=DOUBLE), lambda: math.pi, column=lambda F: F.pi(), about="3.14159…")


def _sign(given: float) -> int:
    return 1 if given > 0 else -1 if given < 0 else 0


sign: Final = declare(
    "sign",
    "number",
    takes(number, gives=INT),
    _sign,
    typed_column=lambda spark, node, args: _sign_column(spark.F, args[0], node.args[0].type),
    about="1, 0 or -1 (an int); 0 for NaN.",
)


def _sign_column(F: Any, given: Any, kind: Type) -> Any:
    positive = (given > 0) & ~F.isnan(given) if kind == DOUBLE else given > 0
    return F.when(positive, F.lit(1)).when(given < 0, F.lit(-1)).when(given.isNotNull(), F.lit(0))


# ---- towards zero


def rounded_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """A whole number (of a decimal a decimal without places); with places the type stays."""
    given = number(args[0])
    if len(args) > 1:
        return Bound(name, given.type, (given, whole(args[1])), options)
    if given.type.name == "decimal":
        return Bound(name, decimal_of(max(given.type.precision - given.type.scale, 1)), (given,), options)
    return Bound(name, LONG, (given,), options)


def fitting_decimals(body: Callable[..., Any]) -> Build:
    """A decimal is brought to the type that the rule says, or is null."""

    def build(node: Bound, args: list[Evaluator]) -> Evaluator:
        if node.type.name != "decimal":
            return strict(body)(node, args)
        return strict(lambda *given: decimals.fit(body(*given), node.type))(node, args)

    return build


def no_decimals(node: Bound) -> str | None:
    return f"Spark's {node.function} gives decimals of another type" if node.args[0].type.name == "decimal" else None


def _trunc(given: Any, places: int | None = None) -> Any:
    if places is not None:
        return rounded(given, places, ROUND_DOWN)
    if isinstance(given, Decimal):
        return rounded(given, 0, ROUND_DOWN)
    return given if isinstance(given, int) else v.double_to_integer(given, v.LONG_MIN, v.LONG_MAX)


def rounded(given: Any, places: int, mode: str) -> Any:
    """To so many decimal places (before the point if negative), by the digits that one would write."""
    if isinstance(given, float) and not math.isfinite(given):
        return given
    exact = Decimal(repr(given)) if isinstance(given, float) else Decimal(given)
    if int(exact.as_tuple().exponent) >= -places:
        return given
    with localcontext(prec=400):
        cut = exact.quantize(Decimal(1).scaleb(-places), mode) if places > -400 else Decimal(0)
    return float(cut) + 0.0 if isinstance(given, float) else int(cut) if isinstance(given, int) else cut


trunc: Final = declare(
    "trunc",
    "number, places=None",
    rounded_rule,
    build=fitting_decimals(_trunc),
    column=lambda F, given: given.try_cast("bigint"),
    no_column=lambda node: "Spark cuts no decimal places off" if len(node.args) > 1 else no_decimals(node),
    about="Towards zero: a long, null if it does not fit; with places a number of the same type.",
)


# ---- series


def _series_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    if any(node.type == DOUBLE for node in args):
        raise Refused("a series is made of whole numbers")
    kind = INT if all(node.type == INT for node in args[:2]) else LONG
    as_kind = whole if kind == INT else long
    ends = [as_kind(node) for node in args[:2]]
    return Bound(name, array_of(kind), (*ends, *(whole(node) for node in args[2:])), options)


def _series(first: int, last: int, step: int | None = None) -> list[int] | None:
    by = step if step is not None else 1 if last >= first else -1
    if by == 0 or (last - first) * by < 0 or abs(float(last) - float(first)) / abs(by) >= MOST_ITEMS:
        return None
    return list(range(first, last + (1 if by > 0 else -1), by))


def _series_column(spark: Spark, node: Bound, args: list[Any]) -> Any:
    F, (first, last) = spark.F, args[:2]
    by = args[2] if len(args) > 2 else F.when(last >= first, F.lit(1)).otherwise(F.lit(-1))
    right_way = ((by > 0) & (last >= first)) | ((by < 0) & (last <= first))
    size = F.abs(last.cast("double") - first.cast("double")) / F.abs(by.cast("double"))
    return F.when(right_way & (size < MOST_ITEMS), F.sequence(first, last, by.cast(spark.ddl(node.args[0].type))))


generate_series: Final = declare(
    "generate_series",
    "first, last, step=None",
    _series_rule,
    _series,
    typed_column=_series_column,
    about="An array of whole numbers, both ends included; null for a step of 0 or in the wrong direction, "
    f"and for more than {MOST_ITEMS:,} items.",
)


# ---- dice


def _seed(place: tuple[Any, ...]) -> str:
    return md5_digits(":".join(map(str, place)))


def _seed_column(F: Any, place: Sequence[Any]) -> Any:
    first, *others = [part.cast("string") for part in place]
    return F.md5(F.concat(first, *[part for other in others for part in (F.lit(":"), other)]))


_random: Final = declare(
    "random",
    "topic, partition, offset, salt",
    takes(text, whole, long, whole, gives=DOUBLE),
    lambda *place: int(_seed(place)[:13], 16) / (1 << 52),
    column=lambda F, *place: F.conv(F.substring(_seed_column(F, place), 1, 13), 16, 10).cast("double") / float(1 << 52),
    about="At least 0 and below 1, by the place of the record in its topic: the same when a batch runs again.",
)
_random_uuid: Final = declare(
    "random_uuid",
    "topic, partition, offset, salt",
    takes(text, whole, long, whole, gives=STRING),
    lambda *place: _uuid_text(_seed(place)),
    column=lambda F, *place: _uuid_column(F, _seed_column(F, place)),
    about="A UUID by the place of the record in its topic: the same when a batch runs again.",
)


def _uuid_text(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _uuid_column(F: Any, digits: Any) -> Any:
    parts = [(1, 8), (9, 4), (14, 3), (18, 3), (21, 12)]
    first, second, third, fourth, last = [F.substring(digits, *part) for part in parts]
    return F.concat(first, F.lit("-"), second, F.lit("-4"), third, F.lit("-a"), fourth, F.lit("-"), last)


def random_(salt: int = 0) -> Expression:
    """A double of [0, 1) by topic, partition and offset; other salts give other numbers."""
    return _random(topic, partition, offset, lit(salt))


def random_uuid(salt: int = 0) -> Expression:
    """A UUID (version 4 in form) by topic, partition and offset; other salts give others."""
    return _random_uuid(topic, partition, offset, lit(salt))


def salted(made: Expression, salt: int) -> Expression:
    """Of dice that were called without a salt: with one. All else stays what it is."""
    if made.function not in {"random", "random_uuid"}:
        return made
    return Expression(made.function, (*made.args[:-1], lit(salt)))
