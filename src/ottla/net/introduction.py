"""How a node logs in with other nodes: by the user and password, or the tokens, that its settings give it for their
listener."""

import asyncio
import secrets
from collections.abc import Callable

from ottla.model.properties.sasl import OwnLogin, controller_login, for_mechanism, inter_broker_login, jaas_of
from ottla.model.properties.values import NodeValues
from ottla.net.peer import LogIn, Outcome, Then, Unreachable
from ottla.protocol.codec import Message
from ottla.security.sasl.speaker import Credentials, FetchToken, LoginRefused, LoginSteps, SaltPassword, Told, log_in


def introductions(settings: NodeValues) -> dict[str, LogIn]:
    """By listener; only where nodes log in."""
    owns = {settings.inter_broker_listener: inter_broker_login(settings)}
    if settings.controller_listener_names:
        owns[settings.controller_listener_names[0]] = controller_login(settings)
    return {listener: _as(_credentials(settings, listener, own)) for listener, own in owns.items() if own is not None}


def _credentials(settings: NodeValues, listener: str, own: OwnLogin) -> Credentials:
    if own.mechanism != "OAUTHBEARER":
        return Credentials(own.mechanism, own.name, own.password)
    from ottla.net.token_endpoint import Tokens, endpoint_of  # noqa: PLC0415  for who has OAUTHBEARER

    def said(name: str) -> str | None:
        value = for_mechanism(settings, listener, own.mechanism, name)
        return None if value is None else str(value)

    return Credentials(own.mechanism, token=Tokens(endpoint_of(said, jaas_of(settings, listener, own.mechanism))).token)


def _as(credentials: Credentials) -> LogIn:
    salted: dict[tuple[bytes, int], bytes] = {}

    def begin(ask: Callable[[Message, Then], None], done: Callable[[int], None], failed: Callable[[str], None]) -> None:
        _Introduction(log_in(credentials, secrets.token_urlsafe(18)), ask, done, failed, salted).go_on(None)

    return begin


class _Introduction:
    """One login on one connection."""

    __slots__ = ("_ask", "_done", "_failed", "_salted", "_steps")

    def __init__(
        self,
        steps: LoginSteps,
        ask: Callable[[Message, Then], None],
        done: Callable[[int], None],
        failed: Callable[[str], None],
        salted: dict[tuple[bytes, int], bytes],
    ) -> None:
        self._steps = steps
        self._ask = ask
        self._done = done
        self._failed = failed
        self._salted = salted
        """The own password by salt and iterations, which seldom change."""

    def go_on(self, told: Told | None) -> None:
        try:
            step = next(self._steps) if told is None else self._steps.send(told)
        except StopIteration as end:
            self._done(end.value)
        except LoginRefused as refusal:
            self._failed(str(refusal))
        else:
            if isinstance(step, SaltPassword):
                self._salt(step)
            elif isinstance(step, FetchToken):
                self._fetch(step)
            else:
                self._ask(step, self._answered)

    def _answered(self, outcome: Outcome) -> None:
        if not isinstance(outcome, Unreachable):  # else the connection has ended, and all know
            self.go_on(outcome)

    def _fetch(self, step: FetchToken) -> None:
        def go_on(done: "asyncio.Future[bytes | LoginRefused]") -> None:
            if not done.cancelled():
                self.go_on(done.result())

        asyncio.get_running_loop().run_in_executor(None, step.done).add_done_callback(go_on)

    def _salt(self, step: SaltPassword) -> None:
        key = (step.salt, step.iterations)
        known = self._salted.get(key)
        if known is not None:
            self.go_on(known)
            return

        def keep(done: "asyncio.Future[bytes]") -> None:
            if not done.cancelled():
                self._salted.clear()
                self._salted[key] = done.result()
                self.go_on(done.result())

        asyncio.get_running_loop().run_in_executor(None, step.done).add_done_callback(keep)
