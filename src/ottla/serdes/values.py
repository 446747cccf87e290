"""Spark's rules for single values, on plain Python ones: what `+`, `<`, `cast` and the string functions give.

The test driver and Python stages compute with these; the same expression on Spark computes with Spark's own. The two
have to agree to the last bit, which tests/spark/test_expressions.py checks. Where a calculation has no answer
(overflow, division by zero, a cast that fails) both give None, whether Spark is in ANSI mode or not: one bad record
must not end a query. Arguments are never None here unless a function says so.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from ottla.serdes import dates, decimals

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1

_SPACES: Final = "".join(map(chr, range(0x21)))
"""What Spark takes off a string before it reads a number: blanks and all control characters."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_FRACTION: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_SPECIAL: Final = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_TRUTHS: Final = {"t": True, "true": True, "y": True, "yes": True, "1": True} | {
    "f": False,
    "false": False,
    "n": False,
    "no": False,
    "0": False,
}


# ---- order and equality: NaN equals itself and is above every other number


def order_key(value: Any) -> Any:
    """By which doubles sort as Spark sorts them; other types sort by themselves."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def equal_doubles(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def less_doubles(left: float, right: float) -> bool:
    return left < right or (math.isnan(right) and not math.isnan(left))


# ---- arithmetic


def fit_int(value: int) -> int | None:
    return value if INT_MIN <= value <= INT_MAX else None


def fit_long(value: int) -> int | None:
    return value if LONG_MIN <= value <= LONG_MAX else None


def negated(value: Any) -> Any:
    """There is one zero among decimals; -Decimal(0) would be rounded to a context besides."""
    if isinstance(value, Decimal):
        return value.copy_negate() if value else value
    return -value


def absolute(value: Any) -> Any:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def divide(left: float, right: float) -> float | None:
    return left / right if right else None


def remainder(left: int, right: int) -> int | None:
    """With the sign of the left side, as in Java; Python's own has that of the right."""
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def remainder_double(left: float, right: float) -> float | None:
    if right == 0:
        return None
    if math.isinf(left):
        return math.nan
    return math.fmod(left, right)


def round_half_up(value: float, places: int) -> float:
    if not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    if int(exact.as_tuple().exponent) < -places:
        exact = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return float(exact) + 0.0  # Spark goes through a decimal too, which has no negative zero


def whole(value: float, rounding: Callable[[float], int]) -> int | None:
    """floor and ceil: a long, or None where no long is near."""
    return rounding(value) if -(2.0**63) <= value < 2.0**63 else None


# ---- casts


def double_to_integer(value: float, low: int, high: int) -> int | None:
    """Towards zero."""
    if not math.isfinite(value):
        return None
    if math.floor(value) > float(high) or math.ceil(value) < float(low):
        return None
    return min(max(int(value), low), high)


def string_to_integer(text: str, low: int, high: int) -> int | None:
    text = text.strip(_SPACES)
    if not _WHOLE.fullmatch(text) or len(text) > 40:
        return None
    number = int(text)
    return number if low <= number <= high else None


def string_to_double(text: str) -> float | None:
    text = text.strip(_SPACES)
    if _FRACTION.fullmatch(text):
        return float(text.rstrip("dDfF"))
    return _SPECIAL.get(text.lower())


def string_to_boolean(text: str) -> bool | None:
    return _TRUTHS.get(text.strip(_SPACES).lower())


def double_text(value: float) -> str:
    """As Java writes a double: 1.0, 1.0E10, 1.0E-4. (Before JDK 19 it wrote some with a digit too many.)"""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" not in text:
            return text
    exact = Decimal(repr(value)).normalize()
    if len(exact.as_tuple().digits) == 1:
        exact = Decimal(f"{value:.1e}")  # Java takes two digits at least, and those nearest to the number
    figures = "".join(map(str, exact.as_tuple().digits)).ljust(2, "0")
    return f"{'-' if value < 0 else ''}{figures[0]}.{figures[1:]}E{exact.adjusted()}"


