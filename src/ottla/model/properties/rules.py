"""What settings owe each other: the checks Kafka makes over a whole configuration, one function per rule.

A rule returns the problem or None. The order is that of reading a file: who am I, where do I listen, what may I hold.
"""

from collections.abc import Callable, Iterator

from ottla.model.properties import grammar
from ottla.model.properties.grammar import Listener
from ottla.model.properties.values import NodeValues


def problems_of(settings: NodeValues) -> list[str]:
    """Every broken rule. An advertised listener that cannot be read hides the rules that would look at it."""
    try:
        settings.advertised_listeners  # noqa: B018 the rules below need it parsed
    except ValueError as error:
        return [str(error)]
    return [problem for rule in RULES if (problem := rule(settings)) is not None]


def _node_id_equals_broker_id(settings: NodeValues) -> str | None:
    if settings["broker.id"] != settings["node.id"]:
        return f"broker.id: {settings['broker.id']} differs from node.id {settings['node.id']}; leave broker.id out"
    return None


def _a_quorum_is_named(settings: NodeValues) -> str | None:
    if settings.voters or settings.bootstrap_controllers:
        return None
    return (
        "controller.quorum.voters: neither it nor controller.quorum.bootstrap.servers says where the controllers are; "
        "a single node names itself, for example controller.quorum.voters=1@localhost:9093"
    )


def _voters_hold_this_node_if_it_is_a_controller(settings: NodeValues) -> str | None:
    ids = [voter.id for voter in settings.voters]
    if not ids or settings.is_controller == (settings.node_id in ids):
        return None
    if settings.is_controller:
        return f"controller.quorum.voters: node.id {settings.node_id} has the controller role and is missing in {ids}"
    return (
        f"controller.quorum.voters: node.id {settings.node_id} is only a broker and must not be among the voters {ids}"
    )


def _voters_are_reachable(settings: NodeValues) -> str | None:
    for voter in settings.voters:
        if voter.host == "0.0.0.0":
            return f"controller.quorum.voters: 0.0.0.0 of voter {voter.id} is no address that others can reach"
    return None


def _listener_names_are_distinct(settings: NodeValues) -> str | None:
    for setting, listeners in (
        ("listeners", settings.listeners),
        ("advertised.listeners", settings.advertised_listeners),
    ):
        names = [each.name for each in listeners]
        if len(dict.fromkeys(names)) != len(names):
            return f"{setting}: two listeners have the same name in {_joined(listeners)}"
    return None


def _listener_ports_are_distinct(settings: NodeValues) -> str | None:
    by_port: dict[int, list[str]] = {}
    for each in settings.listeners:
        if each.port != 0:
            by_port.setdefault(each.port, []).append(each.host)
    for port, hosts in by_port.items():
        # Two listeners may share a port when one speaks IPv4 and the other IPv6 (KIP-797).
        if len(hosts) > 1 and sorted(map(_ip_family, hosts)) != [4, 6]:
            return f"listeners: port {port} is used twice in {_joined(settings.listeners)}"
    return None


def _ip_family(host: str) -> int:
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isdecimal() and int(part) < 256 for part in parts) else 0


def _controllers_listen(settings: NodeValues) -> str | None:
    names = [each.name for each in settings.listeners]
    missing = [name for name in settings.controller_listener_names if name not in names]
    if not settings.is_controller or not missing:
        return None
    return (
        f"controller.listener.names: {', '.join(missing)} is not among the listeners ({', '.join(names)}); a node with "
        f"the controller role needs it there, for example {missing[0]}://localhost:9093"
    )


def _brokers_do_not_listen_for_controllers(settings: NodeValues) -> str | None:
    if settings.is_controller or not settings.controller_listeners:
        return None
    return f"listeners: {_joined(settings.controller_listeners)} belongs to controllers, and this node is only a broker"


def _controller_listeners_have_a_protocol(settings: NodeValues) -> str | None:
    for name in settings.controller_listener_names:
        if settings.protocol_of(name) is None:
            return f"controller.listener.names: {name} has no entry in listener.security.protocol.map"
    return None


def _controllers_listen_for_controllers_only(settings: NodeValues) -> str | None:
    if settings.is_broker or not settings.broker_listeners:
        return None
    return (
        f"listeners: {_joined(settings.broker_listeners)} is not in controller.listener.names, and this node is only a "
        f"controller"
    )


