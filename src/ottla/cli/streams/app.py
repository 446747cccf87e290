"""The application that a command is about: out of its file, with what the command line changes in it."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failures import Failure
from ottla.cli.parser import Arguments
from ottla.cli.reach import DEFAULT_BOOTSTRAP, settings

SQL: Final = ".sql"

if TYPE_CHECKING:
    from types import ModuleType

    from ottla.streams.app import StreamsApp


def app_of(arguments: Arguments) -> "tuple[StreamsApp, ModuleType]":
    """The application of the file, with what the command line changes in it. A file of SQL is one, too."""
    from ottla.sql.errors import SqlError
    from ottla.streams.app_file import AppFileError, load
    from ottla.streams.run.config import ConfigError

    path = arguments.text("file")
    try:
        app, module = _of_statements(path) if path.endswith(SQL) else load(path)
        return app.changed(application_id=arguments.optional("application_id"), config=_changes(arguments, app)), module
    except (AppFileError, ConfigError) as error:
        raise Failure(str(error)) from error
    except SqlError as error:
        raise Failure(f"{path}: {error}") from error


def _of_statements(path: str) -> "tuple[StreamsApp, ModuleType]":
    """Statements have no module; one without anything stands for it."""
    import sys
    from types import ModuleType

    from ottla.sql.application import load

    module = ModuleType("ottla_sql_statements")
    module.__file__ = os.path.abspath(path)
    sys.modules[module.__name__] = module
    return load(path).app, module


def _changes(arguments: Arguments, app: "StreamsApp") -> dict[str, Any]:
    changes: dict[str, Any] = {**_archived(arguments), **settings(arguments.texts("property"))}
    bootstrap = arguments.optional("bootstrap")
    if bootstrap is None and "bootstrap.servers" not in {**app.config.given, **changes}:
        bootstrap = os.environ.get("OTTLA_BOOTSTRAP", DEFAULT_BOOTSTRAP)
    if bootstrap is not None:
        changes["bootstrap.servers"] = bootstrap
        arguments.add("bootstrap", bootstrap)  # the commands that ask the brokers ask the same ones
    else:
        arguments.add("bootstrap", changes.get("bootstrap.servers", app.config["bootstrap.servers"]))
    file = arguments.optional("command_config") or os.environ.get("OTTLA_COMMAND_CONFIG")
    if file:
        changes.setdefault("client.settings.file", os.path.abspath(file))
    if arguments.has("state_dir"):
        changes["state.dir"] = arguments.text("state_dir")
    if arguments.has("queries_port"):
        changes["application.server"] = f"127.0.0.1:{arguments.number('queries_port')}"
    return changes


def _archived(arguments: Arguments) -> dict[str, str]:
    """Spark's settings when the application comes in an archive and runs on other machines."""
    from ottla.streams import archive

    master = arguments.optional("master")
    if master is None or master.startswith("local[") or not archive.is_archive(arguments.text("file")):
        return {}
    archive.lend_packages(arguments.text("file"))
    return archive.settings(arguments.text("file"))


def state_dir_of(arguments: Arguments, app: "StreamsApp | None") -> str:
    from ottla.streams.run.config import Config

    root: str = (app.config if app is not None else Config())["state.dir"]
    return arguments.optional("state_dir") or root
