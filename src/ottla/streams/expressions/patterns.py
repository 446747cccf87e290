"""Regular expressions that mean the same in Python and in Java."""

import re
from functools import lru_cache
from typing import Final

from ottla.streams.expressions.pattern_runs import runner


@lru_cache(maxsize=1024)
def checked_pattern(text: str) -> "re.Pattern[str]":
    r"""A regular expression that Python and Java read alike, compiled.

    \w, \d, \s and (?i) know ASCII only, as in Java. What means something else on either side is refused. Left to the
    writer: `.` and `$` treat \r and the Unicode line ends as ends of line in Java alone.
    """
    for construct, reason in _NOT_COMMON:
        if construct.search(text):
            raise ValueError(f"the pattern {text!r} has {reason}, which Python and Java do not share")
    try:
        made = re.compile(text, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"the pattern {text!r} cannot be used: {error}") from error
    runner(made)  # it can be run
    return made


def matches_nothing(text: str) -> bool:
    """Whether it can match an empty text, which Java finds in the middle of characters beyond the basic plane, too."""
    pattern = checked_pattern(text)
    return any(found.start() == found.end() for probe in _PROBES for found in pattern.finditer(probe))


_PROBES: Final = ("", "a", "A1 b_", "aa", " \n", "é;")

_UNESCAPED: Final = r"(?<!\\)(?:\\\\)*"
_NOT_COMMON: Final = (
    (re.compile(_UNESCAPED + r"\(\?P"), "a (?P...) group"),
    (re.compile(_UNESCAPED + r"\(\?(?:#|\()"), "a comment or a conditional group"),
    (re.compile(r"&&"), "&&"),
    (re.compile(_UNESCAPED + r"\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\["), "a [ inside a character class"),
    (re.compile(_UNESCAPED + r"\\[zZGRXhHvVQEpPkNuU]"), "an escape like \\p, \\Z, \\h or \\u"),
)
