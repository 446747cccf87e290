"""The settings of a worker: a table as the broker's, with the names of Kafka's connect-distributed.properties."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.http.addresses import Address, parse, why_wrong
from ottla.model.properties import SettingsError
from ottla.model.properties.broker import OF_THE_AUTHORIZER
from ottla.model.properties.property import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    SHORT,
    STRING,
    Differs,
    Property,
    Value,
    closest,
    table,
)
from ottla.registry.doors.settings import login_settings


def _listeners(value: Value) -> str | None:
    return why_wrong(value) if value else "a worker needs at least one address"


_BASIC_AUTH: Final = "BasicAuthSecurityRestExtension"


def _extensions(value: Value) -> str | None:
    """Java's one extension is known here by its name; those of others are code for the JVM."""
    assert isinstance(value, tuple)
    for each in value:
        if each.rpartition(".")[2] != _BASIC_AUTH:
            return (
                f"{each}: REST extensions are Java code, which a worker of ours does not run; "
                f"org.apache.kafka.connect.rest.basic.auth.extension.{_BASIC_AUTH} is known by name, and means "
                "connect.authentication.method=BASIC"
            )
    return None


_POLICY: Final = "ConnectorClientConfigOverridePolicy"
_POLICIES: Final = ("All", "None", "Principal", "Allowlist")


def _policy(value: Value) -> str | None:
    if _short(str(value)) in _POLICIES:
        return None
    return f"All, None, Principal and Allowlist are known, and their class names; {value} is Java code"


def _short(policy: str) -> str:
    return policy.rpartition(".")[2].removesuffix(_POLICY)


def _admin_listeners(value: Value) -> str | None:
    if not value:
        return None
    return (
        "/admin is answered where all else is, or nowhere: admin.listeners= turns it off, without that line it is on "
        "all listeners"
    )


_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"

