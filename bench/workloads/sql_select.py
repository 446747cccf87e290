"""CREATE STREAM … AS SELECT with a filter, arithmetic and texts, JSON to JSON, beside the same by the DSL."""

from bench.context import Context
from bench.measures import Measure
from bench.sql_compared import beside_the_dsl


def run(context: Context) -> list[Measure]:
    return beside_the_dsl(context, "select")
