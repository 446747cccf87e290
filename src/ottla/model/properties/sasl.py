"""What a configuration says about logging in: which mechanisms each listener takes, and who this node is to others.

`listener.name.<listener>.<mechanism>.<setting>` beats the listener's own setting, and that the plain one, but for JAAS
texts, which on a server belong to a listener and a mechanism (KIP-103, KIP-226).
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ottla.model.properties.broker import STATIC
from ottla.model.properties.jaas import Jaas, parse_jaas
from ottla.model.properties.property import Value
from ottla.model.properties.values import NodeValues

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_BY_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_JAAS: Final = "sasl.jaas.config"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_TOKEN_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
_TOKEN_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer."
_KNOWN_CLASSES: Final = {
    "sasl.server.callback.handler.class": (f"{_OAUTH}OAuthBearerValidatorCallbackHandler",
                                           f"{_OAUTH}secured.OAuthBearerValidatorCallbackHandler"),
    "sasl.login.callback.handler.class": (),
    "sasl.client.callback.handler.class": (),
    "sasl.login.class": (),
    "sasl.oauthbearer.jwt.validator.class": (f"{_OAUTH}DefaultJwtValidator", f"{_OAUTH}BrokerJwtValidator"),
    "sasl.oauthbearer.jwt.retriever.class": (f"{_OAUTH}DefaultJwtRetriever",),
}  # fmt: skip
"""Class settings with the classes that mean what is built in; any other would be code, and a setting names none."""


class OwnLogin(NamedTuple):
    """What this node says to others."""

    mechanism: str
    name: str
    password: str

    def __repr__(self) -> str:
        return f"OwnLogin({self.mechanism!r}, {self.name!r})"  # secrets never reach logs


def uses_sasl(settings: NodeValues, listener: str) -> bool:
    return (settings.protocol_of(listener) or "").startswith("SASL_")


def mechanisms_of(settings: NodeValues, listener: str) -> tuple[str, ...]:
    found = settings.for_listener(listener, "sasl.enabled.mechanisms")
    assert isinstance(found, tuple)
    return found


def for_mechanism(settings: NodeValues, listener: str, mechanism: str, name: str) -> Value:
    prefixed = _prefixed(listener, mechanism, name)
    for layer in (settings.dynamic_broker, settings.dynamic_default, settings.given):
        if prefixed in layer:
            return STATIC[name].parse(layer[prefixed])
    return settings.for_listener(listener, name)


def jaas_of(settings: NodeValues, listener: str, mechanism: str) -> Jaas | None:
    """None: there is no such text. Raises ValueError for one that cannot be read."""
    prefixed = _prefixed(listener, mechanism, _JAAS)
    for layer in (settings.dynamic_broker, settings.given):
        if prefixed in layer:
            return parse_jaas(layer[prefixed])
    return None


def inter_broker_login(settings: NodeValues) -> OwnLogin | None:
    """None: brokers do not log in with each other."""
    mechanism = settings.get_str("sasl.mechanism.inter.broker.protocol")
    return _own_login(settings, settings.inter_broker_listener, mechanism)


def controller_login(settings: NodeValues) -> OwnLogin | None:
    """How this node logs in with controllers."""
    names = settings.controller_listener_names
    mechanism = settings.get_str("sasl.mechanism.controller.protocol")
    return _own_login(settings, names[0], mechanism) if names else None


def _own_login(settings: NodeValues, listener: str, mechanism: str) -> OwnLogin | None:
    if not uses_sasl(settings, listener):
        return None
    if mechanism == "OAUTHBEARER":
        return OwnLogin(mechanism, "", "")
    jaas = jaas_of(settings, listener, mechanism)
    assert jaas is not None, "`problem` has seen to that"
    return OwnLogin(mechanism, jaas.options["username"], jaas.options["password"])


def _prefixed(listener: str, mechanism: str, name: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.{name}"


# What is wrong with it.


def problem(settings: NodeValues) -> str | None:
    """The first thing that keeps logins from working, or None."""
    return next(_problems(settings), None)


def _problems(settings: NodeValues) -> Iterator[str]:
    yield from _foreign_classes(settings)
    for listener in settings.listeners:
        if listener.protocol.startswith("SASL_"):
            for mechanism in mechanisms_of(settings, listener.name):
                yield from _mechanism_problems(settings, listener.name, mechanism)
    if settings.is_broker and uses_sasl(settings, settings.inter_broker_listener):
        name = "sasl.mechanism.inter.broker.protocol"
        yield from _own_problems(settings, settings.inter_broker_listener, name, "brokers log in with each other")
    controllers = settings.controller_listener_names
    if controllers and uses_sasl(settings, controllers[0]):
        name = "sasl.mechanism.controller.protocol"
        yield from _own_problems(settings, controllers[0], name, "nodes log in with controllers")
        yield from _quorum_problems(settings, controllers[0], settings.get_str(name))


def _quorum_problems(settings: NodeValues, listener: str, mechanism: str) -> Iterator[str]:
    """Apache Kafka starts, and its controllers refuse each other without end (KAFKA-15513)."""
    voters = settings.voters or settings.bootstrap_controllers
    if settings.is_controller and mechanism.startswith("SCRAM-") and len(voters) > 1:
        jaas = _prefixed(listener, "PLAIN", _JAAS)
        yield (
            f"sasl.mechanism.controller.protocol: {len(voters)} controllers cannot find together by {mechanism}: its "
            "users, those of kafka-storage format --add-scram too, are kept by the quorum, which is there only when "
            f"they have logged in. Let nodes log in with controllers by PLAIN ({jaas} with username, password and "
            'user_NAME="PASSWORD") or OAUTHBEARER; clients and brokers among themselves may use SCRAM all the same'
        )


def _foreign_classes(settings: NodeValues) -> Iterator[str]:
    for given in (*settings.given, *settings.dynamic_broker):
        for name, known in _KNOWN_CLASSES.items():
            if given != name and not (given.startswith("listener.name.") and given.endswith(f".{name}")):
                continue
            asked = settings.given.get(given, settings.dynamic_broker.get(given, "")).strip()
            if asked and asked not in known:
                allowed = f"allowed is {' or '.join(known)}" if known else "leave it out"
                yield f"{given}: {asked} would be code to run, and a setting names none; {allowed}"


def _mechanism_problems(settings: NodeValues, listener: str, mechanism: str) -> Iterator[str]:
    if mechanism == "GSSAPI":
        yield (
            f"sasl.enabled.mechanisms: GSSAPI (Kerberos), which is Kafka's default, is not built: its library needs a "
            f"compiler and Kerberos' headers on every machine. Name others for the listener {listener}, for example "
            f"sasl.enabled.mechanisms=SCRAM-SHA-256; there are {', '.join(MECHANISMS)}"
        )
        return
    if mechanism not in MECHANISMS:
        yield f"sasl.enabled.mechanisms: {mechanism} is none of {', '.join(MECHANISMS)}"
        return
    name = _prefixed(listener, mechanism, _JAAS)
    try:
        jaas = jaas_of(settings, listener, mechanism)
    except ValueError as error:
        yield f"{name}: {error}"
        return
    if jaas is None and mechanism == "PLAIN":
        yield (
            f"{name}: a value is needed, since the users of PLAIN stand there, for example "
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="…";'
        )
    if jaas is not None and mechanism not in jaas.mechanisms:
        yield f"{name}: {jaas.module} is for {' and '.join(jaas.mechanisms)}, not for {mechanism}"
    if mechanism == "OAUTHBEARER":
        yield from _oauth_problems(settings, listener)


def _oauth_problems(settings: NodeValues, listener: str) -> Iterator[str]:
    unsecured = settings.get_bool("ottla.sasl.oauthbearer.unsecured.tokens")
    if unsecured:
        host = next(each.host for each in settings.listeners if each.name == listener)
        if host not in ("127.0.0.1", "localhost", "::1"):
            yield (
                f"ottla.sasl.oauthbearer.unsecured.tokens: the listener {listener} is not on loopback; whoever reaches "
                "it could log in as anybody"
            )
        return
    for name in ("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.expected.issuer"):
        if not settings.for_listener(listener, name):
            yield f"{name}: a value is needed to check the tokens of OAUTHBEARER on the listener {listener}"
    if not settings.for_listener(listener, "sasl.oauthbearer.expected.audience"):
        yield (
            "sasl.oauthbearer.expected.audience: a value is needed to check the tokens of OAUTHBEARER on the listener "
            f"{listener}; without it a token made for another service would log in here"
        )
    url = settings.for_listener(listener, "sasl.oauthbearer.jwks.endpoint.url")
    if isinstance(url, str) and not is_safe(url):
        yield f"sasl.oauthbearer.jwks.endpoint.url: {url} is not allowed: https://… or file:///… is"


def is_safe(url: str) -> bool:
    """For keys and tokens: nobody on the way can read or replace what is there."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if parts.scheme == "http":
        return host in ("127.0.0.1", "::1", "localhost")
    return bool(host) if parts.scheme == "https" else parts.scheme == "file" and url.startswith("file:///")


