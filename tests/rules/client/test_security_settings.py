"""Kafka's client settings: what is misspelt, or would run somebody's code, is refused by name."""

import pytest

from ottla.client.security import SecurityRefused, security

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{MODULE} required username="alice" password="secret";',
}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sasl.jaas.confg": "x"}, r"sasl.jaas.confg: not a setting of clients; did you mean sasl.jaas.config\?"),
        ({"sasl.mechanims": "PLAIN"}, r"did you mean sasl.mechanisms?\?"),
        ({"sasl.client.callback.handler.class": "com.example.Mine"}, "sasl.client.callback.handler.class: classes of"),
        ({"sasl.login.callback.handler.class": "com.example.Mine"}, "sasl.login.callback.handler.class: classes of"),
    ],
)
def test_a_misspelt_login_and_a_strangers_class_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(SecurityRefused, match=told):
        security({**PLAIN, **given})


def test_kafkas_own_names_and_classes_and_librdkafkas_users_pass() -> None:
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    found = security({**PLAIN, "sasl.login.callback.handler.class": handler, "sasl.login.retry.backoff.ms": "5"})
    assert found.credentials is not None and found.credentials.name == "alice"
    named = security({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": "bob",
                      "sasl.password": "secret"})  # fmt: skip
    assert named.credentials is not None and named.credentials.name == "bob"
