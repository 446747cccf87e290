"""What a file of Kafka's can ask for and this version does not have: refused where silence would be taken for safety,
warned about where it merely has no effect."""

from collections.abc import Iterator, Mapping

from ottla.model.properties.broker import STATIC
from ottla.model.properties.values import NodeValues

_WITHOUT_EFFECT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("has OpenSSL's own of it", ("ssl.provider", "ssl.secure.random.implementation", "ssl.keymanager.algorithm")),
    ("has OpenSSL's own of it", ("ssl.trustmanager.algorithm", "security.providers")),
    ("has no Kerberos", ("sasl.kerberos.",)),
    (
        "asks for a token of its own when it logs in and four fifths of the last one's time are over",
        ("sasl.login.refresh.",),
    ),
    ("gets tokens of its own by client credentials, or from a file", ("sasl.oauthbearer.assertion.",)),
    (
        "asks an identity provider once for each login, within sasl.login.read.timeout.ms, connecting included",
        ("sasl.login.connect.timeout.ms", "sasl.login.retry.backoff.ms", "sasl.login.retry.backoff.max.ms"),
    ),
    ("goes by ssl.enabled.protocols", ("ssl.protocol",)),
    ("runs no policy classes", ("create.topic.policy.class.name", "alter.config.policy.class.name")),
    ("has no tiered storage", ("remote.log.storage.system.enable",)),
    ("runs no reporters: http.listeners has the metrics", ("metric.reporters", "kafka.metrics.reporters")),
)
"""What is missing, and the settings that ask for it: whole names, or prefixes that end in a dot."""


STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def refusals(given: Mapping[str, str]) -> list[str]:
    """From the bare text of a file, so that they come first: whatever else is wrong with it may follow from them."""
    return [*_zookeeper(given), *_unknown_authorizer(given), *_quota_callback(given)]


def _zookeeper(given: Mapping[str, str]) -> Iterator[str]:
    """Kafka had ZooKeeper until 3.9, and its brokers had no roles."""
    signs = [name for name in given if name.startswith("zookeeper.")] or [name for name in given if name == "broker.id"]
    if signs and "process.roles" not in given:
        yield (
            f"{signs[0]}: this file is for Kafka with ZooKeeper, which Kafka 4 and ottla do without; a node needs "
            "KRaft's settings, for example process.roles=broker,controller node.id=1 "
            "listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093 controller.listener.names=CONTROLLER "
            "controller.quorum.voters=1@localhost:9093"
        )


def _unknown_authorizer(given: Mapping[str, str]) -> Iterator[str]:
    """A setting never names code to be run: Kafka's own authorizer is meant by its name, and no other is there."""
    name = given.get("authorizer.class.name", "").strip()
    if name and name != STANDARD_AUTHORIZER:
        yield f"authorizer.class.name: {name} is not built in; {STANDARD_AUTHORIZER} is, and no other class is run"


def _quota_callback(given: Mapping[str, str]) -> Iterator[str]:
    if given.get("client.quota.callback.class", "").strip():
        yield (
            "client.quota.callback.class: no class of yours is run; quotas are those that `ottla quotas set` or "
            "Kafka's tools have set"
        )


def warnings(settings: NodeValues) -> Iterator[str]:
    for missing, asking in _WITHOUT_EFFECT:
        names = [name for name in settings.given if _asks(settings, name, asking)]
        if names:
            verb = "has" if len(names) == 1 else "have"
            yield f"{', '.join(names)}: {verb} no effect in this version, which {missing}"
    yield from _early_listeners(settings)


def _early_listeners(settings: NodeValues) -> Iterator[str]:
    early = settings["early.start.listeners"]
    controllers = [each.name for each in settings.controller_listeners] if settings.is_controller else []
    if isinstance(early, tuple) and (late := [each for each in early if each.upper() not in controllers]):
        yield (
            f"early.start.listeners: {', '.join(late)} opens when the metadata is there all the same, as it is a "
            "listener of brokers"
        )


def _asks(settings: NodeValues, name: str, asking: tuple[str, ...]) -> bool:
    """A default that a file writes down asks for nothing."""
    is_meant = any(name.startswith(each) if each.endswith(".") else name == each for each in asking)
    return is_meant and name in STATIC and settings[name] != STATIC[name].default
