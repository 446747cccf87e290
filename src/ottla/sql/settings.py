"""The settings of a server: a table as the broker's, with ksqlDB's names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.http.addresses import Address, parse, why_wrong
from ottla.http.urls import service_url
from ottla.model.properties import SettingsError
from ottla.model.properties.broker import OF_THE_AUTHORIZER
from ottla.model.properties.property import BOOLEAN, INT, LIST, LONG, PASSWORD, STRING, Property, Value, closest, table
from ottla.registry.doors.settings import login_settings
from ottla.sql import properties
from ottla.sql.errors import SqlError


def _none_at(value: Value) -> str | None:
    """Why no service can be there."""
    try:
        parts = service_url(str(value), "service") if value else None
    except ValueError as error:
        return str(error)
    is_more = parts is not None and (parts.username is not None or parts.path not in ("", "/") or parts.query)
    return "http://HOST:PORT or https://HOST:PORT is expected, without a user or a path" if is_more else None


SETTINGS: Final = table(
    (
        Property(
            "sql.listeners",
            LIST,
            ("http://127.0.0.1:8088",),
            "Where the SQL server listens: http://host:port or https://host:port, separated by commas.",
            check=why_wrong,
        ),
        Property("bootstrap.servers", LIST, (), "Brokers to start from; the node's own beside a node."),
        Property(
            "ksql.service.id",
            STRING,
            "default_",
            "Servers of one id have one log of statements, and with it one catalog.",
            allow_empty=False,
        ),
        Property(
            "ksql.schema.registry.url", STRING, "", "The schema registry for AVRO, JSON_SR and PROTOBUF; empty: none."
        ),
        Property(
            "ksql.schema.registry.basic.auth.user.info",
            PASSWORD,
            None,
            "As whom the server asks that registry: name and password, with a colon between.",
        ),
        Property(
            "ksql.schema.registry.ssl.truststore.location",
            STRING,
            "",
            "Whose certificates are believed of that registry, a PEM file; the system's, when empty.",
        ),
        *login_settings("sql", "a statement needs READ on the topics that it reads, WRITE on those that it fills"),
        Property(
            "ksql.internal.topic.replicas",
            INT,
            1,
            "Replication factor of the log of statements when it is made; fewer where there are fewer brokers.",
            at_least=1,
        ),
        Property(
            "ksql.connect.url",
            STRING,
            "",
            "A Connect worker, for statements about connectors; empty: none.",
            check=_none_at,
        ),
        Property(
            "ksql.advertised.listener",
            STRING,
            "",
            "How /clusterStatus names this server, as http://host:port; empty: by its first listener.",
            check=_none_at,
        ),
        Property(
            "ksql.functions.python.enabled",
            BOOLEAN,
            True,
            "Whether CREATE FUNCTION is taken. What the log of statements has already stays.",
        ),
        Property("sql.request.max.statements", INT, 1_000, "Statements of one request.", at_least=1),
        Property("ksql.max.push.queries", INT, 100, "Push queries and PRINTs at a time.", at_least=0),
        Property(
            "sql.push.state.max.rows",
            INT,
            1_000_000,
            "Rows in the stores of one push query with GROUP BY or JOIN, which are in memory.",
            at_least=1,
        ),
        Property(
            "sql.push.state.max.bytes",
            LONG,
            256 << 20,
            "Bytes of such stores of one push query, and of the rows that it makes at once.",
            at_least=1,
        ),
        Property("sql.view.max.rows", INT, 5_000_000, "Keys of one table that is kept for pull queries.", at_least=1),
        Property("sql.view.max.bytes", LONG, 1 << 30, "Bytes of one table that is kept for them.", at_least=1),
        Property(
            "sql.views.max.bytes",
            LONG,
            2 << 30,
            "Bytes of all such tables together; those that nobody has asked for for longest make room.",
            at_least=1,
        ),
        Property("sql.pull.max.rows", INT, 1_000_000, "Rows that one pull query may look at.", at_least=1),
        Property("sql.pull.timeout.ms", INT, 60_000, "How long one pull query may take.", at_least=1),
        Property(
            "sql.sample.max.records",
            INT,
            200,
            "Newest records of a topic that nobody declared by which its columns are guessed.",
            at_least=1,
        ),
        Property(
            "sql.sample.max.bytes", INT, 1 << 20, "Bytes of such records, from which on no more are read.", at_least=1
        ),
        Property("sql.sample.timeout.ms", INT, 5_000, "How long reading them may take.", at_least=1),
        Property(
            "sql.dead.letter.topic",
            STRING,
            "",
            "Where records go that a query that writes topics cannot read, with Kafka Streams' headers; empty: none.",
        ),
        Property(
            "ksql.logging.processing.topic.auto.create",
            BOOLEAN,
            True,
            "Whether the topic of the processing log is made if it is not there. Without the topic there is no log.",
        ),
        Property(
            "ksql.logging.processing.topic.name",
            STRING,
            "",
            "Of the processing log; empty: the service's id, and `ksql_processing_log` behind it.",
        ),
        Property("ksql.logging.processing.topic.partitions", INT, 1, "Of that topic when it is made.", at_least=1),
        Property(
            "ksql.logging.processing.topic.replication.factor",
            INT,
            1,
            "Of that topic when it is made; fewer where there are fewer brokers.",
            at_least=1,
        ),
        Property(
            "ksql.logging.processing.stream.auto.create",
            BOOLEAN,
            True,
            "Whether there is a stream over the processing log from the start.",
        ),
        Property(
            "ksql.logging.processing.stream.name",
            STRING,
            "KSQL_PROCESSING_LOG",
            "Of that stream.",
            allow_empty=False,
        ),
        Property(
            "ksql.logging.processing.rows.include",
            BOOLEAN,
            False,
            "Whether the processing log shows what records hold that something was wrong with.",
        ),
        Property(
            "sql.history.enabled",
            BOOLEAN,
            True,
            "Whether clients may ask for SELECTs over history (ORDER BY, OVER, WITH, joins, ...), which run on Spark.",
        ),
        Property("sql.history.max.rows", INT, 100_000, "Rows that one such answer may have.", at_least=1),
        Property("sql.history.timeout.ms", INT, 600_000, "How long one may take.", at_least=1),
        Property("sql.history.max.queries", INT, 4, "How many run at a time.", at_least=1),
        Property("sql.body.max.bytes", INT, 16 << 20, "The longest body of a request that is read.", at_least=1024),
        Property(
            "sql.state.dir", STRING, "", "Where queries that write topics keep their checkpoints; empty: none run."
        ),
    )
)
SYNONYMS: Final = {"listeners": "sql.listeners", "authentication.method": "sql.authentication.method"}
"""Names that ksqlDB's own file has."""
_CLIENT: Final = ("security.", "ssl.", "sasl.")
_BESIDE: Final = tuple(f"sql.{each}" for each in _CLIENT)
"""Kafka's client settings; in the file of a node they stand behind `sql.`."""
_HTTPS: Final = "listeners.https."


