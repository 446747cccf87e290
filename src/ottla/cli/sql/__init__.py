"""`ottla sql`: ksqlDB's language: a shell, and query tests, which need neither a broker nor Spark."""

from typing import Final

from ottla.cli.parser import Argument, Command, Option
from ottla.cli.sql.shell import shell
from ottla.cli.sql.test import test

COMMANDS: Final = (
    Command(
        "shell",
        shell,
        is_usual=True,
        summary="Type statements, or run those of -e or a file, against a SQL server.",
        details="Statements end with ; and may take several lines. `help` in the shell says more. The word `shell` may "
        "be left out.",
        options=(
            Option("--server", "-s", value="URL", help="Where the server is. Default: http://127.0.0.1:8088."),
            Option("--execute", "-e", value="TEXT", help="Statements to run instead of asking for some."),
            Option("--file", "-f", value="FILE", help="A file of statements to run."),
            Option("--json", help="Answers as JSON."),
        ),
        examples=(
            ("what there is", "ottla sql -e 'SHOW STREAMS;'"),
            ("a script", "ottla sql -f statements.sql"),
        ),
    ),
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
