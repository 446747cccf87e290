"""The settings of a registry: a table as the broker's, with Confluent's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.http.addresses import Address, parse, why_wrong
from ottla.model.properties import SettingsError
from ottla.model.properties.broker import OF_THE_AUTHORIZER, STATIC
from ottla.model.properties.property import BOOLEAN, INT, LIST, STRING, Property, closest, table
from ottla.registry.machine.config import LEVELS
from ottla.registry.schemas.base import DEFAULT_STEPS
from ottla.security.tls import settings as tls

_TLS: Final = tuple(STATIC[name] for name in tls.NAMES if name != "ssl.client.auth")
"""Of https listeners, and of requests to other registries: Kafka's, as Confluent has them."""

SETTINGS: Final = table(
    _TLS,
    (
        Property(
            "registry.listeners",
            LIST,
            ("http://127.0.0.1:8081",),
            "Where the schema registry listens: http://host:port or https://host:port, separated by commas.",
            check=why_wrong,
        ),
        Property(
            "kafkastore.bootstrap.servers",
            LIST,
            (),
            "Brokers to start from; the node's own where the registry is part of one.",
        ),
        Property(
            "kafkastore.topic", STRING, "_schemas", "The compacted topic that schemas live in.", allow_empty=False
        ),
        Property(
            "kafkastore.topic.replication.factor",
            INT,
            3,
            "Of that topic when it is made; fewer where there are fewer brokers.",
            at_least=1,
        ),
        Property(
            "kafkastore.timeout.ms",
            INT,
            10_000,
            "How long a write to the topic, or reading up to it, may take.",
            at_least=1,
        ),
        Property(
            "kafkastore.init.timeout.ms", INT, 60_000, "How long reading the topic may take at the start.", at_least=1
        ),
        Property(
            "schema.registry.group.id",
            STRING,
            "schema-registry",
            "Registries of one group and one topic have one leader. Part of the transactional id that it holds.",
            allow_empty=False,
        ),
        Property(
            "schema.compatibility.level",
            STRING,
            "backward",
            "What a new version must be to others, where no config says it.",
            one_of=tuple(level.lower() for level in LEVELS),
            ignore_case=True,
        ),
        Property("mode.mutability", BOOLEAN, True, "Whether modes (READONLY, IMPORT and the like) may be changed."),
        Property("leader.eligibility", BOOLEAN, True, "Whether this registry may be the one that writes."),
        Property(
            "leader.connect.timeout.ms", INT, 1_000, "How long the leader's address may take to answer.", at_least=1
        ),
        Property(
            "leader.read.timeout.ms",
            INT,
            60_000,
            "How long the leader may take over a write that was passed on.",
            at_least=1,
        ),
        Property(
            "host.name",
            STRING,
            "",
            "The name by which other registries reach this one; that of its listener, or of the machine, when empty.",
        ),
        Property(
            "schema.search.default.limit",
            INT,
            1_000,
            "How many schemas GET /schemas gives, if not asked for less.",
            at_least=1,
        ),
        Property("schema.search.max.limit", INT, 1_000, "The most that GET /schemas can be asked for.", at_least=1),
        Property(
            "subject.search.default.limit", INT, 20_000, "How many subjects a list has at most by itself.", at_least=1
        ),
        Property("subject.search.max.limit", INT, 20_000, "The most subjects that can be asked for.", at_least=1),
        Property("schema.cache.size", INT, 1_000, "Schemas that are kept parsed.", at_least=1),
        Property(
            "registry.check.steps",
            INT,
            DEFAULT_STEPS,
            "Steps that one parse, or one comparison of two schemas, may take before it is given up.",
            at_least=1_000,
        ),
        Property("registry.body.max.bytes", INT, 16 << 20, "The longest request that is read.", at_least=1 << 10),
        Property(
            "inter.instance.protocol",
            STRING,
            "",
            "By which of its listeners other registries reach this one, http or https; the first, when empty.",
            one_of=("", "http", "https"),
        ),
        Property(
            "ssl.client.auth",
            STRING,
            "none",
            "Whether clients of https listeners have to show a certificate.",
            one_of=("none", "requested", "required", "true", "false"),
            ignore_case=True,
        ),
        Property(
            "authentication.method",
            LIST,
            ("NONE",),
            "How callers say who they are: BASIC (user and password), BEARER (a token), or both.",
            one_of=("NONE", "BASIC", "BEARER"),
            ignore_case=True,
        ),
        Property("authentication.realm", STRING, "ottla", "What a browser is told to ask a password for."),
        Property(
            "registry.users.file",
            STRING,
            "",
            "Users and what is known of their passwords, a line for each as `ottla users hash` writes it. When empty, "
            "callers are the users of the cluster.",
        ),
        Property(
            "registry.login.mechanisms",
            LIST,
            (),
            "By which mechanisms callers are logged in at the cluster, in this order; the registry's own, when empty.",
            one_of=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
            ignore_case=True,
        ),
        Property(
            "registry.authorization.method",
            STRING,
            "",
            "ACL: what callers may is decided by the cluster's ACLs. NONE: all who are let in may do everything. When "
            "empty, ACL for the cluster's users and NONE for others.",
            one_of=("", "ACL", "NONE"),
            ignore_case=True,
        ),
        Property(
            "super.users",
            STRING,
            "",
            "Who may do everything, whatever the ACLs say: as the brokers have it, User:admin;User:ops.",
        ),
        Property(
            "allow.everyone.if.no.acl.found",
            BOOLEAN,
            False,
            "Whether a topic that no ACL is about is everybody's: as the brokers have it.",
        ),
        Property(
            "ottla.audit.format",
            STRING,
            "kafka",
            "How refusals are written to the logger ottla.registry.audit: kafka as in Kafka, json as JSON.",
            one_of=("kafka", "json"),
        ),
        Property(
            "registry.login.cache.ms",
            INT,
            60_000,
            "How long a caller who was let in is not asked about again: so long a password that was changed, or a user "
            "who was removed, may still count.",
            at_least=0,
        ),
    ),
)

