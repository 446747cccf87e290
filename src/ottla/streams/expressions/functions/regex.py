"""Regular expressions. A pattern is one that Python and Java read alike: `expressions.patterns` says which.

Where a pattern is the same for all records it is looked at when the expression is bound; one that comes with each
record and cannot be used gives null.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from ottla.serdes import values as v
from ottla.serdes.types import BOOLEAN, STRING, Type, array_of
from ottla.streams.expressions.bound import Bound, Refused, Rule
from ottla.streams.expressions.functions.declare import Kind, family, not_literal, one, takes, text, whole
from ottla.streams.expressions.limits import LONGEST, within
from ottla.streams.expressions.pattern_runs import NOTHING_MORE, runner
from ottla.streams.expressions.patterns import checked_pattern, matches_nothing

__all__ = ["like", "regexp_extract", "regexp_extract_all", "regexp_replace", "regexp_split"]
declare: Final = family("regex")


def _finds(pattern: Any) -> Callable[[str], bool]:
    return lambda given: pattern.search(given) is not None


def _splits(pattern: Any) -> Callable[[str], list[str]]:
    return lambda given: v.split(given, pattern)


declare(
    "rlike",
    "text, pattern",
    takes(text, gives=BOOLEAN),
    build=lambda node, args: one(_finds(runner(node.options[0])), args[0]),
    typed_column=lambda spark, node, args: args[0].rlike(node.options[0].pattern),
    about="Whether the pattern is found anywhere in it.",
)
declare(
    "split",
    "text, pattern",
    takes(text, gives=array_of(STRING)),
    build=lambda node, args: one(_splits(runner(node.options[0])), args[0]),
    typed_column=lambda spark, node, args: spark.F.split(args[0], node.options[0].pattern, -1),
    about='The parts between the matches of a pattern; empty parts stay. "" splits characters.',
)


# ---- SQL's LIKE


@lru_cache(maxsize=1024)
def _like_pattern(text: str, escape: str | None) -> "re.Pattern[str]":
    """As a regular expression: % stands for any characters, _ for one."""
    made, at = [], 0
    while at < len(text):
        character = text[at]
        if character == escape:
            at += 1
            made.append(re.escape(text[at]))
        else:
            made.append({"%": r"[\s\S]*", "_": r"[\s\S]"}.get(character) or re.escape(character))
        at += 1
    return re.compile(f"^{''.join(made)}{NOTHING_MORE}", re.ASCII)


def _like(given: str | None, pattern: str | None, escape: str | None) -> bool | None:
    if given is None or pattern is None:
        return None
    return runner(_like_pattern(pattern, escape)).search(given) is not None


def _like_rule(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
    """Where the pattern is the same for all records it is a regular expression."""
    bound = takes(text, gives=BOOLEAN)(name, args, options)
    given, pattern, *rest = bound.args
    escape = rest[0] if rest else Bound("lit", STRING, options=(None,))
    if escape.function != "lit" or (escape.options[0] is not None and len(escape.options[0]) != 1):
        raise Refused("the escape is one character, the same for all records")
    if pattern.function == "lit" and pattern.options[0] is not None:
        try:
            return Bound("rlike", BOOLEAN, (given,), (_like_pattern(pattern.options[0], escape.options[0]),))
        except IndexError:
            raise Refused(f"the pattern {pattern.options[0]!r} ends with its escape") from None
    return Bound(name, BOOLEAN, (given, pattern, escape), options)


like: Final = declare(
    "like",
    "text, pattern, escape=None",
    _like_rule,
    _like,
    fails=True,
    nulls="null; an escape that is null is none",
    about="SQL's LIKE: % stands for any characters, _ for one; the escape takes the meaning from the next.",
)


def _with_pattern(place: int, *kinds: Kind, gives: Type) -> Rule:
    rule = takes(*kinds, gives=gives)

    def checked(name: str, args: Sequence[Bound], options: tuple[Any, ...]) -> Bound:
        bound = rule(name, args, options)
        pattern = bound.args[place]
        if pattern.function == "lit" and pattern.options[0] is not None:
            try:
                checked_pattern(pattern.options[0])
            except ValueError as error:
                raise Refused(str(error)) from None
        return bound

    return checked


_EMPTY: Final = "Java and Python find empty matches each in its own way"


def _extract(pattern: str, given: str, group: int) -> str | None:
    found = runner(checked_pattern(pattern)).search(given)
    return None if found is None else found[group]


def _extract_all(pattern: str, given: str, group: int) -> list[str | None]:
    compiled = runner(checked_pattern(pattern))
    if not 0 <= group <= compiled.groups:
        raise LookupError(f"there is no group {group}")
    return [found[group] for found in compiled.finditer(given)]


def _group_there(node: Bound) -> bool:
    pattern, _, group = node.args
    if None in (pattern.options[0], group.options[0]):
        return False
    return bool(0 <= group.options[0] <= checked_pattern(pattern.options[0]).groups)


def _no_extract(node: Bound) -> str | None:
    pattern, _, group = node.args
    if pattern.function != "lit" or group.function != "lit" or not _group_there(node):
        return f"the pattern or the group of {node.function} is not the same for all records, or not there"
    if group.options[0] > 0:
        return f"Spark's {node.function} gives an empty text for a group that takes no part in a match"
    return _EMPTY if matches_nothing(pattern.options[0]) else None


regexp_extract: Final = declare(
    "regexp_extract",
    "pattern, text, group=0",
    _with_pattern(0, text, text, whole, gives=STRING),
    _extract,
    column=lambda F, pattern, given, group: F.regexp_substr(given, pattern),
    no_column=_no_extract,
    fails=True,
    about="The first match, or a group of it; null if there is none.",
)
regexp_extract_all: Final = declare(
    "regexp_extract_all",
    "pattern, text, group=0",
    _with_pattern(0, text, text, whole, gives=array_of(STRING)),
    _extract_all,
    column=lambda F, pattern, given, group: F.regexp_extract_all(given, pattern, group),
    no_column=_no_extract,
    fails=True,
    about="All matches, or a group of each.",
)


def _java_replacement(replacement: str) -> str:
    r"""What Python's `sub` wants, of what Java's `replaceAll` wants: $1 is a group, \ quotes the next one."""
    made, at = [], 0
    while at < len(replacement):
        character = replacement[at]
        if character == "\\":
            made.append(replacement[at + 1].replace("\\", r"\\"))
            at += 2
        elif character == "$":
            if not ("0" <= replacement[at + 1] <= "9"):
                raise ValueError(f"{replacement!r} has a $ that names no group")
            made.append(f"\\g<{replacement[at + 1]}>")
            at += 2
        else:
            made.append(character)
            at += 1
    return "".join(made)


def _replace(given: str, pattern: str, replacement: str) -> str:
    found = runner(checked_pattern(pattern))
    known = _java_replacement(replacement)
    if len(given) * (len(replacement) + 1) > LONGEST:  # it may be too long: so much is looked at first
        groups = replacement.count("$")
        longest = max((len(each[0]) for each in found.finditer(given)), default=0) if groups else 0
        within(len(given) + sum(1 for _ in found.finditer(given)) * (len(replacement) + groups * longest))
    made: str = found.sub(known, given)
    return made


def _plain_replacement(node: Bound) -> str | None:
    _, pattern, replacement = node.args
    if pattern.function != "lit" or replacement.function != "lit":
        return "the pattern or the replacement of regexp_replace is not the same for all records"
    if pattern.options[0] is not None and matches_nothing(pattern.options[0]):
        return _EMPTY
    if replacement.options[0] is not None and any(each in replacement.options[0] for each in "$\\"):
        return "a replacement that cannot be used ends a query of Spark"
    return None


regexp_replace: Final = declare(
    "regexp_replace",
    "text, pattern, replacement",
    _with_pattern(1, text, gives=STRING),
    _replace,
    column=lambda F, given, pattern, replacement: F.regexp_replace(given, pattern, replacement),
    no_column=_plain_replacement,
    fails=True,
    about="With all matches replaced; `$1` in the replacement is the first group.",
)


def _regexp_split(given: str, pattern: str) -> list[str]:
    return v.split(given, runner(checked_pattern(pattern)))


def _no_empty_match(node: Bound) -> str | None:
    reason = not_literal(1, "the pattern")(node)
    pattern = node.args[1].options[0] if reason is None else None
    return _EMPTY if pattern and matches_nothing(pattern) else reason


regexp_split: Final = declare(
    "regexp_split",
    "text, pattern",
    _with_pattern(1, text, gives=array_of(STRING)),
    _regexp_split,
    column=lambda F, given, pattern: F.split(given, pattern, -1),
    no_column=_no_empty_match,
    fails=True,
    about="As `split`, but the pattern may come with the record. ksqlDB's REGEXP_SPLIT_TO_ARRAY.",
)
