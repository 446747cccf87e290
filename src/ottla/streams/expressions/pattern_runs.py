"""Patterns of users, run so that no text can keep a process: Python's engine goes back and forth, and holds threads.

re2 takes time that grows with the text alone, and more for each match. So what has one repetition at the most, of a
single character, goes to Python's `re` for texts that are not long; so does what re2 does not have (looking ahead and
behind, back references), unless a group is repeated there that repeats or chooses: such a pattern is refused.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from ottla.model.patterns import capturing

# Python's own parser of patterns, which its stubs do not know.
_constants: Any = import_module("re._constants")
_parser: Any = import_module("re._parser")
_REPEATS: Final = frozenset(("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"))
NOTHING_MORE: Final = r"(?![\s\S])"
"""The very end of the text, for Java and Python; re2 has no looking ahead."""
_PART: Final = re.compile(r"\\(.)|(\[\^?\]?)|(\])|(\$)", re.S)
_LONGEST_PATTERN: Final = 10_000
_SHORT: Final = 2_000
"""Characters of a text that Python's engine may have: for one repetition its time may grow with their square."""


@lru_cache(maxsize=1024)
def runner(pattern: "re.Pattern[str]") -> Any:
    """What has `search`, `finditer`, `sub`, `groups` and `pattern`, as a compiled pattern has. Raises ValueError.

    What is found is the same, but for a group that is repeated and may be empty, as in `(a*)*b` (re2 tells what it took
    the last time that it took something), for \\v and a class with \\S, and before a line end at the end of a text.
    """
    text = pattern.pattern
    if len(text) > _LONGEST_PATTERN:
        raise ValueError(f"a pattern of {len(text):,} characters: at most {_LONGEST_PATTERN:,} are taken")
    repeats = list(_repeats(_parser.parse(text, re.ASCII), inside=False))
    if not repeats:
        return pattern
    try:
        linear = capturing(_for_re2(text))
    except ValueError:
        if any(repeats):
            raise ValueError(
                f"the pattern {text!r} looks around or back, and repeats what repeats itself: that can take for ever"
            ) from None
        return pattern
    return _Linear(linear, pattern, 0 if any(repeats) or len(repeats) > 1 else _SHORT)


def _repeats(parsed: Any, *, inside: bool) -> Iterator[bool]:
    """One for each repetition, and each choice inside of one: whether it stands inside a repetition."""
    for op, argument in parsed:
        many = str(op) in _REPEATS and argument[1] > 1
        if many or (inside and str(op) == "BRANCH"):
            yield inside
        for each in _inner(argument):
            yield from _repeats(each, inside=inside or many)


def _inner(argument: Any) -> list[Any]:
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [found for each in argument for found in _inner(each)]
    return []


def _for_re2(text: str) -> str:
    r"""The same for re2, to which \v is no blank, and $ the very end of the text."""
    if text.endswith(NOTHING_MORE):
        text = text.removesuffix(NOTHING_MORE) + r"\z"
    in_class = False

    def changed(found: "re.Match[str]") -> str:
        nonlocal in_class
        if found[1] == "s":
            return r"\t-\r " if in_class else r"[\t-\r ]"
        if found[1] == "S" and not in_class:
            return r"[^\t-\r ]"
        if found[2] and not in_class:
            in_class = True
        elif found[3]:
            in_class = False
        return found[0]

    return _PART.sub(changed, text)


class _Linear:
    def __init__(self, linear: Any, pattern: "re.Pattern[str]", short: int) -> None:
        """`short`: characters of a text up to which Python's engine may have it, which is the quicker one then."""
        self._linear = linear
        self._python = pattern
        self._short = short
        self._ends = "$" in pattern.pattern
        self.groups = pattern.groups
        self.pattern = pattern.pattern

    def _engine(self, text: str) -> Any:
        return self._python if len(text) <= self._short else self._linear

    def _whole(self, text: str) -> bool:
        """Not: $ is in front of a line end that is the last character, which to re2 is not the end."""
        return not (self._ends and text.endswith("\n")) or self._linear.search(text) is not None

    def search(self, text: str) -> Any:
        engine = self._engine(text)
        if engine is self._python or self._whole(text):
            return engine.search(text)
        return engine.search(text[:-1])

    def finditer(self, text: str) -> Any:
        engine = self._engine(text)
        if engine is self._python or self._whole(text):
            return engine.finditer(text)
        return engine.finditer(text[:-1])

    def sub(self, replacement: str, text: str) -> str:
        engine = self._engine(text)
        if engine is self._python or self._whole(text):
            return str(engine.sub(replacement, text))
        return str(engine.sub(replacement, text[:-1])) + "\n"
