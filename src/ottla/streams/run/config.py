"""The settings of an application: Kafka Streams' names, each declared once with its type, default and meaning.

A name that is not here is refused with the nearest one that is. Names that Kafka Streams has and that mean nothing on
Spark are taken and reported, so that a properties file can be used as it is. `spark.*` goes to the Spark session,
`topic.*` to the internal topics.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

SPARK_PREFIX: Final = "spark."
TOPIC_PREFIX: Final = "topic."
MARKER_SUFFIX: Final = "-ottla-batches"
"""Of the topic that says which micro-batches have been written."""

FAIL: Final = "fail"
CONTINUE: Final = "continue"
"""The two answers of an exception handler. The record goes to the dead letter topic in both cases, if one is named."""


class ConfigError(ValueError):
    """A setting that cannot be taken; the text says what is allowed."""


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: Any
    parse: Callable[[Any], Any]
    """From a text or the value itself to the value; raises ValueError with what is expected."""
    help: str


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None or value == "" else _text(value)


def _address(value: Any) -> str | None:
    text = _optional_text(value)
    if text is not None:
        host, _, port = text.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise ValueError("HOST:PORT is expected")
    return text


def _whole(least: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError("a whole number is expected")
        try:
            number = int(value)
        except ValueError:
            raise ValueError("a whole number is expected") from None
        if number < least:
            raise ValueError(f"it must be at least {least}")
        return number

    return parse


def _optional_whole(least: int) -> Callable[[Any], int | None]:
    parse = _whole(least)
    return lambda value: None if value is None or value == "" else parse(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "false": False}.get(str(value).lower())
    if known is None:
        raise ValueError("true or false is expected")
    return known


def _one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"choose one of {', '.join(choices)}")
        return str(value)

    return parse


_JAVA_HANDLERS: Final = {
    "LogAndFailExceptionHandler": FAIL,
    "LogAndContinueExceptionHandler": CONTINUE,
    "LogAndFailProcessingExceptionHandler": FAIL,
    "LogAndContinueProcessingExceptionHandler": CONTINUE,
    "DefaultProductionExceptionHandler": FAIL,
}


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
    name = {"integer": "int", "bytearray": "bytes"}.get(short, short)
    if name not in _SERDES:
        raise ValueError(f"a serde or one of {', '.join(_SERDES)} is expected")
    return getattr(Serdes, name)


_SERDES: Final = ("string", "bytes", "int", "long", "double", "boolean", "json")


def _anything(value: Any) -> Any:
    return value


_DAY_MS: Final = 86_400_000

SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting("bootstrap.servers", "127.0.0.1:9092", _text, "Brokers to start from, separated by commas."),
        Setting("client.id", "", _text, "A name for the broker's logs and quotas; the application id when empty."),
        Setting(
            "application.server",
            None,
            _address,
            "HOST:PORT at which stores are queried over HTTP; no server without it.",
        ),
        Setting(
            "state.dir",
            "ottla-streams",
            _text,
            "Where checkpoints, Spark's state and the views of stores lie, in a folder named after the application. "
            "A URL (s3a://, hdfs://) when Spark runs on a cluster.",
        ),
        Setting(
            "processing.guarantee",
            "exactly_once_v2",
            _one_of("exactly_once_v2", "at_least_once"),
            "Output is written exactly once with either.",
        ),
        Setting("commit.interval.ms", 200, _whole(0), "How often a micro-batch begins when there is something to do."),
        Setting(
            "max.records.per.batch",
            5_000_000,
            _optional_whole(1),
            "At most this many records of all inputs go into one micro-batch; no limit when empty.",
        ),
        Setting(
            "batch.target.ms",
            5_000,
            _whole(1),
            "How long a micro-batch takes when there is a backlog: it holds as many records as are done in about that "
            "time.",
        ),
        Setting(
            "auto.offset.reset",
            "earliest",
            _one_of("earliest", "latest", "none"),
            "Where an input without committed offsets begins.",
        ),
        Setting("default.key.serde", None, _serde, "For keys where nothing else says it."),
        Setting("default.value.serde", None, _serde, "For values where nothing else says it."),
        Setting("default.timestamp.extractor", None, _anything, "A TimestampExtractor; the record's own time if none."),
        Setting(
            "deserialization.exception.handler",
            FAIL,
            _handler,
            "What to do about a record that cannot be read: fail, continue, or a callable (context, error) -> one.",
        ),
        Setting(
            "processing.exception.handler",
            FAIL,
            _handler,
            "What to do when a function raises: fail, continue, or a callable (context, error) -> one.",
        ),
        Setting(
            "production.exception.handler",
            FAIL,
            _handler,
            "What to do about a result that cannot be serialized: fail, continue, or a callable.",
        ),
        Setting(
            "errors.dead.letter.queue.topic.name",
            None,
            _optional_text,
            "The topic for records that could not be processed, with Kafka Streams' headers; none when empty.",
        ),
        Setting("max.task.idle.ms", 0, _whole(-1), "How long a join waits for an input that has no data."),
        Setting("num.stream.threads", None, _optional_whole(1), "Threads of Spark when it runs locally; all if none."),
        Setting("replication.factor", -1, _whole(-1), "Of internal topics; -1 leaves it to the broker."),
        Setting(
            "transaction.timeout.ms",
            120_000,
            _whole(1_000),
            "The broker aborts a batch's transaction after this time: longer than the slowest batch.",
        ),
        Setting("topology.optimization", "none", _one_of("none", "all"), "As in Kafka Streams."),
        Setting("repartition.purge.interval.ms", 30_000, _whole(0), "How often used repartition records are deleted."),
        Setting(
            "windowstore.changelog.additional.retention.ms",
            _DAY_MS,
            _whole(0),
            "Added to a window store's retention for its changelog topic.",
        ),
        Setting(
            "ensure.explicit.internal.resource.naming",
            False,
            _truth,
            "Refuse a topology with internal topics or stores that have a generated name.",
        ),
    )
}

SYNONYMS: Final = {
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
        "cache.max.bytes.buffering",
        "connections.max.idle.ms",
        "default.client.supplier",
        "default.dsl.store",
        "dsl.store.format",
        "dsl.store.suppliers.class",
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
        "processing.exception.handler.global.enabled",
        "rack.aware.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.ms",
        "rocksdb.config.setter",
        "send.buffer.bytes",
        "state.cleanup.delay.ms",
        "statestore.cache.max.bytes",
        "task.assignor.class",
        "task.timeout.ms",
        "upgrade.from",
    }
)
"""Kafka Streams has them; Spark does that work, or nothing here corresponds to it."""


class Config(Mapping[str, Any]):
    """Every declared setting has a value: the given one or the default. Nobody changes it."""

    __slots__ = ("_given", "_values")

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given: dict[str, Any] = {}
        for name, value in (given or {}).items():
            known = name_of(name)
            self._given[known] = _parsed(known, value)
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

    def below(self, prefix: str) -> dict[str, str]:
        """Those of a family: `spark.` with their whole names, `topic.` without it in front."""
        keep = 0 if prefix == SPARK_PREFIX else len(prefix)
        return {name[keep:]: value for name, value in self._given.items() if name.startswith(prefix)}


def name_of(name: str) -> str:
    """Kafka's name of a setting: `commit_interval_ms`, as a keyword of Python must be written, is one too."""
    known = name.replace("_", ".") if name not in SETTINGS and not name.startswith(SPARK_PREFIX) else name
    known = SYNONYMS.get(known, known)
    if known in SETTINGS or known in WITHOUT_EFFECT:
        return known
    for prefix in (SPARK_PREFIX, TOPIC_PREFIX):
        if known.startswith(prefix) and len(known) > len(prefix):
            return known
    if known == "application.id":
        raise ConfigError("application.id is the first argument of StreamsApp, not a setting beside it")
    near = get_close_matches(known, [*SETTINGS, *WITHOUT_EFFECT], n=1, cutoff=0.5)
    meant = f": did you mean {near[0]}?" if near else f"; there are {', '.join(SETTINGS)}, spark.* and topic.*"
    raise ConfigError(f"{name} is not a setting of a streams application{meant}")


def _parsed(name: str, value: Any) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        # Spark writes truth in lower case.
        return str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return setting.parse(value)
    except ValueError as error:
        raise ConfigError(f"{name}={value!r}: {error}") from None
