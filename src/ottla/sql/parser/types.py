"""Types as they are written: DECIMAL(10, 2), ARRAY<STRING> or STRING ARRAY, MAP<STRING, INT>, STRUCT<a INT, b STRING>,
or a name. VARCHAR(20) and VARCHAR(STRING), as DESCRIBE shows it in ksqlDB, are VARCHAR there and here."""

from ottla.sql import tree as t
from ottla.sql.parser.cursor import Cursor


def type_name(cursor: Cursor) -> t.TypeName:
    cursor.enter()
    found, levels = _type_name(cursor), 1
    while cursor.is_word("ARRAY") and not cursor.is_op("<", ahead=1):
        found = t.TypeName("ARRAY", (found,), at=cursor.at)
        cursor.take()
        cursor.enter()
        levels += 1
    for _ in range(levels):
        cursor.leave()
    return found


def _type_name(cursor: Cursor) -> t.TypeName:
    at = cursor.at
    if cursor.token.kind == "quoted":
        return t.TypeName(cursor.take().text, quoted=True, at=at)
    if cursor.token.kind != "name":
        cursor.wrong("a type")
    name = cursor.take().text
    if name == "STRUCT":
        return t.TypeName(name, fields=_fields(cursor), at=at)
    if name in ("ARRAY", "MAP"):
        cursor.expect_op("<")
        arguments = cursor.listed(type_name)
        cursor.expect_op(">")
        return t.TypeName(name, arguments, at=at)
    if name in ("DECIMAL", "DEC", "NUMERIC") and cursor.op("("):
        numbers = cursor.listed(lambda each: each.number("the number of digits"))
        cursor.expect_op(")")
        return t.TypeName("DECIMAL", numbers, at=at)
    if name in ("VARCHAR", "STRING") and cursor.op("("):
        if not cursor.word("STRING"):
            cursor.number("a length")
        cursor.expect_op(")")
    return t.TypeName(name, at=at)


def _fields(cursor: Cursor) -> tuple[tuple[str, t.TypeName], ...]:
    if cursor.op("<>"):
        return ()
    cursor.expect_op("<")
    if cursor.op(">"):
        return ()
    found = cursor.listed(_field)
    cursor.expect_op(">")
    return found


def _field(cursor: Cursor) -> tuple[str, t.TypeName]:
    name = cursor.name("the name of a field")
    cursor.op(":")
    return name, type_name(cursor)
