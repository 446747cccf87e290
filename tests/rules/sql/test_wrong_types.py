"""Every scalar function with a wrong type in every argument: refused with its code and the place of the call."""

import itertools
from collections.abc import Iterator

import pytest

from ottla.sql import tree as t
from ottla.sql.analysis.queries import Vocabulary, analysed
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.sql.functions import SCALARS
from ottla.sql.functions.declare import Scalar
from ottla.sql.functions.signatures import split_types
from ottla.sql.parser import parse
from ottla.sql.session import Session

COLUMNS = {
    "b": "BOOLEAN", "i": "INT", "l": "BIGINT", "e": "DECIMAL(6, 2)", "d": "DOUBLE", "s": "STRING", "y": "BYTES",
    "da": "DATE", "ti": "TIME", "ts": "TIMESTAMP", "ai": "ARRAY<INT>", "as_": "ARRAY<STRING>",
    "aa": "ARRAY<ARRAY<INT>>", "mi": "MAP<STRING, INT>", "ms": "MAP<STRING, STRING>", "st": "STRUCT<x INT>",
}  # fmt: skip
BECOME = {
    "BOOLEAN": "b", "INT": "i", "BIGINT": "i l", "DECIMAL": "i l e", "DOUBLE": "i l e d", "STRING": "s", "BYTES": "y",
    "DATE": "da", "TIME": "ti", "TIMESTAMP": "ts da", "ARRAY<INT>": "ai", "ARRAY<STRING>": "as_",
    "ARRAY<T>": "ai as_ aa", "ARRAY<C>": "ai as_", "MAP<STRING, STRING>": "ms", "MAP<STRING, T>": "mi ms",
    "C": "b i l e d s y da ti ts",
}  # fmt: skip
"""Which columns are a type, or become it by themselves. T and U are any."""
RIGHT = {"LAMBDA": "(x) => x", "T": "i", "U": "i", "C": "i"}
"""What a right argument is where it is no column of the type itself."""


def said(function: Scalar) -> list[tuple[str, ...]]:
    """The types of the arguments, of every number of them that each signature takes."""
    found: list[tuple[str, ...]] = []
    for signature in function.signatures:
        given = signature.partition("->")[0]
        needed = len(split_types(given.partition("[")[0].rstrip(", ")))
        types = tuple(each.removesuffix("...") for each in split_types(given.replace("[", "").replace("]", "")))
        found += [types[:count] for count in range(needed, len(types) + 1)]
    return found


def fits(types: tuple[str, ...], columns: tuple[str, ...]) -> bool:
    """Whether columns may stand for the types, as far as these alone tell: a T is not the same twice here."""
    if len(types) != len(columns):
        return False
    pairs = zip(types, columns, strict=True)
    return all(kind in ("T", "U", "LAMBDA") or column in BECOME[kind].split() for kind, column in pairs)


def right(kind: str) -> str:
    return RIGHT.get(kind) or BECOME[kind].split()[-1]


def wrong_calls(function: Scalar) -> Iterator[tuple[str, ...]]:
    """In each argument all that no signature takes there."""
    signatures = said(function)
    for types in signatures:
        for place, column in itertools.product(range(len(types)), COLUMNS):
            given = [right(kind) for kind in types]
            given[place] = column
            is_unit = function.unit_first and place == 0
            if not (is_unit or types[place] == "LAMBDA" or any(fits(each, tuple(given)) for each in signatures)):
                yield tuple(given)


@pytest.fixture(scope="module")
def around() -> Vocabulary:
    session = Session()
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    create = f"CREATE STREAM src (k INT KEY, {columns}) WITH (KAFKA_TOPIC='src', VALUE_FORMAT='JSON');"
    for statement, text in session.statements(create):
        session.change(statement, text, {})
    return session.catalog.vocabulary()


def refused(call: str, around: Vocabulary) -> SqlError | None:
    (statement,) = parse(f"SELECT {call} FROM src;")
    assert isinstance(statement, t.SelectQuery)
    try:
        analysed(statement.query, around, stored=False)
    except SqlError as error:
        return error
    return None


@pytest.mark.parametrize("name", SCALARS)
def test_a_wrong_type_is_refused_in_every_argument(name: str, around: Vocabulary) -> None:
    function = SCALARS[name]
    unit = "DAYS, " if function.unit_first else ""
    accepted = []
    for given in wrong_calls(function):
        arguments = given[1:] if function.unit_first else given
        call = f"{name}({unit}{', '.join(arguments)})"
        error = refused(call, around)
        if error is None:
            accepted.append(call)
            continue
        where = call.index("(x)") if "lambdas" in error.message else 0
        assert (error.code, error.line, error.column) == (BAD_STATEMENT, 1, 8 + where), call
    assert accepted == []


@pytest.mark.parametrize("name", SCALARS)
def test_too_few_and_too_many_arguments_are_refused(name: str, around: Vocabulary) -> None:
    function = SCALARS[name]
    if any("..." in each for each in function.signatures):
        return
    counts = {len(types) for types in said(function)}
    unit = ["DAYS"] if function.unit_first else []
    for count in {0, max(counts) + 1} - counts:
        given = [*unit, *["i"] * (count - len(unit))] if count else []
        error = refused(f"{name}({', '.join(given)})", around)
        assert error is not None and error.code == BAD_STATEMENT and error.line == 1


def test_the_tables_above_know_every_type_of_a_signature() -> None:
    kinds = {kind for function in SCALARS.values() for types in said(function) for kind in types}
    assert kinds <= {*BECOME, *RIGHT}, kinds - {*BECOME, *RIGHT}
