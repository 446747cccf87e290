"""What a SELECT over history reads: names behind FROM and JOIN, and the bounds behind them. Spark parses the rest.

Bounds are ours, so they are taken out of the text, and a bounded source is called by a name of its own. Statements that
change something are refused here: Spark would run them at once; so are calls of Java and of programs, and what could
hide one from this reader (raw strings, whose end Spark sees elsewhere).
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from ottla.sql.errors import BAD_STATEMENT, SqlError

MAX_CHARACTERS: Final = 1_000_000
_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|--[^\r\n]*|/\*.*?\*/)|(?P<text>'(?:[^'\\]|\\.|'')*')|(?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")"""
    r"""|(?P<open>(?:/\*|['"`]).*)|(?P<word>[A-Za-z_@][\w@]*)|(?P<number>\d+(?:\.\d+)?)|(?P<sign>.)""",
    re.S,
)
"""`open` is what begins and never ends: passed over, each of many such would be read to the end of the text again."""
_FIRST: Final = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")
_REFUSED: Final = {
    "INSERT": "it only reads: INSERT INTO is a statement of its own",
    "MERGE": "it only reads",
    "REFLECT": "calls of Java are not for SQL over history",
    "TRY_REFLECT": "calls of Java are not for SQL over history",
    "JAVA_METHOD": "calls of Java are not for SQL over history",
}
_ENDS_FROM: Final = frozenset(
    ("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "ON", "USING", "SELECT")
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Both ends included; of record times in ms, or of offsets in every partition."""

    start: int
    end: int
    of_time: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """A name behind FROM or JOIN."""

    name: str
    """As it is meant: in capital letters unless it was quoted."""
    written: str
    view: str
    """What a source is called for Spark: no other name of the text, whatever the case of its letters."""
    bounds: Bounds | None = None
    at: int = 0
    """Where it stands."""
    has_alias: bool = False

    def text(self, *, is_source: bool) -> str:
        if not is_source:  # a name of the query's own, or none at all: Spark says so
            return _in_backquotes(self.written)
        alias = "" if self.has_alias else f" AS {_in_backquotes(self.name)}"
        return _in_backquotes(self.view) + alias


def _in_backquotes(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    parts: tuple[tuple[int, str], ...]
    """The text without bounds, each part with its place."""
    reads: tuple[Reading, ...]

    def text(self, sources: Container[str]) -> str:
        """For Spark. `sources`: the views of those names that are none of the query's own."""
        names = {each.at: each.text(is_source=each.view in sources) for each in self.reads}
        return "".join(names.get(at, part) for at, part in self.parts)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


_ALONE: Final = frozenset(("UNION", "INTERSECT", "EXCEPT", "OVER", "CROSS", "NATURAL", "QUALIFY", "LATERAL"))
"""Words that only a SELECT over history has."""
_WITHOUT_EMIT: Final = frozenset(("JOIN", "HAVING"))
"""Words of queries that go on, which without EMIT are about history."""
_WINDOWS: Final = frozenset(("TUMBLING", "HOPPING", "SESSION"))


def is_history(text: str, aggregates: Container[str]) -> bool:
    """Whether a statement for rows is a SELECT over history: it has no EMIT, and something that needs an end of the
    input. What is not is a pull query, or wrong. `aggregates`: names of functions over rows."""
    if len(text) > MAX_CHARACTERS:
        return False
    meant = [each for each in _tokens(text.strip().rstrip(";")) if each.kind != "blank"]
    first = next((each.word for each in meant if each.text != "("), "")
    words = [each.word for each in meant]
    if first not in _FIRST or "EMIT" in words or _WINDOWS.intersection(words):
        return False
    if first != "SELECT" or meant[0].text == "(" or _ALONE.intersection(words) or _WITHOUT_EMIT.intersection(words):
        return True
    followed = set(pairwise(each.word or each.text for each in meant))
    if followed & {("ORDER", "BY"), ("GROUP", "BY"), ("SELECT", "DISTINCT"), ("(", "SELECT"), ("FROM", "(")}:
        return True
    if any(after == "(" and word in aggregates for word, after in followed):
        return True
    return any(place + 1 < len(meant) and meant[place + 1].word == "BETWEEN" for place, _ in _names(meant))


def read(text: str) -> HistoryQuery:
    """Raises SqlError."""
    if len(text) > MAX_CHARACTERS:
        raise SqlError(BAD_STATEMENT, f"a statement has at most {MAX_CHARACTERS} characters")
    tokens = list(_tokens(text.strip().rstrip(";")))
    meant = [each for each in tokens if each.kind != "blank"]
    _check(meant, text)
    dropped: set[int] = set()
    reads: list[Reading] = []
    for place, name in _names(meant):
        bounds = _bounds(meant, place + 1, text)
        behind = place + 1 if bounds is None else place + 5
        dropped.update(each.at for each in meant[place + 1 : behind])
        reads.append(_reading(name, bounds, len(reads), has_alias=_is_alias(meant[behind : behind + 1])))
    return HistoryQuery(tuple((each.at, each.text) for each in tokens if each.at not in dropped), tuple(reads))


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        yield _Token(match.lastgroup or "sign", match[0], match.start())


def _check(meant: list[_Token], text: str) -> None:
    first = next((each for each in meant if each.text != "("), None)
    if first is None or first.word not in _FIRST:
        raise SqlError(BAD_STATEMENT, "SQL over history is one SELECT, which may begin WITH", text, 1, 1)
    for each in meant:
        if each.word in _REFUSED:
            raise _error(_REFUSED[each.word], each, text)
        if each.text == ";":
            raise _error("one SELECT at a time", each, text)
        if each.kind == "open":
            raise _error(
                f"what begins here with {each.text[: 2 if each.text[0] == '/' else 1]} does not end", each, text
            )
    for each, following in pairwise(meant):
        if each.word == "USING" and following.kind in ("text", "quoted"):
            raise _error("programs (TRANSFORM ... USING) are not for SQL over history", each, text)
        if each.word == "R" and following.kind in ("text", "quoted") and following.at == each.at + 1:
            raise _error("raw strings are not for SQL over history: write '...' with \\\\ for a backslash", each, text)


def _error(message: str, token: _Token, text: str) -> SqlError:
    before = text[: token.at]
    return SqlError(BAD_STATEMENT, message, text, before.count("\n") + 1, token.at - (before.rfind("\n") + 1) + 1)


def _names(meant: list[_Token]) -> Iterator[tuple[int, _Token]]:
    """Names of what is read, not those of functions (`FROM range(3)`) and of parts (`a.b`). Between FROM and what ends
    it a comma brings another one; parentheses have a FROM of their own."""
    lists: list[bool] = [False]
    selects: list[bool] = [True]  # outside of all parentheses is no function
    for place, token in enumerate(meant):
        if token.text == "(":
            lists.append(False)
            selects.append(False)
        elif token.text == ")" and len(lists) > 1:
            lists.pop()
            selects.pop()
        starts = token.word in ("FROM", "JOIN") or (token.text == "," and lists[-1])
        if token.word == "FROM":
            # EXTRACT(DAY FROM t), TRIM(x FROM y), SUBSTRING(s FROM 2): a FROM of a function has no SELECT before it.
            starts = lists[-1] = selects[-1]
        elif token.word in _ENDS_FROM:
            lists[-1] = False
        selects[-1] = selects[-1] or token.word in ("SELECT", "FROM")
        following = meant[place + 1] if place + 1 < len(meant) else None
        after = meant[place + 2].text if place + 2 < len(meant) else ""
        if starts and following is not None and after not in ("(", ".") and _is_name(following):
            yield place + 1, following


def _is_name(token: _Token) -> bool:
    return token.kind in ("word", "quoted") and token.word not in ("LATERAL", "SELECT", "VALUES", "UNNEST")


def _reading(token: _Token, bounds: Bounds | None, number: int, *, has_alias: bool) -> Reading:
    quoted = token.kind == "quoted"
    mark = token.text[0]
    name = token.text[1:-1].replace(mark * 2, mark) if quoted else token.text.upper()
    written = name if quoted else token.text
    return Reading(name, written, f"{written.lower()}@{number}", bounds, token.at, has_alias)


def _is_alias(following: list[_Token]) -> bool:
    return bool(following) and (
        following[0].kind == "quoted"
        or (following[0].kind == "word" and following[0].word not in _ENDS_FROM | _JOINS | _BEHIND_AN_ALIAS)
        or following[0].word == "AS"
    )


_JOINS: Final = frozenset(("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL"))

_BEHIND_AN_ALIAS: Final = frozenset(("SORT", "CLUSTER", "DISTRIBUTE", "QUALIFY", "OFFSET", "MINUS", "PIVOT", "UNPIVOT"))


def _bounds(meant: list[_Token], place: int, text: str) -> Bounds | None:
    part = meant[place : place + 4]
    if len(part) < 4 or part[0].word != "BETWEEN" or part[2].word != "AND":
        return None
    low, high = part[1], part[3]
    if low.kind == high.kind == "number" and all(each.text.isdigit() and len(each.text) < 20 for each in (low, high)):
        return Bounds(int(low.text), int(high.text), of_time=False)
    if low.kind == high.kind == "text":
        return Bounds(_ms(low, text), _ms(high, text), of_time=True)
    raise _error("a source is bounded BETWEEN two times in quotes or two offsets", low, text)


def _ms(token: _Token, text: str) -> int:
    try:
        found = datetime.fromisoformat(token.text[1:-1].strip())
    except ValueError:
        raise _error(f"{token.text} is no time: write '2026-11-18' or '2026-11-18T07:30:00Z'", token, text) from None
    zoned = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(zoned.timestamp() * 1000)
