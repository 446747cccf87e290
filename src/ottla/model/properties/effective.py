"""The values in force and where each came from, in the words of DescribeConfigs (KIP-133, KIP-226, KIP-569).

The rules are Kafka's, quirks included: tools compare sources and synonyms with what a Kafka broker says.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.model.properties.broker import (
    AUTHORIZER,
    BROKER,
    CLIENT_METRICS,
    DYNAMIC_ONLY,
    GROUP,
    OWN,
    TOPIC,
)
from ottla.model.properties.dynamic import base_name, dynamic_property
from ottla.model.properties.property import READ_ONLY, REQUIRED, Property, Type, Value
from ottla.model.properties.settings import Settings

_MINUTE, _HOUR = 60_000, 3_600_000


class Source(IntEnum):
    """Where a value came from, numbered as on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    type: Type
    synonyms: tuple[Synonym, ...]
    doc: str | None

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT_CONFIG


def topic_values(overrides: Mapping[str, str], settings: Settings) -> dict[str, Value]:
    """Typed values of every topic config: the topic's own, else the broker's, else the default."""
    values = {name: _topic_default(entry, settings) for name, entry in TOPIC.items()}
    for name, text in overrides.items():
        if name in TOPIC:
            values[name] = TOPIC[name].parse(text)
    return values


