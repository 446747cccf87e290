"""Refusals: an SqlError at a place in the statement."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NoReturn

from ottla.sql import tree as t
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.functions.declare import Refused
from ottla.streams.expressions import ExpressionError


def refuse(message: str, node: t.Node | t.Word | None = None, code: int = BAD_STATEMENT) -> NoReturn:
    place = (0, 0) if node is None else node.at
    raise SqlError(code, message, "", *place)


@contextmanager
def at(node: t.Node) -> Iterator[None]:
    """What a function or operator refuses inside is refused at this place, and an error that has none gets it."""
    try:
        yield
    except (Refused, ExpressionError) as refused:
        refuse(str(refused), node)
    except SqlError as error:
        if not error.line:
            error.line, error.column = node.at
        raise


def placed(error: SqlError, node: t.Node) -> SqlError:
    """What is wrong with a statement is wrong somewhere in it: where it begins, if nothing more is known."""
    if error.code == BAD_STATEMENT and not error.line:
        error.line, error.column = node.at
    return error


def meant(name: str, known: Iterable[str]) -> str:
    """`; do you mean X?`, or what there is."""
    there = list(known)
    near = get_close_matches(name, there, 1) or [each for each in there if each.upper() == name.upper()]
    if near:
        return f"; do you mean {near[0]}?"
    return f"; there are {', '.join(there[:20])}" if there else ""
