"""What a configuration must say for logins to work: the settings are named, and so is what to do."""

import pytest

from ottla.model.properties import Settings, SettingsError
from ottla.model.properties.jaas import PLAIN_MODULE, SCRAM_MODULE
from ottla.model.properties.sasl import OwnLogin, controller_login, for_mechanism, inter_broker_login, jaas_of

SASL = {
    "listeners": "CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="x";',
    "listener.name.client.scram-sha-256.sasl.jaas.config": f'{SCRAM_MODULE} required username="node" password="p";',
    "listener.name.controller.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required username="ctl" password="q" user_ctl="q";'
    ),
}


def settings(**changed: str | None) -> Settings:
    given = {**SASL, **{name: text for name, text in changed.items() if text is not None}}
    return Settings.defaults(
        "/data", **{name: text for name, text in given.items() if changed.get(name, "") is not None}
    )


def refusal(changed: dict[str, str | None]) -> str:
    with pytest.raises(SettingsError) as told:
        settings(**changed)
    return str(told.value)


def test_a_node_knows_who_it_is_to_others() -> None:
    found = settings()
    assert inter_broker_login(found) == OwnLogin("SCRAM-SHA-256", "node", "p")
    assert controller_login(found) == OwnLogin("PLAIN", "ctl", "q")


def test_a_setting_of_a_listeners_mechanism_beats_the_listeners_and_that_the_plain_one() -> None:
    name = "connections.max.reauth.ms"
    found = settings(**{name: "1", f"listener.name.client.{name}": "2", f"listener.name.client.plain.{name}": "3"})
    assert for_mechanism(found, "CLIENT", "PLAIN", name) == 3
    assert for_mechanism(found, "CLIENT", "SCRAM-SHA-256", name) == 2
    assert for_mechanism(found, "CONTROLLER", "PLAIN", name) == 1


def test_a_bare_jaas_text_is_ignored_with_a_warning() -> None:
    found = settings(**{"sasl.jaas.config": f'{PLAIN_MODULE} required user_eve="x";'})
    assert [line for line in found.warnings if line.startswith("sasl.jaas.config: ignored on a node")]
    jaas = jaas_of(found, "CLIENT", "PLAIN")
    assert jaas is not None and jaas.users == {"alice": "x"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sasl.enabled.mechanisms": None}, "GSSAPI (Kerberos), which is Kafka's default, is not built"),
        ({"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,DIGEST-MD5"}, "DIGEST-MD5 is none of PLAIN, SCRAM-SHA-256"),
        ({"sasl.mechanism.inter.broker.protocol": None}, "sasl.mechanism.inter.broker.protocol: GSSAPI"),
        ({"sasl.mechanism.controller.protocol": None}, "sasl.mechanism.controller.protocol both default to GSSAPI"),
        (
            {"listener.name.client.plain.sasl.jaas.config": None},
            "listener.name.client.plain.sasl.jaas.config: a value is needed, since the users of PLAIN stand there",
        ),
        (
            {"listener.name.client.plain.sasl.jaas.config": f"{SCRAM_MODULE} required;"},
            "is for SCRAM-SHA-256 and SCRAM-SHA-512, not for PLAIN",
        ),
        (
            {"listener.name.client.scram-sha-256.sasl.jaas.config": f'{SCRAM_MODULE} required username="node";'},
            "listener.name.client.scram-sha-256.sasl.jaas.config: username and password are needed there",
        ),
        ({"listener.name.client.plain.sasl.jaas.config": "nonsense;"}, "plain.sasl.jaas.config: not a JAAS text"),
        ({"principal.builder.class": "com.example.Mine"}, "com.example.Mine is not run here"),
        (
            {"listener.name.client.plain.sasl.server.callback.handler.class": "com.example.Mine"},
            "com.example.Mine would be code to run",
        ),
        (
            {"listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER"},
            "sasl.oauthbearer.jwks.endpoint.url: a value is needed",
        ),
    ],
)
def test_what_keeps_logins_from_working_is_refused_by_name(changed: dict[str, str | None], why: str) -> None:
    assert why in refusal(changed)


BY_SCRAM = {
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    "listener.name.controller.scram-sha-256.sasl.jaas.config": f'{SCRAM_MODULE} required username="node" password="p";',
}
THREE = "1@127.0.0.1:9093,2@127.0.0.1:9095,3@127.0.0.1:9097"


@pytest.mark.parametrize(
    "quorum",
    [
        {"controller.quorum.voters": THREE},
        {"controller.quorum.bootstrap.servers": "127.0.0.1:9093,127.0.0.1:9095", "controller.quorum.voters": ""},
    ],
    ids=str,
)
def test_several_controllers_that_keep_the_users_cannot_need_them_to_find_together(quorum: dict[str, str]) -> None:
    told = refusal({**BY_SCRAM, **quorum})
    assert "controllers cannot find together by SCRAM-SHA-256" in told
    assert "listener.name.controller.plain.sasl.jaas.config" in told


def test_one_controller_knows_its_users_by_itself_and_brokers_may_log_in_by_scram() -> None:
    assert controller_login(settings(**BY_SCRAM)) == OwnLogin("SCRAM-SHA-256", "node", "p")
    broker = {"process.roles": "broker", "node.id": "7", "listeners": "CLIENT://127.0.0.1:9092"}
    assert settings(**{**BY_SCRAM, **broker, "controller.quorum.voters": THREE}).is_controller is False


def test_unsecured_tokens_are_for_loopback() -> None:
    changed: dict[str, str | None] = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "ottla.sasl.oauthbearer.unsecured.tokens": "true",
        "listeners": "CLIENT://0.0.0.0:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": "CLIENT://127.0.0.1:9092",
    }
    assert "is not on loopback" in refusal(changed)