@dataclass(frozen=True, slots=True)
class SqlSettings:
    given: Mapping[str, Any]
    defaults: Mapping[str, str]
    """Of statements."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka's client settings (`security.protocol`, `ssl.*`, `sasl.*`), by which it reaches the brokers."""
    https: Mapping[str, str] = field(default_factory=dict)
    """Kafka's `ssl.*` of https listeners: those behind `listeners.https.`, or the server's own if there are none."""

    @staticmethod
    def of(given: Mapping[str, object]) -> "SqlSettings":
        """Raises SettingsError."""
        problems: list[str] = []
        known: dict[str, Any] = {}
        defaults: dict[str, str] = {}
        client: dict[str, str] = {}
        https: dict[str, str] = {}
        for said, value in given.items():
            name = SYNONYMS.get(said, said)
            if name in SETTINGS:
                try:
                    known[name] = SETTINGS[name].parse(str(value))
                except ValueError as error:
                    problems.append(str(error))
            elif name.startswith((*_CLIENT, *_BESIDE)):
                client[name.removeprefix("sql.")] = str(value)
            elif name.startswith(_HTTPS):
                https[name.removeprefix(_HTTPS)] = str(value)
            elif properties.is_known(name):
                defaults[name] = str(value)
                problems += _wrong(name, str(value))
            elif name.startswith("sql."):
                near = closest(name, SETTINGS)
                problems.append(f"{name} is no setting" + (f"; do you mean {near}?" if near else ""))
        if problems:
            raise SettingsError(problems)
        return SqlSettings(known, defaults, client, https or client)

    @staticmethod
    def beside_a_node(given: Mapping[str, str]) -> "SqlSettings":
        """Out of a node's own settings, where the server's begin with `sql.` or `ksql.`. The node's own certificate is
        the server's too. Raises SettingsError."""
        own = {
            name: value
            for name, value in given.items()
            if name.startswith(("sql.", "ksql.")) or name in OF_THE_AUTHORIZER
        }
        certificate = {_HTTPS + name: value for name, value in given.items() if name.startswith("ssl.")}
        return SqlSettings.of({**own, **certificate})

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name, SETTINGS[name].default)

    @property
    def listeners(self) -> list[Address]:
        return [parse(each) for each in self["sql.listeners"]]

    @property
    def has_logins(self) -> bool:
        """Whether callers have to say who they are."""
        return str(self["sql.authentication.method"]).upper() == "BASIC"


def _wrong(name: str, value: str) -> list[str]:
    try:
        properties.check(name, value)
    except SqlError as error:
        return [str(error)]
    return []
