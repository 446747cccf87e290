"""Text to tokens, with places. Also what is done to text before it is parsed: cutting it into statements, variables.

Names without quotes are upper-cased; in backquotes or double quotes they keep their case. Letters, digits, `_` and `@`
make a name, which may begin with a digit. Every rule is one alternative of one regular expression, so that reading is
linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.sql.errors import BAD_STATEMENT, SqlError

MAX_TEXT: Final = 4 << 20
"""Characters of one request. What is longer is refused before it is read."""
MAX_TOKENS: Final = 200_000
"""Of one statement."""


class Place(NamedTuple):
    """Where something stands; both count from 1."""

    line: int
    column: int


NOWHERE: Final = Place(0, 0)
START: Final = Place(1, 1)


class Token(NamedTuple):
    kind: str
    """name, quoted, string, int, decimal, float, op, end"""
    text: str
    """A name as it is looked up; a text without its quotes."""
    start: int


_TOKENS: Final = re.compile(
    r"""
    (?P<skip>(?:\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+)
  | (?P<float>(?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?![\w@]))
  | (?P<decimal>\d+\.\d*(?![\w@])|\.\d+(?![\w@]))
  | (?P<int>\d+(?![\w@]))
  | (?P<name>[\w@]+)
  | `(?P<back>(?:[^`]|``)*)`
  | "(?P<double>(?:[^"]|"")*)"
  | '(?P<string>(?:[^']|'')*)'
  | \$\$(?P<body>(?:[^$]|\$(?!\$))*)\$\$
  | (?P<variable>\$\{[^}]*\})
  | (?P<op>->|=>|:=|<>|!=|<=|>=|\|\||/(?!\*)|[-+*%=<>(),.;\[\]:])
    """,
    re.VERBOSE,
)

# What never closes goes on to the end of the text: if it were passed over, each of many would be read to the end again.
_ENDS: Final = re.compile(
    r"--[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\""
    r"|\$\$(?:[^$]|\$(?!\$))*\$\$|;"
)
_VARIABLE: Final = re.compile(r"\$\{([^}]*+)(?:\}|\Z)")
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_OPENINGS: Final = {"'": "a text", '"': "a name", "`": "a name"}


class Piece(NamedTuple):
    """One statement of a longer text: itself, and where it begins."""

    text: str
    at: Place


class Lines:
    """From a position in a text to line and column."""

    def __init__(self, text: str, begins: Place = START) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._begins = begins

    def place(self, position: int) -> Place:
        line = bisect_right(self._starts, position)
        column = position - self._starts[line - 1] + 1
        first = line == 1
        return Place(self._begins.line + line - 1, self._begins.column + column - 1 if first else column)


def pieces(text: str) -> Iterator[Piece]:
    """The statements of a text, without their semicolons. What is blank or only comment is left out."""
    if len(text) > MAX_TEXT:
        raise SqlError(
            BAD_STATEMENT, f"{len(text):,} characters of SQL: at most {MAX_TEXT:,} are read at once", "", *START
        )
    lines, start = Lines(text), 0
    for match in _ENDS.finditer(text):
        if match[0] == ";":
            yield from _piece(text[start : match.start()], lines.place(start))
            start = match.end()
    yield from _piece(text[start:], lines.place(start))


def _piece(text: str, at: Place) -> Iterator[Piece]:
    skipped = _TOKENS.match(text)
    begin = skipped.end() if skipped is not None and skipped.lastgroup == "skip" else 0
    if begin < len(text):
        yield Piece(text[begin:].rstrip(), Lines(text, at).place(begin))


def substituted(text: str, variables: Mapping[str, str], most: int = MAX_TEXT) -> str:
    """`${name}` replaced by what is defined for it, inside quotes too. Names do not look at case. Raises SqlError, also
    for more than `most` characters, before they are there: variables in variables multiply."""

    def value(match: re.Match[str]) -> str:
        if not match[0].endswith("}"):
            return match[0]
        name = match[1].strip()
        if not _VARIABLE_NAME.fullmatch(name):
            raise SqlError(BAD_STATEMENT, f"${{{name}}} names no variable: letters, digits and _ make a name")
        found = variables.get(name.upper())
        return match[0] if found is None else found

    length = len(text) + sum(len(value(match)) - len(match[0]) for match in _VARIABLE.finditer(text))
    if length > most:
        raise SqlError(
            BAD_STATEMENT,
            f"with its variables the text has more than the {MAX_TEXT:,} characters that are read at once",
        )
    return _VARIABLE.sub(value, text)


def tokens(text: str, lines: Lines) -> list[Token]:
    found: list[Token] = []
    at, end = 0, len(text)
    while at < end:
        match = _TOKENS.match(text, at)
        if match is None:
            raise _unreadable(text, at, lines)
        kind = match.lastgroup
        if kind != "skip":
            assert kind is not None
            found.append(_token(kind, match, lines))
            if len(found) > MAX_TOKENS:
                raise _error(f"the statement has more than {MAX_TOKENS:,} words", at, lines)
        at = match.end()
    found.append(Token("end", "", end))
    return found


def _token(kind: str, match: re.Match[str], lines: Lines) -> Token:
    at = match.start()
    match kind:
        case "name":
            return Token("name", match[0].upper(), at)
        case "back":
            return Token("quoted", match["back"].replace("``", "`"), at)
        case "double":
            return Token("quoted", match["double"].replace('""', '"'), at)
        case "string":
            return Token("string", match["string"].replace("''", "'"), at)
        case "body":
            return Token("string", match["body"], at)
        case "variable":
            raise _error(f"the variable {match[0]} is not defined: DEFINE {match[0][2:-1]} = '...'", at, lines)
    return Token(kind, match[0], at)


def _unreadable(text: str, at: int, lines: Lines) -> SqlError:
    character = text[at]
    if character in _OPENINGS:
        return _error(f"{_OPENINGS[character]} begins here with {character} and does not end", at, lines)
    if text.startswith("/*", at):
        return _error("a comment begins here with /* and does not end", at, lines)
    return _error(f"{character!r} means nothing here", at, lines)


def _error(message: str, position: int, lines: Lines) -> SqlError:
    return SqlError(BAD_STATEMENT, message, "", *lines.place(position))
