"""SQL's operators over typed parts. Comparisons know two answers: one with null is false, so that NOT of it is true.

Arithmetic is Java's (integers wrap, 7 / 2 is 3), AND, OR and NOT over null booleans are SQL's three-valued ones, where
ksqlDB fails (docs/SQL.md).
"""

from collections.abc import Sequence
from functools import reduce
from typing import Final

from ottla.serdes import dates, decimals
from ottla.serdes.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array_of,
    as_decimal,
    map_of,
    struct_of,
)
from ottla.sql.arguments import Argument, Refused, literal
from ottla.sql.functions.coercions import coerced, null_of, unified, united
from ottla.sql.types import sql_text
from ottla.streams import expressions as e
from ottla.streams.expressions import Expression

_SIGNS: Final = {"+": "ksql_add", "-": "ksql_subtract", "*": "ksql_multiply", "/": "ksql_divide", "%": "ksql_mod"}
_PLAIN: Final = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
_COMPARISONS: Final = {"=": "eq", "<>": "ne", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_CONTAINERS: Final = ("array", "map", "struct")


# ---- arithmetic


def arithmetic(sign: str, left: Argument, right: Argument) -> Argument:
    """`left + right`, and - * / %. + puts texts together as well."""
    if left.is_null or right.is_null:
        raise Refused(f"{sign} with NULL is always NULL: CAST(NULL AS ...) if that is meant")
    if sign == "+" and left.type == right.type == STRING:
        first, second = (as_type(each, STRING) for each in (left, right))
        return Argument(e.concat(first.expression, second.expression), STRING)
    for each in (left, right):
        if not each.type.is_number:
            raise Refused(f"{sign} takes numbers, not {sql_text(each.type)}; CAST it")
    kind = _calculated(sign, left.type, right.type)
    if kind.name != "decimal":
        left, right = as_type(left, kind), as_type(right, kind)
    return Argument(Expression(_SIGNS[sign], (left.expression, right.expression)), kind)


def _calculated(sign: str, left: Type, right: Type) -> Type:
    names = {left.name, right.name}
    if "double" in names:
        return DOUBLE
    if "decimal" in names:
        return decimals.result_type(_PLAIN[sign], as_decimal(left), as_decimal(right))
    return LONG if "long" in names else INT


def negative(given: Argument) -> Argument:
    if given.is_null:
        return as_type(given, INT)
    if not given.type.is_number:
        raise Refused(f"- takes a number, not {sql_text(given.type)}; CAST it")
    if given.is_literal:
        return literal(-given.constant, given.type)
    return Argument(e.ksql_negate(given.expression), given.type)


def concatenated(left: Argument, right: Argument) -> Argument:
    """`left || right`: nulls are left out."""
    first, second = unified([left, right])
    kind = STRING if first.is_null else first.type
    if kind not in (STRING, BINARY):
        raise Refused(f"|| takes STRING or BYTES, not {sql_text(kind)}; CAST it AS STRING")
    first, second = as_type(first, kind), as_type(second, kind)
    return Argument(e.ksql_concat(first.expression, second.expression), kind)


# ---- comparisons


def compared(sign: str, left: Argument, right: Argument) -> Argument:
    """`left = right`, and <> != < <= > >=."""
    if left.is_null or right.is_null:
        return literal(False, BOOLEAN)
    left, right = _comparable(sign, left, right)
    if left.type.name in _CONTAINERS:
        same = e.ksql_equal(left.expression, right.expression)
        return _never_null(same if sign == "=" else ~same)
    return _never_null(Expression(_COMPARISONS[sign], (left.expression, right.expression)))


def _comparable(sign: str, left: Argument, right: Argument) -> tuple[Argument, Argument]:
    """In one type that has what the comparison needs."""
    kind = _shared(left, right)
    if kind is None:
        raise Refused(
            f"{sql_text(left.type)} {sign} {sql_text(right.type)} cannot be compared; CAST one of them to the other"
        )
    if kind.name in ("boolean", *_CONTAINERS) and sign not in ("=", "<>", "!=", "IN", "IS DISTINCT FROM"):
        raise Refused(f"{sql_text(kind)} has no order, so that {sign} has no meaning; there are = and <>")
    return as_type(left, kind), as_type(right, kind)


def _shared(left: Argument, right: Argument) -> Type | None:
    kind = united(left.type, right.type)
    if kind is not None:
        return kind
    if {left.type.name, right.type.name} == {"date", "timestamp"}:
        return TIMESTAMP
    if left.type.is_number and right.type.is_number:
        return DOUBLE  # decimals that together have more digits than there can be
    for constant, other in ((left, right), (right, left)):
        if constant.is_literal and constant.type == STRING and coerced(constant, other.type) is not None:
            return other.type
    return None


def instant(given: Argument) -> Argument:
    """A text beside ROWTIME, WINDOWSTART or WINDOWEND is a time: its milliseconds since 1970. All else stays."""
    if not (given.is_literal and given.type == STRING):
        return given
    moment = coerced(given, TIMESTAMP)
    assert moment is not None
    return literal(dates.ms_of(moment.constant), LONG)


def _never_null(comparison: Expression) -> Argument:
    return Argument(e.coalesce(comparison, False), BOOLEAN)


def is_distinct(left: Argument, right: Argument) -> Argument:
    """`left IS DISTINCT FROM right`."""
    if left.is_null or right.is_null:
        if left.is_null and right.is_null:
            return literal(False, BOOLEAN)
        return Argument((right if left.is_null else left).expression.is_not_null(), BOOLEAN)
    left, right = _comparable("IS DISTINCT FROM", left, right)
    if left.type.name not in _CONTAINERS:
        return Argument(e.is_distinct(left.expression, right.expression), BOOLEAN)
    both_null = left.expression.is_null() & right.expression.is_null()
    same = e.coalesce(e.ksql_equal(left.expression, right.expression), both_null)
    return Argument(~same, BOOLEAN)


def is_null(given: Argument) -> Argument:
    if given.is_null:
        return literal(True, BOOLEAN)
    return Argument(given.expression.is_null(), BOOLEAN)


def is_not_null(given: Argument) -> Argument:
    return negated(is_null(given)) if given.is_null else Argument(given.expression.is_not_null(), BOOLEAN)


def between(subject: Argument, low: Argument, high: Argument) -> Argument:
    """Both ends included."""
    return both(compared(">=", subject, low), compared("<=", subject, high))


def is_in(subject: Argument, choices: Sequence[Argument]) -> Argument:
    """`subject IN (choices)`."""
    given, *others = unified([subject, *choices])
    if given.is_null:
        return literal(False, BOOLEAN)
    tests = [compared("=", given, other) for other in others if not other.is_null]
    if not tests:
        return literal(False, BOOLEAN)
    if given.type.name in _CONTAINERS:
        return reduce(either, tests)
    pairs = [_comparable("IN", given, other) for other in others if not other.is_null]
    return _never_null(pairs[0][0].expression.isin(*[other.expression for _, other in pairs]))


def like(subject: Argument, pattern: Argument, escape: str | None = None) -> Argument:
    for each in (subject, pattern):
        if not each.is_null and each.type != STRING:
            raise Refused(f"LIKE takes STRING, not {sql_text(each.type)}; CAST it AS STRING")
    if subject.is_null or pattern.is_null:
        return literal(False, BOOLEAN)
    if escape is not None and len(escape) != 1:
        raise Refused(f"ESCAPE takes one character, not {escape!r}")
    if pattern.is_literal and escape is not None and _ends_escaped(pattern.constant, escape):
        raise Refused(f"the pattern {pattern.constant!r} ends with its ESCAPE, which has nothing to escape there")
    return _never_null(e.like(subject.expression, pattern.expression, escape))


def _ends_escaped(pattern: str, escape: str) -> bool:
    tail = len(pattern) - len(pattern.rstrip(escape))
    return tail % 2 == 1


# ---- logic


def both(left: Argument, right: Argument) -> Argument:
    """`left AND right`."""
    return Argument(truth("AND", left) & truth("AND", right), BOOLEAN)


def either(left: Argument, right: Argument) -> Argument:
    """`left OR right`."""
    return Argument(truth("OR", left) | truth("OR", right), BOOLEAN)


def negated(given: Argument) -> Argument:
    """`NOT given`."""
    return Argument(~truth("NOT", given), BOOLEAN)


def truth(where: str, given: Argument) -> Expression:
    """A condition: of AND, WHERE, HAVING, CASE WHEN."""
    if given.type not in (BOOLEAN, NULL):
        raise Refused(f"{where} takes BOOLEAN, not {sql_text(given.type)}; write a comparison")
    return as_type(given, BOOLEAN).expression


# ---- choice


def case(
    branches: Sequence[tuple[Argument, Argument]], otherwise: Argument | None, subject: Argument | None = None
) -> Argument:
    """CASE WHEN c THEN r ... [ELSE o] END, or CASE subject WHEN v THEN r ... END."""
    conditions = [
        truth("WHEN", when) if subject is None else compared("=", subject, when).expression for when, _ in branches
    ]
    last = Argument(e.lit(None), NULL) if otherwise is None else otherwise
    results = unified([*(result for _, result in branches), last])
    kind = next((each.type for each in results if not each.is_null), None)
    if kind is None:
        raise Refused("every branch of CASE is NULL; CAST one of them to say what type it has")
    made = [as_type(each, kind).expression for each in results]
    parts = [part for pair in zip(conditions, made[:-1], strict=True) for part in pair]
    return Argument(Expression("case", (*parts, made[-1])), kind)


# ---- parts and wholes


def field(struct: Argument, name: str) -> Argument:
    """`struct->name`."""
    if struct.type.name != "struct":
        raise Refused(f"-> takes a field out of a STRUCT, not out of {sql_text(struct.type)}")
    kind = struct.type.field(name)
    if kind is None:
        there = ", ".join(known for known, _ in struct.type.fields)
        raise Refused(f"the STRUCT has no field {name}; it has {there}")
    return Argument(Expression("field", (struct.expression,), (name,)), kind)


def subscript(given: Argument, index: Argument) -> Argument:
    """`array[1]`: the first is 1, -1 the last. `map['key']`."""
    if given.type.name == "array" and given.type.element is not None:
        if index.type not in (INT, LONG):
            raise Refused(f"a place in an ARRAY is an INTEGER, not {sql_text(index.type)}")
        place = index if index.type == INT else Argument(e.ksql_to_int(index.expression), INT)
        return Argument(e.ksql_item(given.expression, place.expression), given.type.element)
    if given.type.name == "map" and given.type.element is not None:
        if index.type != STRING:
            raise Refused(f"the keys of a MAP are STRING, not {sql_text(index.type)}")
        return Argument(e.map_get(given.expression, index.expression), given.type.element)
    raise Refused(f"[ ] takes an item out of an ARRAY or a MAP, not out of {sql_text(given.type)}")


def array(items: Sequence[Argument]) -> Argument:
    """ARRAY[...]."""
    if not items:
        raise Refused("ARRAY[] has no items that say its type; write CAST(NULL AS ARRAY<type>) for none")
    made = unified(items)
    kind = next((each.type for each in made if not each.is_null), None)
    if kind is None:
        raise Refused("every item of the ARRAY is NULL; CAST one of them to say what type it has")
    return Argument(Expression("array", [as_type(each, kind).expression for each in made]), array_of(kind))


def map_(pairs: Sequence[tuple[Argument, Argument]]) -> Argument:
    """MAP(k := v, ...)."""
    if not pairs:
        raise Refused("MAP() has no entries that say its type")
    keys, values = unified([key for key, _ in pairs]), unified([each for _, each in pairs])
    if any(key.type not in (STRING, NULL) for key in keys):
        raise Refused(f"the keys of a MAP are STRING, not {sql_text(keys[0].type)}; CAST them AS STRING")
    kind = next((each.type for each in values if not each.is_null), None)
    if kind is None:
        raise Refused("every value of the MAP is NULL; CAST one of them to say what type it has")
    parts = [
        part.expression
        for key, each in zip(keys, values, strict=True)
        for part in (as_type(key, STRING), as_type(each, kind))
    ]
    return Argument(Expression("create_map", parts), map_of(kind))


def struct(fields: Sequence[tuple[str, Argument]]) -> Argument:
    """STRUCT(f := v, ...)."""
    names = [name for name, _ in fields]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise Refused(f"the STRUCT has the field {twice} twice")
    made = [as_type(each, STRING) if each.is_null else each for _, each in fields]
    kind = struct_of({name: each.type for name, each in zip(names, made, strict=True)})
    return Argument(Expression("struct", [each.expression for each in made], names), kind)


def at_time_zone(given: Argument, zone: str) -> Argument:
    """`timestamp AT TIME ZONE 'zone'`: what the clocks there show."""
    moment = coerced(given, TIMESTAMP)
    if moment is None:
        raise Refused(f"AT TIME ZONE takes a TIMESTAMP, not {sql_text(given.type)}")
    return Argument(e.convert_tz(moment.expression, "UTC", zone), TIMESTAMP)


def as_type(given: Argument, kind: Type) -> Argument:
    """What is known to become it by itself."""
    if given.type == kind:
        return given
    made = Argument(null_of(kind), kind) if given.is_null else coerced(given, kind)
    if made is None and {given.type.name, kind.name} <= {"date", "timestamp", *_NUMERIC}:
        made = Argument(Expression("cast", (given.expression,), (kind,)), kind)
    if made is None:
        raise Refused(f"{sql_text(given.type)} does not become {sql_text(kind)} by itself; CAST it")
    return made


_NUMERIC: Final = ("int", "long", "decimal", "double")
