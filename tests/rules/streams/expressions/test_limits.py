"""One record, and an expression that a stranger wrote, must not fill the memory or hold a processor for ever."""

import pytest

from ottla.streams import expressions as e
from ottla.streams.expressions import Inputs
from ottla.streams.expressions.expression import Expression
from ottla.streams.expressions.limits import LONGEST, MOST_ITEMS, MOST_STEPS

BIG = "x" * (1 << 13)


def value(expression: Expression) -> object:
    return expression.compile({})(Inputs())


def thousandfold(text: Expression) -> Expression:
    return e.replace(text, "x", "x" * 1_000)


@pytest.mark.parametrize(
    "expression",
    [
        thousandfold(thousandfold(e.lit(BIG))),
        e.ksql_replace(thousandfold(e.lit(BIG)), "", "y" * 1_000),
        e.regexp_replace(thousandfold(e.lit(BIG)), "x", "y" * 1_000),
        e.regexp_replace(thousandfold(e.lit(BIG)), "(x+)", "$1$1$1"),
        e.concat(*[thousandfold(e.lit(BIG))] * 3),
        e.concat_ws(thousandfold(e.lit(BIG)), "a", "b", "c", "d"),
        e.array_join(e.array(*[thousandfold(e.lit(BIG))] * 3)),
        e.encode(thousandfold(e.lit(BIG)).concat(thousandfold(e.lit(BIG))), "utf8", "hex"),
        e.to_json_string(e.array(*[thousandfold(e.lit(BIG))] * 3)),
        e.array_concat(e.generate_series(1, MOST_ITEMS), e.generate_series(1, 1)),
    ],
)
def test_what_would_be_too_long_is_null(expression: Expression) -> None:
    assert value(expression) is None


def test_what_is_just_long_enough_is_there() -> None:
    assert value(e.length(e.rpad("", 1 << 20, "x"))) == 1 << 20
    assert value(e.length(e.replace(e.rpad("", 1 << 20, "x"), "x", "x" * 16))) == LONGEST


@pytest.mark.parametrize(
    "expression",
    [
        e.reduce_(e.generate_series(1, 40), "x", lambda s, _: s.concat(s)),
        e.reduce_(e.generate_series(1, 40), "x", lambda s, _: e.ksql_concat(s, s)),
        e.transform(e.generate_series(1, 3_000), lambda x: e.transform(e.generate_series(1, 3_000), lambda y: x + y)),
        e.transform(e.generate_series(1, 1_000), lambda x: e.generate_series(1, 100_000)),
        e.filter_(e.generate_series(1, 3_000), lambda x: e.any_(e.generate_series(1, 3_000), lambda y: y < 0)),
    ],
)
def test_loops_in_loops_have_so_many_steps_together_and_are_null_beyond(expression: Expression) -> None:
    assert value(expression) is None


def test_the_steps_are_those_of_one_record() -> None:
    each = e.reduce_(e.generate_series(1, 60_000), 0, lambda s, x: s + x).compile({})
    assert [each(Inputs()) for _ in range(3)] == [1_800_030_000] * 3
    assert MOST_STEPS >= MOST_ITEMS
