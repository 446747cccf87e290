"""A persistent query as a job of a Spark host: `ottla.sql.server.job:start`.

Its arguments name a file with the statements of the log up to it, of which the catalog is made again, so that a host
that begins anew by itself needs to ask nobody.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.client.security import SecurityRefused, settings_of
from ottla.pipelines.job import CannotStart
from ottla.sql.analysis.typed import TypedQuery
from ottla.sql.catalog import Catalog, PersistentQuery, Settings
from ottla.sql.compile import topology
from ottla.sql.errors import SqlError
from ottla.sql.parser import parse
from ottla.sql.processing_log.review import Review
from ottla.sql.processing_log.second_look import SecondLook, Writing
from ottla.sql.registry import registry_at
from ottla.streams.app import StreamsApp
from ottla.streams.job import HeldRun
from ottla.streams.run.config import ConfigError
from ottla.streams.topology.errors import TopologyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.registry.lookup import Registry


def start(spark: "SparkSession", arguments: Mapping[str, Any]) -> HeldRun:
    """Raises CannotStart."""
    query = query_of(arguments)
    app = application(arguments, query)
    told = arguments.get("processing.log") or {}
    if not told.get("topic"):
        return HeldRun(app, spark)
    writing = Writing(query.id, str(told["topic"]), bool(told.get("rows")))
    return LoggedRun(app, spark, query.query, Review(query.query, _registry(arguments["registry"])), writing)


class LoggedRun(HeldRun):
    """With what it leaves out told in the processing log."""

    def __init__(
        self, app: StreamsApp, spark: "SparkSession", query: TypedQuery, review: Review, writing: Writing
    ) -> None:
        super().__init__(app, spark)
        self._topics = sorted({source.topic for source in query.reads()})
        reach = app.config.reach("main.consumer")
        self._look = SecondLook(review, writing, reach.cluster, self.progress)

    def run(self) -> None:
        from_beginning = self._app.config["auto.offset.reset"] == "earliest"
        self._look.begin(self._app.application_id, self._topics, from_beginning=from_beginning)
        try:
            super().run()
        finally:
            self._look.end()


def application(arguments: Mapping[str, Any], query: PersistentQuery) -> StreamsApp:
    """Raises CannotStart."""
    try:
        made = topology(query.query, query.sink, _registry(arguments["registry"]))
        return StreamsApp(str(arguments["application.id"]), made, **arguments["config"])
    except (SqlError, TopologyError, ConfigError, SecurityRefused) as error:
        raise CannotStart(f"{arguments.get('query')}: {error}") from error


def query_of(arguments: Mapping[str, Any]) -> PersistentQuery:
    catalog = Catalog()
    wanted = arguments["query"]
    found: PersistentQuery | None = None
    try:
        for offset, text, properties in json.loads(Path(arguments["file"]).read_text(encoding="utf-8")):
            (statement,) = parse(text)
            for change in catalog.decide(statement, text, offset, Settings.of(properties)):
                catalog.replay(change)
            found = catalog.queries.get(wanted, found)
    except (SqlError, OSError, ValueError) as error:
        raise CannotStart(f"{wanted}: {error}") from error
    if found is None:
        raise CannotStart(f"no statement makes the query {wanted}")
    return found


def _registry(given: Mapping[str, str]) -> "Registry | None":
    file = given.get("file")
    return registry_at(given.get("url"), settings_of(Path(file)) if file else None)
