"""A cluster for tests in which everybody logs in: its settings, its administrator, and users with settings to paste.

Nodes log in with each other by PLAIN, as the user `admin`, who is a super user; users of tests by SCRAM. What these may
is decided by ACLs.
"""

import os
import secrets
from typing import Any, Final

from ottla.metadata.scram import MIN_ITERATIONS, SCRAM_SHA_256, new_salt
from ottla.model.properties.jaas import PLAIN_MODULE, SCRAM_MODULE, jaas_text
from ottla.model.properties.unbuilt import STANDARD_AUTHORIZER

PROTOCOLS: Final = ("SASL_PLAINTEXT",)
ADMIN: Final = "admin"
_SCRAM: Final = SCRAM_SHA_256.name


class ClusterSecurity:
    def __init__(self, protocol: str) -> None:
        if protocol not in PROTOCOLS:
            raise ValueError(f"security={protocol!r}: allowed is {' or '.join(PROTOCOLS)}")
        self.protocol = protocol
        self._password = secrets.token_urlsafe(12)

    def settings(self) -> dict[str, str]:
        """Of every node. A keyword of `Cluster` wins over them."""
        jaas = jaas_text(PLAIN_MODULE, username=ADMIN, password=self._password, **{f"user_{ADMIN}": self._password})
        return {
            "listener_security_protocol_map": f"PLAINTEXT:{self.protocol},CONTROLLER:{self.protocol}",
            "inter_broker_listener_name": "PLAINTEXT",
            "sasl_enabled_mechanisms": f"{_SCRAM},PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl_mechanism_inter_broker_protocol": "PLAIN",
            "sasl_mechanism_controller_protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": jaas,
            "listener.name.controller.plain.sasl.jaas.config": jaas,
            "authorizer_class_name": STANDARD_AUTHORIZER,
            "super_users": f"User:{ADMIN}",
            "connection_failed_authentication_delay_ms": "10",
        }

    def admin(self) -> dict[str, str]:
        """Settings of a client that may do everything."""
        return {
            "security.protocol": self.protocol,
            "sasl.mechanism": "PLAIN",
            "sasl.username": ADMIN,
            "sasl.password": self._password,
        }

    def user(self, name: str, password: str) -> dict[str, str]:
        return {
            "security.protocol": self.protocol,
            "sasl.mechanism": _SCRAM,
            "sasl.username": name,
            "sasl.password": password,
        }


def new_password() -> str:
    return secrets.token_urlsafe(12)


def scram_user(name: str, password: str) -> Any:
    """The request that makes him."""
    from ottla.client.users import NewCredential, alteration  # noqa: PLC0415  for who has users

    return alteration([NewCredential.of(name, password, SCRAM_SHA_256, MIN_ITERATIONS, new_salt(os.urandom(17)))])


def as_java(client: dict[str, str]) -> dict[str, str]:
    """The same for Kafka's Java clients, who have no sasl.username."""
    found = {name: text for name, text in client.items() if name not in ("sasl.username", "sasl.password")}
    module = PLAIN_MODULE if client["sasl.mechanism"] == "PLAIN" else SCRAM_MODULE
    jaas = jaas_text(module, username=client["sasl.username"], password=client["sasl.password"])
    return {**found, "sasl.jaas.config": jaas}