SETTINGS: Final = table(
    (
        Property(
            "connect.listeners",
            LIST,
            ("http://127.0.0.1:8083",),
            "Where the worker listens: http://host:port or https://host:port, separated by commas. Kafka's name for it "
            "is listeners.",
            check=_listeners,
        ),
        Property(
            "bootstrap.servers",
            LIST,
            (),
            "Brokers to start from; the node's own where the worker is part of one.",
            HIGH,
        ),
        Property(
            "group.id",
            STRING,
            "connect-cluster",
            "Workers of one group share the connectors.",
            HIGH,
            allow_empty=False,
            differs=Differs(None, "a worker beside a node needs no file"),
        ),
        Property(
            "config.storage.topic",
            STRING,
            "connect-configs",
            "The compacted topic of one partition that connectors are kept in.",
            HIGH,
            allow_empty=False,
            differs=Differs(None, "a worker beside a node needs no file"),
        ),
        Property(
            "config.storage.replication.factor", SHORT, 3, "Of that topic; fewer where there are fewer brokers.", LOW
        ),
        Property(
            "offset.storage.topic",
            STRING,
            "connect-offsets",
            "The compacted topic in which it is kept how far sources have come.",
            HIGH,
            allow_empty=False,
            differs=Differs(None, "a worker beside a node needs no file"),
        ),
        Property("offset.storage.partitions", INT, 25, "Of that topic when it is made.", LOW, at_least=-1),
        Property(
            "offset.storage.replication.factor", SHORT, 3, "Of that topic; fewer where there are fewer brokers.", LOW
        ),
        Property(
            "status.storage.topic",
            STRING,
            "connect-status",
            "The compacted topic in which it is kept what becomes of connectors.",
            HIGH,
            allow_empty=False,
            differs=Differs(None, "a worker beside a node needs no file"),
        ),
        Property("status.storage.partitions", INT, 5, "Of that topic when it is made.", LOW, at_least=-1),
        Property(
            "status.storage.replication.factor", SHORT, 3, "Of that topic; fewer where there are fewer brokers.", LOW
        ),
        Property(
            "key.converter", STRING, _JSON, "How keys are read and written where a connector does not say it.", HIGH
        ),
        Property("value.converter", STRING, _JSON, "The same for values.", HIGH),
        Property(
            "header.converter",
            STRING,
            "org.apache.kafka.connect.storage.SimpleHeaderConverter",
            "The same for headers.",
            LOW,
        ),
        Property(
            "session.timeout.ms", INT, 10_000, "A worker that is silent for so long has lost its connectors.", HIGH
        ),
        Property("heartbeat.interval.ms", INT, 3_000, "How often a worker says that it is there.", HIGH),
        Property(
            "rebalance.timeout.ms", INT, 60_000, "How long workers may take to give connectors back.", HIGH, at_least=1
        ),
        Property(
            "scheduled.rebalance.max.delay.ms",
            INT,
            0,
            "Taken, and without effect: what a worker that is gone had is shared out at once.",
            LOW,
            differs=Differs(300_000, "connectors of a killed worker go on elsewhere without waiting for it"),
        ),
        Property("offset.flush.interval.ms", LONG, 60_000, "Taken: positions are written with each batch.", LOW),
        Property("offset.flush.timeout.ms", LONG, 5_000, "Taken: positions are written with each batch.", LOW),
        Property(
            "task.shutdown.graceful.timeout.ms",
            LONG,
            10_000,
            "How long the last batch of a connector may take; then it is cut off, and done again at the next start.",
            LOW,
            at_least=0,
            differs=Differs(5_000, "a batch is what Spark makes of it, and often longer than a put of Java's"),
        ),
        Property(
            "exactly.once.source.support",
            STRING,
            "disabled",
            "Whether sources write in transactions (KIP-618). Ours always do; this says what is told.",
            HIGH,
            one_of=("disabled", "preparing", "enabled"),
            ignore_case=True,
        ),
        Property("topic.tracking.enable", BOOLEAN, True, "Whether it is kept which topics connectors use.", LOW),
        Property("topic.tracking.allow.reset", BOOLEAN, True, "Whether that may be forgotten on demand.", LOW),
        Property("topic.creation.enable", BOOLEAN, True, "Whether sources may make topics by topic.creation.*.", LOW),
        Property(
            "connector.client.config.override.policy",
            STRING,
            "All",
            "Which client settings a connector may override: All, None, Principal or Allowlist.",
            LOW,
            check=_policy,
        ),
        Property(
            "connector.client.config.override.allowlist",
            LIST,
            (),
            "With Allowlist: the names of settings that connectors may override (KIP-1188).",
            LOW,
        ),
        Property(
            "admin.listeners",
            LIST,
            (),
            "Empty in the file: there is no /admin. Other listeners for it are not there.",
            LOW,
            check=_admin_listeners,
        ),
        Property(
            "inter.worker.key.ttl.ms",
            INT,
            3_600_000,
            "How long workers sign with one key.",
            LOW,
            at_least=0,
        ),
        Property("inter.worker.key.size", INT, 0, "Taken: a key has 256 bits.", LOW, at_least=0),
        Property(
            "config.providers", LIST, (), "Names of config providers, each with config.providers.NAME.class.", LOW
        ),
        Property("rest.advertised.host.name", STRING, "", "By which other workers reach this one.", LOW),
        Property(
            "rest.advertised.port", INT, 0, "By which other workers reach this one; 0: that of the listener.", LOW
        ),
        Property(
            "rest.extension.classes",
            LIST,
            (),
            "Java's BasicAuthSecurityRestExtension, or nothing.",
            LOW,
            check=_extensions,
        ),
        *login_settings("connect", "who looks needs DESCRIBE on the cluster, who changes anything ALTER"),
        Property("rest.advertised.listener", STRING, "", "http or https: which listener others are told.", LOW),
        Property(
            "connector.auto.restart",
            BOOLEAN,
            True,
            "Whether a connector that failed is started again by itself; a connector's own config may say otherwise.",
        ),
        Property(
            "connector.auto.restart.backoff.ms", LONG, 1_000, "The pause before that, doubled each time.", at_least=1
        ),
        Property("connector.auto.restart.backoff.max.ms", LONG, 300_000, "The longest pause before that.", at_least=1),
        Property(
            "connect.plugin.modules",
            LIST,
            (),
            "Python modules and packages whose classes configs may name as module:Class; * is any. To name one is to "
            "run it in the worker. Those of distributions that name themselves by entry points may always be named.",
        ),
        Property("connect.body.max.bytes", INT, 16 << 20, "The longest request that is read.", at_least=1 << 10),
        Property(
            "connect.request.timeout.ms", INT, 90_000, "How long a request may take, also at the leader.", at_least=1
        ),
        Property("connect.spark.master", STRING, "local[*]", "Where connectors run, as Spark names it."),
        Property(
            "connect.spark.standby",
            BOOLEAN,
            True,
            "Whether a worker that runs nothing starts Spark as soon as another of its group runs something, to take "
            "over in seconds.",
        ),
        Property(
            "connect.state.dir",
            STRING,
            "",
            "Where checkpoints and the Spark host's socket are; one of its own under the temporary directory if empty.",
        ),
    ),
)

