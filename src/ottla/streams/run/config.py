"""The settings of an application: Kafka Streams' names, in a table as the broker's.

A name that is not here is refused with the nearest one that is. Names that Kafka Streams has and that mean nothing on
Spark are taken and reported, so that a properties file can be used as it is. `spark.*` goes to the Spark session,
`topic.*` to the internal topics.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ottla.client.reach import SECURED, Reach, kept, secured
from ottla.client.security import SecurityRefused, security, settings_of
from ottla.model.properties.grammar import duration_ms
from ottla.model.properties.property import BOOLEAN, CLASS, INT, LONG, STRING, Property, Value, closest, table
from ottla.streams.topology.graph import Reset, ResetByDuration
from ottla.streams.topology.optimization import rules_of

Client = Literal["main.consumer", "restore.consumer", "global.consumer", "producer", "admin"]
CLIENTS: Final[tuple[Client, ...]] = get_args(Client)
"""Those of an application, as Kafka Streams names them."""
_PREFIXES: Final = ("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer.", "admin.")
_FILE: Final = "client.settings.file"
_FILES: Final = tuple(f"{client}.{_FILE}" for client in CLIENTS)
SPARK_PREFIX: Final = "spark."
TOPIC_PREFIX: Final = "topic."
MARKER_SUFFIX: Final = "-ottla-batches"
"""Of the topic that says which micro-batches have been written."""

FAIL: Final = "fail"
CONTINUE: Final = "continue"
"""The two answers of an exception handler. The record goes to the dead letter topic in both cases, if one is named."""


class ConfigError(ValueError):
    """A setting that cannot be taken; the text says what is allowed."""


def _host_and_port(value: Value) -> str | None:
    host, _, port = str(value).rpartition(":")
    return None if host and port.isdigit() and int(port) <= 65_535 else "HOST:PORT is expected"


_BY_DURATION: Final = "by_duration:"


def _reset(value: Value) -> str | None:
    text = str(value)
    by_duration = text.startswith(_BY_DURATION) and duration_ms(text.removeprefix(_BY_DURATION)) is not None
    known = text in ("earliest", "latest", "none") or by_duration
    return None if known else "allowed is one of earliest, latest, none, by_duration:PnDTnHnMnS"


def reset_of(text: str) -> Reset | ResetByDuration:
    """What auto.offset.reset says."""
    if not text.startswith(_BY_DURATION):
        return Reset(text)
    return ResetByDuration(duration_ms(text.removeprefix(_BY_DURATION)) or 0)


_JAVA_HANDLERS: Final = {
    "LogAndFailExceptionHandler": FAIL,
    "LogAndContinueExceptionHandler": CONTINUE,
    "LogAndFailProcessingExceptionHandler": FAIL,
    "LogAndContinueProcessingExceptionHandler": CONTINUE,
    "DefaultProductionExceptionHandler": FAIL,
}


def _optimization(value: Any) -> str:
    rules_of(str(value))
    return str(value)


def _handler(value: Any) -> Any:
    """`fail`, `continue`, the name of one of Kafka's own handlers, or a callable that gives one of the two."""
    if callable(value):
        return value
    if value in (FAIL, CONTINUE):
        return value
    known = _JAVA_HANDLERS.get(str(value).rpartition(".")[2])
    if known is None:
        raise ValueError("fail, continue or a callable is expected")
    return known


def _serde(value: Any) -> Any:
    """A serde, or the name of one."""
    if not isinstance(value, str):
        return value
    from ottla.streams.serdes import Serdes  # noqa: PLC0415  the table is read before anybody needs a serde

    # Java's names too: org.apache.kafka.common.serialization.Serdes$StringSerde
    short = value.rpartition("$")[2].removesuffix("Serde").lower()
    name = {"integer": "int", "bytearray": "bytes", "bytebuffer": "bytes"}.get(short, short)
    if name not in _SERDES:
        raise ValueError(f"a serde or one of {', '.join(_SERDES)} is expected")
    return getattr(Serdes, name)


_SERDES: Final = ("string", "bytes", "short", "int", "long", "float", "double", "boolean", "uuid", "json")

ROCKS_DB: Final = "rocksDB"
IN_MEMORY: Final = "in_memory"
_SUPPLIERS: Final = {"RocksDBDslStoreSuppliers": ROCKS_DB, "InMemoryDslStoreSuppliers": IN_MEMORY}


