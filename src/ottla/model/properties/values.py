"""The values in force on one node, and what they imply: roles, listeners, addresses, directories, voters.

Holds what it is given; reading and judging configurations is for `settings` and `rules`.
"""

from collections.abc import Mapping

from ottla.model.properties import grammar
from ottla.model.properties.broker import STATIC
from ottla.model.properties.grammar import HostPort, Listener, Voter
from ottla.model.properties.property import Value
from ottla.model.properties.typed import TypedValues

_OVERRIDES = "max.connections.per.ip.overrides"


class NodeValues(TypedValues[Value]):
    """Read-only. `settings["log.segment.bytes"]` is the value in force: given, dynamic or the default."""

    __slots__ = (
        "_protocols",
        "dynamic_broker",
        "dynamic_default",
        "given",
        "host_name",
        "listeners",
        "warnings",
    )

    given: Mapping[str, str]
    """What the file said, as text, passed-on names included."""
    dynamic_broker: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    host_name: str
    """Advertised for listeners on every interface; empty until the node that starts has asked its machine."""
    listeners: tuple[Listener, ...]
    warnings: tuple[str, ...]

    def __init__(
        self,
        given: Mapping[str, str],
        values: Mapping[str, Value],
        warnings: tuple[str, ...] = (),
        dynamic_broker: Mapping[str, str] | None = None,
        dynamic_default: Mapping[str, str] | None = None,
        host_name: str = "",
    ) -> None:
        """Takes parsed values as they are. Raises ValueError for listeners that cannot be read."""
        super().__init__(values)
        self.given = given
        self.warnings = warnings
        self.dynamic_broker = dynamic_broker or {}
        self.dynamic_default = dynamic_default or {}
        self.host_name = host_name
        self._protocols = _protocol_map(self)
        self.listeners = self._endpoints("listeners")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(node {self['node.id']}, {len(self.given)} given)"  # values may be secret

    def for_listener(self, listener: str, name: str) -> Value:
        """The value on one listener: `listener.name.<listener>.<name>` wins over the plain name."""
        prefixed = f"listener.name.{listener.lower()}.{name}"
        for layer in (self.dynamic_broker, self.dynamic_default, self.given):
            if prefixed in layer:
                return STATIC[name].parse(layer[prefixed])
        return self._values[name]

    def is_set_for(self, listener: str, name: str) -> bool:
        """Whether the listener has a value of its own."""
        prefixed = f"listener.name.{listener.lower()}.{name}"
        return any(prefixed in layer for layer in (self.dynamic_broker, self.dynamic_default, self.given))

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
    def connection_overrides(self) -> dict[str, int]:
        """Host to the number of connections it may have."""
        return {host: int(most) for host, most in grammar.pairs(self.get_str(_OVERRIDES)).items()}

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
        return tuple(
            each._replace(host=each.host or self.host_name)
            for each in everything
            if each.name not in self.controller_listener_names
        )

    @property
    def advertised_controller_listeners(self) -> tuple[Listener, ...]:
        """In the order of controller.listener.names; one on every interface takes its address from the voters."""
        given = {each.name: each for each in self._advertised()}
        own = {each.name: each for each in self.controller_listeners}
        found = []
        for position, name in enumerate(self.controller_listener_names):
            if name in given:
                found.append(given[name]._replace(host=given[name].host or self.host_name))
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
        return listener._replace(host=self.host_name)

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


def _protocol_map(settings: NodeValues) -> dict[str, str]:
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
