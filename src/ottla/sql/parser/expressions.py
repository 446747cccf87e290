"""Expressions, loosest first: OR, AND, NOT, comparison, ||, + -, * / %, sign, [ ] and ->."""

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from ottla.sql import tree as t
from ottla.sql.lexer import Token
from ottla.sql.parser.cursor import Cursor
from ottla.sql.parser.types import type_name

MAX_CHAIN: Final = 100
"""Of arithmetic without parentheses: each sign makes the tree one deeper."""

_COMPARISONS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LONG_MAX: Final = (1 << 63) - 1

UNITS: Final = {
    word: unit
    for unit in ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
    for word in (unit, f"{unit}S")
}
_WITH_UNIT: Final = frozenset(("DATEADD", "DATESUB", "TIMEADD", "TIMESUB", "TIMESTAMPADD", "TIMESTAMPSUB"))


_OR, _AND, _NOT, _COMPARED, _JOINED, _SUM, _PRODUCT, _SIGN = range(1, 9)
_BINDS: Final = {
    **{text: _COMPARED for text in _COMPARISONS},
    "||": _JOINED,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}
_WORDS: Final = {"OR": _OR, "AND": _AND, "IS": _COMPARED, "BETWEEN": _COMPARED, "IN": _COMPARED, "LIKE": _COMPARED}


def expression(cursor: Cursor, floor: int = 0) -> t.Expr:
    """Up to the first operator that binds no more than `floor` does."""
    cursor.enter()
    beside, cursor.height = cursor.height, 0
    left, length = _prefix(cursor), 0
    height = cursor.rise(cursor.height)
    while (binds := _binds(cursor)) > floor:
        length += 1
        if length > MAX_CHAIN and binds not in (_OR, _AND, _JOINED):
            cursor.refuse(f"more than {MAX_CHAIN} operators in a row: take the expression apart")
        cursor.height = height
        left = _infix(cursor, left, binds)
        height = cursor.rise(cursor.height)
    cursor.height = max(beside, height)
    cursor.leave()
    return left


def _binds(cursor: Cursor) -> int:
    token = cursor.token
    if token.kind == "op":
        return _BINDS.get(token.text, 0)
    if token.kind != "name":
        return 0
    if token.text == "NOT":
        return _COMPARED if cursor.ahead(1).text in ("BETWEEN", "IN", "LIKE") else 0
    return _WORDS.get(token.text, 0)


def _infix(cursor: Cursor, left: t.Expr, binds: int) -> t.Expr:
    at, token = cursor.at, cursor.token
    if token.kind == "name" and binds == _COMPARED:
        return _is(cursor, left) if token.text == "IS" else _worded(cursor, left)
    if binds in (_OR, _AND, _JOINED):
        terms = [left]
        while cursor.token.kind == token.kind and cursor.token.text == token.text:
            cursor.take()
            terms.append(expression(cursor, binds))
        return t.Chain(token.text, tuple(terms), at=at)
    cursor.take()
    return t.Binary(_COMPARISONS.get(token.text, token.text), left, expression(cursor, binds), at=at)


def _prefix(cursor: Cursor) -> t.Expr:
    at = cursor.at
    if cursor.is_word("NOT"):
        cursor.take()
        return t.Unary("NOT", expression(cursor, _NOT), at=at)
    if cursor.is_op("-") or cursor.is_op("+"):
        return _signed(cursor)
    return _postfix(cursor)


# ---- predicates


def _is(cursor: Cursor, left: t.Expr) -> t.Expr:
    at = cursor.at
    cursor.expect_word("IS")
    negated = cursor.word("NOT")
    if cursor.word("NULL"):
        return t.IsNull(left, negated, at=at)
    if not cursor.word("DISTINCT"):
        cursor.wrong("NULL or DISTINCT FROM")
    cursor.expect_word("FROM")
    operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    return t.Binary(operator, left, expression(cursor, _COMPARED), at=at)