def _suppliers(value: Any) -> Any:
    """Kafka's own, by their names: those of Java, or as default.dsl.store has them."""
    name = str(value).replace("$", ".").rpartition(".")[2]
    found = value if value in (None, ROCKS_DB, IN_MEMORY) else _SUPPLIERS.get(name)
    if found is None and value is not None:
        raise ValueError(
            f"{' or '.join(_SUPPLIERS)} is expected; a store of your own is Stores.own, which processors can have"
        )
    return found


_DAY_MS: Final = 86_400_000
_LIKENESS: Final = 0.5
"""Nothing starts with a setting that is not known, so that even a remote resemblance helps."""

SETTINGS: Final = table(
    (
        Property("bootstrap.servers", STRING, "127.0.0.1:9092", "Brokers to start from, separated by commas."),
        Property(
            "client.settings.file",
            STRING,
            "",
            "A properties file with Kafka's client settings: security.protocol, sasl.*, ssl.*. They may stand here as "
            "well, also behind consumer., main.consumer., restore.consumer., global.consumer., producer. and admin.",
        ),
        Property("client.id", STRING, "", "A name for the broker's logs and quotas; the application id when empty."),
        Property(
            "application.server",
            STRING,
            None,
            "HOST:PORT at which stores are queried over HTTP; no server without it.",
            check=_host_and_port,
        ),
        Property(
            "application.server.settings.file",
            STRING,
            "",
            "A properties file that says who may ask there (queries.authentication.method and its like, super.users) "
            "and over what (ssl.keystore.*: https). Without it everybody who reaches the port may.",
        ),
        Property(
            "state.dir",
            STRING,
            "ottla-streams",
            "Where checkpoints, Spark's state and the views of stores lie, in a folder named after the "
            "application. A URL (s3a://, hdfs://) when Spark runs on a cluster.",
        ),
        Property(
            "processing.guarantee",
            STRING,
            "exactly_once_v2",
            "Output is written exactly once with either.",
            one_of=("exactly_once_v2", "at_least_once"),
        ),
        Property(
            "commit.interval.ms",
            LONG,
            0,
            "How often a micro-batch begins at most. With 0 the next one begins when one has ended and records are "
            "there.",
            at_least=0,
        ),
        Property(
            "max.records.per.batch",
            INT,
            5_000_000,
            "At most this many records of all inputs go into one micro-batch; no limit when empty.",
            at_least=1,
        ),
        Property(
            "batch.target.ms",
            LONG,
            5000,
            "How long a micro-batch takes when there is a backlog: it holds as many records as are done in "
            "about that time.",
            at_least=1,
        ),
        Property(
            "auto.offset.reset",
            STRING,
            "earliest",
            "Where an input without committed offsets begins: earliest, latest, none, or by_duration:PnDTnHnMnS back "
            "from now.",
            check=_reset,
        ),
        Property("default.key.serde", CLASS, None, "For keys where nothing else says it."),
        Property("default.value.serde", CLASS, None, "For values where nothing else says it."),
        Property("default.timestamp.extractor", CLASS, None, "A TimestampExtractor; the record's own time if none."),
        Property(
            "deserialization.exception.handler",
            CLASS,
            FAIL,
            "What to do about a record that cannot be read: fail, continue, or a callable (context, error) -> one.",
        ),
        Property(
            "processing.exception.handler",
            CLASS,
            FAIL,
            "What to do when a function raises: fail, continue, or a callable (context, error) -> one.",
        ),
        Property(
            "processing.exception.handler.global.enabled",
            BOOLEAN,
            False,
            "Whether that handler is asked about the processors of global stores too; without it they fail.",
        ),
        Property(
            "production.exception.handler",
            CLASS,
            FAIL,
            "What to do about a result that cannot be serialized or is too large for its topic: fail, continue, or a "
            "callable.",
        ),
        Property(
            "errors.dead.letter.queue.topic.name",
            STRING,
            None,
            "The topic for records that could not be processed, with Kafka Streams' headers; none when empty.",
        ),
        Property(
            "max.task.idle.ms",
            LONG,
            0,
            "How long a task waits for an input that has no data; 0: for what lies at the brokers, -1: for nothing.",
            at_least=-1,
        ),
        Property("num.stream.threads", INT, None, "Threads of Spark when it runs locally; all if none.", at_least=1),
        Property("replication.factor", INT, -1, "Of internal topics; -1 leaves it to the broker.", at_least=-1),
        Property(
            "transaction.timeout.ms",
            LONG,
            120_000,
            "The broker aborts a batch's transaction after this time: longer than the slowest batch.",
            at_least=1_000,
        ),
        Property(
            "default.dsl.store",
            STRING,
            ROCKS_DB,
            "What stores of tables are like that do not say it: rocksDB or in_memory (Materialized(store_type=...)).",
            one_of=(ROCKS_DB, IN_MEMORY),
        ),
        Property(
            "dsl.store.suppliers.class",
            CLASS,
            None,
            "The same by the names of Kafka's classes, RocksDBDslStoreSuppliers and InMemoryDslStoreSuppliers. It goes "
            "first.",
        ),
        Property(
            "statestore.cache.max.bytes",
            LONG,
            10 * 1024 * 1024,
            "With 0 every update of a table goes out, with any other number the last one per key and micro-batch.",
            at_least=0,
        ),
        Property(
            "task.timeout.ms",
            LONG,
            300_000,
            "How long the application waits for brokers that do not answer before it ends with an error.",
            at_least=0,
        ),
        Property(
            "topology.optimization",
            STRING,
            "none",
            "Kafka Streams' rules: all, or some of reuse.ktable.source.topics, merge.repartition.topics and "
            "single.store.self.join with commas between them.",
        ),
        Property(
            "repartition.purge.interval.ms",
            LONG,
            30_000,
            "How often used repartition records are deleted.",
            at_least=0,
        ),
        Property(
            "windowstore.changelog.additional.retention.ms",
            LONG,
            _DAY_MS,
            "Added to a window store's retention for its changelog topic.",
            at_least=0,
        ),
        Property(
            "ensure.explicit.internal.resource.naming",
            BOOLEAN,
            False,
            "Refuse a topology with internal topics or stores that have a generated name.",
        ),
    )
)