SYNONYMS: Final = {"listeners": "connect.listeners", "rest.port": "rest.advertised.port"}
_ADMIN: Final = "admin.listeners"
_IN_A_NODE: Final = "connect."
_CLIENT: Final = ("security.", "ssl.", "sasl.")
_HTTPS: Final = "listeners.https."
_INHERITED: Final = (
    "key.converter",
    "value.converter",
    "header.converter",
    "producer.",
    "consumer.",
    "admin.",
    "config.providers",
)
_TAKEN: Final = (
    "plugin.path",
    "plugin.discovery",
    "connect.protocol",
    "offset.storage.file.filename",
    "client.",
    "metadata.",
    "reconnect.",
    "request.",
    "retry.",
    "send.",
    "receive.",
    "connections.",
    "socket.",
    "metric",
    "rest.",
    "worker.",
    "inter.worker.",
    "config.storage.",
    "offset.storage.",
    "status.storage.",
    "errors.",
    "auto.include.",
)
"""Kafka's names that a file may have and that ask for nothing here."""


@dataclass(frozen=True, slots=True)
class ConnectSettings:
    """Every setting has a value. `unused` are names that mean nothing here."""

    values: Mapping[str, Any]
    given: Mapping[str, str]
    client: Mapping[str, str]
    """Kafka's client settings, by which the worker reaches the brokers."""
    https: Mapping[str, str]
    """Kafka's `ssl.*` of https listeners: those behind `listeners.https.`, or the worker's own if there are none."""
    inherited: Mapping[str, str]
    """Converters with their own settings, and producer., consumer., admin.: what connectors have from their worker."""
    unused: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any] | None = None) -> "ConnectSettings":
        """Of a worker's properties file. A name that is nearly a known one is refused. Raises SettingsError."""
        problems: list[str] = []
        values: dict[str, Any] = {}
        client: dict[str, str] = {}
        https: dict[str, str] = {}
        inherited: dict[str, str] = {}
        unused: list[str] = []
        for said, value in (given or {}).items():
            name = SYNONYMS.get(said, said)
            if name.startswith(_CLIENT):
                client[name] = str(value)
                continue
            if name.startswith(_HTTPS):
                https[name.removeprefix(_HTTPS)] = str(value)
                continue
            if name.startswith(_INHERITED) and name != _ADMIN:
                inherited[name] = str(value)
            if name in SETTINGS:
                try:
                    values[name] = SETTINGS[name].take(value)
                except ValueError as error:
                    problems.append(str(error))
            elif name not in inherited and not name.startswith(_TAKEN):
                near = closest(name, SETTINGS, 0.9)
                if near is not None:
                    problems.append(f"{said} is not a setting of a Connect worker: did you mean {near}?")
                unused.append(said)
        if problems:
            raise SettingsError(problems)
        defaults = {name: entry.default for name, entry in SETTINGS.items()}
        texts = {name: str(value) for name, value in (given or {}).items()}
        # Java's rule, too: with one name behind `listeners.https.`, none of the others counts.
        return cls({**defaults, **values}, texts, client, https or client, inherited, tuple(unused))

    @classmethod
    def beside_a_node(cls, given: Mapping[str, str]) -> "ConnectSettings":
        """Out of a node's own settings, where the worker's stand with `connect.` before them. What is converted there
        is JSON without schemas: who starts a node to try things has plain JSON."""
        own = {name: value for name, value in given.items() if name.startswith(_IN_A_NODE)}
        said = {name if name in SETTINGS else name.removeprefix(_IN_A_NODE): value for name, value in own.items()}
        plain = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
        converters = {"key.converter": _JSON, "value.converter": _JSON}
        said |= {name: value for name, value in given.items() if name in OF_THE_AUTHORIZER}
        if not any(name.startswith(_HTTPS) for name in said):
            # The node's own certificate is the worker's too.
            said |= {_HTTPS + name: value for name, value in given.items() if name.startswith("ssl.")}
        return cls.of({**converters, **plain, **said})

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def has_logins(self) -> bool:
        """Whether callers have to say who they are."""
        return self["connect.authentication.method"].upper() == "BASIC" or bool(self["rest.extension.classes"])

    @property
    def override_policy(self) -> str:
        """All, None, Principal or Allowlist."""
        return _short(self["connector.client.config.override.policy"])

    @property
    def has_admin(self) -> bool:
        """Java's worker has /admin on its listeners, unless its file says that it is on none."""
        return _ADMIN not in self.given

    @property
    def listeners(self) -> list[Address]:
        return [parse(each) for each in self["connect.listeners"]]

    def seconds(self, name: str) -> float:
        """Of a setting in milliseconds."""
        return float(self[name]) / 1000
