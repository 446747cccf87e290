"""The config keys that every connector has, whoever wrote it: Connect's own, and ours for auto-restart.

Names, types, defaults, groups and order are Kafka's; what a key is for is said in our words. The keys of transforms and
predicates stand under the aliases that a config gives them, so they are known only with the config.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ottla.connect.definitions import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    SHORT,
    STRING,
    AllOf,
    AtLeast,
    ConfigDef,
    ConfigError,
    ConfigKey,
    NonEmpty,
    NotNull,
    OneOf,
    OneOfIgnoringCase,
    SomeOf,
    Texts,
    Value,
    Width,
)
from ottla.connect.duties import AUTO_RESTART, AUTO_RESTART_FIRST_MS, AUTO_RESTART_LONGEST_MS
from ottla.connect.plugins import Catalogue, Plugin, PluginType
from ottla.connect.transforms.patterns import compiled
from ottla.model.extras import missing

COMMON, TRANSFORMS, PREDICATES = "Common", "Transforms", "Predicates"
ERRORS, TOPIC_CREATION, EXACTLY_ONCE = "Error Handling", "Topic Creation", "Exactly Once Support"
OFFSETS, AUTO = "offsets.topic", "Auto Restart"

_SHOWN = 200
"""Characters of a pattern that is no good."""


@dataclass(frozen=True, slots=True)
class Names:
    """Recommends the plug-ins of a kind, or the versions there are."""

    values: tuple[str, ...]
    always: bool = False
    """Shown also where there is nothing to recommend."""

    def valid_values(self, name: str, parsed: Mapping[str, Value]) -> Sequence[Value]:
        return self.values

    def visible(self, name: str, parsed: Mapping[str, Value]) -> bool:
        return self.always or bool(self.values)


@dataclass(frozen=True, slots=True)
class IsPlugin:
    """The value names a plug-in of these kinds."""

    catalogue: Catalogue
    kinds: tuple[PluginType, ...]

    def __call__(self, name: str, value: Value) -> None:
        if value is None:
            return
        text = str(value)
        if self.catalogue.find(text, *self.kinds) is None:
            why = self.catalogue.why_not(text, *self.kinds)
            raise ConfigError.of(name, text, f"Class {text} could not be found.{why}")


def _is_name(name: str, value: Value) -> None:
    if value is None:
        return
    text = str(value)
    if not text:
        raise ConfigError.of(name, text, "String may not be empty")
    bad = [str(ord(char)) for char in text if ord(char) < 32 or 127 <= ord(char) < 160]
    if bad:
        said = f"String may not contain control sequences but had the following ASCII chars: {', '.join(bad)}"
        raise ConfigError.of(name, text, said)


def _is_regex(name: str, value: Value) -> None:
    text = str(value or "")
    try:
        compiled(text)
    except ValueError as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise ConfigError.of(name, shown, f"Invalid regular expression: {error}") from None


def _unique(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    if len(dict.fromkeys(value)) != len(value):
        raise ConfigError.of(name, f"[{', '.join(value)}]", "Duplicate alias provided.")


def _aliases(name: str, value: Value) -> None:
    if value is None:
        NotNull()(name, value)
    _unique(name, value)


def _positive(name: str, value: Value) -> None:
    if value is not None and isinstance(value, int) and value <= 0:
        raise ConfigError.of(name, value, "Transaction boundary interval must be a positive value")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a worker gives its connectors."""

    converters: Mapping[str, str]
    """By config key: the class that the worker's own settings name."""


def connector_keys(
    catalogue: Catalogue, plugin: Plugin, defaults: Defaults | None = None, given: Texts = MappingProxyType({})
) -> ConfigDef:
    """Without defaults: as GET /connector-plugins/{p}/config tells them, where no worker's converters are known."""
    common = [*_common(catalogue, plugin, defaults, given), *_errors()]
    own = _sink() if plugin.kind is PluginType.SINK else _source()
    return ConfigDef(*common, *own, *_auto_restart())


def _common(catalogue: Catalogue, plugin: Plugin, defaults: Defaults | None, given: Texts) -> list[ConfigKey]:
    converters, headers = (PluginType.CONVERTER,), (PluginType.HEADER_CONVERTER,)
    return [
        ConfigKey("name", STRING, REQUIRED, HIGH, "The connector's name, one of its kind in the cluster.", _is_name,
                  COMMON, 1, Width.MEDIUM, "Connector name"),
        ConfigKey("connector.class", STRING, REQUIRED, HIGH, "Class name of the connector, or a short name.", None,
                  COMMON, 2, Width.LONG, "Connector class"),
        _version("connector.plugin.version", plugin.version, "Connector version", 3, MEDIUM, Width.MEDIUM),
        ConfigKey("tasks.max", INT, 1, HIGH, "How many partitions are worked on side by side at most.", AtLeast(1),
                  COMMON, 4, Width.SHORT, "Tasks max"),
        ConfigKey("tasks.max.enforce", BOOLEAN, True, LOW, "Whether more tasks than tasks.max are a failure.", None,
                  COMMON, 5, Width.SHORT, "Enforce tasks max"),
        *_converter(catalogue, "key", "Key", 6, converters, defaults, given),
        *_converter(catalogue, "value", "Value", 8, converters, defaults, given),
        *_converter(catalogue, "header", "Header", 10, headers, defaults, given),
        ConfigKey("transforms", LIST, (), LOW, "Aliases of the transforms, in the order in which they are applied.",
                  _aliases, TRANSFORMS, 12, Width.LONG, "Transforms"),
        ConfigKey("predicates", LIST, (), LOW, "Aliases of the predicates that transforms may ask.", _aliases,
                  PREDICATES, 13, Width.LONG, "Predicates"),
        ConfigKey("config.action.reload", STRING, "restart", LOW,
                  "What happens when a config provider's value changes: restart or none.", OneOf(("none", "restart")),
                  COMMON, 14, Width.MEDIUM, "Reload Action"),
    ]  # fmt: skip


