"""A node's configuration, checked. Owns the values of one node; where they came from stays visible in `given`.

A Kafka server.properties is accepted as it is. A name nobody knows is refused with what was probably meant, because a
misspelt setting that is silently ignored shows up as an outage much later.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ottla.model.properties import grammar
from ottla.model.properties.broker import (
    BROKER,
    OWN,
    PASSED_ON,
    PLUGIN_CLASSES,
    STATIC,
    is_retired,
)
from ottla.model.properties.dynamic import base_name, dynamic_problem
from ottla.model.properties.file import parse_properties
from ottla.model.properties.grammar import HostPort, Listener, Voter
from ottla.model.properties.property import REQUIRED, Property, Value
from ottla.model.properties.rules import problems_of, warnings_of

Resolve: TypeAlias = Callable[[str, str, str], str]
"""Looks up ${provider:path:key}; supplied by the edge, since a core reads neither files nor the environment."""


class SettingsError(ValueError):
    """Everything that is wrong with a configuration, one problem per line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Settings:
    """Read-only. `settings["log.segment.bytes"]` is the value in force: given, dynamic or the default."""

    __slots__ = ("_protocols", "_values", "dynamic_broker", "dynamic_default", "given", "listeners", "warnings")

    given: Mapping[str, str]
    """What the file said, as text, passed-on names included."""
    dynamic_broker: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    listeners: tuple[Listener, ...]
    warnings: tuple[str, ...]

    def __init__(
        self,
        given: Mapping[str, str],
        values: Mapping[str, Value],
        warnings: tuple[str, ...] = (),
        dynamic_broker: Mapping[str, str] | None = None,
        dynamic_default: Mapping[str, str] | None = None,
    ) -> None:
        """Takes parsed values as they are; `from_properties` is the way in for text."""
        self.given = given
        self._values = values
        self.warnings = warnings
        self.dynamic_broker = dynamic_broker or {}
        self.dynamic_default = dynamic_default or {}
        self._protocols = _protocol_map(self)
        self.listeners = self._endpoints("listeners")

    @classmethod
    def from_properties(cls, source: str | Mapping[str, str], resolve: Resolve | None = None) -> "Settings":
        """Raises SettingsError naming each bad setting, its value and what is allowed."""
        try:
            given = parse_properties(source) if isinstance(source, str) else dict(source)
        except ValueError as error:
            raise SettingsError([str(error)]) from None
        given = _resolved(given, resolve)
        _fill_node_id(given)
        values, problems, warnings = _parsed(given)
        if problems:
            raise SettingsError(problems)
        try:
            settings = cls(given, values, tuple(warnings))
        except ValueError as error:
            raise SettingsError([str(error)]) from None
        problems = problems_of(settings)
        if problems:
            raise SettingsError(problems)
        settings.warnings += tuple(warnings_of(settings))
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
            "controller.quorum.voters": "1@127.0.0.1:9093",
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
        given.update({name.replace("_", "."): value for name, value in overrides.items()})
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
        return Settings(self.given, values, self.warnings, broker, cluster_default)

    def __repr__(self) -> str:
        return f"Settings(node {self['node.id']}, {len(self.given)} given)"  # values may be secret

    def __getitem__(self, name: str) -> Value:
        """Raises KeyError for a name no table declares."""
        return self._values[name]

    def get_int(self, name: str) -> int:
        value = self._values[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, not a whole number")
        return value

    def find_int(self, name: str) -> int | None:
        return None if self._values[name] is None else self.get_int(name)

    def get_float(self, name: str) -> float:
        value = self._values[name]
        if not isinstance(value, float):
            raise TypeError(f"{name} is {value!r}, not a number with a fraction")
        return value

    def get_bool(self, name: str) -> bool:
        value = self._values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, not a boolean")
        return value

    def get_str(self, name: str) -> str:
        value = self._values[name]
        if not isinstance(value, str):
            raise TypeError(f"{name} is not a text")
        return value

    def find_str(self, name: str) -> str | None:
        return None if self._values[name] is None else self.get_str(name)

    def get_list(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is {value!r}, not a list")
        return value

    def for_listener(self, listener: str, name: str) -> Value:
        """The value on one listener: `listener.name.<listener>.<name>` wins over the plain name."""
        prefixed = f"listener.name.{listener.lower()}.{name}"
        for layer in (self.dynamic_broker, self.dynamic_default, self.given):
            if prefixed in layer:
                return STATIC[name].parse(layer[prefixed])
        return self._values[name]

    @property
    def node_id(self) -> int:
        return self.get_int("node.id")

    @property
    def is_broker(self) -> bool:
        return "broker" in self.get_list("process.roles")

    @property
    def is_controller(self) -> bool:
        return "controller" in self.get_list("process.roles")

    @property
    def cluster_id(self) -> str | None:
        return self.find_str("cluster.id")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.get_list("log.dir") if self._values["log.dirs"] is None else self.get_list("log.dirs")

    @property
    def metadata_log_dir(self) -> str:
        return self.find_str("metadata.log.dir") or self.log_dirs[0]

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        return tuple(name.upper() for name in self.get_list("controller.listener.names"))

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        return tuple(each for each in self.listeners if each.name in self.controller_listener_names)

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        return tuple(each for each in self.listeners if each.name not in self.controller_listener_names)

    @property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """Where clients and brokers are told to go."""
        everything = self.listeners if self._values["advertised.listeners"] is None else self._advertised()
        return tuple(each for each in everything if each.name not in self.controller_listener_names)

    @property
    def advertised_controller_listeners(self) -> tuple[Listener, ...]:
        """In the order of controller.listener.names; one on every interface takes its address from the voters."""
        given = {each.name: each for each in self._advertised()}
        own = {each.name: each for each in self.controller_listeners}
        found = []
        for position, name in enumerate(self.controller_listener_names):
            if name in given:
                found.append(given[name])
            elif name in own:
                found.append(self._reachable(own[name], is_first=position == 0))
        return tuple(found)

    @property
    def inter_broker_listener(self) -> str:
        named = self.find_str("inter.broker.listener.name")
        return (named or self.get_str("security.inter.broker.protocol")).upper()

    @property
    def voters(self) -> tuple[Voter, ...]:
        return tuple(map(grammar.voter, self.get_list("controller.quorum.voters")))

    @property
    def bootstrap_controllers(self) -> tuple[HostPort, ...]:
        return tuple(map(grammar.host_port, self.get_list("controller.quorum.bootstrap.servers")))

    def protocol_of(self, listener: str) -> str | None:
        """The security protocol a listener name stands for, None when nothing maps it."""
        return self._protocols.get(listener.upper())

    def _reachable(self, listener: Listener, *, is_first: bool) -> Listener:
        if listener.host not in ("", "0.0.0.0"):
            return listener
        for voter in self.voters if is_first else ():
            if voter.id == self.node_id:
                return listener._replace(host=voter.host, port=voter.port)
        return listener._replace(host="")

    def _advertised(self) -> tuple[Listener, ...]:
        return () if self._values["advertised.listeners"] is None else self._endpoints("advertised.listeners")

    def _endpoints(self, name: str) -> tuple[Listener, ...]:
        found = []
        for text in self.get_list(name):
            try:
                listener, host, port = grammar.split_listener(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            protocol = self._protocols.get(listener)
            if protocol is None:
                raise ValueError(
                    f"{name}: no security protocol is known for the listener {listener}; add {listener}:PLAINTEXT (or "
                    f"SSL, SASL_PLAINTEXT, SASL_SSL) to listener.security.protocol.map"
                )
            found.append(Listener(listener, protocol, host, port))
        return tuple(found)

    def _static_values(self) -> Mapping[str, Value]:
        if not self.dynamic_broker and not self.dynamic_default:
            return self._values
        return _parsed(self.given)[0]


def _protocol_map(settings: Settings) -> dict[str, str]:
    name = "listener.security.protocol.map"
    try:
        mapped = {key.upper(): value.upper() for key, value in grammar.pairs(settings.get_str(name)).items()}
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    for key, protocol in mapped.items():
        if protocol not in grammar.PROTOCOLS:
            raise ValueError(f"{name}: {protocol!r} of {key} is none of {', '.join(grammar.PROTOCOLS)}")
    if name in settings.given or name in settings.dynamic_broker:
        return mapped
    # With the default map, controller listeners are PLAINTEXT, unless a secure name shows that more was meant.
    names = [text.partition(":")[0].upper() for text in settings.get_list("listeners")]
    controllers = settings.controller_listener_names
    if not any(each in grammar.PROTOCOLS[1:] for each in (*names, *controllers)):
        mapped.update((each, "PLAINTEXT") for each in controllers)
    return mapped


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
    for name in unknown:
        _judge_unknown(name, values, problems, warnings)
    if "queued.max.request.bytes" not in given:
        values["queued.max.request.bytes"] = _request_memory(values)
    return values, problems, warnings


def _request_memory(values: Mapping[str, Value]) -> int:
    """A quarter of the memory, but room for one frame: Kafka's sample file allows frames of 100 MiB."""
    memory, frame = values["ottla.memory.bytes"], values["socket.request.max.bytes"]
    assert isinstance(memory, int) and isinstance(frame, int)
    return max(memory // 4, frame)


def _judge_unknown(name: str, values: Mapping[str, Value], problems: list[str], warnings: list[str]) -> None:
    if name.startswith(PASSED_ON):
        return
    if is_retired(name):
        warnings.append(f"{name}: a setting of earlier Kafka releases, ignored")
        return
    meant = closest(name, STATIC)
    if meant is None and _has_foreign_plugin(values):
        warnings.append(f"{name}: unknown here, kept for the plugin classes this file names")
        return
    hint = f"did you mean {meant}?" if meant else "see docs/CONFIGURATION.md for the names that are"
    problems.append(f"{name}: not a known setting; {hint}")


def _has_foreign_plugin(values: Mapping[str, Value]) -> bool:
    for name in PLUGIN_CLASSES:
        value = values[name]
        classes = value if isinstance(value, tuple) else (value,)
        if any(isinstance(each, str) and each and not each.startswith("org.apache.kafka.") for each in classes):
            return True
    return False


def closest(name: str, names: Iterable[str]) -> str | None:
    """The known name that a misspelt one was probably meant to be."""
    import difflib  # noqa: PLC0415 only a mistake pays for it

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.8)
    return found[0] if found else None


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
