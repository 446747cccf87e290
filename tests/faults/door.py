"""SASL_SSL everywhere: between nodes, controllers and clients of all languages, under an authority of the run's own.

librdkafka's clients of this process take `CLIENT`; Java's and Go's are told a file by the environment. A run has one
door, and runs follow each other.
"""

import contextlib
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ottla.client.security import PLAINTEXT, Security, security
from ottla.model.properties.jaas import PLAIN_MODULE, jaas_text
from ottla.security.tls.development import Authority

CLIENT: Final[dict[str, Any]] = {
    "socket.connection.setup.timeout.ms": 1000,
    "socket.timeout.ms": 10_000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
"""Settings of every librdkafka client."""
ENVIRONMENT: Final = "OTTLA_CLIENT_CONFIG"
_USER: Final = {"username": "node", "password": "node-secret"}
_JAAS: Final = jaas_text(PLAIN_MODULE, **_USER, user_node="node-secret")
_STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Door:
    def __init__(self, directory: Path, hosts: Sequence[str]) -> None:
        now = datetime.now(UTC)
        authority = Authority.made(now, 30)
        names = list(dict.fromkeys(("localhost", "127.0.0.1", *hosts)))
        self._ca, self._node = directory / "ca.pem", directory / "node.pem"
        self._ca.write_bytes(authority.certificate_pem)
        self._node.write_bytes(authority.issued("node", names, now, 30).pem)
        self.file = directory / "client.properties"
        lines = {**self._for_java(), "sasl.username": _USER["username"], "sasl.password": _USER["password"]}
        self.file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        self.context = ssl.create_default_context(cafile=str(self._ca))

    def properties(self) -> dict[str, str]:
        """Of every node. What stands in its file before is overruled: the last line of a name counts."""
        return {
            "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._node),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": _JAAS,
            "listener.name.controller.plain.sasl.jaas.config": _JAAS,
            "authorizer.class.name": _STANDARD,
            "super.users": "User:node",
        }

    def _for_java(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas_text(PLAIN_MODULE, **_USER),
        }

    def own(self) -> Security:
        return security(self._for_java())

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """While it is open all clients that are made go through it."""
        settings: Mapping[str, str] = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._ca),
            "sasl.mechanism": "PLAIN",
            "sasl.username": _USER["username"],
            "sasl.password": _USER["password"],
        }
        CLIENT.update(settings)
        os.environ[ENVIRONMENT] = str(self.file)
        try:
            yield
        finally:
            del os.environ[ENVIRONMENT]
            for name in settings:
                del CLIENT[name]


def own_security(door: Door | None) -> Security:
    return PLAINTEXT if door is None else door.own()
