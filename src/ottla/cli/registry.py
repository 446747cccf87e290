"""`ottla registry`: a schema registry by itself, against any Kafka cluster. Beside a node, `ottla start` brings one."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
from typing import Final

from ottla.cli.failures import Failure
from ottla.cli.parser import Argument, Arguments, Command, Option, UsageError
from ottla.cli.reach import BOOTSTRAP, COMMAND_CONFIG, DEFAULT_BOOTSTRAP, client_settings
from ottla.cli.reach import settings as name_value_pairs

_BOOTSTRAP: Final = "kafkastore.bootstrap.servers"


def registry(arguments: Arguments) -> int:
    from ottla.client.addresses import parse_bootstrap
    from ottla.client.security import SecurityRefused, security
    from ottla.node.registry_process import run_registry
    from ottla.node.services import CannotStart
    from ottla.registry.settings import RegistrySettings, SettingsError

    path = arguments.optional("file")
    given: dict[str, object] = {**(_of_file(path) if path is not None else {})}
    if arguments.has("listen"):
        given["registry.listeners"] = arguments.text("listen")
        given.pop("listeners", None)
    given.update(name_value_pairs(arguments.texts("override")))
    try:
        settings = RegistrySettings.of(given)
        named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
        brokers = parse_bootstrap(named or ",".join(settings[_BOOTSTRAP]) or DEFAULT_BOOTSTRAP)
        safe = security(settings.client or client_settings(arguments))
    except SettingsError as error:
        problems = "\n".join(f"  {problem}" for problem in str(error).splitlines())
        raise Failure(f"{path or 'the settings'} cannot be used:\n{problems}") from error
    except SecurityRefused as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    try:
        return run_registry(settings, brokers, safe)
    except CannotStart as error:
        raise Failure(f"the registry cannot start: {error}") from error


def _of_file(path: str) -> dict[str, str]:
    from ottla.model.properties.file import parse_properties

    with open(path, encoding="utf-8") as file:
        try:
            return parse_properties(file.read())
        except ValueError as error:
            raise Failure(f"{path}: {error}") from error


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
        options=(
            BOOTSTRAP,
            COMMAND_CONFIG,
            Option("--listen", value="URL", help="Where it answers. Default: http://127.0.0.1:8081, or the file's."),
            Option("--override", "-o", value="NAME=VALUE", many=True, help="A setting, as in the file."),
        ),
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
