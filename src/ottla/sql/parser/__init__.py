"""Tokens to tree: recursive descent for statements, precedence climbing (Pratt) for expressions.

Keywords are soft: a word is a keyword only where one is looked for, so that columns may be called KEY, SIZE or ID. The
few that would make a statement ambiguous (`cursor.RESERVED`) have to be quoted to be names. Depth is bounded: nesting
beyond `cursor.MAX_DEPTH` is refused, and chains of AND, OR and || are as flat as they are written.
"""

from ottla.sql import tree as t
from ottla.sql.errors import SqlError
from ottla.sql.lexer import Lines, Piece, pieces, tokens
from ottla.sql.parser.cursor import Cursor
from ottla.sql.parser.expressions import expression
from ottla.sql.parser.statements import statement
from ottla.sql.parser.types import type_name


def parse_piece(piece: Piece) -> t.Statement:
    """One statement. Raises SqlError with its place in the text that the piece was cut from."""
    try:
        cursor = _cursor(piece)
        parsed = statement(cursor)
        cursor.end()
        return parsed
    except SqlError as error:
        raise error.of(piece.text) from None


def parse(text: str) -> list[t.Statement]:
    """All statements of a text that has no variables."""
    return [parse_piece(piece) for piece in pieces(text)]


def parse_expression(text: str) -> t.Expr:
    cursor = _cursor(Piece(text, Lines(text).place(0)))
    parsed = expression(cursor)
    cursor.end()
    return parsed


def parse_type(text: str) -> t.TypeName:
    cursor = _cursor(Piece(text, Lines(text).place(0)))
    parsed = type_name(cursor)
    cursor.end()
    return parsed


def _cursor(piece: Piece) -> Cursor:
    lines = Lines(piece.text, piece.at)
    return Cursor(piece.text, tokens(piece.text, lines), lines)
