"""`ottla registry`: a schema registry by itself, against any Kafka cluster. Beside a node, `ottla start` brings one."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from typing import Final

from ottla.cli.parser import Argument, Arguments, Command
from ottla.cli.reach import client_settings
from ottla.cli.reach import settings as name_value_pairs
from ottla.cli.service_alone import brokers, explained, options, properties_of, running

_BOOTSTRAP: Final = "kafkastore.bootstrap.servers"


def registry(arguments: Arguments) -> int:
    from ottla.client.security import security
    from ottla.model.properties import SettingsError
    from ottla.node.registry_process import run_registry
    from ottla.registry.settings import RegistrySettings

    path = arguments.optional("file")
    given: dict[str, object] = {**(properties_of(path) if path is not None else {})}
    if arguments.has("listen"):
        given["registry.listeners"] = arguments.text("listen")
        given.pop("listeners", None)
    given.update(name_value_pairs(arguments.texts("override")))
    with explained(path, SettingsError):
        settings = RegistrySettings.of(given)
        servers = brokers(arguments, settings[_BOOTSTRAP])
        safe = security(settings.client or client_settings(arguments))
    with running("the registry"):
        return run_registry(settings, servers, safe)


COMMANDS = (
    Command(
        "",
        registry,
        summary="Start a schema registry, in front of any Kafka cluster. Ctrl-C or SIGTERM stops it.",
        details="""
It speaks the REST API of Confluent's registry and keeps its schemas in the compacted topic _schemas, in the same bytes:
it goes on where theirs stopped. Several of one cluster share the work: one writes, the others pass writes on.
`ottla start` brings one along on port 8081.""",
        arguments=(Argument("FILE", help="Confluent's schema-registry.properties.", required=False),),
        options=options("http://127.0.0.1:8081"),
        examples=(
            ("Beside Apache Kafka on this machine", "ottla registry -b 127.0.0.1:9092"),
            ("As Confluent's was configured", "ottla registry /etc/schema-registry/schema-registry.properties"),
            (
                "On another port, stricter",
                "ottla registry --listen http://127.0.0.1:8082 -o schema.compatibility.level=full",
            ),
        ),
    ),
)
