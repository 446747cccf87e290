"""Java's regular expressions over topic names, and Java's replacements.

re2 runs most patterns, in time that grows with the text alone. What it does not have (looking ahead and behind, back
references) goes to Python's `re`, unless repetition stands inside repetition there: such a pattern can take for ever.
"""

import re
from importlib import import_module
from typing import Any, Final, Protocol

from ottla.connect.data.errors import IllegalArgumentException, IndexOutOfBoundsException
from ottla.connect.definitions import ConfigError, Value
from ottla.model.patterns import capturing

# Python's own parser of patterns, which its stubs do not know.
_constants: Any = import_module("re._constants")
_parser: Any = import_module("re._parser")
_NAMED: Final = re.compile(r"(\\.)|\(\?<(?=[A-Za-z])")
_POSSESSIVE_OR_ATOMIC: Final = frozenset(("POSSESSIVE_REPEAT", "ATOMIC_GROUP"))
MOST_CHARACTERS: Final = 10_000
"""Of a pattern."""


class Match(Protocol):
    """What re2 and re find."""

    def group(self, index: int | str, /) -> str | None: ...

    def start(self) -> int: ...

    def end(self) -> int: ...


class Pattern(Protocol):
    """What re2 and re compile."""

    @property
    def groups(self) -> int: ...

    def fullmatch(self, text: str, /) -> Match | None: ...

    def search(self, text: str, /) -> Match | None: ...


def compiled(pattern: str) -> Pattern:
    """Raises ValueError with what is wrong."""
    if len(pattern) > MOST_CHARACTERS:
        raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
    translated = in_python(pattern)
    try:
        made: Pattern = capturing(translated)
        return made
    except ValueError:
        return _backtracking(translated)


def in_python(pattern: str) -> str:
    """Java's names of groups are written in another way."""
    return _NAMED.sub(lambda found: found[1] or "(?P<", pattern)


def _backtracking(pattern: str) -> Pattern:
    try:
        parsed = _parser.parse(pattern)
        made: Pattern = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error
    if _repeats_repetition(parsed, inside=False):
        raise ValueError("it looks around or back, and repeats what repeats itself: that can take for ever")
    return made


def _repeats_repetition(parsed: Any, *, inside: bool) -> bool:
    for op, argument in parsed:
        repeats = str(op) in ("MAX_REPEAT", "MIN_REPEAT", *_POSSESSIVE_OR_ATOMIC)
        many = repeats and isinstance(argument, tuple) and argument[1] == _constants.MAXREPEAT
        if many and inside:
            return True
        if any(_repeats_repetition(each, inside=inside or many) for each in _inner(argument)):
            return True
    return False


def _inner(argument: Any) -> list[Any]:
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [found for each in argument for found in _inner(each)]
    return []


def valid_pattern(name: str, value: Value) -> None:
    """A validator of config keys."""
    try:
        compiled(str(value))
    except ValueError as error:
        raise ConfigError.of(name, value, f"Invalid regex: {error}") from error


def replaced_first(pattern: Pattern, text: str, replacement: str) -> str:
    """Matcher.replaceFirst."""
    found = pattern.search(text)
    if found is None:
        return text
    return text[: found.start()] + _expanded(found, pattern.groups, replacement) + text[found.end() :]


def _expanded(found: Match, groups: int, replacement: str) -> str:
    out: list[str] = []
    place = 0
    while place < len(replacement):
        char = replacement[place]
        if char == "\\":
            if place + 1 == len(replacement):
                raise IllegalArgumentException("character to be escaped is missing")
            out.append(replacement[place + 1])
            place += 2
        elif char == "$":
            group, place = _reference(found, groups, replacement, place + 1)
            out.append(group)
        else:
            out.append(char)
            place += 1
    return "".join(out)


def _reference(found: Match, groups: int, text: str, place: int) -> tuple[str, int]:
    if text[place : place + 1] == "{":
        end = text.find("}", place)
        name = text[place + 1 : end]
        if end < 0 or not name.isalnum():
            raise IllegalArgumentException("named capturing group is missing trailing '}'")
        try:
            return found.group(name) or "", end + 1
        except (IndexError, KeyError) as error:
            raise IllegalArgumentException(f"No group with name {{{name}}}") from error
    if not text[place : place + 1].isdigit():
        raise IllegalArgumentException("Illegal group reference: group index is missing")
    number = int(text[place])
    if number > groups:
        raise IndexOutOfBoundsException(f"No group {number}")
    place += 1
    while text[place : place + 1].isdigit() and number * 10 + int(text[place]) <= groups:
        number = number * 10 + int(text[place])
        place += 1
    return found.group(number) or "", place
