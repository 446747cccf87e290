"""Properties of statements (SET, `streamsProperties`, a server's defaults): which there are, and what they reach.

Three kinds: ksqlDB's own (`ksql.…`), those of the streams application that a query becomes (with or without
`ksql.streams.` before them), and those of Kafka's clients, which are taken and do nothing: here no client of Kafka's
stands behind a query. What is none of these is refused with the nearest name that is one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.model.properties.property import BOOLEAN, INT, STRING, Property, closest, table
from ottla.sql.analysis.limits import LIMITS
from ottla.sql.errors import BAD_STATEMENT, SqlError
from ottla.streams.run import config as streams

PREFIX: Final = "ksql.streams."
RESET: Final = "auto.offset.reset"
FAILS: Final = "ksql.fail.on.deserialization.error"
THROWS: Final = "ksql.timestamp.throw.on.invalid"
_MOST: Final = 200
_LONGEST: Final = 4_096
"""Properties of one statement, and characters of one: they are kept in the log for good."""

KSQL: Final = table(
    (
        Property("ksql.persistence.default.format.key", STRING, "KAFKA", "Of keys where no KEY_FORMAT is said."),
        Property("ksql.persistence.default.format.value", STRING, "", "Of values where no VALUE_FORMAT is said."),
        Property("ksql.persistence.wrap.single.values", BOOLEAN, True, "Whether a single value column is a field."),
        Property(FAILS, BOOLEAN, False, "Whether a query fails at a record that it cannot read, or skips it."),
        Property(THROWS, BOOLEAN, False, "Whether a query fails at a record without a time in TIMESTAMP, or skips it."),
        Property(LIMITS["collect_list"], INT, 2_147_483_647, "Values that COLLECT_LIST keeps of a group.", at_least=1),
        Property(LIMITS["collect_set"], INT, 2_147_483_647, "Values that COLLECT_SET keeps of a group.", at_least=1),
        Property("ksql.output.topic.name.prefix", STRING, "", "Of topics that CREATE … AS names."),
        Property("ksql.query.pull.table.scan.enabled", BOOLEAN, True, "Whether pull queries may read whole tables."),
        Property("ksql.query.pull.limit.clause.enabled", BOOLEAN, True, "Taken; LIMIT is always understood."),
        Property("ksql.query.pull.range.scan.enabled", BOOLEAN, True, "Taken; ranges are part of scans."),
        Property("ksql.query.pull.stream.enabled", BOOLEAN, True, "Whether pull queries may read streams."),
        Property("ksql.variable.substitution.enable", BOOLEAN, True, "Whether ${name} is replaced in statements."),
    )
)
"""Those that a statement may have, as far as they do something."""
WITHOUT_EFFECT: Final = frozenset(
    {
        "ksql.cast.strings.preserve.nulls",
        "ksql.create.or.replace.enabled",
        "ksql.emit.finals.enabled",
        "ksql.execution.plan.enable",
        "ksql.headers.columns.enabled",
        "ksql.json_sr.converter.deserializer.enabled",
        "ksql.lambdas.enabled",
        "ksql.multicol.key.format.enabled",
        "ksql.nested.error.set.null",
        "ksql.new.query.planner.enabled",
        "ksql.query.pull.consistency.token.enabled",
        "ksql.query.pull.enable.standby.reads",
        "ksql.query.pull.interpreter.enabled",
        "ksql.query.pull.max.allowed.offset.lag",
        "ksql.query.push.v2.enabled",
        "ksql.query.retry.backoff.initial.ms",
        "ksql.query.retry.backoff.max.ms",
        "ksql.query.status.running.threshold.seconds",
        "ksql.rowpartition.rowoffset.enabled",
        "ksql.runtime.feature.shared.enabled",
        "ksql.source.table.materialization.enabled",
        "ksql.suppress.buffer.size.bytes",
        "ksql.suppress.enabled",
        "ksql.transient.query.cleanup.service.enable",
        "ksql.udf.collect.metrics",
        "ksql.websocket.connection.max.timeout.ms",
    }
)
"""ksqlDB's, for what is always so here, or never."""
OF_CLIENTS: Final = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.type",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "heartbeat.interval.ms",
        "isolation.level",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "max.request.size",
        "partitioner.class",
        "retries",
        "session.timeout.ms",
    }
)
"""Of Kafka's consumers and producers."""
_OF_THE_SERVER: Final = frozenset(
    {
        "application.id",
        "application.server",
        "bootstrap.servers",
        "client.id",
        "client.settings.file",
        "default.key.serde",
        "default.timestamp.extractor",
        "default.value.serde",
        "ensure.explicit.internal.resource.naming",
        "ksql.functions.python.enabled",
        "processing.guarantee",
        "state.dir",
        "topology.optimization",
    }
)
"""Of a streams application or the server itself, and none of a statement's business: the server says them."""
_ADMITTED: Final = frozenset({"processing.guarantee"})
"""Of these: what is said anyway, and changes nothing."""