def binary_to_string(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


# ---- JSON without a schema


def json_to_double(value: Any) -> float | None:
    match value:
        case bool():
            return 1.0 if value else 0.0
        case int():
            return big_to_double(value)
        case float():
            return value or 0.0  # JSON's -0.0 has no sign in Spark
        case str():
            return string_to_double(value)
    return None


def big_to_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def json_to_integer(value: Any, low: int, high: int) -> int | None:
    match value:
        case bool():
            return int(value)
        case int():
            return value if low <= value <= high else None
        case float():
            return double_to_integer(value, low, high)
        case str():
            return string_to_integer(value, low, high)
    return None


def json_to_boolean(value: Any) -> bool | None:
    match value:
        case bool():
            return value
        case int() | float():
            return value != 0
        case str():
            return string_to_boolean(value)
    return None


def json_to_string(value: Any) -> str | None:
    """A text as it is, all else as JSON; a fraction in plain digits."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return plain_number(value)
        case dict() | list() | tuple():
            return json_text(value)
        case int():
            return str(value)
    return None


def plain_number(value: float) -> str:
    if not math.isfinite(value):
        return double_text(value)
    text = format(Decimal(repr(value)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False).encode
_quoted: Final = json.JSONEncoder(ensure_ascii=False).encode
_ESCAPE: Final = re.compile(r"\\(u00[01][0-9a-f]|.)")


def json_text(value: Any) -> str:
    """JSON as Spark and Jackson write it: no blanks, fields in the order of their names, doubles as in Java."""
    if _has_odd_number(value):
        return _json_slowly(value)
    try:
        return _with_upper_case_escapes(_dumps(value))
    except TypeError:  # something that has no JSON of its own, a decimal for instance
        return _json_slowly(value)


def json_quoted(text: str) -> str:
    return _with_upper_case_escapes(_quoted(text))


def json_number(value: float) -> str:
    """What is no number in JSON goes as a text, as Spark does it."""
    return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'


def _with_upper_case_escapes(text: str) -> str:
    if "\\u00" not in text:
        return text
    return _ESCAPE.sub(lambda match: "\\u" + match[1][1:].upper() if len(match[1]) > 1 else match[0], text)


def _has_odd_number(value: Any) -> bool:
    """Whether there is a double that Python would write in another way than Java."""
    match value:
        case float():
            return not (value == 0 or 1e-3 <= abs(value) < 1e7)
        case dict():
            return any(map(_has_odd_number, value.values()))
        case list() | tuple():
            return any(map(_has_odd_number, value))
    return False


def _json_slowly(value: Any) -> str:
    match value:
        case float():
            return json_number(value)
        case dict():
            fields = sorted(value.items())
            return "{" + ",".join(f"{json_quoted(name)}:{_json_slowly(part)}" for name, part in fields) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_json_slowly, value)) + "]"
        case Decimal():
            return decimals.plain(value)
        case datetime():
            return str(dates.ms_of(value))
        case date():
            return str(dates.days_of(value))
        case time():
            return str(dates.ms_of_day(value))
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
    return _with_upper_case_escapes(_dumps(value))


def json_field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def json_item(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, (list, tuple)) and 0 <= index < len(value) else None


# ---- strings


def substring(text: str, start: int, length: int | None) -> str:
    """SQL's: the first character is number 1, a negative start counts from the end."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


def replaced(text: str, search: str, replacement: str) -> str:
    return text.replace(search, replacement) if search else text


def split(text: str, pattern: "re.Pattern[str]") -> list[str]:
    """Java's rule: empty parts at the end stay, an empty match at the beginning gives none."""
    if not pattern.pattern and text:
        return list(text)
    parts, at = [], 0
    for match in pattern.finditer(text):
        if match.end() > 0:
            parts.append(text[at : match.start()])
            at = match.end()
    parts.append(text[at:])
    return parts


def extreme(values: Sequence[Any], largest: bool) -> Any:
    """least and greatest: None is left out; None if nothing is left."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    return (max if largest else min)(present, key=order_key)
