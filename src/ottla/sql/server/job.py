"""A persistent query as a job of a Spark host: `ottla.sql.server.job:start`.

Its arguments are the statements of the log up to it, of which the catalog is made again, so that a host that begins
anew by itself needs to ask nobody.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.pipelines.job import CannotStart
from ottla.sql.catalog import Catalog, PersistentQuery, Settings
from ottla.sql.compile import topology
from ottla.sql.errors import SqlError
from ottla.sql.parser import parse
from ottla.streams.app import StreamsApp
from ottla.streams.job import HeldRun
from ottla.streams.run.config import ConfigError
from ottla.streams.topology.graph import TopologyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.registry.lookup import Registry


def start(spark: "SparkSession", arguments: Mapping[str, Any]) -> HeldRun:
    """Raises CannotStart."""
    return HeldRun(application(arguments), spark)


def application(arguments: Mapping[str, Any]) -> StreamsApp:
    """Raises CannotStart."""
    try:
        query = _query(arguments)
        made = topology(query.query, query.sink, _registry(arguments.get("registry")))
        return StreamsApp(str(arguments["application.id"]), made, **arguments["config"])
    except (SqlError, TopologyError, ConfigError) as error:
        raise CannotStart(f"{arguments.get('query')}: {error}") from error


def _query(arguments: Mapping[str, Any]) -> PersistentQuery:
    catalog = Catalog()
    wanted = arguments["query"]
    found: PersistentQuery | None = None
    for offset, text, properties in arguments["statements"]:
        (statement,) = parse(text)
        for change in catalog.decide(statement, text, offset, Settings.of(properties)):
            catalog.replay(change)
        found = catalog.queries.get(wanted, found)
    if found is None:
        raise CannotStart(f"no statement makes the query {wanted}")
    return found


def _registry(url: str | None) -> "Registry | None":
    if not url:
        return None
    from ottla.registry.client import RegistryClient  # noqa: PLC0415  few need it

    return RegistryClient(url)
