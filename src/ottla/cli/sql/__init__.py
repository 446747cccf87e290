"""`ottla sql`: a shell, query tests, which need neither a broker nor Spark, and files of statements as applications."""

from typing import Final

from ottla.cli.parser import Argument, Command, Option
from ottla.cli.reach import BOOTSTRAP, COMMAND_CONFIG, JSON, OUTPUT, REACH, TIMEOUT
from ottla.cli.sql.history import history
from ottla.cli.sql.run import run
from ottla.cli.sql.shell import shell
from ottla.cli.sql.test import test
from ottla.cli.streams import APP, RESETTING, RUNNING
from ottla.cli.streams.reset import reset
from ottla.cli.streams.status import status
from ottla.cli.streams.topologies import describe, explain

FILE: Final = Argument("FILE", help="A file of statements, with a name that ends in .sql.")

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
            COMMAND_CONFIG,
            Option("--execute", "-e", value="TEXT", help="Statements to run instead of asking for some."),
            Option("--file", "-f", value="FILE", help="A file of statements to run."),
            Option("--json", help="Answers as JSON."),
        ),
        examples=(
            ("what there is", "ottla sql -e 'SHOW STREAMS;'"),
            ("a script", "ottla sql -f statements.sql"),
            ("as a user of a secured one", "ottla sql -s https://127.0.0.1:8088 --command-config admin.properties"),
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
    Command(
        "run",
        run,
        summary="Run a file of statements as one application on Spark, for ever or for what is there now.",
        details="All its queries are one topology, and each batch is one transaction over all of them. SET "
        "'application.id' names it, else the file's name does; SET of a streams setting is the application's.",
        arguments=(FILE,),
        options=RUNNING,
        examples=(
            ("", "ottla sql run examples/sql/rides.sql"),
            ("what is there now, then end", "ottla sql run rides.sql --once"),
        ),
    ),
    Command(
        "history",
        history,
        summary="Run one SELECT of Spark's over what topics hold: ORDER BY, CTE, OVER, any join.",
        details="A topic needs no declaration: its columns come from the schema registry, or from a sample of its "
        "records. FROM orders BETWEEN '2026-11-01' AND '2026-11-02' bounds it by time, BETWEEN 100 AND 200 by offset.",
        arguments=(Argument("SELECT", help="The statement, in quotes."),),
        options=(
            BOOTSTRAP,
            COMMAND_CONFIG,
            Option("--file", "-f", value="FILE", help="Statements that declare streams and tables."),
            Option("--registry", value="URL", help="A schema registry."),
            Option("--master", value="URL", help="Where Spark runs; else local[*]."),
            Option("--limit", value="ROWS", number=True, help="How many rows are shown; 1000 unless said."),
            OUTPUT,
            JSON,
        ),
        examples=(("orders, the dearest first", "ottla sql history 'SELECT * FROM orders ORDER BY price DESC'"),),
    ),
    Command(
        "describe",
        describe,
        summary="Show the topology of a file of statements.",
        arguments=(FILE,),
        options=APP,
        examples=(("", "ottla sql describe rides.sql"),),
    ),
    Command(
        "explain",
        explain,
        summary="Show which Spark operator each step of a file of statements becomes, and why.",
        arguments=(FILE,),
        options=APP,
        examples=(("what is native and what runs Python", "ottla sql explain rides.sql"),),
    ),
    Command(
        "status",
        status,
        summary="Show whether a file of statements runs and how far it is behind.",
        arguments=(FILE,),
        options=(*APP, TIMEOUT, OUTPUT, JSON),
        examples=(("", "ottla sql status rides.sql"),),
    ),
    Command(
        "reset",
        reset,
        summary="Take a file of statements that is stopped back to the start; shows how unless --execute is given.",
        details="Moves its input offsets; deletes its internal topics, batch markers, checkpoints and state. Output "
        "topics stay.",
        arguments=(FILE,),
        options=(*REACH, *RESETTING),
        examples=(("", "ottla sql reset rides.sql --execute"),),
    ),
)
