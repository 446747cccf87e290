"""Servers whose users log in over TLS, the same for ottla and Apache Kafka: one listener more, SASL_SSL, with PLAIN."""

import subprocess
from pathlib import Path
from typing import Final

from bench.context import Factory
from bench.servers import Ottla, Server, free_ports

_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZED: Final = f"authorizer.class.name={STANDARD_AUTHORIZER}\nallow.everyone.if.no.acl.found=true\n"
"""Everybody may do what no ACL is about: the node itself, which nobody asks who it is, needs no further right."""


def certificates_in(directory: Path) -> Path:
    """P-256, one authority for node and clients. Returns the settings of a client that logs in."""
    subprocess.run([str(Ottla.executable), "certs", "dev", str(directory)], check=True, capture_output=True)
    config = directory / "login.properties"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={directory}/ca.pem\n"
        "sasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_LOGIN} username="alice" password="alice-secret";\n'
    )
    return config


def with_logins(factory: Factory, certificates: Path, more: str = "") -> Factory:
    """A server of that kind with a SASL_SSL listener beside the plain one."""

    def more_properties(self: Server, controller_port: int) -> str:
        (port,) = free_ports(1)
        self.secured_port = port  # type: ignore[attr-defined]
        return (
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_SSL://127.0.0.1:{port},"
            f"CONTROLLER://127.0.0.1:{controller_port}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_SSL://127.0.0.1:{port}\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL\n"
            "ssl.keystore.type=PEM\n"
            f"ssl.keystore.location={certificates}/node.pem\n"
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\n"
            f'listener.name.sasl_ssl.plain.sasl.jaas.config={_LOGIN} user_alice="alice-secret";\n'
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config="
            "org.apache.kafka.common.security.scram.ScramLoginModule required;\n" + more
        )

    return type(f"Secured{factory.__name__}", (factory,), {"more_properties": more_properties})


def with_more(factory: Factory, name: str, more: str) -> Factory:
    """A server of that kind with these lines in its file, under a name of its own."""
    own = {"more_properties": lambda self, controller_port: more, "name": name}
    return type(f"With{factory.__name__}", (factory,), own)


def address(server: Server) -> str:
    return f"127.0.0.1:{server.secured_port}"  # type: ignore[attr-defined]
