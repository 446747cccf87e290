"""Functions and operators of SQL: what they give, which types they have, what they refuse and how they say so."""

import math
from decimal import Decimal
from typing import Any

import pytest

from ottla.serdes.types import Type, parse_type
from ottla.sql.errors import SqlError
from ottla.sql.functions import AGGREGATES, SCALARS, TABLE_FUNCTIONS, find
from ottla.sql.functions.declare import Argument, Refused, literal
from ottla.streams import expressions as e
from ottla.streams.expressions import Inputs
from tests.rules.sql.function_cases import CASES, INPUTS, TYPES, Anything, evaluated, every_case, typed


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, Anything):
        return isinstance(found, expected.kind)
    if isinstance(expected, float) and isinstance(found, float):
        return math.isnan(found) if math.isnan(expected) else math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-12)
    if isinstance(expected, Decimal):
        return str(found) == str(expected)
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize(("text", "expected"), every_case(), ids=lambda each: each if isinstance(each, str) else "")
def test_it_gives_what_its_example_says(text: str, expected: Any) -> None:
    given = typed(text)
    bound = given.expression.bind(TYPES)
    assert same(bound.evaluator()(INPUTS), expected)
    assert given.is_null or bound.type == given.type, "analysis and streams have one type for it"


def test_there_are_ksqldbs_functions_each_with_examples() -> None:
    assert (len(SCALARS), len(AGGREGATES), len(TABLE_FUNCTIONS)) == (129, 18, 2)
    assert sorted(CASES) == sorted(SCALARS)
    for name, cases in CASES.items():
        assert all(name in text for text, _ in cases)