def _topic_default(entry: Property, settings: Settings) -> Value:
    match entry.name:
        case "segment.ms":
            return _first(settings, ("log.roll.ms", 1), ("log.roll.hours", _HOUR))
        case "segment.jitter.ms":
            return _first(settings, ("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR))
        case "flush.ms":
            return _first(settings, ("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1))
        case "retention.ms":
            kept = _first(
                settings, ("log.retention.ms", 1), ("log.retention.minutes", _MINUTE), ("log.retention.hours", _HOUR)
            )
            return max(kept, -1)
    if entry.synonyms:
        return settings[entry.synonyms[0]]
    return None if entry.default is REQUIRED else entry.default


def _first(settings: Settings, *choices: tuple[str, int]) -> int:
    for name, unit in choices:
        value = settings.find_int(name)
        if value is not None:
            return value * unit
    raise AssertionError(f"{choices[-1][0]} has a default")


def group_values(overrides: Mapping[str, str], settings: Settings) -> dict[str, Value]:
    """Typed values of every group config: the group's own, else the broker's, else the default."""
    values: dict[str, Value] = {}
    for name, entry in GROUP.items():
        if name in overrides:
            values[name] = entry.parse(overrides[name])
        elif entry.synonyms:
            values[name] = settings[entry.synonyms[0]]
        else:
            values[name] = None if entry.default is REQUIRED else entry.default
    return values


def effective_topic_config(
    overrides: Mapping[str, str],
    settings: Settings,
    dynamic_broker: Mapping[str, str] | None = None,
    dynamic_default: Mapping[str, str] | None = None,
) -> list[ConfigEntry]:
    """Every topic config in order of name. Dynamic configs may be given here or be in the settings already."""
    settings = _layered(settings, dynamic_broker, dynamic_default)
    values = topic_values(overrides, settings)
    found = []
    for name, entry in sorted(TOPIC.items()):
        if entry.internal and name not in overrides:
            continue
        value = entry.render(values[name])
        synonyms = list(_broker_synonyms(entry.synonyms[0], settings)) if entry.synonyms else []
        if name in overrides:
            synonyms.insert(0, Synonym(name, value, Source.DYNAMIC_TOPIC_CONFIG))
        found.append(_entry(entry, value, synonyms))
    found.extend(_unknown(name, Source.DYNAMIC_TOPIC_CONFIG) for name in sorted(overrides) if name not in TOPIC)
    return found


def effective_group_config(
    overrides: Mapping[str, str],
    settings: Settings,
    dynamic_broker: Mapping[str, str] | None = None,
    dynamic_default: Mapping[str, str] | None = None,
) -> list[ConfigEntry]:
    settings = _layered(settings, dynamic_broker, dynamic_default)
    values = group_values(overrides, settings)
    found = []
    for name, entry in sorted(GROUP.items()):
        value = entry.render(values[name])
        if entry.synonyms:
            synonyms = list(_broker_synonyms(entry.synonyms[0], settings))
        else:
            synonyms = [Synonym(name, entry.default_text, Source.DEFAULT_CONFIG)]
        if name in overrides:
            synonyms.insert(0, Synonym(name, value, Source.GROUP_CONFIG))
        found.append(_entry(entry, value, synonyms))
    return found


def effective_client_metrics_config(configs: Mapping[str, str]) -> list[ConfigEntry]:
    found = []
    for name, entry in sorted(CLIENT_METRICS.items()):
        value = entry.render(entry.parse(configs[name])) if name in configs else entry.default_text
        synonyms = [Synonym(name, value, Source.CLIENT_METRICS_CONFIG)] if name in configs else []
        found.append(_entry(entry, value, synonyms))
    return found


def effective_broker_config(
    settings: Settings,
    dynamic_broker: Mapping[str, str] | None = None,
    dynamic_default: Mapping[str, str] | None = None,
) -> list[ConfigEntry]:
    """One broker: every setting it has, then names it was given that no table knows (shown without their value)."""
    settings = _layered(settings, dynamic_broker, dynamic_default)
    given = {**settings.given, **settings.dynamic_default, **settings.dynamic_broker}
    found = []
    for table in (BROKER, OWN):
        for name, entry in sorted(table.items()):
            if entry.internal and name not in given:
                continue
            value = None if entry.sensitive else entry.render(settings[name])
            synonyms = list(_broker_synonyms(name, settings))
            found.append(_entry(entry, value, synonyms, read_only=entry.update is READ_ONLY))
    found.extend(
        _given_only(name, given[name], settings) for name in sorted(given) if name not in BROKER and name not in OWN
    )
    return found


def effective_cluster_default_config(dynamic_default: Mapping[str, str]) -> list[ConfigEntry]:
    """The broker resource without a name: only what was set for the whole cluster."""
    found = []
    for name, text in sorted(dynamic_default.items()):
        entry = dynamic_property(name)
        sensitive = entry is None or entry.sensitive
        value = None if sensitive else text
        found.append(
            ConfigEntry(
                name,
                value,
                Source.DYNAMIC_DEFAULT_BROKER_CONFIG,
                read_only=not _is_dynamic_name(name),
                sensitive=sensitive,
                type=Type.UNKNOWN if entry is None else entry.type,
                synonyms=(Synonym(name, value, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),),
                doc=None if entry is None else entry.doc,
            )
        )
    return found


def _layered(
    settings: Settings, dynamic_broker: Mapping[str, str] | None, dynamic_default: Mapping[str, str] | None
) -> Settings:
    if dynamic_broker is None and dynamic_default is None:
        return settings
    return settings.with_dynamic(dynamic_default or {}, dynamic_broker or {})


def _broker_synonyms(name: str, settings: Settings) -> Iterator[Synonym]:
    """From the strongest source to the default. Kafka lists all synonyms per source, then drops those before the first
    with the asked name: a static log.retention.hours alone therefore leaves retention.ms without any synonym."""
    names = _names_for(name)
    seen = False
    for source, layer in (
        (Source.DYNAMIC_BROKER_CONFIG, settings.dynamic_broker),
        (Source.DYNAMIC_DEFAULT_BROKER_CONFIG, settings.dynamic_default),
        (Source.STATIC_BROKER_CONFIG, settings.given),
        (Source.DEFAULT_CONFIG, None),
    ):
        for each in names:
            text = _default_text(each) if layer is None else layer.get(each)
            if text is None:
                continue
            seen = seen or each == name
            if seen:
                entry = dynamic_property(each)
                yield Synonym(each, None if entry is None or entry.sensitive else text, source)


def _names_for(name: str) -> tuple[str, ...]:
    entry = BROKER.get(name)
    if entry is not None and entry.synonyms:
        return entry.synonyms
    if name.startswith("listener.name."):
        return (name, base_name(name))
    return (name,)


def _default_text(name: str) -> str | None:
    entry = BROKER.get(name) or OWN.get(name)
    return None if entry is None else entry.default_text


def _is_dynamic_name(name: str) -> bool:
    entry = BROKER.get(name) or DYNAMIC_ONLY.get(name) or OWN.get(name)
    return entry is not None and entry.update is not READ_ONLY


def _entry(entry: Property, value: str | None, synonyms: list[Synonym], *, read_only: bool = False) -> ConfigEntry:
    source = synonyms[0].source if synonyms else Source.DEFAULT_CONFIG
    return ConfigEntry(entry.name, value, source, read_only, entry.sensitive, entry.type, tuple(synonyms), entry.doc)


def _unknown(name: str, source: Source) -> ConfigEntry:
    synonym = Synonym(name, None, source)
    return ConfigEntry(name, None, source, False, True, Type.UNKNOWN, (synonym,), None)


def _given_only(name: str, text: str, settings: Settings) -> ConfigEntry:
    """Listener settings, throttles and names for plugins. What no table knows may be a secret and is not shown."""
    entry = None if name in AUTHORIZER else dynamic_property(name)
    synonyms = tuple(_broker_synonyms(name, settings))
    sensitive = entry is None or entry.sensitive
    return ConfigEntry(
        name,
        None if sensitive else text,
        synonyms[0].source if synonyms else Source.DEFAULT_CONFIG,
        read_only=not _is_dynamic_name(name),
        sensitive=sensitive,
        type=Type.UNKNOWN if entry is None else entry.type,
        synonyms=synonyms,
        doc=None if entry is None else entry.doc,
    )
