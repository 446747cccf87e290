"""The functions of expressions, a file per family. `declare` tells how one is declared; importing this declares all.

`docs/EXPRESSIONS.md` is made of these declarations by `tools/generate_expressions_page.py`.
"""

from ottla.streams.expressions.functions import (
    bytes,
    conditional,
    dates,
    geo,
    json,
    ksql,
    ksql_casts,
    lambdas,
    lists,
    maps,
    numbers,
    operators,
    regex,
    strings,
    structure,
    urls,
)
from ottla.streams.expressions.functions import casts as casts  # what all others convert with
from ottla.streams.expressions.functions import python as python  # no function by itself, but workers have to know it

FAMILIES = (
    structure,
    operators,
    conditional,
    strings,
    regex,
    numbers,
    dates,
    lists,
    maps,
    lambdas,
    json,
    bytes,
    urls,
    geo,
    ksql,
    ksql_casts,
)
"""In the order of the page; conversions stand in the chapter of structure."""
