"""Judges a connector's config: every key of the framework, of the connector, its converters, transforms and predicates.

References to config providers are resolved before, so that what is judged is what will run; what is shown is the text
that was sent, never what a provider gave.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ottla.connect.catalogue import catalogue as all_plugins
from ottla.connect.definitions import CLASS, ConfigDef, ConfigError, ConfigKey, ConfigValue, Texts
from ottla.connect.framework_keys import Defaults, chain_keys, config_def_of, connector_keys
from ottla.connect.plugins import Catalogue, Plugin, PluginType
from ottla.connect.providers import Providers, masked
from ottla.connect.transforms.patterns import compiled

_OVERRIDES = {"producer.override.": "producer", "consumer.override.": "consumer", "admin.override.": "admin"}
_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.")
_ELSEWHERE = ("transforms.", "predicates.", "topic.creation.", *_CONVERTERS)
"""Judged with what they belong to."""
_PRINCIPAL = ("security.protocol", "sasl.jaas.config", "sasl.mechanism")


class NotJudged(Exception):
    """The config cannot even be judged: 400, with this text."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`configs` pairs each definition with its verdict; a key that nobody defines has none."""

    connector_class: str
    groups: tuple[str, ...]
    configs: tuple[tuple[ConfigKey | None, ConfigValue], ...]
    unheeded: tuple[str, ...] = ()
    """Keys that nobody here looks at: taken, as in Java, whose connectors have more of them."""

    @property
    def error_count(self) -> int:
        return sum(len(value.errors) for _, value in self.configs)

    def complaint(self) -> str:
        """What a POST or PUT with such a config is answered."""
        errors = [error for _, value in self.configs for error in value.errors]
        lines = [f"Connector configuration is invalid and contains the following {len(errors)} error(s):", *errors]
        where = "at the endpoint `/connector-plugins/{connectorType}/config/validate`"
        return "\n".join([*lines, f"You can also find the above list of errors {where}"])


