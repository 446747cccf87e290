"""CREATE FUNCTION … LANGUAGE PYTHON: what is declared, as analysis and the catalog know it."""

from collections.abc import Mapping
from textwrap import dedent
from typing import Final

from ottla.serdes.types import Type
from ottla.sql import tree as t
from ottla.sql.analysis import properties
from ottla.sql.analysis.refusals import at, refuse
from ottla.sql.analysis.types import resolved
from ottla.sql.functions import AGGREGATES, SCALARS, TABLE_FUNCTIONS
from ottla.sql.functions.python import TIMEOUT_MS, PythonFunction, check

LONGEST_MS: Final = 600_000


def own_function(statement: t.CreateFunction, custom: Mapping[str, Type]) -> PythonFunction:
    name = statement.name
    if name in SCALARS or name in AGGREGATES or name in TABLE_FUNCTIONS:
        refuse(f"{name} is a function of SQL's own: choose another name", statement)
    said = properties.read(statement.properties, properties.FUNCTION, statement)
    timeout = said.number("TIMEOUT_MS") or TIMEOUT_MS
    if not 0 < timeout <= LONGEST_MS:
        refuse(f"TIMEOUT_MS is above 0 and at most {LONGEST_MS}", statement)
    parameters = tuple((each, resolved(kind, custom)) for each, kind in statement.parameters)
    keeps = None if statement.keeps is None else resolved(statement.keeps, custom)
    returns = resolved(statement.returns, custom)
    made = PythonFunction(name, statement.kind, parameters, returns, _dedented(statement.source), keeps, timeout)
    with at(statement):
        check(made)
    return made


def _dedented(source: str) -> str:

    return dedent(source.lstrip("\n").expandtabs())
