"""The settings of a server: a table as the broker's, with ksqlDB's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.http.addresses import Address, parse
from ottla.model.properties.property import INT, LIST, STRING, Property, Value, closest, table


class SettingsError(ValueError):
    """Everything that is wrong, one problem a line."""


def _listeners(value: Value) -> str | None:
    assert isinstance(value, tuple)
    try:
        for each in value:
            parse(each)
    except ValueError as error:
        return str(error)
    return None


SETTINGS: Final = table(
    (
        Property(
            "sql.listeners",
            LIST,
            ("http://127.0.0.1:8088",),
            "Where the SQL server listens: http://host:port, separated by commas.",
            check=_listeners,
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
            "ksql.internal.topic.replicas",
            INT,
            1,
            "Replication factor of the log of statements when it is made; fewer where there are fewer brokers.",
            at_least=1,
        ),
        Property("sql.body.max.bytes", INT, 16 << 20, "The longest body of a request that is read.", at_least=1024),
        Property(
            "sql.state.dir", STRING, "", "Where queries that write topics keep their checkpoints; empty: none run."
        ),
    )
)
_FREE: Final = ("ksql.", "auto.offset.reset")
"""Properties of statements, which may be given to the server as defaults."""


@dataclass(frozen=True, slots=True)
class SqlSettings:
    given: Mapping[str, Any]
    defaults: Mapping[str, str]
    """Of statements."""

    @staticmethod
    def of(given: Mapping[str, object]) -> "SqlSettings":
        """Raises SettingsError."""
        problems, known, defaults = [], {}, {}
        for name, value in given.items():
            if name in SETTINGS:
                try:
                    known[name] = SETTINGS[name].parse(str(value))
                except ValueError as error:
                    problems.append(str(error))
            elif name.startswith(_FREE):
                defaults[name] = str(value)
            elif name.startswith("sql."):
                near = closest(name, SETTINGS)
                problems.append(f"{name} is no setting" + (f"; do you mean {near}?" if near else ""))
        if problems:
            raise SettingsError("\n".join(problems))
        return SqlSettings(known, defaults)

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name, SETTINGS[name].default)

    @property
    def listeners(self) -> list[Address]:
        return [parse(each) for each in self["sql.listeners"]]