@pytest.mark.parametrize("function", [*SCALARS.values()], ids=lambda each: each.name)
def test_every_function_says_what_it_takes(function: Any) -> None:
    assert function.signatures
    assert all("->" in each for each in function.signatures)
    assert function.about.endswith((".", "…"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ABS('x')", r"ABS cannot take \(STRING\).*ABS\(INT\) -> INT"),
        ("SUBSTRING(I, 1)", "SUBSTRING cannot take"),
        ("LPAD('a', 1)", "LPAD cannot take"),
        ("SUBSTRNG('a', 1)", "SUBSTRING"),
        ("S = I", "STRING = INTEGER cannot be compared"),
        ("A < A", "has no order"),
        ("B > FALSE", "has no order"),
        ("S - 1", "- takes numbers, not STRING"),
        ("I AND B", "AND takes BOOLEAN, not INTEGER"),
        ("CAST(Z AS STRING)", "FROM_BYTES"),
        ("CAST(I AS DATE)", "no CAST from INTEGER to DATE"),
        ("DAY = 'yesterday'", "no date such as"),
        ("R->Q", "has X, Y"),
        ("I->Q", "STRUCT"),
        ("S[1]", "ARRAY or a MAP"),
        ("M[1]", "keys of a MAP are STRING"),
        ("ARRAY[1, B]", "do not go together"),
        ("CASE WHEN B THEN I ELSE S END", "do not go together"),
        ("FILTER(A, x => x)", "BOOLEAN"),
        ("REGEXP_EXTRACT('(', S)", "REGEXP_EXTRACT"),
        ("COUNT(I)", "aggregate COUNT"),
        ("STRUCT(A:=1, A:=2)", "twice"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_would(text: str, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        typed(text)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(Refused, match=r"do you mean REGEXP_EXTRACT\?"):
        find("REGEX_EXTRACT")
    assert find("COUNT") is AGGREGATES["COUNT"]


def test_two_random_numbers_are_at_least_zero_and_below_one() -> None:
    assert 0 <= evaluated("RANDOM()") < 1


# ---- aggregates

_N, _L, _D, _S = (e.value[name] for name in ("i", "l", "d", "s"))
_ROW = parse_type("struct<i: int, l: long, d: double, s: string, q: decimal(4, 1), a: array<long>>")


def _folded(name: str, args: list[Argument], rows: list[dict[str, Any]], undone: int = 0) -> tuple[Type, Any]:
    bound = AGGREGATES[name].make(args).bind({"key": parse_type("string"), "value": _ROW})
    fold = bound.fold(undo=undone > 0)
    state = fold.initial()
    for row in rows:
        state = fold.add(state, Inputs(value=row, timestamp=5))
    for row in rows[:undone]:
        state = fold.undo(state, Inputs(value=row, timestamp=5))
    return bound.type, fold.result(state)


def _rows(**columns: list[Any]) -> list[dict[str, Any]]:
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


NUMBER, L, D, S = (
    Argument(_N, Type("int")),
    Argument(_L, Type("long")),
    Argument(_D, Type("double")),
    Argument(_S, Type("string")),
)
Q, A = Argument(e.value["q"], _ROW.field("q") or Type("")), Argument(e.value["a"], _ROW.field("a") or Type(""))
TWO, TRUE, FALSE = literal(2, Type("int")), literal(True, Type("boolean")), literal(False, Type("boolean"))


@pytest.mark.parametrize(
    ("name", "args", "rows", "kind", "expected"),
    [
        ("COUNT", [], _rows(i=[1, None]), "long", 2),
        ("COUNT", [NUMBER], _rows(i=[1, None]), "long", 1),
        ("SUM", [NUMBER], _rows(i=[(1 << 31) - 1, 1, None]), "int", -(1 << 31)),
        ("SUM", [L], _rows(l=[(1 << 63) - 1, 2]), "long", -(1 << 63) + 1),
        ("SUM", [NUMBER], _rows(i=[None]), "int", 0),
        ("SUM", [D], _rows(d=[1.5, 2.0]), "double", 3.5),
        ("SUM", [Q], _rows(q=[Decimal("1.5"), Decimal("2.5")]), "decimal(4, 1)", Decimal("4.0")),
        ("SUM_LIST", [A], _rows(a=[[1, None, 2], None, [3]]), "long", 6),
        ("AVG", [NUMBER], _rows(i=[1, 2, None]), "double", 1.5),
        ("AVG", [NUMBER], _rows(i=[None]), "double", 0.0),
        ("MIN", [S], _rows(s=["b", "a", None]), "string", "a"),
        ("MAX", [NUMBER], _rows(i=[None]), "int", None),
        ("COLLECT_LIST", [NUMBER], _rows(i=[1, None, 1]), "array<int>", [1, None, 1]),
        ("COLLECT_SET", [NUMBER], _rows(i=[1, None, 1]), "array<int>", [1, None]),
        ("LATEST_BY_OFFSET", [NUMBER], _rows(i=[1, 2, None]), "int", 2),
        ("LATEST_BY_OFFSET", [NUMBER, FALSE], _rows(i=[1, 2, None]), "int", None),
        ("LATEST_BY_OFFSET", [NUMBER, TWO], _rows(i=[1, 2, 3]), "array<int>", [2, 3]),
        ("EARLIEST_BY_OFFSET", [NUMBER, TWO, FALSE], _rows(i=[None, 2, 3]), "array<int>", [None, 2]),
        ("EARLIEST_BY_OFFSET", [NUMBER, TRUE], _rows(i=[None, 2, 3]), "int", 2),
        ("TOPK", [NUMBER, TWO], _rows(i=[1, 3, 2, 3]), "array<int>", [3, 3]),
        (
            "TOPK",
            [NUMBER, S, TWO],
            _rows(i=[1, 3, 2], s=["a", "b", "c"]),
            "array<struct<sort_col: int, col0: string>>",
            [{"sort_col": 3, "col0": "b"}, {"sort_col": 2, "col0": "c"}],
        ),
        ("TOPKDISTINCT", [NUMBER, TWO], _rows(i=[1, 3, 3]), "array<int>", [3, 1]),
        ("HISTOGRAM", [S], _rows(s=["a", "b", "a", None]), "map<string, long>", {"a": 2, "b": 1}),
        ("COUNT_DISTINCT", [S], _rows(s=["a", "b", "a", None]), "long", 2),
        ("STDDEV_SAMP", [D], _rows(d=[1.0, 3.0]), "double", 2.0),
        ("STDDEV_SAMPLE", [D], _rows(d=[1.0, 3.0]), "double", math.sqrt(2)),
        ("STDDEV_SAMPLE", [D], _rows(d=[1.0]), "double", 0.0),
        ("CORRELATION", [D, NUMBER], _rows(d=[1.0, 2.0], i=[2, 4]), "double", 1.0),
        ("CORRELATION", [D, NUMBER], _rows(d=[1.0], i=[2]), "double", math.nan),
        ("ATTR", [S], _rows(s=["a", "a"]), "string", "a"),
        ("ATTR", [S], _rows(s=["a", "b"]), "string", None),
        ("MAX", [], _rows(i=[1]), "long", 5),
    ],
)
def test_an_aggregate_gives_what_its_example_says(
    name: str, args: list[Argument], rows: list[dict[str, Any]], kind: str, expected: Any
) -> None:
    found_kind, found = _folded(name, args, rows)
    assert found_kind == parse_type(kind)
    assert same(found, expected), found


@pytest.mark.parametrize(
    ("name", "args", "rows", "left"),
    [
        ("COUNT", [NUMBER], _rows(i=[1, 2]), 1),
        ("SUM", [NUMBER], _rows(i=[1, 2]), 2),
        ("SUM_LIST", [A], _rows(a=[[1], [2, 5]]), 7),
        ("AVG", [NUMBER], _rows(i=[1, 2]), 2.0),
        ("COLLECT_LIST", [NUMBER], _rows(i=[1, 2]), [2]),
        ("HISTOGRAM", [S], _rows(s=["a", "b"]), {"b": 1}),
        ("STDDEV_SAMP", [D], _rows(d=[9.0, 1.0, 3.0]), 2.0),
        ("STDDEV_SAMPLE", [D], _rows(d=[9.0, 1.0, 3.0]), math.sqrt(2)),
        ("CORRELATION", [D, NUMBER], _rows(d=[7.0, 1.0, 2.0], i=[0, 2, 4]), 1.0),
        ("ATTR", [S], _rows(s=["a", "b"]), "b"),
    ],
)
def test_an_aggregate_of_a_table_takes_back_what_it_was_given(
    name: str, args: list[Argument], rows: list[dict[str, Any]], left: Any
) -> None:
    assert AGGREGATES[name].undo
    assert same(_folded(name, args, rows, undone=1)[1], left)


def test_those_that_may_follow_a_table_are_ksqldbs() -> None:
    without = {name for name, each in AGGREGATES.items() if not each.undo}
    assert without == {
        "MIN", "MAX", "COLLECT_SET", "LATEST_BY_OFFSET", "EARLIEST_BY_OFFSET", "TOPK", "TOPKDISTINCT", "COUNT_DISTINCT",
    }  # fmt: skip


def test_a_sum_of_decimals_that_does_not_fit_ends_the_query() -> None:
    with pytest.raises(OverflowError, match=r"decimal\(4, 1\)"):
        _folded("SUM", [Q], _rows(q=[Decimal("999.9"), Decimal("0.1")]))


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("SUM", [S], "SUM cannot take"),
        ("AVG", [S], "AVG cannot take"),
        ("TOPK", [NUMBER, NUMBER], "whole number above 0"),
        ("TOPK", [A, TWO], "TOPK cannot take"),
        ("COUNT", [NUMBER, NUMBER], "one argument"),
        ("LATEST_BY_OFFSET", [NUMBER, S], "whole number"),
        ("HISTOGRAM", [NUMBER], "HISTOGRAM cannot take"),
    ],
)
def test_an_aggregate_refuses_what_it_cannot_take(name: str, args: list[Argument], words: str) -> None:
    with pytest.raises(Refused, match=words):
        AGGREGATES[name].make(args)


def test_rows_are_made_of_arrays() -> None:
    items = Argument(e.value["A"], parse_type("array<int>"))
    assert TABLE_FUNCTIONS["EXPLODE"].make([items]).compile(TYPES)(INPUTS) == [3, None, 1, 3]
    small = e.array(1, None, 2)
    cube = TABLE_FUNCTIONS["CUBE_EXPLODE"].make([Argument(small, parse_type("array<int>"))])
    assert cube.compile(TYPES)(INPUTS) == [[None, None, None], [None, None, 2], [1, None, None], [1, None, 2]]
