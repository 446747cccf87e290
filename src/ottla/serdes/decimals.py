"""Decimals with a fixed number of digits: which type a calculation gives, and how it is rounded.

Half up where digits have to go, None where the digits in front of the point do not fit: what Spark gives with
spark.sql.decimalOperations.allowPrecisionLoss=false, which keeps the scale that was asked for.
"""

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from ottla.serdes.types import MAX_PRECISION, Type, as_decimal, decimal_of

TEXT: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
"""What is read as a decimal, in Python and in Java."""

_TEXT: Final = re.compile(TEXT)
_SPACES: Final = "".join(map(chr, range(0x21)))
EXACT: Final = Context(prec=4 * MAX_PRECISION, rounding=ROUND_HALF_UP)
"""More digits than a sum or a product of two decimals has."""
_QUOTIENT_SCALE: Final = 6
"""Digits behind the point that a quotient has at least."""
_SPARK_QUOTIENT: Final = Decimal(1).scaleb(-MAX_PRECISION - 1)
"""To where Spark computes a quotient before it is rounded to its type."""


def fit(value: Decimal, kind: Type) -> Decimal | None:
    """Rounded to the type's scale; None if there are too many digits in front of the point."""
    whole = kind.precision - kind.scale
    if value and value.adjusted() > whole:
        return None  # before anything is computed: 1E999999999 has many digits
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, EXACT)
    if not rounded:
        return rounded.copy_abs()  # there is one zero, in Java and in SQL
    return rounded if rounded.adjusted() < whole else None


def fit_exactly(value: Decimal, kind: Type) -> Decimal | None:
    """None where it would have to be rounded as well."""
    fitted = fit(value, kind)
    return fitted if fitted == value else None


def parsed(text: str) -> Decimal | None:
    text = text.strip(_SPACES)
    return Decimal(text) if _TEXT.fullmatch(text) else None


def from_text(text: str, kind: Type) -> Decimal | None:
    found = parsed(text)
    return None if found is None else fit(found, kind)


def from_double(value: float, kind: Type) -> Decimal | None:
    """By the digits that a double is written with: 0.1 is 0.1."""
    return fit(Decimal(repr(value)), kind) if math.isfinite(value) else None


def plain(value: Decimal) -> str:
    """With all digits and without an exponent."""
    return format(value, "f")


# ---- calculations


def result_type(operation: str, left: Type, right: Type) -> Type:
    """Of + - * / % over two decimals or a decimal and an integer; SQL's rules, cut off at the digits there can be."""
    left, right = as_decimal(left), as_decimal(right)
    return _RESULTS[operation](left, right)


def _bounded(precision: int, scale: int) -> Type:
    return decimal_of(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def _sum_type(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    return _bounded(scale + max(left.precision - left.scale, right.precision - right.scale) + 1, scale)


def _product_type(left: Type, right: Type) -> Type:
    return _bounded(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient_type(left: Type, right: Type) -> Type:
    whole = min(MAX_PRECISION, left.precision - left.scale + right.scale)
    scale = min(MAX_PRECISION, max(_QUOTIENT_SCALE, left.scale + right.precision + 1))
    excess = whole + scale - MAX_PRECISION
    if excess > 0:
        scale -= excess // 2 + 1
        whole = MAX_PRECISION - scale
    return _bounded(whole + scale, scale)


def _remainder_type(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    return _bounded(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


_RESULTS: Final = {
    "add": _sum_type,
    "sub": _sum_type,
    "mul": _product_type,
    "div": _quotient_type,
    "mod": _remainder_type,
}


def calculation(operation: str, kind: Type) -> Callable[[Decimal, Decimal], Decimal | None]:
    """Of two decimals, with a result of the type. Division by zero gives None."""
    compute = _CALCULATIONS[operation]

    def calculate(left: Decimal, right: Decimal) -> Decimal | None:
        exact = compute(left, right)
        return None if exact is None else fit(exact, kind)

    return calculate


def _quotient(left: Decimal, right: Decimal) -> Decimal | None:
    if not right:
        return None
    quotient = EXACT.divide(left, right)
    return quotient.quantize(_SPARK_QUOTIENT, ROUND_HALF_UP, EXACT)


def exact_quotient(left: Decimal, right: Decimal, kind: Type) -> Decimal | None:
    """None if it has more digits than the type, or no end of them."""
    quotient = None if not right else fit(EXACT.divide(left, right), kind)
    return quotient if quotient is not None and EXACT.multiply(quotient, right) == left else None


_CALCULATIONS: Final[dict[str, Callable[[Decimal, Decimal], Decimal | None]]] = {
    "add": EXACT.add,
    "sub": EXACT.subtract,
    "mul": EXACT.multiply,
    "div": _quotient,
    "mod": lambda left, right: EXACT.remainder(left, right) if right else None,
}
