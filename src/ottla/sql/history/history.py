"""SELECT over history as a data frame of Spark: every source that it names becomes a view of a session of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from ottla.client.reach import Reach as ClusterReach
from ottla.sql.analysis.refusals import meant
from ottla.sql.errors import BAD_STATEMENT, SERVER_ERROR, SqlError
from ottla.sql.history.frames import Reach, source_frame
from ottla.sql.history.sampling import Sampling
from ottla.sql.history.text import HistoryQuery, Reading, read
from ottla.sql.model import DataSource
from ottla.sql.undeclared import Undeclared

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

_CASE: Final = "spark.sql.caseSensitive"
SETTINGS: Final = {
    _CASE: "false",  # as SQL has it
    "spark.sql.runSQLOnFiles": "false",  # topics are read, not the files of whoever runs this
    "spark.sql.session.timeZone": "UTC",
}
Look = Callable[[str], "Undeclared | None"]
"""What a topic that nobody declared looks like; None if there is no such topic."""


@dataclass(slots=True)
class History:
    spark: SparkSession
    reach: Reach
    sources: Mapping[str, DataSource]
    look: Look
    registry: "Registry | None" = None
    guessed: list[Undeclared] = field(default_factory=list)
    """What was found about topics of the last query that nobody declared."""

    @staticmethod
    def over(
        spark: SparkSession,
        bootstrap: str,
        sources: Mapping[str, DataSource],
        registry: "Registry | None" = None,
        options: Mapping[str, str] | None = None,
        look: Look | None = None,
    ) -> "History":
        """In a session of its own beside the given one, over the topics of a cluster."""
        session = spark.newSession()
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        looked = look or Sampling(ClusterReach(bootstrap), registry)
        return History(session, Reach(bootstrap, options or {}), sources, looked, registry)

    def frame(self, text: str) -> DataFrame:
        """Raises SqlError. Nothing is computed before somebody asks for rows."""
        query = read(text)
        self.guessed.clear()
        sources = [each.view for each in query.reads if self._view(each)]
        try:
            return self.spark.sql(query.text(sources))
        except (AnalysisException, ParseException) as error:
            raise SqlError(BAD_STATEMENT, words_of(error), text) from None

    def rows(self, text: str, limit: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns, and at most so many rows."""
        frame = self.frame(text)
        try:
            return frame.columns, [tuple(row) for row in frame.limit(limit).collect()]
        except PySparkException as error:
            raise SqlError(SERVER_ERROR, words_of(error), text) from None

    def _view(self, reading: Reading) -> bool:
        """Whether the name is that of a source, which is a view now."""
        source = self._source(reading)
        if source is None:
            return False
        # Records are read with names of both cases; who asks writes them in any.
        self.spark.conf.set(_CASE, "true")
        try:
            frame = source_frame(self.spark, source, self.reach, self.registry, reading.bounds)
        finally:
            self.spark.conf.set(_CASE, SETTINGS[_CASE])
        frame.createOrReplaceTempView("`" + reading.view.replace("`", "``") + "`")
        return True

    def _source(self, reading: Reading) -> DataSource | None:
        """A source, else a topic. None: a name of the query's own, a CTE; if it is none Spark says so."""
        known = self.sources.get(reading.name)
        if known is not None:
            return known
        for topic in dict.fromkeys((reading.written, reading.written.lower(), reading.name)):
            found = self.look(topic)
            if found is not None:
                self.guessed.append(found)
                return found.source
        if reading.bounds is not None:
            near = meant(reading.name, self.sources)
            raise SqlError(BAD_STATEMENT, f"there is no stream, table or topic {reading.written}{near}")
        return None


def words_of(error: PySparkException) -> str:
    """What Spark says, without its plan and the place in its own code."""
    text = str(error.getMessage() or error)
    return text.partition("\n\nJVM stacktrace")[0].partition(";\n'")[0].strip().splitlines()[0]


__all__ = ["History", "HistoryQuery"]
