"""ksqlDB's functions, a file per family, each declared once: which types it takes, and the expression that it becomes.

What a function computes is declared in `ottla.streams.expressions`, with its Python body and its Spark column; where
ksqlDB has another rule than expressions have, it is one of the families `ksql` there. `signatures` tells how arguments
are matched and converted; `declare` what analysis gets.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, TypeAlias

from ottla.sql.functions import (
    aggregates,
    bytes,
    choices,
    dates,
    json,
    lambdas,
    lists,
    maps,
    numbers,
    patterns,
    tables,
    texts,
    urls,
)
from ottla.sql.functions.declare import AggregateFunction, Refused, Scalar, TableFunction
from ottla.sql.functions.python import PythonFunction

AnyFunction: TypeAlias = Scalar | AggregateFunction | TableFunction

FAMILIES: Final = (numbers, choices, texts, patterns, lists, maps, lambdas, json, bytes, dates, urls)

SCALARS: Final[Mapping[str, Scalar]] = {name: each for family in FAMILIES for name, each in family.FUNCTIONS.items()}
AGGREGATES: Final[Mapping[str, AggregateFunction]] = aggregates.FUNCTIONS
TABLE_FUNCTIONS: Final[Mapping[str, TableFunction]] = tables.FUNCTIONS


def find(name: str, own: Mapping[str, PythonFunction] = MappingProxyType({})) -> AnyFunction:
    """By its name in upper case; `own`: those that statements made. Raises Refused, with the nearest name there is."""
    found = SCALARS.get(name) or AGGREGATES.get(name) or TABLE_FUNCTIONS.get(name)
    if found is not None:
        return found
    if name in own:
        return own[name].declared()
    near = get_close_matches(name, [*SCALARS, *AGGREGATES, *TABLE_FUNCTIONS, *own], 1)
    advice = f"; do you mean {near[0]}?" if near else "; SHOW FUNCTIONS lists those there are"
    raise Refused(f"there is no function {name}{advice}")
