r"""`ssl.principal.mapping.rules`: from a certificate's name to a user name, as Kafka does it.

Rules stand between commas: `DEFAULT`, or `RULE:pattern/replacement/` with L or U behind it for the letters' case. The
first rule whose pattern matches the whole name wins; what Java's `replaceAll` would then make of it is the user name.
Patterns are RE2's: what only Java's can say (look-ahead, back references) is refused when the rules are read.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from ottla.model.patterns import capturing

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = rf"\s*({_RULE})\s*(,|$)"


class NoRuleApplies(ValueError):
    """A name that none of the rules is for: its connection fails."""


class PrincipalMapping:
    def __init__(self, rules: str = "DEFAULT") -> None:
        """Raises ValueError with the rule that cannot be read."""
        self._text = rules
        self._rules = [_Rule(*parts) for parts in _parsed(rules)]

    def user(self, name: str) -> str:
        for rule in self._rules:
            found = rule.apply(name)
            if found is not None:
                return found
        raise NoRuleApplies(f"no rule of ssl.principal.mapping.rules ({self._text}) applies to {name}")


def _parsed(rules: str) -> "list[tuple[str, str, str]]":
    """Pattern, replacement and case of each rule; an empty pattern is DEFAULT."""
    found = []
    for match in re.finditer(_SPLITTER, rules.strip()):
        rule = match[1]
        if not rule:
            continue
        whole = re.match(_RULE, rule)
        if whole is not None and whole.end() == len(rule) and whole[1] is not None:
            found.append(("", "", ""))
        elif whole is not None and whole.end() == len(rule) and whole[2] is not None:
            found.append((whole[2], whole[3], whole[4]))
        else:
            raise ValueError(f"{rule!r} is no rule: DEFAULT and RULE:pattern/replacement/[LU] are")
    return found


class _Rule:
    __slots__ = ("_case", "_pattern", "_replacement")

    def __init__(self, pattern: str, replacement: str, case: str) -> None:
        self._case = case
        self._pattern: Any = None
        self._replacement: Sequence[str | int] = ()
        if not pattern:
            return
        try:
            self._pattern = capturing(pattern)
        except ValueError as error:
            raise ValueError(f"RULE:{pattern}/… cannot be used: {error} (patterns are RE2's here)") from None
        self._replacement = _pieces(replacement, self._pattern.groups)

    def apply(self, name: str) -> str | None:
        if self._pattern is None:
            return name
        if self._pattern.fullmatch(name) is None:
            return None
        found = self._replaced(name)
        return found.lower() if self._case == "L" else found.upper() if self._case == "U" else found

    def _replaced(self, name: str) -> str:
        """Java's replaceAll: `.*` matches twice, the second time the nothing at the end."""
        out: list[str] = []
        position = copied = 0
        while position <= len(name) and (match := self._pattern.search(name, position)) is not None:
            out.append(name[copied : match.start()])
            out += [piece if isinstance(piece, str) else match[piece] or "" for piece in self._replacement]
            copied = match.end()
            position = match.end() + (match.start() == match.end())
        return "".join(out) + name[copied:]


def _pieces(replacement: str, groups: int) -> list[str | int]:
    """Text, and numbers of groups. $123 is the longest number that a group has, and one that none has is text."""
    pieces: list[str | int] = []
    position = 0
    while position < len(replacement):
        char = replacement[position]
        position += 1
        if char == "\\":
            if position == len(replacement):
                raise ValueError(f"the replacement {replacement!r} ends with a backslash that escapes nothing")
            pieces.append(replacement[position])
            position += 1
        elif char != "$":
            pieces.append(char)
        else:
            digits = re.match(r"[0-9]+", replacement[position:])
            if digits is None:
                raise ValueError(f"in the replacement {replacement!r} a $ is followed by no number; \\$ is a dollar")
            length = next((size for size in range(len(digits[0]), 0, -1) if int(digits[0][:size]) <= groups), 0)
            if not length and not groups:
                raise ValueError(f"the replacement {replacement!r} names a group, and its pattern has none")
            pieces.append(int(digits[0][:length]) if length else "$")
            position += length
    return pieces
