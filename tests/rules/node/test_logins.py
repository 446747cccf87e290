"""Logins on a node: what they need is there from the start, and what they wait for may fail."""

import asyncio
import sys

import pytest

from ottla.broker.front.login import LoginOptions, Logins
from ottla.broker.front.server import CannotListen
from ottla.metadata.image import EMPTY
from ottla.model.ids import Millis
from ottla.model.properties import Settings
from ottla.node.logins import lacking
from ottla.node.network import Network
from ottla.node.surroundings import Surroundings
from ottla.runtime.clock import SystemClock
from ottla.security.sasl.outcomes import Need

TOKENS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "SASL_PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "file:///token",
    "sasl.oauthbearer.jwks.endpoint.url": "file:///keys",
    "sasl.oauthbearer.expected.issuer": "us",
    "sasl.oauthbearer.expected.audience": "kafka",
}


@pytest.mark.parametrize(("package", "name"), [("jwt", "PyJWT"), ("cryptography", "cryptography")])
def test_a_node_that_cannot_check_tokens_says_so_before_it_is_shown_one(
    monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    settings = Settings.from_properties(TOKENS)
    assert lacking(settings) is None
    monkeypatch.setitem(sys.modules, package, None)
    assert lacking(settings) == (
        f"sasl.enabled.mechanisms: OAUTHBEARER checks who has signed a token, and {name} is not installed: "
        "pip install 'ottla[security]' (in a clone of ottla: make setup)"
    )
    unsecured = {"ottla.sasl.oauthbearer.unsecured.tokens": "true"}
    assert lacking(Settings.from_properties({**TOKENS, **unsecured})) is None


def test_so_the_node_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        network = Network(Settings.from_properties(TOKENS), Surroundings())
        monkeypatch.setitem(sys.modules, "jwt", None)
        try:
            with pytest.raises(CannotListen, match=r"PyJWT is not installed: pip install 'ottla\[security\]'"):
                network.ask_for_logins(SystemClock(), lambda: EMPTY)
        finally:
            network.abandon()

    asyncio.run(scene())


def test_a_login_whose_errand_fails_is_told_and_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async def get(mechanism: str, need: Need) -> None:
            raise RuntimeError("nobody thought of it")

        options = LoginOptions(Millis(100), Millis(10_000), 1000)
        logins = Logins(asyncio.get_running_loop(), SystemClock(), {}, options, get)
        given_up = asyncio.Event()

        async def errand() -> None:
            await logins.get("PLAIN", Need("x", "y"))

        logins.start(errand(), given_up.set)
        await given_up.wait()
        logins.close()

    asyncio.run(scene())
    assert caplog.messages == ["a login failed"]