def _version(name: str, version: str | None, display: str, order: int, importance: object, width: Width) -> ConfigKey:
    wanted = MEDIUM if importance is MEDIUM else LOW
    doc = "The version that is wanted; the only one there is if nothing is said."
    offered = Names((version,) if version else ())
    return ConfigKey(name, STRING, version, wanted, doc, None, COMMON, order, width, display, (), offered)


def _converter(
    catalogue: Catalogue,
    part: str,
    display: str,
    order: int,
    kinds: tuple[PluginType, ...],
    defaults: Defaults | None,
    given: Texts,
) -> list[ConfigKey]:
    name = f"{part}.converter"
    worker = None if defaults is None else defaults.converters.get(name)
    used = given.get(name) or worker
    found = None if used is None else catalogue.find(used.strip(), *kinds)
    offered = Names(tuple(row.class_name for row in catalogue.of(*kinds)) if defaults is not None else ())
    doc = f"How {part}s are turned into bytes and back; the worker's own if nothing is said."
    known = IsPlugin(catalogue, kinds)
    label = f"{display} converter"
    version = None if found is None else found.version
    return [
        ConfigKey(name, CLASS, worker, LOW, doc, known, COMMON, order, Width.SHORT, f"{label} class", (), offered),
        _version(f"{name}.plugin.version", version, f"{label} version", order + 1, LOW, Width.SHORT),
    ]


def _errors() -> list[ConfigKey]:
    return [
        ConfigKey("errors.retry.timeout", LONG, 0, MEDIUM, "How long, in ms, what failed is tried again; -1: for ever.",
                  None, ERRORS, 1, Width.MEDIUM, "Retry Timeout for Errors"),
        ConfigKey("errors.retry.delay.max.ms", LONG, 60_000, MEDIUM, "The longest pause between such attempts.", None,
                  ERRORS, 2, Width.MEDIUM, "Maximum Delay Between Retries for Errors"),
        ConfigKey("errors.tolerance", STRING, "none", MEDIUM,
                  "none: the first bad record is a failure; all: bad records become dead letters, or are left out.",
                  OneOf(("none", "all")), ERRORS, 3, Width.SHORT, "Error Tolerance"),
        ConfigKey("errors.log.enable", BOOLEAN, False, MEDIUM, "Whether each error is logged.", None, ERRORS, 4,
                  Width.SHORT, "Log Errors"),
        ConfigKey("errors.log.include.messages", BOOLEAN, False, MEDIUM, "Whether the record is logged with it.", None,
                  ERRORS, 5, Width.SHORT, "Log Error Details"),
    ]  # fmt: skip


def dead_letter_keys() -> list[ConfigKey]:
    return [
        ConfigKey("errors.deadletterqueue.topic.name", STRING, "", MEDIUM, "The topic that dead letters go to.", None,
                  ERRORS, 6, Width.MEDIUM, "Dead Letter Queue Topic Name"),
        ConfigKey("errors.deadletterqueue.topic.replication.factor", SHORT, 3, MEDIUM, "Of that topic when it is made.",
                  None, ERRORS, 7, Width.MEDIUM, "Dead Letter Queue Topic Replication Factor"),
        ConfigKey("errors.deadletterqueue.context.headers.enable", BOOLEAN, False, MEDIUM,
                  "Whether dead letters tell in headers where they come from and what was wrong.", None, ERRORS, 8,
                  Width.MEDIUM, "Enable Error Context Headers"),
    ]  # fmt: skip


def _sink() -> list[ConfigKey]:
    return [
        ConfigKey("topics", LIST, (), HIGH, "The topics to read.", SomeOf(), COMMON, 4, Width.LONG, "Topics"),
        ConfigKey("topics.regex", STRING, "", HIGH, "Topics to read, as a regular expression.", _is_regex, COMMON, 4,
                  Width.LONG, "Topics regex"),
        *dead_letter_keys(),
    ]  # fmt: skip


