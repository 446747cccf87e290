"""Every declared function by example, on plain Python values: nulls, edges and errors as its declaration says."""

import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ottla.streams.expressions.functions.python  # noqa: F401  declared when SQL needs it
from ottla.serdes.types import STRING, parse_schema
from ottla.streams import expressions
from ottla.streams.expressions import Expression, ExpressionError, Inputs, lit, value
from ottla.streams.expressions.bound import FUNCTIONS
from ottla.streams.expressions.functions import FAMILIES
from tests.rules.streams.expressions.cases import CASES, NOW, calls

ROOT = Path(__file__).resolve().parents[4]
TYPES = {"key": STRING, "value": parse_schema("none array<string>, xs array<long>, name string")}
INPUTS = Inputs(value={"none": None, "xs": [1, 2], "name": "Ann"}, topic="t", partition=0, offset=7, now=NOW)
SPELLED_BY_PYTHON = frozenset(
    (
        "python_call", "field", "entry", "window_field", "item", "json_field", "json_item", "struct", "array", "spark",
        "cast", "case",
        "substr", "rlike", "split", "eq", "ne", "lt", "gt", "le", "ge", "isin", "is_null", "is_not_null", "and", "or",
        "not", "add", "sub", "mul", "div", "mod", "negate", "abs", "floor", "ceil", "round",
    )
)  # fmt: skip
"""Operators, methods and forms of their own, which test_expressions.py tells of."""


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return math.isnan(found) if math.isnan(expected) else math.isclose(found, expected, rel_tol=1e-6)
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize(("name", "call", "expected"), calls(), ids=lambda each: each if isinstance(each, str) else "")
def test_it_gives_what_its_example_says(name: str, call: Expression, expected: Any) -> None:
    found = call.compile(TYPES)(INPUTS)
    assert same(found, expected), f"{call!r} gives {found!r}, not {expected!r}"


def test_every_function_has_examples() -> None:
    assert sorted(FUNCTIONS) == sorted({*CASES, *SPELLED_BY_PYTHON})


def test_the_page_of_functions_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_expressions_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_function_is_a_public_name_but_for_what_python_spells() -> None:
    public = {name for family in FAMILIES for name in getattr(family, "__all__", ())}
    assert public <= set(expressions.__all__)
    assert {name.rstrip("_") for name in public} == {*FUNCTIONS} - SPELLED_BY_PYTHON
    assert all(name in dir(expressions) for name in expressions.__all__)


def test_a_function_is_a_method_of_its_first_argument_too() -> None:
    assert value["name"].lpad(5, "*").compile(TYPES)(INPUTS) == "**Ann"
    assert value["name"].mask(upper="A").compile(TYPES)(INPUTS) == "Axx"
    with pytest.raises(
        AttributeError, match=r"there is no function 'reguexp_extract' of expressions; do you mean regexp_extract\?"
    ):
        value["name"].reguexp_extract("a")


def test_arguments_are_checked_when_the_expression_is_written() -> None:
    with pytest.raises(TypeError, match="needs length and filler as well"):
        expressions.lpad("a")
    with pytest.raises(TypeError, match="takes no more than 1, not 2"):
        expressions.md5("a", "b")
    with pytest.raises(TypeError, match="has no width"):
        expressions.lpad("a", width=5)
    with pytest.raises(TypeError, match="has no subject twice"):
        expressions.lpad("a", 5, "x", subject="b")


REFUSED = [
    (expressions.transform(value["xs"], lambda a, b: a), "lambda a, b: a needs 1 parameters"),
    (expressions.transform(value["name"], lambda a: a), "an array is needed, not string"),
    (expressions.filter_(value["xs"], lambda a: a + 1), "a boolean is needed, not long"),
    (
        expressions.reduce_(value["xs"], "", lambda done, a: a),
        "it begins with string, but the function makes long of it",
    ),
    (expressions.lpad(value["name"], 5, b"x"), "string and binary do not go together"),
    (expressions.array_contains(value["xs"], "a"), "an array of long has no string"),
    (expressions.regexp_extract("(?P<x>a)", value["name"]), "which Python and Java do not share"),
    (expressions.array_sort(lit([[1]])), "array<int> has no order"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED, ids=[repr(each[0]) for each in REFUSED])
def test_what_cannot_work_is_refused_by_name(expression: Expression, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        expression.bind(TYPES)
    assert message in str(caught.value)


# ---- lambdas


def test_a_lambda_sees_what_is_around_it() -> None:
    expression = expressions.transform(value["xs"], lambda x: x + value["name"].length())
    assert expression.compile(TYPES)(INPUTS) == [4, 5]


def test_a_parameter_hides_none_of_the_same_name_around_it() -> None:
    def among(items: Expression, wanted: Expression) -> Expression:
        return expressions.any_(items, lambda x: x == wanted)

    expression = expressions.transform(value["xs"], lambda x: among(lit([2, 3]), x))
    assert expression.compile(TYPES)(INPUTS) == [False, True]


def test_a_lambda_reads_as_it_was_written_and_travels() -> None:
    expression = expressions.reduce_(value["xs"], 0, lambda total, x: total + x * 2)
    assert repr(expression) == 'reduce(value["xs"], 0, lambda total, x: total + (x * 2))'
    assert pickle.loads(pickle.dumps(expression)).compile(TYPES)(INPUTS) == 6


def test_what_has_no_column_says_so() -> None:
    assert expressions.upper(value["name"]).bind(TYPES).why_not_column() is None
    reason = expressions.upper(expressions.initcap(value["name"])).bind(TYPES).why_not_column()
    assert reason == "Spark has no column that does what initcap does"
    reason = expressions.regexp_split(value["name"], value["name"]).bind(TYPES).why_not_column()
    assert reason == "the pattern of regexp_split is not the same for all records"
