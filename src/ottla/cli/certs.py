"""`ottla certs`: certificates for development, and what a client would think of those that a server shows."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Failure
from ottla.cli.output import note
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import COMMAND_CONFIG, client_settings

if TYPE_CHECKING:
    from pathlib import Path

OK: Final = 0
FAILED: Final = 1
_SECRET: Final = 0o600
_PUBLIC: Final = 0o644


def dev(arguments: Arguments) -> int:
    from datetime import UTC, datetime
    from pathlib import Path

    days = arguments.number("days")
    if days < 1:
        raise UsageError("--days: 1 or more")
    directory = Path(arguments.text("dir"))
    if (directory / "admin.properties").exists():
        raise Failure(
            f"{directory} holds the passwords of a cluster, whose certificate `ottla start --secure` makes anew "
            "when it is about to end. Choose another directory"
        )
    directory.mkdir(parents=True, exist_ok=True)
    now, password = datetime.now(UTC), arguments.text("password")
    authority = authority_in(directory, now)
    node = authority.issued("node", names_of_this_machine(arguments.texts("host")), now, days)
    user = arguments.text("user")
    client = authority.issued(user, [], now, days)
    write_secret(directory / "node.pem", node.pem)
    write_secret(directory / "node.p12", node.pkcs12("node", password))
    write_secret(directory / f"{user}.pem", client.pem)
    write_secret(directory / f"{user}.p12", client.pkcs12(user, password))
    write_secret(directory / "truststore.p12", authority.trust_store(password), _PUBLIC)
    place = directory.resolve()
    write_secret(directory / "node.properties", _node_properties(place).encode())
    write_secret(directory / f"{user}.properties", _java_properties(place, user).encode())
    print(_advice(place, user, password))
    return OK


def authority_in(directory: Path, now: datetime) -> Authority:
    """The one that is there: what it has signed before stays good."""
    from ottla.security.tls.development import Authority

    key, certificate = directory / "ca-key.pem", directory / "ca.pem"
    if key.exists() and certificate.exists():
        return Authority.read(key.read_bytes(), certificate.read_bytes())
    made = Authority.made(now, _AUTHORITY_DAYS)
    write_secret(key, made.key_pem)
    write_secret(certificate, made.certificate_pem, _PUBLIC)
    return made


_AUTHORITY_DAYS: Final = 3650


def names_of_this_machine(more: list[str]) -> list[str]:
    import socket

    return list(dict.fromkeys(("localhost", "127.0.0.1", "::1", socket.gethostname(), *more)))


def write_secret(path: Path, data: bytes, mode: int = _SECRET) -> None:
    """A secret is never open to others, not even for a moment; an older file is replaced as a whole."""
    import os

    partial = path.with_name(f".{path.name}.new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    partial.replace(path)


def _node_properties(place: Path) -> str:
    return (
        "ssl.keystore.type=PEM\n"
        f"ssl.keystore.location={place}/node.pem\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={place}/ca.pem\n"
    )


def _java_properties(place: Path, user: str) -> str:
    return (
        "security.protocol=SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={place}/ca.pem\n"
        "ssl.keystore.type=PEM\n"
        f"ssl.keystore.location={place}/{user}.pem\n"
    )


def _advice(place: Path, user: str, password: str) -> str:
    def block(text: str) -> str:
        return "".join(f"    {line}\n" for line in text.splitlines())

    return f"""\
Certificates for development are in {place}. Whoever has ca-key.pem can make more: keep it to yourself.

A node (node.properties; also add ssl.client.auth=required if clients have to show a certificate):
{block(_node_properties(place))}\
    listeners=SSL://localhost:9092,CONTROLLER://localhost:9093
    listener.security.protocol.map=SSL:SSL,CONTROLLER:SSL
    inter.broker.listener.name=SSL

Java, and ottla's own tools with --command-config {place}/{user}.properties:
{block(_java_properties(place, user))}\
  or as PKCS12: truststore.p12, {user}.p12 and node.p12, with the password {password}

librdkafka (confluent-kafka):
    security.protocol=SSL
    ssl.ca.location={place}/ca.pem
    ssl.certificate.location={place}/{user}.pem
    ssl.key.location={place}/{user}.pem

aiokafka:
    context = aiokafka.helpers.create_ssl_context(
        cafile="{place}/ca.pem", certfile="{place}/{user}.pem", keyfile="{place}/{user}.pem")
    AIOKafkaConsumer(…, security_protocol="SSL", ssl_context=context)"""


def check(arguments: Arguments) -> int:
    from datetime import UTC, datetime

    from ottla.cli.certs_check import looked_at
    from ottla.client.addresses import parse_bootstrap

    try:
        (address,) = parse_bootstrap(arguments.text("address"))
    except ValueError as error:
        raise UsageError(str(error)) from error
    given = {**client_settings(arguments), "security.protocol": "SSL"}
    if (ca := arguments.optional("ca")) is not None:
        given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    try:
        found = looked_at(address.host, address.port, given, datetime.now(UTC).timestamp())
    except ValueError as error:
        raise Failure(str(error)) from error
    for line in found.lines:
        print(line)
    for trouble in found.troubles:
        note(f"ottla: {trouble}")
    print("a client would refuse it" if found.troubles else "a client would accept it")
    return FAILED if found.troubles else OK


if TYPE_CHECKING:
    from datetime import datetime

    from ottla.security.tls.development import Authority


COMMANDS = (
    Command(
        "dev",
        dev,
        summary="Make an authority, a node's and a client's certificate, as PEM and PKCS12, with settings to paste.",
        details="""
Keys are P-256. The node's certificate is for localhost, 127.0.0.1, ::1, this machine's name and every --host. An
authority that is in the directory already is used again, so clients that trust it need nothing new.""",
        arguments=(Argument("DIR", help="Where they are put; made if it is not there."),),
        options=(
            Option("--host", value="NAME", many=True, help="One more name or address of nodes."),
            Option("--user", value="NAME", default="client", help="Whom the client's certificate names."),
            Option("--days", value="N", number=True, default="365", help="How long they are good."),
            Option("--password", value="TEXT", default="changeit", help="Password of the PKCS12 files."),
        ),
        examples=(
            ("For one machine", "ottla certs dev certs"),
            ("For one more machine, and a client called alice", "ottla certs dev certs --host kafka1 --user alice"),
        ),
    ),
    Command(
        "check",
        check,
        summary="What a server shows: chain, names, dates, protocols; and why a client would refuse it.",
        details="""
Trusts what --ca or the file of --command-config names, else what the system trusts. Exit code 1 if a client with these
settings would not connect.""",
        arguments=(Argument("ADDRESS", help="HOST:PORT of a listener with TLS."),),
        options=(
            Option("--ca", value="FILE", help="Certificates of authorities to trust, as PEM."),
            COMMAND_CONFIG,
        ),
        examples=(
            ("With the authority of `ottla certs dev`", "ottla certs check localhost:9092 --ca certs/ca.pem"),
            ("As a client with these settings", "ottla certs check kafka1:9092 --command-config client.properties"),
        ),
    ),
)