def _source() -> list[ConfigKey]:
    return [
        *dead_letter_keys(),  # ours: Kafka keeps nothing of what a source could not convert
        ConfigKey("topic.creation.groups", LIST, (), LOW, "Aliases of groups of topics that are made in one way.",
                  AllOf((_aliases,)), TOPIC_CREATION, 1, Width.LONG, "Topic Creation Groups"),
        ConfigKey("exactly.once.support", STRING, "requested", MEDIUM,
                  "required: refused if the connector cannot write each record once.",
                  OneOfIgnoringCase(("requested", "required")), EXACTLY_ONCE, 2, Width.SHORT, "Exactly once support"),
        ConfigKey("transaction.boundary", STRING, "poll", MEDIUM, "How much is written in one transaction.",
                  OneOfIgnoringCase(("interval", "poll", "connector")), EXACTLY_ONCE, 3, Width.SHORT,
                  "Transaction Boundary"),
        ConfigKey("transaction.boundary.interval.ms", LONG, None, LOW, "How long a transaction lasts with interval.",
                  _positive, EXACTLY_ONCE, 4, Width.SHORT, "Transaction boundary interval"),
        ConfigKey("offsets.storage.topic", STRING, None, LOW, "A topic of its own for where this source stands.",
                  NonEmpty(), OFFSETS, 1, Width.LONG, "Offsets topic"),
    ]  # fmt: skip


def _auto_restart() -> list[ConfigKey]:
    return [
        ConfigKey(AUTO_RESTART, BOOLEAN, None, LOW, "Whether it is started again by itself; the worker's own if empty.",
                  None, AUTO, 1, Width.SHORT, "Auto restart"),
        ConfigKey(AUTO_RESTART_FIRST_MS, LONG, None, LOW, "The first pause before that.", _at_least_one, AUTO, 2,
                  Width.MEDIUM, "Auto restart back-off"),
        ConfigKey(AUTO_RESTART_LONGEST_MS, LONG, None, LOW, "The longest pause before that.", _at_least_one, AUTO, 3,
                  Width.MEDIUM, "Longest auto restart back-off"),
    ]  # fmt: skip


def _at_least_one(name: str, value: Value) -> None:
    if value is not None:
        AtLeast(1)(name, value)


# Transforms and predicates.


def chain_keys(catalogue: Catalogue, given: Texts) -> list[ConfigKey]:
    """Of all the aliases that a config names."""
    keys: list[ConfigKey] = []
    for word, group, kind, label in (
        ("transforms", TRANSFORMS, PluginType.TRANSFORMATION, "Transformation"),
        ("predicates", PREDICATES, PluginType.PREDICATE, "Predicate"),
    ):
        for alias in dict.fromkeys(part.strip() for part in (given.get(word) or "").split(",") if part.strip()):
            keys += _alias_keys(catalogue, given, f"{word}.{alias}.", f"{group}: {alias}", alias, kind, label)
    return keys


def _alias_keys(
    catalogue: Catalogue, given: Texts, prefix: str, group: str, alias: str, kind: PluginType, label: str
) -> list[ConfigKey]:
    word = label.lower()
    said = given.get(f"{prefix}type")
    row = None if said is None else catalogue.find(said.strip(), kind)
    version = None if row is None else row.version

    def judge(name: str, value: Value) -> None:
        IsPlugin(catalogue, (kind,))(name, value)
        if f"{prefix}negate" in given and f"{prefix}predicate" not in given:
            raise ConfigError(
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining a predicate "
                "to be negated."
            )

    offered = Names(tuple(each.class_name for each in catalogue.of(kind)))
    keys = [
        ConfigKey(f"{prefix}type", CLASS, REQUIRED, HIGH, f"Class for the '{alias}' {word}.", judge, group, 0,
                  Width.LONG, f"{label} type for {alias}", (), offered),
        ConfigKey(f"{prefix}plugin.version", STRING, version, HIGH, f"Version of the '{alias}' {word}.", None, group, 1,
                  Width.LONG, f"{label} version for {alias}", (), Names((version,) if version else (), always=True)),
    ]  # fmt: skip
    if row is None:
        return keys
    own = {key.name: key for key in config_def_of(row).keys.values()}
    if kind is PluginType.TRANSFORMATION:
        implicit = {
            "predicate": ConfigKey(
                "predicate", STRING, None, MEDIUM, "The predicate that decides whether it is applied."
            ),
            "negate": ConfigKey("negate", BOOLEAN, False, MEDIUM, "Whether that predicate is turned round."),
        }
        own = {**implicit, **{name: key for name, key in own.items() if name not in implicit}}
    return keys + ConfigDef(*own.values()).embedded(prefix, group, 2)


def config_def_of(plugin: Plugin) -> ConfigDef:
    """What the plug-in itself declares: a `CONFIG`, or a model. Raises ConfigError when it cannot be loaded."""
    from ottla.connect.spi.config import definition_of, model_of  # noqa: PLC0415  msgspec's inspection, for who has a model

    try:
        loaded = plugin.load()
    except (ImportError, AttributeError) as error:
        reason = missing(error) if isinstance(error, ImportError) else str(error)
        raise ConfigError(f"{plugin.class_name} cannot be loaded: {reason}") from None
    declared = getattr(loaded, "CONFIG", None)
    if isinstance(declared, ConfigDef):
        return declared
    model = model_of(loaded)
    if model is None:
        raise ConfigError(f"{plugin.class_name} declares neither CONFIG nor a model of its config")
    return definition_of(model)
