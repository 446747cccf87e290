"""A cluster for tests in which everybody logs in: its settings, its administrator, and users with settings to paste.

Nodes log in with each other by PLAIN, as the user `admin`, who is a super user; users of tests by SCRAM. What these may
is decided by ACLs. With SASL_SSL all of it, between nodes too, is encrypted under an authority of the cluster's own;
its certificate lies in a file that nodes look at again and again, so that it can be renewed.
"""

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.metadata.scram import MIN_ITERATIONS, SCRAM_SHA_256, new_salt
from ottla.model.extras import named
from ottla.model.properties.jaas import PLAIN_MODULE, SCRAM_MODULE, jaas_text
from ottla.model.properties.unbuilt import STANDARD_AUTHORIZER

if TYPE_CHECKING:
    from ottla.security.tls.development import Authority

PROTOCOLS: Final = ("SASL_PLAINTEXT", "SASL_SSL")
ADMIN: Final = "admin"
_SCRAM: Final = SCRAM_SHA_256.name
_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_DAYS: Final = 60


class ClusterSecurity:
    def __init__(self, protocol: str) -> None:
        if protocol not in PROTOCOLS:
            raise ValueError(f"security={protocol!r}: allowed is {' or '.join(PROTOCOLS)}")
        self.protocol = protocol
        self._password = secrets.token_urlsafe(12)
        self._authority: Authority | None = None
        self._ca: Path | None = None
        self._node: Path | None = None

    def prepare(self, directory: Path) -> None:
        """Before the first node starts: makes certificates if they are needed, and a file that clients can name."""
        if self.protocol != "SASL_SSL":
            return
        from ottla.security.tls.development import Authority  # noqa: PLC0415  a native library, for who has TLS

        if self._authority is None:
            with named():
                self._authority = Authority.made(datetime.now(UTC), _DAYS)
        directory.mkdir(parents=True, exist_ok=True)
        self._ca, self._node = directory / "ca.pem", directory / "node.pem"
        self._ca.write_bytes(self._authority.certificate_pem)
        self.renew()

    def renew(self) -> str:
        """Puts another certificate, with a key of its own, in the place of the one that nodes show, and returns it."""
        if self._authority is None or self._node is None:
            raise ValueError('there is no certificate to renew: make the cluster with Cluster(security="SASL_SSL")')
        made = self._authority.issued("node", list(_NAMES), datetime.now(UTC), _DAYS)
        written = self._node.with_suffix(".new")
        written.write_bytes(made.pem)
        written.replace(self._node)
        return made.certificate_pem.decode()

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
            **self._encrypted(),
        }

    def _encrypted(self) -> dict[str, str]:
        if self._ca is None or self._node is None:
            return {}
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._node),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
            "ottla.tls.reload.interval.ms": "200",
        }

    def admin(self) -> dict[str, str]:
        """Settings of a client that may do everything."""
        return {
            **self._protocol(),
            "sasl.mechanism": "PLAIN",
            "sasl.username": ADMIN,
            "sasl.password": self._password,
        }

    def user(self, name: str, password: str) -> dict[str, str]:
        return {
            **self._protocol(),
            "sasl.mechanism": _SCRAM,
            "sasl.username": name,
            "sasl.password": password,
        }

    def _protocol(self) -> dict[str, str]:
        trusted = {} if self._ca is None else {"ssl.ca.location": str(self._ca)}
        return {"security.protocol": self.protocol, **trusted}

    def registry(self) -> dict[str, str]:
        """Settings of a schema registry that logs in as the administrator, for the users of the cluster."""
        return {
            "authentication.method": "BASIC",
            "registry.login.mechanisms": f"{_SCRAM},PLAIN",
            "super.users": f"User:{ADMIN}",
            **{f"kafkastore.{name}": text for name, text in as_java(self.admin()).items()},
        }

    def connect(self) -> dict[str, str]:
        """Settings of a Connect worker, the same way; it has them as beside a node. Its connectors log in as it does,
        unless they say otherwise."""
        return {
            "connect.authentication.method": "BASIC",
            "connect.login.mechanisms": f"{_SCRAM},PLAIN",
            "super.users": f"User:{ADMIN}",
            **{f"connect.{name}": text for name, text in as_java(self.admin()).items()},
        }


def new_password() -> str:
    return secrets.token_urlsafe(12)


def scram_user(name: str, password: str) -> Any:
    """The request that makes him."""
    from ottla.client.users import NewCredential, alteration  # noqa: PLC0415  for who has users

    return alteration([NewCredential.of(name, password, SCRAM_SHA_256, MIN_ITERATIONS, new_salt(os.urandom(17)))])


def as_java(client: dict[str, str]) -> dict[str, str]:
    """The same for Kafka's Java clients, who have no sasl.username."""
    own = ("sasl.username", "sasl.password", "ssl.ca.location")
    found = {name: text for name, text in client.items() if name not in own}
    if "ssl.ca.location" in client:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": client["ssl.ca.location"]}
    module = PLAIN_MODULE if client["sasl.mechanism"] == "PLAIN" else SCRAM_MODULE
    jaas = jaas_text(module, username=client["sasl.username"], password=client["sasl.password"])
    return {**found, "sasl.jaas.config": jaas}