_OF_FILES: Final = frozenset(
    {
        "application.id",
        "ksql.logging.processing.rows.include",
        "ksql.schema.registry.basic.auth.user.info",
        "ksql.schema.registry.ssl.truststore.location",
        "ksql.schema.registry.url",
    }
)
"""A server has them in its settings; a file that runs without one says them itself."""


def bare(name: str) -> str:
    """Without ksqlDB's prefix for Streams, and Streams' prefixes for its clients."""
    name = name.removeprefix(PREFIX)
    for prefix in ("main.consumer.", "consumer.", "producer.", "admin."):
        if name.startswith(prefix) and (rest := name.removeprefix(prefix)) in (RESET, *OF_CLIENTS):
            return rest
    return streams.SYNONYMS.get(name, name)


def is_known(name: str) -> bool:
    """Whether a statement may have it."""
    short = bare(name)
    if short in KSQL or short in WITHOUT_EFFECT or short in OF_CLIENTS or short in _ADMITTED:
        return True
    if short in _OF_THE_SERVER:
        return False
    topic = short.startswith(streams.TOPIC_PREFIX) and len(short) > len(streams.TOPIC_PREFIX)
    return topic or short in streams.SETTINGS or short in streams.WITHOUT_EFFECT


def check(name: str, value: str) -> None:
    """Raises SqlError."""
    short = bare(name)
    if not is_known(name):
        if short in _OF_THE_SERVER or short.startswith(streams.SPARK_PREFIX):
            raise SqlError(BAD_STATEMENT, f"{name} is the server's to say, not a statement's")
        near = closest(short, (*KSQL, *WITHOUT_EFFECT, *OF_CLIENTS, *streams.SETTINGS))
        meant = f"; do you mean {near}?" if near else ": it is none of ksqlDB, Kafka Streams or Kafka's clients"
        raise SqlError(BAD_STATEMENT, f"{name} is no property of statements{meant}")
    if len(value) > _LONGEST:
        raise SqlError(BAD_STATEMENT, f"{name}: a value of {len(value)} characters; {_LONGEST} are taken")
    try:
        if short in KSQL:
            KSQL[short].parse(value)
        elif short in streams.SETTINGS:
            streams.Config({short: value})
    except ValueError as error:
        raise SqlError(BAD_STATEMENT, str(error)) from None


def check_of_file(name: str, value: str) -> None:
    """Of a file that runs without a server, and of a test: it says the settings of its application as well. Raises
    SqlError."""
    if name in _OF_FILES:
        return
    if (setting := of_streams(name)) is None:
        check(name, value)
        return
    try:
        streams.Config({setting: value})
    except ValueError as error:
        raise SqlError(BAD_STATEMENT, str(error)) from None


def of_streams(name: str) -> str | None:
    """The setting of a streams application that it is, with `ksql.streams.` before it or without. None: it is none."""
    try:
        return streams.name_of(name.removeprefix(PREFIX))
    except streams.ConfigError:
        return None


def check_all(given: Mapping[str, str]) -> None:
    """Raises SqlError."""
    if len(given) > _MOST:
        raise SqlError(BAD_STATEMENT, f"{len(given)} properties for one statement; {_MOST} are taken")
    for name, value in given.items():
        check(name, value)


def of_application(given: Mapping[str, str]) -> dict[str, str]:
    """What of a statement's properties is said to the streams application that its query becomes."""
    short = over(given)
    fails = FAILS in short and KSQL[FAILS].parse(short[FAILS])
    found = {"deserialization.exception.handler": "fail"} if fails else {}
    return found | {
        name: value
        for name, value in short.items()
        if name not in _OF_THE_SERVER and (name in streams.SETTINGS or name.startswith(streams.TOPIC_PREFIX))
    }


def over(*levels: Mapping[str, str]) -> dict[str, str]:
    """What holds, under its bare name: of later levels before earlier ones."""
    return {bare(name): value for each in levels for name, value in each.items()}


@dataclass(frozen=True, slots=True)
class Effective:
    """Properties as queries of clients ask for them: those of a statement over the server's."""

    given: Mapping[str, str]

    @staticmethod
    def of(defaults: Mapping[str, str], own: Mapping[str, str]) -> "Effective":
        return Effective(over(defaults, own))

    def __getitem__(self, name: str) -> Any:
        setting = KSQL[name]
        return setting.parse(self.given[name]) if name in self.given else setting.default

    @property
    def from_beginning(self) -> bool:
        """Where a push query begins: at what is new, unless told otherwise."""
        return self.given.get(RESET, "latest") == "earliest"
