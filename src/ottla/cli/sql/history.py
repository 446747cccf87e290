"""`ottla sql history`: one SELECT of Spark's over what topics hold, without a server."""
# ruff: noqa: PLC0415  imports wait until a command needs them: start time is felt

import os
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failures import Failure
from ottla.cli.output import Table, note, show
from ottla.cli.parser import Arguments
from ottla.cli.reach import DEFAULT_BOOTSTRAP, client_settings, output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.reach import Reach
    from ottla.registry.lookup import Registry
    from ottla.sql.model import DataSource

OK: Final = 0
ROWS: Final = 1_000
"""Shown unless --limit says otherwise."""


def history(arguments: Arguments) -> int:
    from ottla.client.errors import ClientError
    from ottla.client.security import SecurityRefused
    from ottla.pipelines.installed import CannotRun, check_spark
    from ottla.sql.errors import SqlError

    limit = arguments.number("limit") if arguments.has("limit") else ROWS
    try:
        check_spark()
        from ottla.pipelines.session import new_session
        from ottla.sql.history.history import History
        from ottla.sql.history.sampling import Sampling

        reach, registry = reached(arguments)
        options = {"clientSettingsFile": reach.settings_file} if reach.settings_file else {}
        spark = new_session("ottla sql history", arguments.optional("master") or "local[*]")
        look = Sampling(reach, registry)
        sources = _declared(arguments.optional("file"))
        asked = History.over(spark, reach.servers, sources, registry, options, look)
        names, rows = asked.rows(arguments.text("select"), limit)
    except (SqlError, ClientError, CannotRun, SecurityRefused) as error:
        raise Failure(str(error)) from error
    for each in asked.guessed:
        note(f"{each.source.topic} is not declared ({each.because}). To keep it:\n  {each.statement}")
    table = Table(*names)
    for row in rows:
        table.add(*map(_cell, row))
    show(table, output(arguments))
    return OK


def reached(arguments: Arguments) -> "tuple[Reach, Registry | None]":
    """The cluster and the registry, each with the login that the file of --command-config says. Raises SecurityRefused,
    and ValueError for what is no address."""
    from ottla.client.reach import Reach
    from ottla.sql.registry import of_clients

    given = client_settings(arguments)
    named = arguments.optional("bootstrap") or os.environ.get("OTTLA_BOOTSTRAP")
    servers = named or given.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
    return Reach.of(servers, given), of_clients(arguments.optional("registry"), given)


def _declared(path: str | None) -> "Mapping[str, DataSource]":
    if path is None:
        return {}
    from ottla.sql.application import declared
    from ottla.sql.errors import SqlError

    try:
        return declared(path)
    except SqlError as error:
        raise Failure(f"{path}: {error}") from error


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
