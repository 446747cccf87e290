"""COUNT and SUM by key over windows of a minute, JSON to JSON, beside the same by the DSL."""

from bench.context import Context
from bench.measures import Measure
from bench.sql_compared import beside_the_dsl


def run(context: Context) -> list[Measure]:
    return beside_the_dsl(context, "windows")