def _worded(cursor: Cursor, left: t.Expr) -> t.Expr:
    at = cursor.at
    negated = cursor.word("NOT")
    match cursor.one_of("BETWEEN", "IN", "LIKE"):
        case "BETWEEN":
            low = expression(cursor, _COMPARED)
            cursor.expect_word("AND")
            return t.Between(left, low, expression(cursor, _COMPARED), negated, at=at)
        case "IN":
            cursor.expect_op("(")
            choices = cursor.listed(expression)
            cursor.expect_op(")")
            return t.In(left, choices, negated, at=at)
    pattern = expression(cursor, _COMPARED)
    escape = cursor.string("the escape character in quotes") if cursor.word("ESCAPE") else None
    return t.Like(left, pattern, escape, negated, at=at)


def _signed(cursor: Cursor) -> t.Expr:
    at = cursor.at
    operator = cursor.take().text
    number = cursor.token
    if number.kind in ("int", "decimal", "float") and not (cursor.is_op("[", 1) or cursor.is_op("->", 1)):
        # A sign belongs to its number: the least BIGINT has no positive twin.
        cursor.take()
        return t.Literal(_number(cursor, number, -1 if operator == "-" else 1), at=at)
    return t.Unary(operator, expression(cursor, _SIGN), at=at)


def _postfix(cursor: Cursor) -> t.Expr:
    found, length = _primary(cursor), 0
    while True:
        at = cursor.at
        if cursor.op("["):
            found = t.Subscript(found, expression(cursor), at=at)
            cursor.expect_op("]")
        elif cursor.op("->"):
            found = t.Dereference(found, "*" if cursor.op("*") else cursor.name("the name of a field"), at=at)
        elif cursor.is_word("AT", "TIME", "ZONE"):
            cursor.word("AT", "TIME", "ZONE")
            found = t.AtTimeZone(found, cursor.string("a time zone in quotes"), at=at)
        else:
            return found
        length += 1
        cursor.height = cursor.rise(cursor.height)
        if length > MAX_CHAIN:
            cursor.refuse(f"more than {MAX_CHAIN} steps into a value")


def _primary(cursor: Cursor) -> t.Expr:
    at, token = cursor.at, cursor.token
    match token.kind:
        case "int" | "decimal" | "float":
            cursor.take()
            return t.Literal(_number(cursor, token, 1), at=at)
        case "string":
            cursor.take()
            return t.Literal(token.text, at=at)
        case "op" if token.text == "(":
            return _parenthesized(cursor)
        case "quoted":
            return _named(cursor)
        case "name":
            special = _SPECIAL.get(token.text)
            if special is not None and (found := special(cursor)) is not None:
                return found
            return _named(cursor)
    cursor.wrong("an expression")


def _number(cursor: Cursor, token: Token, sign: int) -> "int | Decimal | float":
    if token.kind == "float":
        return sign * float(token.text)
    if len(token.text) > 200:
        cursor.refuse("the number has more digits than any type holds")
    if token.kind == "decimal":
        return sign * Decimal(token.text.rstrip(".") if token.text.endswith(".") else token.text)
    number = sign * int(token.text)
    return number if -_LONG_MAX - 1 <= number <= _LONG_MAX else Decimal(number)


def _parenthesized(cursor: Cursor) -> t.Expr:
    if _is_lambda(cursor):
        return _lambda(cursor)
    cursor.expect_op("(")
    found = expression(cursor)
    cursor.expect_op(")")
    return found


def _is_lambda(cursor: Cursor) -> bool:
    """`(x, y) =>`"""
    distance = 1
    while cursor.ahead(distance).kind in ("name", "quoted"):
        if cursor.is_op(")", distance + 1):
            return cursor.is_op("=>", distance + 2)
        if not cursor.is_op(",", distance + 1):
            return False
        distance += 2
    return False


def _lambda(cursor: Cursor) -> t.Expr:
    at = cursor.at
    if cursor.op("("):
        parameters = cursor.listed(lambda each: each.name("a parameter"))
        cursor.expect_op(")")
    else:
        parameters = (cursor.name("a parameter"),)
    cursor.expect_op("=>")
    return t.Lambda(parameters, expression(cursor), at=at)