def _auto_join_is_for_controllers(settings: NodeValues) -> str | None:
    if settings.is_controller or not settings.get_bool("controller.quorum.auto.join.enable"):
        return None
    return "controller.quorum.auto.join.enable: only a node with the controller role can join the quorum"


def _inter_broker_listener_is_named_once(settings: NodeValues) -> str | None:
    if settings["inter.broker.listener.name"] is None:
        return None
    if "security.inter.broker.protocol" in settings.given:
        return "inter.broker.listener.name: give it or security.inter.broker.protocol, not both"
    if settings.protocol_of(settings.inter_broker_listener) is None:
        return f"inter.broker.listener.name: {settings.inter_broker_listener} is not in listener.security.protocol.map"
    if settings.is_broker or settings.inter_broker_listener not in settings.controller_listener_names:
        return None
    return f"inter.broker.listener.name: {settings.inter_broker_listener} is a controller listener"


def _brokers_are_advertised(settings: NodeValues) -> str | None:
    if not settings.is_broker:
        return None
    advertised = [each.name for each in settings.advertised_listeners]
    if not advertised:
        return "listeners: none is left for clients; do all of them stand in controller.listener.names?"
    names = [each.name for each in settings.listeners]
    foreign = [name for name in advertised if name not in names]
    if foreign:
        return f"advertised.listeners: {', '.join(foreign)} is not among the listeners ({', '.join(names)})"
    if settings.inter_broker_listener not in advertised:
        return (
            f"inter.broker.listener.name: {settings.inter_broker_listener} is not advertised; choose one of "
            f"{', '.join(advertised)}"
        )
    return None


def _advertised_addresses_are_reachable(settings: NodeValues) -> str | None:
    for each in (*settings.advertised_listeners, *settings.advertised_controller_listeners):
        if each.host == "0.0.0.0":
            return (
                f"advertised.listeners: {each} cannot be reached by clients; advertise a host name or address of this "
                f"machine"
            )
    return None


def _early_listeners_exist(settings: NodeValues) -> str | None:
    early = settings["early.start.listeners"]
    if not isinstance(early, tuple):
        return None
    names = [each.name for each in settings.listeners]
    missing = [name for name in early if name.upper() not in names]
    return f"early.start.listeners: {', '.join(missing)} is not among the listeners" if missing else None


_BUILT_IN = {
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "ssl.engine.factory.class": "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
}
"""Settings that name a class in Kafka. A value never names code here: Kafka's own is built in, another is refused."""


def _classes_are_kafkas_own(settings: NodeValues) -> str | None:
    for name, built_in in _BUILT_IN.items():
        values = [settings[name], *(settings.for_listener(each.name, name) for each in settings.listeners)]
        for value in values:
            if value not in (None, "", built_in):
                return f"{name}: {value} is not run here; leave it out, which means {built_in}"
    return None


def _encrypted_listeners_have_a_key(settings: NodeValues) -> str | None:
    for each in settings.listeners:
        if "SSL" in each.protocol and not any(
            settings.for_listener(each.name, name) for name in ("ssl.keystore.location", "ssl.keystore.key")
        ):
            return (
                f"ssl.keystore.location: the listener {each.name} is {each.protocol} and has no key; name a file with "
                "key and certificate, for example ssl.keystore.type=PEM ssl.keystore.location=node.pem (ottla certs "
                "dev makes one)"
            )
    return None


def _logins_work(settings: NodeValues) -> str | None:
    if not _speaks_of_logins(settings):
        return None
    from ottla.model.properties import sasl  # noqa: PLC0415  a node that nobody logs in to does without

    return sasl.problem(settings)


def _speaks_of_logins(settings: NodeValues) -> bool:
    names = (*(each.name for each in settings.listeners), *settings.controller_listener_names)
    return any((settings.protocol_of(name) or "").startswith("SASL_") for name in names) or any(
        "sasl." in name for name in settings.given
    )


def _inter_broker_sasl_is_enabled(settings: NodeValues) -> str | None:
    listener = settings.inter_broker_listener
    if not (settings.protocol_of(listener) or "").startswith("SASL"):
        return None
    enabled = settings.for_listener(listener, "sasl.enabled.mechanisms")
    mechanism = settings.get_str("sasl.mechanism.inter.broker.protocol")
    if isinstance(enabled, tuple) and mechanism in enabled:
        return None
    return f"sasl.mechanism.inter.broker.protocol: {mechanism} is not in sasl.enabled.mechanisms"


