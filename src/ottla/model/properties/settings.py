"""A node's configuration, checked. Owns the values of one node; where they came from stays visible in `given`.

A Kafka server.properties is accepted as it is: a name nobody knows is told as not used. Unless it is nearly one that
is known: then it is refused with what was probably meant, because a misspelt setting that is silently ignored shows up
as an outage much later.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ottla.model.properties import unbuilt
from ottla.model.properties.broker import (
    BROKER,
    OWN,
    PASSED_ON,
    STATIC,
    TOPIC,
    is_retired,
)
from ottla.model.properties.dynamic import base_name, dynamic_problem
from ottla.model.properties.file import parse_properties
from ottla.model.properties.property import REQUIRED, Property, Value, closest
from ottla.model.properties.rules import problems_of, warnings_of
from ottla.model.properties.values import NodeValues

Resolve: TypeAlias = Callable[[str, str, str], str]
"""Looks up ${provider:path:key}; supplied by the edge, since a core reads neither files nor the environment."""


class SettingsError(ValueError):
    """Everything that is wrong with a configuration, one problem per line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Settings(NodeValues):
    """A checked configuration: from a Kafka server.properties, or from nothing; with dynamic configs laid over."""

    __slots__ = ()

    @classmethod
    def from_properties(cls, source: str | Mapping[str, str], resolve: Resolve | None = None) -> "Settings":
        """Raises SettingsError naming each bad setting, its value and what is allowed."""
        try:
            given = parse_properties(source) if isinstance(source, str) else dict(source)
        except ValueError as error:
            raise SettingsError([str(error)]) from None
        given = _resolved(given, resolve)
        refused = unbuilt.refusals(given)
        _fill_node_id(given)
        values, problems, warnings = _parsed(given)
        if problems:
            raise SettingsError([*refused, *problems])
        try:
            settings = cls(given, values, tuple(warnings))
        except ValueError as error:
            raise SettingsError([*refused, str(error)]) from None
        problems = [*refused, *problems_of(settings)]
        if problems:
            raise SettingsError(problems)
        settings.warnings += (*unbuilt.warnings(settings), *warnings_of(settings))
        return settings

    @classmethod
    def defaults(cls, data_dir: str, **overrides: str) -> "Settings":
        """One node that does everything on loopback: what `ottla start` runs without a file.

        Overrides are written with underscores: `defaults("data", num_partitions="6")`.
        """
        given = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": data_dir,
            "auto.create.topics.enable": "true",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # One developer's consumer should not wait three seconds for company that never comes.
            "group.initial.rebalance.delay.ms": "0",
        }
        # A name with dots is one already: listener.name.sasl_ssl.… keeps its underscore.
        given.update({name if "." in name else name.replace("_", "."): value for name, value in overrides.items()})
        _, _, own_address = given["listeners"].partition("CONTROLLER://")
        given.setdefault("controller.quorum.voters", f"{given['node.id']}@{own_address.partition(',')[0]}")
        return cls.from_properties(given)

    def with_dynamic(
        self, cluster_default: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None
    ) -> "Settings":
        """These settings with KIP-226's dynamic ones laid over: the cluster's default first, then this broker's.

        What cannot be applied is left out, as Kafka does: a bad record in the metadata log must not stop a broker.
        """
        usable_default = _usable(cluster_default or {}, per_broker=False)
        usable_broker = _usable(broker or {}, per_broker=True)
        try:
            return self._overlaid(usable_default, usable_broker)
        except ValueError:
            # Each value can be read alone, so only listeners that do not fit their protocol map can fail together.
            kept = {name: text for name, text in usable_broker.items() if name not in _LISTENER_NAMES}
            return self._overlaid(usable_default, kept)

    def _overlaid(self, cluster_default: Mapping[str, str], broker: Mapping[str, str]) -> "Settings":
        values = {**self._static_values()}
        for name, text in {**cluster_default, **broker}.items():
            entry = BROKER.get(name) or OWN.get(name)
            if entry is None:
                continue
            for synonym in entry.synonyms:
                # A dynamic log.retention.ms also silences log.retention.hours from the file.
                values[synonym] = _default_value(BROKER[synonym])
            values[name] = entry.parse(text)
        _clamp_assignment_intervals(values)
        return Settings(self.given, values, self.warnings, broker, cluster_default, self.host_name)

    def with_host_name(self, look_up: Callable[[], str]) -> "Settings":
        """These settings with the machine's name for what is advertised without a host, as Kafka does it; nobody is
        asked for the name if everything has one."""
        if all(each.host for each in (*self.advertised_listeners, *self.advertised_controller_listeners)):
            return self
        return Settings(
            self.given, self._values, self.warnings, self.dynamic_broker, self.dynamic_default, host_name=look_up()
        )

    def _static_values(self) -> Mapping[str, Value]:
        if not self.dynamic_broker and not self.dynamic_default:
            return self._values
        return _parsed(self.given)[0]


