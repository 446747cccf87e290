"""Numbers. Integers wrap as in Java, ties are rounded upwards, what no number is is NaN."""

from collections.abc import Callable
from typing import Final

from ottla.sql.functions.declare import Scalar
from ottla.sql.functions.signatures import scalar, table
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression

_SAME: Final = ("INT -> INT", "BIGINT -> BIGINT", "DOUBLE -> DOUBLE", "DECIMAL -> DECIMAL")
_ROUNDED: Final = (
    "BIGINT -> BIGINT",
    "DOUBLE -> BIGINT",
    "DECIMAL -> DECIMAL",
    "INT, INT -> INT",
    "BIGINT, INT -> BIGINT",
    "DOUBLE, INT -> DOUBLE",
    "DECIMAL, INT -> DECIMAL",
)


def _double(name: str, build: Callable[..., Expression], about: str) -> Scalar:
    return scalar(name, build, "DOUBLE -> DOUBLE", about=about)


def _log(first: Expression, second: Expression | None = None) -> Expression:
    return e.ln(first) if second is None else e.log(first, second)


FUNCTIONS: Final = table(
    scalar("ABS", e.ksql_abs, *_SAME, about="Without its sign."),
    _double("ACOS", e.acos, "The angle with that cosine, in radians."),
    _double("ASIN", e.asin, "The angle with that sine, in radians."),
    _double("ATAN", e.atan, "The angle with that tangent, in radians."),
    scalar("ATAN2", e.atan2, "DOUBLE, DOUBLE -> DOUBLE", about="The angle of the point (x, y), given as y, x."),
    _double("COS", e.cos, "Cosine of radians."),
    _double("COSH", e.cosh, "Hyperbolic cosine."),
    _double("COT", e.cot, "Cotangent of radians; infinity at 0."),
    _double("SIN", e.sin, "Sine of radians."),
    _double("SINH", e.sinh, "Hyperbolic sine."),
    _double("TAN", e.tan, "Tangent of radians."),
    _double("TANH", e.tanh, "Hyperbolic tangent."),
    _double("CBRT", e.cbrt, "The cube root."),
    _double("DEGREES", e.degrees, "Radians as degrees."),
    _double("RADIANS", e.radians, "Degrees as radians."),
    _double("EXP", e.exp, "e to the power of the number."),
    _double("SQRT", e.sqrt, "The square root; NaN of a negative number."),
    _double("LN", e.ln, "The natural logarithm."),
    scalar(
        "LOG",
        _log,
        "DOUBLE -> DOUBLE",
        "DOUBLE, DOUBLE -> DOUBLE",
        about="The natural logarithm, or with a base before it that to the base.",
    ),
    scalar("POWER", e.power, "DOUBLE, DOUBLE -> DOUBLE", about="The first to the power of the second."),
    scalar("PI", e.pi, " -> DOUBLE", about="3.14159…"),
    scalar("CEIL", e.ksql_ceil, *_SAME, about="The next whole number that is not below it, of the same type."),
    scalar("FLOOR", e.ksql_floor, *_SAME, about="The next whole number that is not above it, of the same type."),
    scalar(
        "ROUND", e.ksql_round, *_ROUNDED, about="To a whole number or so many places; ties go upwards: -1.5 becomes -1."
    ),
    scalar("TRUNC", e.trunc, *_ROUNDED, about="Towards zero, to a whole number or so many places."),
    scalar("SIGN", e.sign, "INT -> INT", "BIGINT -> INT", "DOUBLE -> INT", about="1, 0 or -1."),
    scalar(
        "GENERATE_SERIES",
        e.generate_series,
        "INT, INT[, INT] -> ARRAY<INT>",
        "BIGINT, BIGINT[, INT] -> ARRAY<BIGINT>",
        about="The whole numbers from one to another, both included, by a step.",
    ),
    scalar(
        "GEO_DISTANCE",
        e.geo_distance,
        "DOUBLE, DOUBLE, DOUBLE, DOUBLE[, STRING] -> DOUBLE",
        about="Between two places (latitude, longitude, latitude, longitude) in km, or in 'miles'.",
    ),
    scalar("RANDOM", e.random_, " -> DOUBLE", about="At least 0 and below 1, the same when a batch runs again."),
)
