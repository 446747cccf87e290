"""Patterns of users: no text keeps a process, and what is found is what Python's engine finds."""

import random
import re

import pytest

from ottla.streams import expressions as e
from ottla.streams.expressions import Inputs
from ottla.streams.expressions.pattern_runs import runner
from ottla.streams.expressions.patterns import checked_pattern
from tests.support.patience import least_cpu_s

PATTERNS = [
    r"\w+@\w+",
    r"(\w+\s?)+",
    r"([a-z]+),([a-z]*)",
    r"^\s*(\S+)\s+(\S+)",
    r"(a|b)*c",
    r"[\s,]+[a-c]+",
    r"(\d{1,3}\.){3}\d{1,3}",
    r"a*b*",
    r"x*?y+",
    r"^(\w+\.)+com$",
    r"[^\s]+\s+\S+",
    r"(?i)a+B+",
    r"a+|b+|\s+",
    r"\bfoo\b.*bar.*",
    r"[]a]+[\]b]+",
    r"(a)?(b)*c+",
    r"\s+",
    r"[ab]+$",
    r"(ab|c)+",
]


@pytest.mark.parametrize("text", PATTERNS)
def test_both_engines_find_the_same(text: str) -> None:
    pattern = checked_pattern(text)
    dice = random.Random(text)
    for _ in range(200):
        given = "".join(dice.choice("ab,c. \n\v\t@1xyAB]foo") for _ in range(dice.randint(0, 12)))
        assert found(runner(pattern), given) == found(pattern, given), given


def found(engine: "re.Pattern[str]", given: str) -> object:
    first = engine.search(given)
    every = [(each.span(), each.groups()) for each in engine.finditer(given)]
    return None if first is None else (first.span(), first.groups()), every, engine.sub(r"<\g<0>>", given)


@pytest.mark.parametrize(
    "expression",
    [
        e.regexp_extract("(a+)+$", e.value),
        e.value.rlike(r"^(\w+\s?)*$"),
        e.like(e.value, "%a%a%a%a%a%a%a%b"),
        e.regexp_replace(e.value, "(a|aa)+$", "x"),
        e.regexp_split(e.value, "(a*)*,"),
        e.regexp_extract("a+$", e.value),
    ],
)
def test_no_text_takes_for_ever(expression: e.Expression) -> None:
    run = expression.compile({"value": e.lit("").bind({}).type})
    assert least_cpu_s(lambda: run(Inputs(value="a" * 20_000 + "!")), times=2) < 1


@pytest.mark.parametrize("text", [r"(?=(a+)+)b", r"((a+)\2)+b"])
def test_what_only_a_backtracking_engine_has_may_not_repeat_what_repeats(text: str) -> None:
    with pytest.raises(ValueError, match="that can take for ever"):
        checked_pattern(text)


def test_a_look_ahead_without_that_is_run() -> None:
    assert runner(checked_pattern(r"a+(?=b+)")).search("caab").span() == (1, 3)