SYNONYMS: Final = {
    "listeners": "registry.listeners",
    "schema.registry.listeners": "registry.listeners",
    "bootstrap.servers": "kafkastore.bootstrap.servers",
    "avro.compatibility.level": "schema.compatibility.level",
    "master.eligibility": "leader.eligibility",
    "schema.registry.inter.instance.protocol": "inter.instance.protocol",
    "ssl.client.authentication": "ssl.client.auth",
}
"""Names that Confluent's server has, or had, for the same."""


_IN_A_NODE: Final = "registry."
_STORE: Final = "kafkastore."
_OF_THE_CLIENT: Final = ("kafkastore.security.", "kafkastore.ssl.", "kafkastore.sasl.")


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Every setting has a value. `unused` are names that mean nothing here."""

    values: Mapping[str, Any]
    given: Mapping[str, Any]
    client: Mapping[str, str]
    """Kafka's client settings (`security.protocol`, `ssl.*`, `sasl.*`), by which it reaches the brokers."""
    unused: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any] | None = None) -> "RegistrySettings":
        """Of a properties file, or of a program. A name that is nearly a known one is refused; others are told as
        unused, so that a file of Confluent's server can be taken as it is. Raises SettingsError."""
        problems: list[str] = []
        values: dict[str, Any] = {}
        client: dict[str, str] = {}
        unused: list[str] = []
        for said, value in (given or {}).items():
            name = SYNONYMS.get(said, said)
            if name.startswith(_OF_THE_CLIENT):
                client[name.removeprefix(_STORE)] = str(value)
                continue
            if name not in SETTINGS:
                near = closest(name, SETTINGS)
                if near is not None:
                    problems.append(f"{said} is not a setting of a schema registry: did you mean {near}?")
                unused.append(said)
                continue
            try:
                values[name] = SETTINGS[name].take(value)
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise SettingsError(problems)
        defaults = {name: entry.default for name, entry in SETTINGS.items()}
        return cls({**defaults, **values}, values, client, tuple(unused))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def listeners(self) -> list[Address]:
        return [parse(each) for each in self["registry.listeners"]]

    @classmethod
    def beside_a_node(cls, given: Mapping[str, str]) -> "RegistrySettings":
        """Out of a node's own settings: Confluent's names stand there with `registry.` before them. The node's own
        certificate (`ssl.*`) is the registry's too, unless it is given another one."""
        own = {name: value for name, value in given.items() if name.startswith(_IN_A_NODE)}
        said = {name if name in SETTINGS else name.removeprefix(_IN_A_NODE): value for name, value in own.items()}
        said |= {name: value for name, value in given.items() if name in OF_THE_AUTHORIZER}
        if not any(name.startswith("ssl.") for name in said):
            said |= {name: value for name, value in given.items() if name in tls.NAMES}
        return cls.of(said)

    def seconds(self, name: str) -> float:
        """Of a setting in milliseconds."""
        return float(self[name]) / 1000
