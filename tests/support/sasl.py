"""Nodes on which clients log in, and a login byte by byte."""

from typing import Any

from ottla.metadata.scram import SCRAM_BY_NAME, salted_password
from ottla.model.properties.jaas import PLAIN_MODULE, jaas_text
from ottla.protocol import messages as m
from ottla.security.sasl.scram import ScramClient
from ottla.testing import Cluster
from tests.support.wire import Wire

MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
ADMIN = {"username": "admin", "password": "admin-secret"}
USERS = {"user_admin": "admin-secret", "user_alice": "alice-secret", "user_bob": "bob-secret"}
ADMIN_JAAS = jaas_text(PLAIN_MODULE, **ADMIN, **USERS)


def sasl_settings(mechanisms: str = MECHANISMS, **more: str) -> dict[str, str]:
    """Of a cluster that logs in everywhere, by PLAIN among its nodes."""
    return {
        "listener_security_protocol_map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter_broker_listener_name": "PLAINTEXT",
        "sasl_enabled_mechanisms": mechanisms,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "sasl_mechanism_inter_broker_protocol": "PLAIN",
        "sasl_mechanism_controller_protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": ADMIN_JAAS,
        "listener.name.controller.plain.sasl.jaas.config": ADMIN_JAAS,
        "connection_failed_authentication_delay_ms": "10",
        **more,
    }


def sasl_cluster(nodes: int = 1, mechanisms: str = MECHANISMS, **more: str) -> Cluster:
    settings: dict[str, Any] = sasl_settings(mechanisms, **more)
    return Cluster(nodes, **settings)


def handshake(wire: Wire, mechanism: str = "PLAIN", version: int = 1) -> "m.SaslHandshakeResponse":
    answer = wire.ask(m.SaslHandshakeRequest(mechanism=mechanism), version)
    assert isinstance(answer, m.SaslHandshakeResponse)
    return answer


def authenticate(wire: Wire, token: bytes, version: int = 2) -> Any:
    return wire.ask(m.SaslAuthenticateRequest(auth_bytes=token), version)


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


def plain_login(wire: Wire, name: str = "admin", password: str = "admin-secret") -> Any:
    """Its last answer."""
    assert handshake(wire).error_code == 0
    return authenticate(wire, plain(name, password))


def scram_login(
    wire: Wire, name: str, password: str, mechanism: str = "SCRAM-SHA-256", *, by_token: bool = False
) -> Any:
    assert handshake(wire, mechanism).error_code == 0
    how = SCRAM_BY_NAME[mechanism]
    client = ScramClient(how, name, "some-nonce", by_token=by_token)
    answer = authenticate(wire, client.first())
    if answer.error_code:
        return answer
    salt, iterations = client.heard(bytes(answer.auth_bytes))
    answer = authenticate(wire, client.final(salted_password(how, password, salt, iterations)))
    if not answer.error_code:
        client.check(bytes(answer.auth_bytes))
    return answer


def make_user(wire: Wire, name: str, password: str, mechanism: str = "SCRAM-SHA-256", iterations: int = 4096) -> int:
    how = SCRAM_BY_NAME[mechanism]
    salted = salted_password(how, password, b"salt-of-the-test", iterations)
    kind = m.AlterUserScramCredentialsRequest
    upsertion = kind.ScramCredentialUpsertion(name, how.type, iterations, b"salt-of-the-test", salted)
    (result,) = wire.ask(kind(upsertions=[upsertion])).results
    code: int = result.error_code
    return code
