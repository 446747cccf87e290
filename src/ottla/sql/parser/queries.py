"""SELECT … FROM … and all that may follow."""

from typing import Final, NoReturn

from ottla.sql import tree as t
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.parser.cursor import RESERVED, Cursor
from ottla.sql.parser.expressions import UNITS, expression

_NOT_ALIASES: Final = RESERVED | {"EMIT", "PARTITION"}
"""What follows a source or an item and is no alias."""
_HISTORY: Final = "over what topics hold by now a client may ask for it, by a SELECT without EMIT (`ottla sql history`)"


def query(cursor: Cursor) -> t.Query:
    at = cursor.at
    cursor.expect_word("SELECT")
    if cursor.is_word("DISTINCT"):
        cursor.refuse(f"SELECT DISTINCT is not available: GROUP BY the columns; {_HISTORY}")
    items = cursor.listed(_item)
    cursor.expect_word("FROM")
    source = _source(cursor)
    joins = []
    while (join := _join(cursor)) is not None:
        joins.append(join)
    window = _window(cursor) if cursor.word("WINDOW") else None
    where = expression(cursor) if cursor.word("WHERE") else None
    group_by = _keys(cursor) if cursor.word("GROUP", "BY") else ()
    partition_by = _keys(cursor) if cursor.word("PARTITION", "BY") else ()
    having = expression(cursor) if cursor.word("HAVING") else None
    emit = cursor.one_of("CHANGES", "FINAL") if cursor.word("EMIT") else None
    limit = cursor.number("how many rows") if cursor.word("LIMIT") else None
    _refuse_others(cursor)
    return t.Query(items, source, tuple(joins), window, where, group_by, partition_by, having, emit, limit, at=at)


def _refuse_others(cursor: Cursor) -> None:
    for words in (("ORDER", "BY"), ("UNION",), ("BETWEEN",), ("CROSS",), ("NATURAL",)):
        if cursor.is_word(*words):
            refuse_for_history(cursor, " ".join(words))


def refuse_for_history(cursor: Cursor, words: str) -> NoReturn:
    """What needs an end of the input, which a query over streams does not have."""
    cursor.refuse(f"{words} is not available in a query over streams and tables: {_HISTORY}")


def _item(cursor: Cursor) -> t.Star | t.Item:
    at = cursor.at
    if cursor.op("*"):
        return t.Star(at=at)
    if cursor.token.kind in ("name", "quoted") and cursor.is_op(".", 1) and cursor.is_op("*", 2):
        source = cursor.name("a source")
        cursor.take()
        cursor.take()
        return t.Star(source, at=at)
    found = expression(cursor)
    if cursor.is_word("OVER") and cursor.is_op("(", 1):
        refuse_for_history(cursor, "OVER")
    return t.Item(found, _alias(cursor), at=at)


def _alias(cursor: Cursor) -> str | None:
    if cursor.word("AS"):
        return cursor.name("an alias")
    token = cursor.token
    if token.kind == "quoted":
        return cursor.take().text
    if token.kind == "name" and token.text not in _NOT_ALIASES:
        return cursor.take().text
    return None


def _source(cursor: Cursor) -> t.Source:
    at = cursor.at
    if cursor.is_op("("):
        cursor.refuse(
            "a query inside a query is not available: CREATE STREAM ... AS SELECT first, then select from it; "
            + _HISTORY
        )
    name = cursor.name("a stream or table")
    return t.Source(name, _alias(cursor), at=at)


def _join(cursor: Cursor) -> t.Join | None:
    at = cursor.at
    kind = "INNER"
    if cursor.is_any("LEFT", "RIGHT", "FULL"):
        kind = cursor.take().text
        cursor.word("OUTER")
        cursor.expect_word("JOIN")
    elif cursor.word("INNER"):
        cursor.expect_word("JOIN")
    elif cursor.is_any("OUTER"):
        kind = "FULL"
        cursor.take()
        cursor.expect_word("JOIN")
    elif not cursor.word("JOIN"):
        return None
    source = _source(cursor)
    within = _within(cursor) if cursor.is_word("WITHIN") else None
    cursor.expect_word("ON")
    return t.Join(kind, source, expression(cursor), within, at=at)


def _within(cursor: Cursor) -> t.Within:
    at = cursor.at
    cursor.expect_word("WITHIN")
    if cursor.op("("):
        before = duration(cursor)
        cursor.expect_op(",")
        after = duration(cursor)
        cursor.expect_op(")")
    else:
        before = after = duration(cursor)
    grace = duration(cursor) if cursor.word("GRACE", "PERIOD") else None
    return t.Within(before, after, grace, at=at)


def duration(cursor: Cursor) -> t.Duration:
    at = cursor.at
    amount = cursor.number("a duration such as 5 MINUTES")
    if cursor.token.kind != "name" or UNITS.get(cursor.token.text) not in t.UNIT_MS:
        cursor.wrong("MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS")
    found = t.Duration(amount, UNITS[cursor.take().text], at=at)
    if found.ms > t.LONGEST_MS:
        raise SqlError(BAD_STATEMENT, f"{amount} {found.unit}S are more than the {t.LONGEST} there may be", "", *at)
    return found


def _window(cursor: Cursor) -> t.Window:
    at = cursor.at
    if not cursor.is_any("TUMBLING", "HOPPING", "SESSION") and cursor.ahead(1).kind == "name":
        cursor.name()
    kind = cursor.one_of("TUMBLING", "HOPPING", "SESSION")
    cursor.expect_op("(")
    if kind != "SESSION":
        cursor.expect_word("SIZE")
    size = duration(cursor)
    advance = retention = grace = None
    if kind == "HOPPING":
        cursor.expect_op(",")
        cursor.expect_word("ADVANCE", "BY")
        advance = duration(cursor)
    while cursor.op(","):
        if cursor.word("RETENTION"):
            retention = duration(cursor)
        else:
            cursor.expect_word("GRACE", "PERIOD")
            grace = duration(cursor)
    cursor.expect_op(")")
    return t.Window(kind, size, advance, retention, grace, at=at)


def _keys(cursor: Cursor) -> tuple[t.Expr, ...]:
    """`a, b` or `(a, b)`; `(a + b) * c` is one expression."""
    if cursor.is_op("(") and _is_list(cursor):
        cursor.expect_op("(")
        found = cursor.listed(expression)
        cursor.expect_op(")")
        return found
    return cursor.listed(expression)


def _is_list(cursor: Cursor) -> bool:
    """Whether there is a comma directly inside the parentheses that open here, and nothing of an expression behind."""
    depth, distance, comma = 0, 0, False
    while cursor.ahead(distance).kind != "end":
        token = cursor.ahead(distance)
        if token.kind == "op":
            if token.text in ("(", "["):
                depth += 1
            elif token.text in (")", "]"):
                depth -= 1
                if depth == 0:
                    return comma
            elif token.text == "," and depth == 1:
                comma = True
        distance += 1
    return False
