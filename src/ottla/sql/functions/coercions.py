"""Conversions: those that happen by themselves, and those that CAST asks for.

By themselves INT becomes BIGINT, DECIMAL, DOUBLE, in this order; a text that is written out becomes a TIMESTAMP, DATE,
TIME or BYTES where one is wanted; lists, maps and structs are converted part by part. Where values have to share one
type (IN, ARRAY, MAP, CASE, the arguments of a function) constants also become texts, and texts numbers or booleans.
A CAST that fails makes null; that it can never work is said at once.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from ottla.serdes import decimals
from ottla.serdes.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NULL,
    STRING,
    Type,
    struct_of,
    wider,
)
from ottla.sql.arguments import Argument, Refused, literal
from ottla.sql.types import sql_text
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression
from ottla.streams.expressions.functions import ksql_casts

_NUMBERS: Final = ("int", "long", "decimal", "double")
_TRUE, _FALSE = ("true", "yes"), ("false", "no")


def null_of(kind: Type) -> Expression:
    return Expression("cast", (e.lit(None),), (kind,))


# ---- by themselves


def is_implicit(given: Type, wanted: Type) -> bool:
    """Whether every value of a type may stand where another is wanted."""
    if given in (wanted, NULL):
        return True
    if given.name in _NUMBERS and wanted.name in _NUMBERS:
        return _widens(given, wanted)
    if given.name == wanted.name == "struct":
        return all((held := wanted.field(name)) is not None and is_implicit(part, held) for name, part in given.fields)
    if given.name == wanted.name and given.element is not None and wanted.element is not None:
        return is_implicit(given.element, wanted.element)
    return False


def _widens(given: Type, wanted: Type) -> bool:
    if wanted.name != "decimal":
        return _NUMBERS.index(given.name) <= _NUMBERS.index(wanted.name)
    return given.name != "double" and wider(given, wanted) == wanted


def coerced(given: Argument, wanted: Type) -> Argument | None:
    """As a value of the type, or None if that does not happen by itself."""
    if given.type == wanted:
        return given
    if given.is_null:
        return Argument(null_of(wanted), wanted)
    if given.is_literal and given.type == STRING:
        parsed = _PARSED.get(wanted.name)
        return None if parsed is None else literal(parsed(given.constant), wanted)
    if given.is_literal and given.type.name in _NUMBERS and wanted.name == "decimal":
        fitted = _decimal_literal(given.constant, wanted)
        if fitted is not None:
            return fitted
    if not is_implicit(given.type, wanted):
        return None
    return Argument(conversion(given.expression, given.type, wanted), wanted)


def _decimal_literal(constant: Any, wanted: Type) -> Argument | None:
    """A number that is written out may stand for a decimal that has room for just its digits."""
    if isinstance(constant, float):
        return None
    fitted = decimals.fit_exactly(Decimal(constant), wanted)
    return None if fitted is None else literal(fitted, wanted)


def _read(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return convert(text)
        except (ValueError, OverflowError) as error:
            raise Refused(str(error)) from None

    return read


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"{text!r} is no base64, in which bytes are written") from None


_PARSED: Final[dict[str, Callable[[str], Any]]] = {
    "timestamp": _read(ksql_casts.to_timestamp),
    "date": _read(ksql_casts.to_date),
    "time": _read(ksql_casts.to_time),
    "binary": _read(_bytes),
}


# ---- one type for several


def unified(given: Sequence[Argument]) -> list[Argument]:
    """All in one type: the first that is not null says which kind it is. Raises Refused."""
    known = [each for each in given if not each.is_null]
    if not known:
        return list(given)
    kind = _shared_kind(known)
    return [_brought(each, kind) for each in given]


def _shared_kind(known: Sequence[Argument]) -> Type:
    """Of all columns if there are some: constants give way to them."""
    columns = [each for each in known if not each.is_literal]
    first, *others = columns or known
    kind = first.type
    for other in others:
        joined = united(kind, other.type)
        if joined is not None:
            kind = joined
        elif columns or not _gives_way(other, kind):
            raise _no_common(kind, other.type)
    if not columns:
        return kind
    for constant in [each for each in known if each.is_literal]:
        joined = united(kind, constant.type)
        if joined is not None:
            kind = joined
    return kind


def united(left: Type, right: Type) -> Type | None:
    """The type that holds the values of both, or None."""
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if left.name in _NUMBERS and right.name in _NUMBERS:
        return wider(left, right)
    if left.name == right.name == "struct":
        fields = dict(left.fields)
        for name, part in right.fields:
            both = united(fields.get(name, NULL), part)
            if both is None:
                return None
            fields[name] = both
        return struct_of(fields)
    if left.name == right.name and left.element is not None and right.element is not None:
        element = united(left.element, right.element)
        return None if element is None else Type(left.name, element)
    return None


def _gives_way(constant: Argument, kind: Type) -> bool:
    return loosely(constant, kind) is not None


def _brought(given: Argument, kind: Type) -> Argument:
    made = coerced(given, kind)
    if made is None and given.is_literal:
        made = loosely(given, kind)
    if made is None:
        raise _no_common(kind, given.type)
    return made


def loosely(constant: Argument, kind: Type) -> Argument | None:
    """A constant beside others: it becomes a text, or a text becomes what it is beside."""
    if (kind == STRING and constant.type in (INT, LONG, DOUBLE, BOOLEAN)) or constant.type.name == "decimal":
        if kind == STRING:
            return literal(ksql_casts.as_java(constant.constant), STRING)
        return None
    if constant.type != STRING:
        return None
    return _read_constant(constant.constant, kind)


def _read_constant(text: str, kind: Type) -> Argument | None:
    trimmed = text.strip()
    if kind == BOOLEAN:
        word = trimmed.lower()
        for truth, words in ((True, _TRUE), (False, _FALSE)):
            if word and any(each.startswith(word) for each in words):
                return literal(truth, BOOLEAN)
        return None
    if kind.name not in _NUMBERS:
        return None
    bound = conversion(e.lit(text), STRING, kind).bind({})
    return None if bound.options[0] is None else literal(bound.options[0], kind)


def _no_common(left: Type, right: Type) -> Refused:
    return Refused(
        f"{sql_text(left)} and {sql_text(right)} do not go together; CAST one of them, for instance "
        f"CAST(... AS {sql_text(left).split('<')[0]})"
    )


# ---- CAST


def cast(given: Argument, wanted: Type) -> Argument:
    """CAST(given AS wanted). Raises Refused if that can never work."""
    if given.type == wanted:
        return given
    if given.is_null:
        return Argument(null_of(wanted), wanted)
    return Argument(conversion(given.expression, given.type, wanted), wanted)


def conversion(subject: Expression, given: Type, wanted: Type, depth: int = 0) -> Expression:
    """A value of one type as one of another; null where it cannot be."""
    if given == wanted:
        return subject
    if wanted == STRING:
        return _as_text(subject, given)
    if given.name == wanted.name == "array":
        assert given.element is not None and wanted.element is not None
        element = _variable("element", depth)
        body = conversion(element, given.element, wanted.element, depth + 1)
        return Expression("transform", (subject, _lambda(body, element)))
    if given.name == wanted.name == "map":
        assert given.element is not None and wanted.element is not None
        key, element = _variable("key", depth), _variable("element", depth)
        body = conversion(element, given.element, wanted.element, depth + 1)
        return Expression("transform", (subject, _lambda(key, key, element), _lambda(body, key, element)))
    if given.name == wanted.name == "struct":
        return _struct(subject, given, wanted, depth)
    way = _WAYS.get((given.name, wanted.name))
    if way is None:
        raise Refused(f"there is no CAST from {sql_text(given)} to {sql_text(wanted)}")
    return way(subject, wanted)


def _variable(name: str, depth: int) -> Expression:
    return Expression("variable", options=(f"{name}@cast{depth}",))


def _lambda(body: Expression, *parameters: Expression) -> Expression:
    return Expression("lambda", (body,), [each.options[0] for each in parameters])


def _struct(subject: Expression, given: Type, wanted: Type, depth: int) -> Expression:
    fields: list[Expression] = []
    for name, kind in wanted.fields:
        held = given.field(name)
        part = Expression("field", (subject,), (name,))
        fields.append(null_of(kind) if held is None else conversion(part, held, kind, depth))
    made = Expression("struct", fields, [name for name, _ in wanted.fields])
    return e.when(subject.is_not_null(), made).otherwise(null_of(wanted))


def _as_text(subject: Expression, given: Type) -> Expression:
    if given == BINARY:
        raise Refused("there is no CAST from BYTES to STRING; FROM_BYTES(..., 'utf8') says in which encoding")
    if given.name in {"array", "map", "struct", "time"}:
        return e.ksql_text(subject)
    return _plainly(subject, STRING)


def _plainly(subject: Expression, wanted: Type) -> Expression:
    return Expression("cast", (subject,), (wanted,))


def _to_int(subject: Expression, _: Type) -> Expression:
    return e.ksql_to_int(subject)


def _to_long(subject: Expression, _: Type) -> Expression:
    return e.ksql_to_long(subject)


_WAYS: Final[dict[tuple[str, str], Callable[[Expression, Type], Expression]]] = {
    ("int", "long"): _plainly,
    ("int", "double"): _plainly,
    ("int", "decimal"): _plainly,
    ("long", "int"): _to_int,
    ("long", "double"): _plainly,
    ("long", "decimal"): _plainly,
    ("double", "int"): _to_int,
    ("double", "long"): _to_long,
    ("double", "decimal"): _plainly,
    ("decimal", "int"): _to_int,
    ("decimal", "long"): _to_long,
    ("decimal", "double"): _plainly,
    ("decimal", "decimal"): _plainly,
    ("string", "int"): _plainly,
    ("string", "long"): _plainly,
    ("string", "double"): _plainly,
    ("string", "decimal"): _plainly,
    ("string", "boolean"): lambda subject, _: e.ksql_to_boolean(subject),
    ("string", "binary"): lambda subject, _: e.to_bytes(subject, "base64"),
    ("string", "date"): lambda subject, _: e.ksql_to_date(subject),
    ("string", "time"): lambda subject, _: e.ksql_to_time(subject),
    ("string", "timestamp"): lambda subject, _: e.ksql_to_timestamp(subject),
    ("timestamp", "date"): _plainly,
    ("timestamp", "time"): _plainly,
    ("date", "timestamp"): _plainly,
}

__all__ = ["cast", "coerced", "conversion", "is_implicit", "loosely", "null_of", "unified", "united"]