def _named(cursor: Cursor) -> t.Expr:
    at = cursor.at
    if cursor.is_op("=>", 1):
        return _lambda(cursor)
    if cursor.is_op("(", 1):
        return _call(cursor)
    name = cursor.name("an expression")
    if cursor.is_op(".") and cursor.ahead(1).kind in ("name", "quoted"):
        cursor.take()
        return t.Column(cursor.take().text, name, at=at)
    return t.Column(name, at=at)


def _call(cursor: Cursor) -> t.Expr:
    at, name = cursor.at, cursor.take().text
    cursor.expect_op("(")
    if cursor.op(")"):
        return t.Call(name, at=at)
    if cursor.op("*"):
        cursor.expect_op(")")
        return t.Call(name, star=True, at=at)
    arguments: tuple[t.Expr, ...] = ()
    if name in _WITH_UNIT and cursor.token.kind == "name" and cursor.token.text in UNITS and cursor.is_op(",", 1):
        unit_at = cursor.at
        arguments = (t.Unit(UNITS[cursor.take().text] + "S", at=unit_at),)
        cursor.expect_op(",")
    arguments += cursor.listed(expression)
    cursor.expect_op(")")
    return t.Call(name, arguments, at=at)


# ---- words that begin something


def _constant(value: bool | None) -> "Callable[[Cursor], t.Expr | None]":
    def read(cursor: Cursor) -> t.Expr:
        at = cursor.at
        cursor.take()
        return t.Literal(value, at=at)

    return read


def _case(cursor: Cursor) -> t.Expr:
    at = cursor.at
    cursor.expect_word("CASE")
    operand = None if cursor.is_word("WHEN") else expression(cursor)
    whens = []
    while cursor.word("WHEN"):
        condition = expression(cursor)
        cursor.expect_word("THEN")
        whens.append((condition, expression(cursor)))
    if not whens:
        cursor.wrong("WHEN")
    otherwise = expression(cursor) if cursor.word("ELSE") else None
    cursor.expect_word("END")
    return t.Case(operand, tuple(whens), otherwise, at=at)


def _cast(cursor: Cursor) -> t.Expr:
    at = cursor.at
    cursor.expect_word("CAST")
    cursor.expect_op("(")
    operand = expression(cursor)
    cursor.expect_word("AS")
    kind = type_name(cursor)
    cursor.expect_op(")")
    return t.Cast(operand, kind, at=at)


def _array(cursor: Cursor) -> t.Expr | None:
    if not cursor.is_op("[", 1):
        return None
    at = cursor.at
    cursor.take()
    cursor.expect_op("[")
    if cursor.op("]"):
        return t.ArrayOf((), at=at)
    items = cursor.listed(expression)
    cursor.expect_op("]")
    return t.ArrayOf(items, at=at)


def _map(cursor: Cursor) -> t.Expr | None:
    if not cursor.is_op("(", 1):
        return None
    at = cursor.at
    cursor.take()
    cursor.expect_op("(")
    if cursor.op(")"):
        return t.MapOf((), at=at)
    entries = cursor.listed(_entry)
    cursor.expect_op(")")
    return t.MapOf(entries, at=at)


def _entry(cursor: Cursor) -> tuple[t.Expr, t.Expr]:
    key = expression(cursor)
    cursor.expect_op(":=")
    return key, expression(cursor)


def _struct(cursor: Cursor) -> t.Expr | None:
    if not cursor.is_op("(", 1):
        return None
    at = cursor.at
    cursor.take()
    cursor.expect_op("(")
    if cursor.op(")"):
        return t.StructOf((), at=at)
    fields = cursor.listed(_field)
    cursor.expect_op(")")
    return t.StructOf(fields, at=at)


def _field(cursor: Cursor) -> tuple[str, t.Expr]:
    name = cursor.name("the name of a field")
    cursor.expect_op(":=")
    return name, expression(cursor)


_SPECIAL: Final = {
    "TRUE": _constant(True),
    "FALSE": _constant(False),
    "NULL": _constant(None),
    "CASE": _case,
    "CAST": _cast,
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}
