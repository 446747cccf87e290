"""`ottla connect worker.properties`: a worker by itself, against any Kafka cluster."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
from typing import Final

from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments
from ottla.cli.reach import DEFAULT_BOOTSTRAP, client_settings
from ottla.cli.reach import settings as name_value_pairs

_STANDALONE: Final = {
    "group.id": "connect-standalone",
    "config.storage.topic": "connect-standalone-configs",
    "offset.storage.topic": "connect-standalone-offsets",
    "status.storage.topic": "connect-standalone-status",
}
"""What a file of connect-standalone does not name: it keeps offsets in a file; here all is kept in topics."""


def worker(arguments: Arguments) -> int:
    from ottla.client.addresses import parse_bootstrap
    from ottla.client.security import SecurityRefused, security
    from ottla.connect.settings import ConnectSettings, SettingsError
    from ottla.node.connect_process import run_connect
    from ottla.node.services import CannotStart

    files = arguments.texts("file")
    given: dict[str, object] = {**_of_file(files[0])} if files else {}
    if files and "group.id" not in given:
        given = {**_STANDALONE, **given}
    if arguments.has("listen"):
        given["connect.listeners"] = arguments.text("listen")
        given.pop("listeners", None)
    given.update(name_value_pairs(arguments.texts("override")))
    try:
        settings = ConnectSettings.of(given)
        named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
        brokers = parse_bootstrap(named or ",".join(settings["bootstrap.servers"]) or DEFAULT_BOOTSTRAP)
        safe = security(settings.client or client_settings(arguments))
    except SettingsError as error:
        problems = "\n".join(f"  {problem}" for problem in str(error).splitlines())
        raise Failure(f"{files[0] if files else 'the settings'} cannot be used:\n{problems}") from error
    except SecurityRefused as error:
        raise Failure(str(error)) from error
    connectors = [_of_file(path) for path in files[1:]]
    try:
        return run_connect(settings, brokers, safe, connectors)
    except CannotStart as error:
        raise Failure(f"the worker cannot start: {error}") from error


def _of_file(path: str) -> dict[str, str]:
    from ottla.cli.connect.remote import connector_file

    if path.endswith(".json"):
        name, config = connector_file(path)
        return {**{key: str(value) for key, value in config.items()}, **({"name": name} if name else {})}
    from ottla.model.properties.file import parse_properties

    with open(path, encoding="utf-8") as file:
        try:
            return parse_properties(file.read())
        except ValueError as error:
            raise Failure(f"{path}: {error}") from error