class Judge:
    """For one worker: its plug-ins, what it gives its connectors, its config providers."""

    __slots__ = ("_defaults", "_overridable", "_policy", "_providers", "catalogue")

    def __init__(
        self,
        defaults: Mapping[str, str],
        providers: Providers,
        override_policy: str = "All",
        catalogue: Catalogue | None = None,
        allowlist: Collection[str] = (),
    ) -> None:
        """`allowlist`: with the policy Allowlist."""
        self._defaults = Defaults(dict(defaults))
        self._providers = providers
        self._policy = override_policy
        self._overridable = {"Principal": _PRINCIPAL, "Allowlist": allowlist}.get(override_policy, ())
        self.catalogue = catalogue or all_plugins()

    def plugin(self, config: Texts) -> Plugin:
        """The connector a config names. Raises NotJudged."""
        said = config.get("connector.class")
        if said is None:
            shown = ", ".join(sorted(config))
            raise NotJudged(
                f"Connector config with the keys [{shown}] contains no connector type: connector.class is missing"
            )
        found = self.catalogue.find(said.strip(), PluginType.SOURCE, PluginType.SINK)
        if found is None:
            rows = self.catalogue.of(PluginType.SOURCE, PluginType.SINK)
            why = self.catalogue.why_not(said.strip(), PluginType.SOURCE, PluginType.SINK)
            raise NotJudged(
                f"Failed to find any class that implements Connector and which name matches {said}, available "
                f"connectors are: {', '.join(row.class_name for row in rows)}.{why}"
            )
        return found

    def definitions(self, plugin: Plugin) -> list[ConfigKey]:
        """GET /connector-plugins/{p}/config: the plug-in's own keys first, the framework's after them."""
        own = config_def_of(plugin)
        if not plugin.kind.is_connector:
            return list(own.keys.values())
        framework = connector_keys(self.catalogue, plugin)
        return [*own.keys.values(), *(key for name, key in framework.keys.items() if name not in own.keys)]

    def judge(self, given: Texts) -> Verdict:
        """Raises NotJudged."""
        try:
            resolved = self._providers.resolve(given)
            secrets = self._providers.secrets(given)
            plugin = self.plugin(resolved)
            own = config_def_of(plugin)
            framework = connector_keys(self.catalogue, plugin, self._defaults, resolved)
            enriched = framework.with_keys(chain_keys(self.catalogue, resolved))
        except ConfigError as error:
            raise NotJudged(str(error)) from None
        verdicts = {**enriched.validate(resolved), **own.validate(resolved)}
        keys = {**enriched.keys, **own.keys}
        for name, key in keys.items():
            if key.type is CLASS and verdicts[name].errors:
                verdicts[name] = replace(verdicts[name], value=None)  # a class that could not be loaded is none
        self._judge_together(plugin, resolved, verdicts)
        for name, value in given.items():
            if value is None:
                before = verdicts.get(name, ConfigValue(name))
                verdicts[name] = before.with_error("Null value can not be supplied as the configuration value.")
        shown = [(keys.get(name), _shown(value, given, resolved, secrets)) for name, value in verdicts.items()]
        groups = tuple(dict.fromkeys((*enriched.groups, *own.groups)))
        extra = [*self._converters(resolved), *self._overrides(resolved)]
        told = [(key, _shown(value, given, resolved, secrets)) for key, value in extra]
        unheeded = () if _takes_everything(plugin) else tuple(name for name in given if _is_strange(name, keys))
        return Verdict(given.get("connector.class") or "", groups, (*shown, *told), unheeded)

    def _judge_together(self, plugin: Plugin, config: Texts, verdicts: dict[str, ConfigValue]) -> None:
        """What no key can judge by itself."""

        def blame(name: str, problem: str) -> None:
            verdicts[name] = verdicts.get(name, ConfigValue(name, config.get(name))).with_error(problem)

        for name, problem in _foreign(plugin, config):
            blame(name, f"Invalid value {config.get(name)} for configuration {name}: it {problem}")
        if plugin.kind is PluginType.SINK:
            _judge_topics(config, blame)
        else:
            _judge_transactions(plugin, config, blame)
        aliases = [part.strip() for part in (config.get("predicates") or "").split(",") if part.strip()]
        for alias in [part.strip() for part in (config.get("transforms") or "").split(",") if part.strip()]:
            name = f"transforms.{alias}.predicate"
            wanted = config.get(name)
            if wanted is not None and wanted not in aliases:
                blame(name, f"Invalid value {wanted} for configuration {name}: predicates names no such alias")

    def _converters(self, config: Texts) -> list[tuple[ConfigKey | None, ConfigValue]]:
        """Keys of converters that the connector itself names; with the class, they are judged under its prefix."""
        found: list[tuple[ConfigKey | None, ConfigValue]] = []
        for part, kind in (
            ("key.converter", PluginType.CONVERTER),
            ("value.converter", PluginType.CONVERTER),
            ("header.converter", PluginType.HEADER_CONVERTER),
        ):
            said = config.get(part)
            row = None if said is None else self.catalogue.find(said.strip(), kind)
            if row is None:
                continue
            prefix = f"{part}."
            own = {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}
            own = {"converter.type": part.partition(".")[0], **own}  # whoever makes the converter says what it is for
            definition = config_def_of(row)
            for name, value in definition.validate(own).items():
                key = definition.keys.get(name)
                found.append(
                    (None if key is None else replace(key, name=prefix + name), replace(value, name=prefix + name))
                )
        return found

    def _overrides(self, config: Texts) -> list[tuple[ConfigKey | None, ConfigValue]]:
        found: list[tuple[ConfigKey | None, ConfigValue]] = []
        for name, value in config.items():
            prefix = next((each for each in _OVERRIDES if name.startswith(each)), None)
            if prefix is None:
                continue
            key = name.removeprefix(prefix)
            allowed = self._policy == "All" or key in self._overridable
            problem = (
                f"The '{self._policy}' policy does not allow '{key}' to be overridden in the connector configuration."
            )
            found.append((None, ConfigValue(name, value, errors=() if allowed else (problem,))))
        return found