def _super_users_are_principals(settings: NodeValues) -> str | None:
    wrong = [each for each in map(str.strip, settings.get_str("super.users").split(";")) if each and ":" not in each]
    if wrong:
        return f"super.users: {wrong[0]} is no principal: it takes a type and a name, for example User:{wrong[0]}"
    return None


def _cordoned_directories_exist(settings: NodeValues) -> str | None:
    cordoned = settings.get_list("cordoned.log.dirs")
    if "*" in cordoned:
        return "cordoned.log.dirs: * means all directories and stands alone" if len(cordoned) > 1 else None
    missing = [directory for directory in cordoned if directory not in settings.log_dirs]
    return f"cordoned.log.dirs: {', '.join(missing)} is not among log.dirs" if settings.is_broker and missing else None


def _retention_is_positive(settings: NodeValues) -> str | None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        value = settings.find_int(name)
        if value is not None:
            return f"{name}: 0 is not allowed: 1 or more, or -1 for ever" if value == 0 else None
    return None


def _roll_time_is_positive(settings: NodeValues) -> str | None:
    for name, least in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        value = settings.find_int(name)
        if value is not None and value < least:
            return f"{name}: {value} is not allowed: {least} or more"
    return None


def _cleaners_have_memory(settings: NodeValues) -> str | None:
    size, threads = settings.get_int("log.cleaner.dedupe.buffer.size"), settings.get_int("log.cleaner.threads")
    if threads and size // threads <= 1 << 20:
        return (
            f"log.cleaner.dedupe.buffer.size: {size} is not allowed: more than 1048576 for each of {threads} cleaners"
        )
    return None


def _followers_answer_in_time(settings: NodeValues) -> str | None:
    wait = settings.get_int("replica.fetch.wait.max.ms")
    for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        if wait > settings.get_int(name):
            return f"{name}: {settings[name]} is not allowed: at least replica.fetch.wait.max.ms, which is {wait}"
    return None


def _one_request_fits_into_memory(settings: NodeValues) -> str | None:
    queued, frame = settings.get_int("queued.max.request.bytes"), settings.get_int("socket.request.max.bytes")
    if queued <= 0 or queued >= frame:
        return None
    return f"queued.max.request.bytes: {queued} is not allowed: at least socket.request.max.bytes, which is {frame}"


def _connection_overrides_are_readable(settings: NodeValues) -> str | None:
    name = "max.connections.per.ip.overrides"
    try:
        overrides = grammar.pairs(settings.get_str(name))
    except ValueError as error:
        return f"{name}: {error}"
    for host, count in overrides.items():
        if not count.isdecimal() or not all(char.isalnum() or char in "-%._:" for char in host):
            return f"{name}: {host}:{count} is not allowed: host:count pairs are"
    if settings.get_int("max.connections.per.ip") == 0 and not overrides:
        return f"max.connections.per.ip: 0 is allowed only when {name} lets some hosts in"
    return None


def _failed_logins_are_answered(settings: NodeValues) -> str | None:
    delay, idle = (
        settings.get_int("connection.failed.authentication.delay.ms"),
        settings.get_int("connections.max.idle.ms"),
    )
    if idle < 0 or delay < idle:
        return None
    return (
        f"connection.failed.authentication.delay.ms: {delay} is not allowed: less than connections.max.idle.ms ({idle})"
    )


def _classic_groups_are_served(settings: NodeValues) -> str | None:
    if "classic" in settings.get_list("group.coordinator.rebalance.protocols"):
        return None
    return "group.coordinator.rebalance.protocols: classic cannot be left out"


def _assignors_exist(settings: NodeValues) -> str | None:
    for name, known in (("group.consumer.assignors", ("uniform", "range")), ("group.share.assignors", ("simple",))):
        for assignor in settings.get_list(name):
            if grammar.assignor_name(assignor) not in known:
                return f"{name}: {assignor} is no assignor of this version, which has {' and '.join(known)}"
    return None


