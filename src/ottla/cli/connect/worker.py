"""`ottla connect worker.properties`: a worker by itself, against any Kafka cluster."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments
from ottla.cli.reach import client_settings
from ottla.cli.reach import settings as name_value_pairs
from ottla.cli.service_alone import brokers, explained, properties_of, running

if TYPE_CHECKING:
    from collections.abc import Mapping

_STANDALONE: Final = {
    "group.id": "connect-standalone",
    "config.storage.topic": "connect-standalone-configs",
    "offset.storage.topic": "connect-standalone-offsets",
    "status.storage.topic": "connect-standalone-status",
}
"""What a file of connect-standalone does not name: it keeps offsets in a file; here all is kept in topics."""


def worker(arguments: Arguments) -> int:
    from ottla.client.reach import secured
    from ottla.client.security import security
    from ottla.connect.definitions import ConfigError
    from ottla.connect.settings import ConnectSettings
    from ottla.model.properties import SettingsError
    from ottla.node.connect_process import run_connect

    files = arguments.texts("file")
    given: dict[str, object] = {**_of_file(files[0])} if files else {}
    if files and "group.id" not in given:
        given = {**_STANDALONE, **given}
    if arguments.has("listen"):
        given["connect.listeners"] = arguments.text("listen")
        given.pop("listeners", None)
    given.update(name_value_pairs(arguments.texts("override")))
    given = {**secured(client_settings(arguments)), **given}
    with explained(files[0] if files else None, SettingsError):
        try:
            resolved = _resolved(given)
        except ConfigError as error:
            raise Failure(str(error)) from error
        settings = ConnectSettings.of(resolved)
        servers = brokers(arguments, settings["bootstrap.servers"])
        safe = security(settings.client)
    connectors = [_of_file(path) for path in files[1:]]
    with running("the worker"):
        return run_connect(settings, servers, safe, connectors)


def _resolved(given: dict[str, object]) -> "Mapping[str, object]":
    """As in Java, the worker's own file may refer to secrets by its `config.providers`. Raises ConfigError."""
    from ottla.connect.providers import Providers

    texts: dict[str, str | None] = {name: str(value) for name, value in given.items()}
    return Providers({name: str(value) for name, value in given.items()}).resolve(texts)


def _of_file(path: str) -> dict[str, str]:
    from ottla.cli.connect.remote import connector_file

    if path.endswith(".json"):
        name, config = connector_file(path)
        return {**{key: str(value) for key, value in config.items()}, **({"name": name} if name else {})}
    return properties_of(path)
