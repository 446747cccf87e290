"""`ottla sql-server`: a SQL server by itself, against any Kafka cluster. Beside a node, `ottla start` brings one."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os

from ottla.cli.failures import Failure
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import BOOTSTRAP, COMMAND_CONFIG, DEFAULT_BOOTSTRAP, client_settings
from ottla.cli.reach import settings as name_value_pairs


def sql_server(arguments: Arguments) -> int:
    from ottla.client.addresses import parse_bootstrap
    from ottla.client.security import SecurityRefused, security
    from ottla.node.services import CannotStart
    from ottla.node.sql_process import run_sql_server
    from ottla.sql.settings import SettingsError, SqlSettings

    path = arguments.optional("file")
    given: dict[str, object] = {"sql.state.dir": "ottla-sql", **(_of_file(path) if path is not None else {})}
    if arguments.has("listen"):
        given["sql.listeners"] = arguments.text("listen")
    given.update(name_value_pairs(arguments.texts("override")))
    try:
        settings = SqlSettings.of(given)
        named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
        brokers = parse_bootstrap(named or ",".join(settings["bootstrap.servers"]) or DEFAULT_BOOTSTRAP)
        safe = security(client_settings(arguments))
    except SettingsError as error:
        problems = "\n".join(f"  {problem}" for problem in str(error).splitlines())
        raise Failure(f"{path or 'the settings'} cannot be used:\n{problems}") from error
    except SecurityRefused as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    try:
        return run_sql_server(settings, brokers, safe)
    except CannotStart as error:
        raise Failure(f"the SQL server cannot start: {error}") from error


def _of_file(path: str) -> dict[str, str]:
    from ottla.model.properties.file import parse_properties

    with open(path, encoding="utf-8") as file:
        try:
            found = parse_properties(file.read())
        except ValueError as error:
            raise Failure(f"{path}: {error}") from error
    if "listeners" in found:  # ksqlDB's name
        found.setdefault("sql.listeners", found.pop("listeners"))
    return found


COMMANDS = (
    Command(
        "",
        sql_server,
        summary="Start a SQL server, in front of any Kafka cluster. Ctrl-C or SIGTERM stops it.",
        details="""
It speaks ksqlDB's language and REST API. Statements are kept in a topic, from which it is as it was after a restart.
Queries that write topics run in Spark, which is started with the first of them; everything else needs none.
`ottla start` brings one along on port 8088.""",
        arguments=(Argument("FILE", help="ksqlDB's ksql-server.properties.", required=False),),
        options=(
            BOOTSTRAP,
            COMMAND_CONFIG,
            Option("--listen", value="URL", help="Where it answers. Default: http://127.0.0.1:8088, or the file's."),
            Option("--override", "-o", value="NAME=VALUE", many=True, help="A setting, as in the file."),
        ),
        examples=(
            ("Beside Apache Kafka on this machine", "ottla sql-server -b 127.0.0.1:9092"),
            ("On another port", "ottla sql-server --listen http://127.0.0.1:8089"),
        ),
    ),
)