_GROUP_BOUNDS = (
    ("consumer", ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")),
    (
        "share",
        (
            "session.timeout.ms",
            "heartbeat.interval.ms",
            "assignment.interval.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        ),
    ),
    ("streams", ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")),
)


def group_bounds() -> Iterator[tuple[str, str, str, str]]:
    """Group config, broker default, lower and upper bound: `consumer.session.timeout.ms` and the three around it."""
    for kind, names in _GROUP_BOUNDS:
        for name in names:
            yield f"{kind}.{name}", f"group.{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"


def _group_defaults_lie_in_their_bounds(settings: NodeValues) -> str | None:
    for _, default, low, high in group_bounds():
        value = settings.get_int(default)
        if not settings.get_int(low) <= value <= settings.get_int(high):
            return f"{default}: {value} is not allowed: from {low} ({settings[low]}) to {high} ({settings[high]})"
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
        if settings.get_int(session) <= settings.get_int(heartbeat):
            return (
                f"{session}: {settings[session]} is not allowed: more than {heartbeat}, which is {settings[heartbeat]}"
            )
    if len(settings.get_list("group.share.assignors")) != 1:
        return "group.share.assignors: exactly one assignor is allowed"
    sessions, size = "group.share.max.share.sessions", "group.share.max.size"
    if settings.get_int(sessions) < settings.get_int(size):
        return f"{sessions}: {settings[sessions]} is not allowed: at least {size}, which is {settings[size]}"
    standby, most = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    if settings.get_int(standby) > settings.get_int(most):
        return f"{standby}: {settings[standby]} is not allowed: up to {most}, which is {settings[most]}"
    return None


def _joined(listeners: tuple[Listener, ...]) -> str:
    return ",".join(map(str, listeners))


RULES: tuple[Callable[[NodeValues], str | None], ...] = (
    _node_id_equals_broker_id,
    _a_quorum_is_named,
    _voters_hold_this_node_if_it_is_a_controller,
    _voters_are_reachable,
    _listener_names_are_distinct,
    _listener_ports_are_distinct,
    _controllers_listen,
    _brokers_do_not_listen_for_controllers,
    _controller_listeners_have_a_protocol,
    _controllers_listen_for_controllers_only,
    _auto_join_is_for_controllers,
    _inter_broker_listener_is_named_once,
    _brokers_are_advertised,
    _advertised_addresses_are_reachable,
    _early_listeners_exist,
    _classes_are_kafkas_own,
    _encrypted_listeners_have_a_key,
    _inter_broker_sasl_is_enabled,
    _super_users_are_principals,
    _logins_work,
    _cordoned_directories_exist,
    _retention_is_positive,
    _roll_time_is_positive,
    _cleaners_have_memory,
    _followers_answer_in_time,
    _one_request_fits_into_memory,
    _connection_overrides_are_readable,
    _failed_logins_are_answered,
    _classic_groups_are_served,
    _assignors_exist,
    _group_defaults_lie_in_their_bounds,
)


def warnings_of(settings: NodeValues) -> Iterator[str]:
    if not settings.get_str("authorizer.class.name"):
        names = [each for each in ("super.users", "allow.everyone.if.no.acl.found") if settings[each]]
        if names:
            yield f"{', '.join(names)}: no effect without authorizer.class.name: everybody may do everything"
    if _speaks_of_logins(settings):
        from ottla.model.properties import sasl  # noqa: PLC0415  a node that nobody logs in to does without

        yield from sasl.warnings(settings)
    heartbeat = settings.get_int("broker.heartbeat.interval.ms")
    session = settings.get_int("broker.session.timeout.ms")
    if heartbeat * 2 > session:
        yield f"broker.heartbeat.interval.ms: {heartbeat} is more than half of broker.session.timeout.ms ({session})"
    if settings["ssl.client.auth"] != "none":
        bare = [
            each.name
            for each in settings.listeners
            if each.protocol == "SASL_SSL" and not settings.is_set_for(each.name, "ssl.client.auth")
        ]
        if bare:
            yield (
                f"ssl.client.auth: has no effect on {', '.join(bare)}, whose clients log in by SASL; "
                f"listener.name.{bare[0].lower()}.ssl.client.auth would have one"
            )
    batch, frame = settings.get_int("message.max.bytes"), settings.get_int("socket.request.max.bytes")
    if batch > frame:
        yield f"message.max.bytes: batches of {batch} bytes do not fit into socket.request.max.bytes ({frame})"