_MOST_RECORDS: Final = SETTINGS["max.records.per.batch"]
_OBJECTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "default.key.serde": _serde,
    "default.value.serde": _serde,
    "default.timestamp.extractor": lambda value: value,
    "dsl.store.suppliers.class": _suppliers,
    "max.records.per.batch": lambda value: None if value in (None, "") else _MOST_RECORDS.take(value),
    "topology.optimization": _optimization,
    "deserialization.exception.handler": _handler,
    "processing.exception.handler": _handler,
    "production.exception.handler": _handler,
}
"""What may also be an object of Python's, or nothing: from what is given to it. Raises ValueError with what is
expected."""

SYNONYMS: Final = {
    "cache.max.bytes.buffering": "statestore.cache.max.bytes",
    "default.deserialization.exception.handler": "deserialization.exception.handler",
    "default.production.exception.handler": "production.exception.handler",
    "consumer.auto.offset.reset": "auto.offset.reset",
    "main.consumer.auto.offset.reset": "auto.offset.reset",
    "producer.transaction.timeout.ms": "transaction.timeout.ms",
}

WITHOUT_EFFECT: Final = frozenset(
    {
        "acceptable.recovery.lag",
        "allow.os.group.write.access",
        "buffered.records.per.partition",
        "built.in.metrics.version",
        "connections.max.idle.ms",
        "default.client.supplier",
        "dsl.store.format",
        "enable.metrics.push",
        "group.protocol",
        "log.summary.interval.ms",
        "max.warmup.replicas",
        "metadata.max.age.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "num.standby.replicas",
        "poll.ms",
        "probing.rebalance.interval.ms",
        "rack.aware.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.ms",
        "rocksdb.config.setter",
        "send.buffer.bytes",
        "state.cleanup.delay.ms",
        "task.assignor.class",
        "upgrade.from",
    }
)
"""Kafka Streams has them; Spark does that work, or nothing here corresponds to it."""


def patience_s(config: Mapping[str, Any]) -> float:
    """How long brokers that do not answer are waited for."""
    return float(config["task.timeout.ms"]) / 1000


