"""`ottla sql-server`: a SQL server by itself, against any Kafka cluster. Beside a node, `ottla start` brings one."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from ottla.cli.parser import Argument, Arguments, Command
from ottla.cli.reach import client_settings
from ottla.cli.reach import settings as name_value_pairs
from ottla.cli.service_alone import brokers, explained, options, properties_of, running


def sql_server(arguments: Arguments) -> int:
    from ottla.client.security import security
    from ottla.model.properties import SettingsError
    from ottla.node.sql_process import run_sql_server
    from ottla.sql.settings import SqlSettings

    path = arguments.optional("file")
    given: dict[str, object] = {"sql.state.dir": "ottla-sql", **(properties_of(path) if path is not None else {})}
    if arguments.has("listen"):
        given.pop("listeners", None)
        given["sql.listeners"] = arguments.text("listen")
    given.update(name_value_pairs(arguments.texts("override")))
    with explained(path, SettingsError):
        settings = SqlSettings.of(given)
        servers = brokers(arguments, settings["bootstrap.servers"])
        client = {**settings.client, **client_settings(arguments)}
        security(client)
    with running("the SQL server"):
        return run_sql_server(settings, servers, client)


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
        options=options("http://127.0.0.1:8088"),
        examples=(
            ("Beside Apache Kafka on this machine", "ottla sql-server -b 127.0.0.1:9092"),
            ("On another port", "ottla sql-server --listen http://127.0.0.1:8089"),
        ),
    ),
)