def _foreign(plugin: Plugin, config: Texts) -> list[tuple[str, str]]:
    """Of others' connectors, where they ask for other data."""
    from ottla.connect.spi.config import model_of, refused_keys  # noqa: PLC0415  msgspec's inspection, for who has a model

    model = model_of(plugin.load())
    return [] if model is None else refused_keys(model, config)


def _takes_everything(plugin: Plugin) -> bool:
    from ottla.connect.spi.config import model_of, takes_everything  # noqa: PLC0415  as above

    model = model_of(plugin.load())
    return model is not None and takes_everything(model)


def _is_strange(name: str, keys: Mapping[str, ConfigKey]) -> bool:
    return name not in keys and not name.startswith((*_OVERRIDES, *_ELSEWHERE))


def _judge_topics(config: Texts, blame) -> None:  # type: ignore[no-untyped-def]
    topics, regex = (config.get("topics") or "").strip(), (config.get("topics.regex") or "").strip()
    letters = (config.get("errors.deadletterqueue.topic.name") or "").strip()
    if topics and regex:
        for name in ("topics", "topics.regex"):
            blame(name, "topics and topics.regex are mutually exclusive options, but both are set.")
    if not topics and not regex:
        for name in ("topics", "topics.regex"):
            blame(name, "Must configure one of topics or topics.regex")
    listed = [part.strip() for part in topics.split(",")]
    if letters and letters in listed:
        said = f"('topics=[{', '.join(listed)}]')"
        blame(
            "topics",
            f"The DLQ topic '{letters}' may not be included in the list of topics {said} consumed by the connector",
        )
    if letters and regex and _matches(regex, letters):
        said = f"('topics.regex={regex}')"
        blame(
            "topics.regex",
            f"The DLQ topic '{letters}' may not be matched by the regex for the topics {said} consumed by the "
            "connector",
        )


def _matches(regex: str, text: str) -> bool:
    try:
        return compiled(regex).fullmatch(text) is not None
    except ValueError:
        return False  # judged by its own key


def _judge_transactions(plugin: Plugin, config: Texts, blame) -> None:  # type: ignore[no-untyped-def]
    if (config.get("exactly.once.support") or "").lower() == "required" and not _says(plugin, "exactly_once"):
        blame(
            "exactly.once.support",
            "The connector does not support exactly-once semantics with the provided configuration.",
        )
    if (config.get("transaction.boundary") or "").lower() == "connector" and not _says(plugin, "defines_transactions"):
        blame(
            "transaction.boundary",
            "The connector does not define transaction boundaries of its own: set poll or interval.",
        )


def _says(plugin: Plugin, flag: str) -> bool:
    """What its class promises."""
    try:
        return bool(getattr(plugin.load(), flag, True))
    except (ImportError, AttributeError):
        return True  # said by whoever asks for its keys


def _shown(value: ConfigValue, given: Texts, resolved: Texts, secrets: tuple[str, ...]) -> ConfigValue:
    """As it may be seen: the reference in place of what a provider gave for it."""
    errors = tuple(masked(error, secrets) for error in value.errors)
    if given.get(value.name) != resolved.get(value.name):
        return replace(value, value=given[value.name], errors=errors)
    return replace(value, errors=errors)


def task_configs(catalogue: Catalogue, config: Texts) -> tuple[Texts, ...]:
    """How a connector is shared out: `tasks.max` parts of a sink, as many of a source as it splits into. Each has the
    whole config, and the class of its task as Java names it, so that a Java worker finds what it would have written."""
    found = catalogue.find((config.get("connector.class") or "").strip(), PluginType.SOURCE, PluginType.SINK)
    most = config.get("tasks.max") or "1"
    wanted = int(most) if most.strip().isdecimal() and len(most) < 6 else 1
    splits = found is None or found.kind is PluginType.SINK or found.splits
    class_name = found.class_name if found is not None else (config.get("connector.class") or "")
    task = {**config, "task.class": f"{class_name.removesuffix('Connector')}Task"}
    return (task,) * (wanted if splits else 1)


__all__ = ["ConfigDef", "Judge", "NotJudged", "Verdict", "task_configs"]
