"""How clients log in on each SASL listener of a node: from its settings to the exchanges of its mechanisms."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Final

from ottla.broker.front.login import LoginOptions, Logins
from ottla.broker.security.signing_keys import FetchedKeys, Source
from ottla.broker.security.users import Users, new_nonce, stranger_secret
from ottla.metadata.image import MetadataImage
from ottla.metadata.scram import SCRAM_BY_NAME
from ottla.model.extras import missing
from ottla.model.ids import Millis
from ottla.model.ports import Clock
from ottla.model.properties import STATIC, Settings
from ottla.model.properties.dynamic import base_name
from ottla.model.properties.sasl import for_mechanism, jaas_of, mechanisms_of, problem
from ottla.runtime.tasks import Tasks
from ottla.security.sasl.conversation import Offer
from ottla.security.sasl.oauthbearer import OAUTHBEARER, BearerRules, BearerServer
from ottla.security.sasl.outcomes import DERIVE_TOKEN_KEYS, FETCH_SIGNING_KEYS, Begin, Need
from ottla.security.sasl.plain import PLAIN, PlainServer
from ottla.security.sasl.scram import ScramServer

_FETCH_MS: Final = 5_000
"""For the keys of tokens, if sasl.login.read.timeout.ms says nothing: less than a client has to log in."""

logger = logging.getLogger(__name__)


class ListenerLogins:
    """All of them. `by_listener` is what the server is given."""

    def __init__(self, settings: Settings, clock: Clock, image: Callable[[], MetadataImage]) -> None:
        self._users = Users(image, settings.find_str("delegation.token.secret.key"), secret_for_strangers(settings))
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._settings = settings
        self._keys: dict[Source, FetchedKeys] = {}
        self._tasks = Tasks(self._loop)
        options = LoginOptions(
            failure_delay=Millis(settings.get_int("connection.failed.authentication.delay.ms")),
            timeout=Millis(settings.get_int("ottla.authentication.timeout.ms")),
            max_frame_bytes=settings.get_int("sasl.server.max.receive.size"),
        )
        self.by_listener = {
            each.name: Logins(self._loop, clock, self._offers(settings, each.name), options, self._get_of(each.name))
            for each in settings.listeners
            if each.protocol.startswith("SASL_")
        }

    def reconfigure(self, settings: Settings) -> None:
        """Mechanisms and PLAIN's users may change while a node runs (KIP-226); who is logged in stays so."""
        trouble = problem(settings) or lacking(settings)
        if trouble is not None:
            logger.warning("logins stay as they were: %s", trouble)
            return
        self._settings = settings
        for listener, logins in self.by_listener.items():
            logins.offers = self._offers(settings, listener)

    def _offers(self, settings: Settings, listener: str) -> dict[str, Offer]:
        found = {}
        for mechanism in mechanisms_of(settings, listener):
            most = for_mechanism(settings, listener, mechanism, "connections.max.reauth.ms")
            assert isinstance(most, int)
            found[mechanism] = Offer(self._begin(settings, listener, mechanism), Millis(max(0, most)))
        return found

    def _begin(self, settings: Settings, listener: str, mechanism: str) -> Begin:
        if mechanism == PLAIN:
            jaas = jaas_of(settings, listener, mechanism)
            assert jaas is not None, "checked with the other settings"
            passwords = jaas.users
            return lambda: PlainServer(passwords)
        if mechanism == OAUTHBEARER:
            rules, keys = bearer_rules(settings, listener), self._keys_of(settings, listener)
            return lambda: BearerServer(rules, keys)
        scram, users = SCRAM_BY_NAME[mechanism], self._users
        return lambda: ScramServer(scram, users, new_nonce())

    def _keys_of(self, settings: Settings, listener: str) -> FetchedKeys:
        source = keys_source(settings, listener)
        if source not in self._keys:
            self._keys[source] = FetchedKeys(source, self._clock, self._tasks)
        return self._keys[source]

    def _get_of(self, listener: str) -> Callable[[str, Need], Awaitable[None]]:
        async def get(mechanism: str, need: Need) -> None:
            if need.what == DERIVE_TOKEN_KEYS:
                await self._loop.run_in_executor(None, self._users.derive, mechanism, need.key)
            elif need.what == FETCH_SIGNING_KEYS:
                await self._keys_of(self._settings, listener).fetch()

        return get

    def close(self) -> None:
        for logins in self.by_listener.values():
            logins.close()
        self._tasks.cancel()
        for keys in self._keys.values():
            keys.close()


def lacking(settings: Settings) -> str | None:
    """The library that a mechanism needs and this installation does not have: to be told before somebody logs in."""
    takes_tokens = any(
        each.protocol.startswith("SASL_") and OAUTHBEARER in mechanisms_of(settings, each.name)
        for each in settings.listeners
    )
    if not takes_tokens or settings.get_bool("ottla.sasl.oauthbearer.unsecured.tokens"):
        return None
    for package in ("jwt", "cryptography"):
        if find_spec(package) is None:
            why = missing(ModuleNotFoundError(package, name=package))
            return f"sasl.enabled.mechanisms: {OAUTHBEARER} checks who has signed a token, and {why}"
    return None


def bearer_rules(settings: Settings, listener: str) -> BearerRules:
    audiences = settings.for_listener(listener, "sasl.oauthbearer.expected.audience")
    assert isinstance(audiences, tuple)
    return BearerRules(
        issuer=str(settings.for_listener(listener, "sasl.oauthbearer.expected.issuer") or ""),
        audiences=audiences,
        skew_s=_number(settings, listener, "sasl.oauthbearer.clock.skew.seconds"),
        user_claim=str(settings.for_listener(listener, "sasl.oauthbearer.sub.claim.name")),
        scope_claim=str(settings.for_listener(listener, "sasl.oauthbearer.scope.claim.name")),
        unsecured=settings.get_bool("ottla.sasl.oauthbearer.unsecured.tokens"),
    )


def keys_source(settings: Settings, listener: str) -> Source:
    return Source(
        url=str(settings.for_listener(listener, "sasl.oauthbearer.jwks.endpoint.url") or ""),
        max_bytes=settings.get_int("ottla.sasl.oauthbearer.jwks.max.bytes"),
        timeout_s=(settings.find_int("sasl.login.read.timeout.ms") or _FETCH_MS) / 1000,
        refresh=Millis(_number(settings, listener, "sasl.oauthbearer.jwks.endpoint.refresh.ms")),
        first_backoff=Millis(_number(settings, listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")),
        longest_backoff=Millis(_number(settings, listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")),
    )


def _number(settings: Settings, listener: str, name: str) -> int:
    value = settings.for_listener(listener, name)
    assert isinstance(value, int)
    return value


def secret_for_strangers(settings: Settings) -> bytes:
    """Of what is secret in this node's settings, so that strangers look the same after a restart; and on every node, so
    what all of them have comes first: who asks two brokers must not be told of a user's absence by two answers."""
    token_secret = settings.find_str("delegation.token.secret.key")
    if token_secret is not None:
        return stranger_secret(token_secret)
    logins: list[str] = []
    others: list[str] = []
    for name, text in sorted(settings.given.items()):
        plain_name = base_name(name) if name.startswith("listener.name.") else name
        if plain_name == "sasl.jaas.config":
            logins += [text] if "=" in text else []  # SCRAM's needs no password, and then everybody knows the text
        elif (entry := STATIC.get(plain_name)) is not None and entry.sensitive:
            others.append(text)
    return stranger_secret("\n".join(logins or others))