def reach_of(config: Mapping[str, Any], client: Client) -> Reach:
    """How one of an application's clients reaches the brokers."""
    return Reach(config["bootstrap.servers"], config.get(_file_of(client)) or config.get(_FILE) or "")


class Config(Mapping[str, Any]):
    """Every declared setting has a value: the given one or the default. Nobody changes it.

    It goes to tasks and into messages, so no secret is in it: Kafka's client settings are in files that it names.
    """

    __slots__ = ("_given", "_values")

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given: dict[str, Any] = {}
        clients: dict[str, str] = {}
        for name, value in (given or {}).items():
            known = name_of(name)
            if is_client_setting(known):
                clients[known] = str(value)
            else:
                self._given[known] = _parsed(known, value)
        if clients:
            self._given.update(_settings_files(self._given, clients))
        self._values = {name: setting.default for name, setting in SETTINGS.items()} | self._given

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Config({self._given!r})"

    @property
    def given(self) -> Mapping[str, Any]:
        """What was set, without the defaults."""
        return self._given

    @property
    def without_effect(self) -> tuple[str, ...]:
        return tuple(name for name in self._given if name in WITHOUT_EFFECT)

    def with_changes(self, changes: Mapping[str, Any]) -> "Config":
        return Config({**self._given, **changes})

    def reach(self, client: Client) -> Reach:
        """How one of the application's clients reaches the brokers."""
        return reach_of(self, client)

    def below(self, prefix: str) -> dict[str, str]:
        """Those of a family: `spark.` with their whole names, `topic.` without it in front."""
        keep = 0 if prefix == SPARK_PREFIX else len(prefix)
        return {name[keep:]: value for name, value in self._given.items() if name.startswith(prefix)}


def is_client_setting(name: str) -> bool:
    """Whether it says how a client opens the brokers' door."""
    bare = next((name.removeprefix(each) for each in _PREFIXES if name.startswith(each)), name)
    return bare.startswith(SECURED)


def _file_of(client: Client) -> str:
    return f"{client}.{_FILE}"


def _settings_files(given: Mapping[str, Any], clients: Mapping[str, str]) -> dict[str, str]:
    """Where client settings are kept from now on: what all clients have, and what one has of its own. The nearest wins,
    as in Kafka: `main.consumer.` before `consumer.` before a bare name. Raises ConfigError."""
    try:
        shared = {**_read(given.get(_FILE, "")), **secured(clients)}
        files = {_FILE: Reach.of("", shared).settings_file}
        for client in CLIENTS:
            own = {**shared, **_read(given.get(_file_of(client), ""))}
            for prefix in ("consumer.", f"{client}.") if client.endswith("consumer") else (f"{client}.",):
                own |= secured(
                    {name.removeprefix(prefix): each for name, each in clients.items() if name.startswith(prefix)}
                )
            if own != shared:
                files[_file_of(client)] = kept(own)
                security(own)
    except SecurityRefused as error:
        raise ConfigError(str(error)) from error
    return files


def _read(path: str) -> dict[str, str]:
    return secured(settings_of(Path(path))) if path else {}


def name_of(name: str) -> str:
    """Kafka's name of a setting: `commit_interval_ms`, as a keyword of Python must be written, is one too."""
    known = name.replace("_", ".") if name not in SETTINGS and not name.startswith(SPARK_PREFIX) else name
    known = SYNONYMS.get(known, known)
    if known in SETTINGS or known in WITHOUT_EFFECT or is_client_setting(known) or known in _FILES:
        return known
    for prefix in (SPARK_PREFIX, TOPIC_PREFIX):
        if known.startswith(prefix) and len(known) > len(prefix):
            return known
    if known == "application.id":
        raise ConfigError("application.id is the first argument of StreamsApp, not a setting beside it")
    near = closest(known, (*SETTINGS, *WITHOUT_EFFECT), _LIKENESS)
    meant = f": did you mean {near}?" if near else f"; there are {', '.join(SETTINGS)}, spark.* and topic.*"
    raise ConfigError(f"{name} is not a setting of a streams application{meant}")


def _parsed(name: str, value: Any) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        # Spark writes truth in lower case.
        return str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return _OBJECTS[name](value) if name in _OBJECTS else setting.take(value)
    except ValueError as error:
        raise ConfigError(f"{name}: {value!r}: {error}" if name in _OBJECTS else str(error)) from None
