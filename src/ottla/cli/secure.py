"""`ottla start --secure`: TLS, logins and ACLs for a node or a cluster of this machine, with nothing to prepare.

What has to be kept lies beside the data, in DATA.security, for its owner's eyes only: an authority and the nodes'
certificate, `node.properties` (what every node is started with, and the password by which nodes know each other) and
`admin.properties` (what clients of the administrator need). The administrator's password is told once; the cluster
keeps it salted, as that of every user. A second start finds all of it there, and whatever was changed in the files; a
certificate of its own authority that is about to end, or lacks a name that is asked for now, it makes anew.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.certs import authority_in, names_of_this_machine, write_secret
from ottla.cli.failures import Failure
from ottla.model.properties.file import format_properties, parse_properties
from ottla.model.properties.jaas import PLAIN_MODULE, SCRAM_MODULE, jaas_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client.users import NewCredential
    from ottla.model.properties import Settings

ADMIN: Final = "admin"
NODE: Final = "ottla-node"
LISTENER: Final = "SASL_SSL"
_MECHANISM: Final = "SCRAM-SHA-512"
_ITERATIONS: Final = 4096
_DAYS: Final = 365
_RENEWED_DAYS: Final = 30
"""Before its end a certificate is made anew by the next start."""
_SETTINGS: Final = "node.properties"
_ADMIN_FILE: Final = "admin.properties"


def directory_of(data: str) -> Path:
    return Path(f"{data}.security")


class Secured(NamedTuple):
    directory: Path
    settings: Mapping[str, str]
    """Of every node."""
    password: str
    """The administrator's, who is still to be made; empty: he is there."""

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.pem")

    def credential(self) -> NewCredential:
        from ottla.client.users import NewCredential  # noqa: PLC0415  once in the life of a cluster
        from ottla.metadata.scram import SCRAM_BY_NAME, new_salt  # noqa: PLC0415

        return NewCredential.of(ADMIN, self.password, SCRAM_BY_NAME[_MECHANISM], _ITERATIONS, new_salt(os.urandom(17)))

    def as_node(self) -> dict[str, str]:
        """Settings of a client that is what nodes are to each other: a super user, before there is any other."""
        jaas = self.settings[f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config"]
        return {**_client(self.directory), "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}

    def admin_made(self, bootstrap: str) -> str:
        """Writes down what the administrator needs, last of all; what to tell him."""
        jaas = jaas_text(SCRAM_MODULE, username=ADMIN, password=self.password)
        needed = {**_client(self.directory), "sasl.mechanism": _MECHANISM, "sasl.jaas.config": jaas}
        needed["basic.auth.user.info"] = f"{ADMIN}:{self.password}"  # for the services beside it
        path = self.directory / _ADMIN_FILE
        write_secret(path, format_properties(needed).encode())
        return f"""\
this cluster is for users who log in, over TLS, and may do what ACLs allow. Its administrator, told only now:
  user      {ADMIN}
  password  {self.password}
confluent-kafka:
  {{"bootstrap.servers": "{bootstrap}", "security.protocol": "SASL_SSL",
   "ssl.ca.location": "{self.ca}",
   "sasl.mechanism": "{_MECHANISM}", "sasl.username": "{ADMIN}", "sasl.password": "{self.password}"}}
Java, and ottla's own tools:
  --command-config {path}
the next steps:
  export OTTLA_COMMAND_CONFIG={path} OTTLA_BOOTSTRAP={bootstrap}
  ottla users add alice
  ottla acls allow alice produce orders --execute
"""


def prepared(data: str, hosts: Sequence[str]) -> Secured:
    """What is there already, or made now. Raises Failure."""
    directory = directory_of(data)
    path = directory / _SETTINGS
    if not path.exists():
        _make(directory, hosts)
    else:
        _renew(directory, hosts)
    try:
        settings = parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"{path} cannot be read: {error}") from error
    is_new = not (directory / _ADMIN_FILE).exists()
    return Secured(directory, settings, _new_password() if is_new else "")


def check_unsecured(data: str) -> None:
    """Who has once closed the door does not leave it open by forgetting a word. Raises Failure."""
    directory = directory_of(data)
    if directory.exists():
        raise Failure(
            f"{data} was started with --secure: say so again, or remove {directory} to serve everybody without login"
        )


def make_admin(secured: Secured, settings: Settings, bootstrap: str) -> str:
    """On the directory of a node that is a quorum by itself, before it starts. What to tell; empty if he is there."""
    if not secured.password:
        return ""
    from ottla.client.users import alteration, check_alteration  # noqa: PLC0415  once in the life of a cluster
    from ottla.node.node import StartFailed  # noqa: PLC0415
    from ottla.node.offline import decide  # noqa: PLC0415

    try:
        check_alteration(decide(settings, alteration([secured.credential()])))
    except StartFailed as error:
        raise Failure(str(error)) from error
    return secured.admin_made(bootstrap)


def make_admin_of_running(secured: Secured, bootstrap: str) -> str:
    """The same for a cluster, which has to run to decide anything."""
    if not secured.password:
        return ""
    from ottla.client.addresses import parse_bootstrap  # noqa: PLC0415
    from ottla.client.blocking.cluster import Cluster  # noqa: PLC0415
    from ottla.client.security import security  # noqa: PLC0415
    from ottla.client.users import alter_users  # noqa: PLC0415

    door = security(secured.as_node())
    with Cluster(parse_bootstrap(bootstrap), client_id="ottla-cli", timeout_s=30.0, security=door) as cluster:
        alter_users(cluster, [secured.credential()])
    return secured.admin_made(bootstrap)


def _make(directory: Path, hosts: Sequence[str]) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = datetime.now(UTC)
    node = authority_in(directory, now).issued("node", names_of_this_machine(list(hosts)), now, _DAYS)
    write_secret(directory / "node.pem", node.pem)
    write_secret(directory / _SETTINGS, format_properties(_node_settings(directory.resolve())).encode())


def _renew(directory: Path, hosts: Sequence[str]) -> None:
    """Not what somebody else has signed, and not without the authority's key: who keeps that elsewhere renews there."""
    from ottla.security.tls.certificate import certificate  # noqa: PLC0415  for who has TLS

    path, now = directory / "node.pem", datetime.now(UTC)
    if not (directory / "ca-key.pem").exists():
        return
    try:
        shown = certificate(_first_certificate(path))
    except (OSError, ValueError):
        return  # who starts with it says what is wrong with it
    names = [name.partition(":")[2] for name in shown.alternative_names]
    is_good = shown.not_after_s > (now + timedelta(days=_RENEWED_DAYS)).timestamp() and set(hosts) <= set(names)
    if is_good:
        return
    authority = authority_in(directory, now)
    if authority.has_signed(shown.der):
        write_secret(path, authority.issued("node", list(dict.fromkeys((*names, *hosts))), now, _DAYS).pem)


def _first_certificate(path: Path) -> bytes:
    """As DER. Raises OSError, ValueError."""
    from ottla.security.tls.pem import blocks  # noqa: PLC0415

    found = next((block for block in blocks(path.read_text(encoding="ascii")) if block.label == "CERTIFICATE"), None)
    if found is None:
        raise ValueError(f"{path} holds no certificate")
    return found.data


def _node_settings(place: Path) -> dict[str, str]:
    secret = _new_password()
    jaas = jaas_text(PLAIN_MODULE, username=NODE, password=secret, **{f"user_{NODE}": secret})
    client, controller = f"listener.name.{LISTENER.lower()}.", "listener.name.controller."
    return {
        "listener.security.protocol.map": f"{LISTENER}:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": LISTENER,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{place}/node.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{place}/ca.pem",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{client}plain.sasl.jaas.config": jaas,
        f"{controller}sasl.enabled.mechanisms": "PLAIN",
        f"{controller}plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:{NODE}",
        **_registry(place, secret),
        **_connect(place, secret),
        **_sql(place, secret),
    }


def _registry(place: Path, secret: str) -> dict[str, str]:
    """The registry beside it, if there is one: https by the node's certificate, for the cluster's users and their
    rights; it logs in as nodes do, and so does the broker with it, to validate records."""
    return {
        "registry.authentication.method": "BASIC",
        "registry.login.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
        "confluent.basic.auth.user.info": f"{NODE}:{secret}",
        **_as_nodes_do("registry.kafkastore.", place, secret),
    }


def _connect(place: Path, secret: str) -> dict[str, str]:
    """The Connect worker, the same way. Its connectors reach the cluster as it does, unless they say otherwise."""
    return {
        "connect.authentication.method": "BASIC",
        "connect.login.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
        **_as_nodes_do("connect.", place, secret),
    }


def _sql(place: Path, secret: str) -> dict[str, str]:
    """The SQL server, the same way: it and its queries reach brokers and registry as nodes do, and statements are
    judged by the rights of who sends them."""
    return {
        "sql.authentication.method": "BASIC",
        "sql.login.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
        "ksql.schema.registry.basic.auth.user.info": f"{NODE}:{secret}",
        "ksql.schema.registry.ssl.truststore.location": f"{place}/ca.pem",
        **_as_nodes_do("sql.", place, secret),
    }


def _as_nodes_do(prefix: str, place: Path, secret: str) -> dict[str, str]:
    """Client settings of a service beside the node."""
    return {
        f"{prefix}security.protocol": "SASL_SSL",
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.location": f"{place}/ca.pem",
        f"{prefix}sasl.mechanism": "PLAIN",
        f"{prefix}sasl.jaas.config": jaas_text(PLAIN_MODULE, username=NODE, password=secret),
    }


def _client(directory: Path) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{directory.resolve()}/ca.pem",
    }


def _new_password() -> str:
    import secrets  # noqa: PLC0415

    return secrets.token_urlsafe(16)
