"""`ottla sql`: ksqlDB's language. For now its tests, which need neither a broker nor Spark."""

from typing import Final

from ottla.cli.parser import Argument, Command, Option
from ottla.cli.sql.test import test

COMMANDS: Final = (
    Command(
        "test",
        test,
        summary="Run query tests: statements over records, and what should come out.",
        details="A file is YAML with a list of `tests`: name, statements, inputs, outputs, sources, error, properties, "
        "topics. Of outputs and sources only what is said is compared.",
        arguments=(Argument("FILE", help="Files of tests.", many=True),),
        options=(Option("--engine", value="NAME", help="driver (the default): in this process; or spark."),),
        examples=(("all tests of a folder", "ottla sql test queries/*.yaml"),),
    ),
)