def _fill_node_id(given: dict[str, str]) -> None:
    """node.id and its old name stand in for each other."""
    if "node.id" in given:
        given.setdefault("broker.id", given["node.id"])
    elif "broker.id" in given:
        given["node.id"] = given["broker.id"]


def _resolved(given: dict[str, str], resolve: Resolve | None) -> dict[str, str]:
    providers = [name.strip() for name in given.get("config.providers", "").split(",") if name.strip()]
    if not providers:
        return given

    def replace(match: re.Match[str]) -> str:
        provider, path, key = match[1], match[2] or "", match[3]
        if provider not in providers:
            return match[0]
        if resolve is None:
            raise SettingsError([f"config.providers: {match[0]} cannot be looked up here; write the value itself"])
        return resolve(provider, path, key)

    pattern = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*?)\}")
    return {
        name: text if name.startswith("config.providers") else pattern.sub(replace, text)
        for name, text in given.items()
    }


def _default_value(entry: Property) -> Value:
    return None if entry.default is REQUIRED else entry.default


def _parsed(given: Mapping[str, str]) -> tuple[dict[str, Value], list[str], list[str]]:
    """Values by name, problems, warnings."""
    values = {name: _default_value(entry) for name, entry in STATIC.items()}
    problems: list[str] = []
    warnings: list[str] = []
    unknown: list[str] = []
    for name, text in given.items():
        # A listener's own setting is checked as the plain one is.
        entry = STATIC.get(base_name(name) if name.startswith("listener.name.") else name)
        if entry is None:
            unknown.append(name)
            continue
        try:
            value = entry.parse(text)
        except ValueError as error:
            problems.append(str(error) if entry.name == name else f"{name}: {error}")
            continue
        if entry.name == name:
            values[name] = value
    problems += [
        f"{entry.name}: a value is needed ({entry.type.name.lower()}): {entry.doc}"
        for entry in STATIC.values()
        if entry.default is REQUIRED and entry.name not in given
    ]
    _judge_unknown(unknown, problems, warnings)
    if "queued.max.request.bytes" not in given:
        values["queued.max.request.bytes"] = _request_memory(values)
    return values, problems, warnings


def _request_memory(values: Mapping[str, Value]) -> int:
    """A quarter of the memory, but room for one frame: Kafka's sample file allows frames of 100 MiB."""
    memory, frame = values["ottla.memory.bytes"], values["socket.request.max.bytes"]
    assert isinstance(memory, int) and isinstance(frame, int)
    return max(memory // 4, frame)


def _judge_unknown(names: Iterable[str], problems: list[str], warnings: list[str]) -> None:
    """Kafka starts with any name in its file and logs those it did not use. So do we, but for what looks misspelt."""
    unused: list[str] = []
    for name in names:
        if name.startswith(PASSED_ON):
            continue
        if is_retired(name):
            warnings.append(f"{name}: a setting of earlier Kafka releases, ignored")
        elif (for_brokers := f"log.{name}") in STATIC and name in TOPIC:
            warnings.append(f"{name}: a setting of topics, not used here; the default of all topics is {for_brokers}")
        elif name not in _OF_OTHERS and (meant := closest(_usual(name), STATIC, _NEAR_MISS)) is not None:
            problems.append(f"{name}: not a known setting; did you mean {meant}?")
        else:
            unused.append(name)
    if unused:
        warnings.append(f"not used, since no setting here has such a name: {', '.join(unused)}")


def _usual(name: str) -> str:
    """As settings are written: nobody means another thing with log_retention_hours."""
    return name.lower().replace("_", ".").replace("-", ".")


_NEAR_MISS = 0.9
"""Of two names alike in all but a letter or two. Less would take settings of Kafka's clients for misspelt ones of
brokers, and a file with those in it starts Kafka."""
_OF_OTHERS = frozenset((*TOPIC, "max.in.flight.requests.per.connection", "transaction.timeout.ms"))
"""Names that topics and clients have and brokers have not, though one much like it."""


_LISTENER_NAMES = ("listeners", "listener.security.protocol.map")


def _clamp_assignment_intervals(values: dict[str, Value]) -> None:
    """The group defaults that can change at run time are brought into their bounds, which only the file can change."""
    for kind in ("consumer", "share", "streams"):
        low, high = (
            values[f"group.{kind}.min.assignment.interval.ms"],
            values[f"group.{kind}.max.assignment.interval.ms"],
        )
        interval = values[f"group.{kind}.assignment.interval.ms"]
        assert isinstance(low, int) and isinstance(high, int) and isinstance(interval, int)
        values[f"group.{kind}.assignment.interval.ms"] = min(max(interval, low), high)


def _usable(dynamic: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    return {name: text for name, text in dynamic.items() if dynamic_problem(name, text, per_broker=per_broker) is None}