def _own_problems(settings: NodeValues, listener: str, setting: str, what: str) -> Iterator[str]:
    mechanism = settings.get_str(setting)
    if mechanism == "OAUTHBEARER":
        yield from _token_problems(settings, listener, what)
        return
    if mechanism not in _BY_PASSWORD:
        meant = "the default of Kafka, " if setting not in settings.given else ""
        yield (
            f"{setting}: {mechanism} is {meant}not what {what} by here: set it to one of {', '.join(MECHANISMS)}"
            " (sasl.mechanism.inter.broker.protocol and sasl.mechanism.controller.protocol both default to GSSAPI)"
        )
        return
    name = _prefixed(listener, mechanism, _JAAS)
    try:
        jaas = jaas_of(settings, listener, mechanism)
    except ValueError as error:
        yield f"{name}: {error}"
        return
    if jaas is None or not jaas.options.get("username") or not jaas.options.get("password"):
        yield f"{name}: username and password are needed there, by which {what}"


def _token_problems(settings: NodeValues, listener: str, what: str) -> Iterator[str]:
    url = for_mechanism(settings, listener, "OAUTHBEARER", _TOKEN_URL)
    if not isinstance(url, str) or not is_safe(url):
        yield f"{_TOKEN_URL}: https://… or file:///… is needed, where the tokens are to be had by which {what}"
        return
    try:
        jaas = jaas_of(settings, listener, "OAUTHBEARER")
    except ValueError:
        return  # told with the listener's mechanisms
    options: Mapping[str, str] = {} if jaas is None else jaas.options
    for name, option in ((_TOKEN_ID, "clientId"), (_TOKEN_SECRET, "clientSecret")):
        if url.startswith("file:"):
            return
        if not for_mechanism(settings, listener, "OAUTHBEARER", name) and not options.get(option):
            yield f"{name}: a value is needed there, or {option} in the JAAS text, to get tokens by which {what}"


def warnings(settings: NodeValues) -> Iterator[str]:
    if _JAAS in settings.given:
        yield f"{_JAAS}: ignored on a node; it is listener.name.<listener>.<mechanism>.{_JAAS} here"
