"""A place in a list of tokens, and what every rule asks of it."""

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.lexer import Lines, Place, Token

T = TypeVar("T")

MAX_DEPTH: Final = 100
"""Of expressions and types inside each other, as they are written."""
MAX_HEIGHT: Final = 200
"""Of the tree of an expression, in which each sign of a sum is one more: what works on trees calls itself."""

RESERVED: Final = frozenset(
    """
    ALL AND AS BETWEEN BY CASE CAST CREATE CROSS DELETE DESCRIBE DISTINCT DROP ELSE END EXISTS FALSE FROM FULL GROUP
    HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL ON OR ORDER OUTER RIGHT SELECT TABLE THEN TRUE
    UNION USING VALUES WHEN WHERE WINDOW WITH WITHIN
    """.split()  # noqa: SIM905  one word after another reads better than a list
)
"""These are names in quotes only."""


class Cursor:
    __slots__ = ("_depth", "_lines", "_place", "_tokens", "height", "text")

    def __init__(self, text: str, tokens: list[Token], lines: Lines) -> None:
        self.text = text
        self._tokens = tokens
        self._lines = lines
        self._place = 0
        self._depth = 0
        self.height = 0
        """Of the highest expression that was read inside of the one that is being read."""

    # ---- looking

    @property
    def token(self) -> Token:
        return self._tokens[self._place]

    @property
    def at(self) -> Place:
        return self._lines.place(self.token.start)

    def ahead(self, distance: int) -> Token:
        return self._tokens[min(self._place + distance, len(self._tokens) - 1)]

    def is_word(self, *words: str, ahead: int = 0) -> bool:
        """Whether these words come next."""
        for distance, word in enumerate(words):
            token = self.ahead(ahead + distance)
            if token.kind != "name" or token.text != word:
                return False
        return True

    def is_any(self, *words: str) -> bool:
        return self.token.kind == "name" and self.token.text in words

    def is_op(self, text: str, ahead: int = 0) -> bool:
        token = self.ahead(ahead)
        return token.kind == "op" and token.text == text

    # ---- taking

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._place += 1
        return token

    def word(self, *words: str) -> bool:
        """Takes these words if they come next."""
        if not self.is_word(*words):
            return False
        self._place += len(words)
        return True

    def op(self, text: str) -> bool:
        if not self.is_op(text):
            return False
        self._place += 1
        return True

    def expect_word(self, *words: str) -> None:
        for word in words:
            if not self.word(word):
                self.wrong(word)

    def expect_op(self, text: str) -> None:
        if not self.op(text):
            self.wrong(f"{text!r}")

    def one_of(self, *words: str) -> str:
        if not self.is_any(*words):
            self.wrong(" or ".join(words))
        return self.take().text

    def name(self, what: str = "a name") -> str:
        token = self.token
        if token.kind == "quoted" and token.text:
            return self.take().text
        if token.kind == "name":
            if token.text in RESERVED:
                self.refuse(f"{what} is expected, but {token.text} is a reserved word: write `{token.text}` in quotes")
            return self.take().text
        if token.kind == "int":
            self.refuse(f"{what} is expected, not a number: write `{token.text}` in quotes")
        self.wrong(what)

    def string(self, what: str = "a text in quotes") -> str:
        if self.token.kind != "string":
            self.wrong(what)
        return self.take().text

    def number(self, what: str = "a whole number") -> int:
        if self.token.kind != "int" or len(self.token.text) > 18:
            self.wrong(what)
        return int(self.take().text)

    def listed(self, one: "Callable[[Cursor], T]") -> tuple[T, ...]:
        """One or more, with commas between."""
        found = [one(self)]
        while self.op(","):
            found.append(one(self))
        return tuple(found)

    def end(self) -> None:
        if self.token.kind != "end":
            self.wrong("the end of the statement")

    # ---- refusing

    def enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.refuse(f"more than {MAX_DEPTH} levels of nesting: take the expression apart")

    def leave(self) -> None:
        self._depth -= 1

    def rise(self, height: int) -> int:
        """One more. Refuses what is too high."""
        if height >= MAX_HEIGHT:
            self.refuse(f"an expression of more than {MAX_HEIGHT} operators on top of each other: take it apart")
        return height + 1

    def wrong(self, expected: str) -> NoReturn:
        token = self.token
        shown = token.text if len(token.text) <= 40 else token.text[:40] + "..."
        found = "the statement ends" if token.kind == "end" else f"{shown!r} is there"
        self.refuse(f"{expected} is expected, but {found}")

    def refuse(self, message: str) -> NoReturn:
        raise SqlError(BAD_STATEMENT, message, "", *self.at)
