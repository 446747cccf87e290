"""A SELECT over history as a job of a Spark host: `ottla.sql.history.job:start`.

Its arguments are in a file, since a catalog may be long; what it finds goes line by line into another, which the server
follows: a head with the columns, then an array for each row, at the end what was guessed, or what was wrong. The topics
that nobody declared are named by the server, which has asked whether the sender may read them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from pyspark.errors import PySparkException

from ottla.client.errors import ClientError
from ottla.client.reach import Reach as ClusterReach
from ottla.client.security import settings_of
from ottla.pipelines.job import CannotStart
from ottla.sql.catalog import Catalog, Settings
from ottla.sql.errors import SERVER_ERROR, SqlError
from ottla.sql.history.history import History, words_of
from ottla.sql.history.results import kind_of, row_of
from ottla.sql.history.sampling import Sampling
from ottla.sql.history.types import as_json
from ottla.sql.parser import parse
from ottla.sql.plain import json_text
from ottla.sql.registry import registry_at
from ottla.sql.undeclared import Undeclared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FLUSH_ROWS: Final = 500


def start(spark: "SparkSession", arguments: Mapping[str, Any]) -> "HistoryWork":
    """Raises CannotStart."""
    try:
        asked = json.loads(Path(arguments["asked"]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CannotStart(f"what was asked cannot be read: {error}") from error
    return HistoryWork(spark, asked, Path(arguments["answer"]))


class HistoryWork:
    def __init__(self, spark: "SparkSession", asked: Mapping[str, Any], answer: Path) -> None:
        self._spark = spark
        self._asked = asked
        self._answer = answer
        self._group = f"history-{answer.stem}"

    def run(self) -> None:
        """What goes wrong is part of the answer: whoever asked is told, and the job has done its work."""
        with self._answer.open("w", encoding="utf-8") as file:
            try:
                self._spark.sparkContext.setJobGroup(self._group, "SQL over history", interruptOnCancel=True)
                self._write(file)
            except SqlError as error:
                place = {"line": error.line, "column": error.column}
                file.write(json.dumps({"error": {"code": error.code, "message": error.message, **place}}) + "\n")
            except (PySparkException, ClientError) as error:
                words = words_of(error) if isinstance(error, PySparkException) else str(error)
                file.write(json.dumps({"error": {"code": SERVER_ERROR, "message": words}}) + "\n")

    def _write(self, file: TextIO) -> None:
        history = self._history()
        frame = history.frame(self._asked["text"])
        columns = [[each.name, as_json(kind_of(each.dataType))] for each in frame.schema.fields]
        guessed = [[each.source.topic, each.because, each.statement] for each in history.guessed]
        file.write(json.dumps({"columns": columns, "guessed": guessed}) + "\n")
        file.flush()
        sent = self._write_rows(file, frame)
        file.write(json.dumps({"end": sent}) + "\n")

    def _write_rows(self, file: TextIO, frame: "DataFrame") -> int:
        """One more than is allowed, so that the server sees that there are more."""
        plain, sent = row_of(frame.schema), 0
        for row in frame.limit(self._asked["rows"] + 1).toLocalIterator(prefetchPartitions=True):
            file.write(json_text(plain(row)) + "\n")
            sent += 1
            if sent % _FLUSH_ROWS == 0:
                file.flush()
        return sent

    def _history(self) -> History:
        asked = self._asked
        catalog = Catalog()
        for offset, text, properties in asked["statements"]:
            (statement,) = parse(text)
            for change in catalog.decide(statement, text, offset, Settings.of(properties)):
                catalog.replay(change)
        file = asked["registry"].get("file")
        registry = registry_at(asked["registry"].get("url"), settings_of(Path(file)) if file else None)
        reach = ClusterReach(asked["bootstrap"], asked["settings_file"])
        options = {"clientSettingsFile": reach.settings_file} if reach.settings_file else {}
        look = Allowed(Sampling(reach, registry), asked["topics"])
        return History.over(self._spark, reach.servers, catalog.sources, registry, options, look)

    def stop(self) -> None:
        self._spark.sparkContext.cancelJobGroup(self._group)

    def progress(self) -> Mapping[str, Any]:
        return {}


class Allowed:
    """A look at topics that the sender may read, by the names that the text has; for others there is nothing."""

    def __init__(self, look: Sampling, topics: Mapping[str, str]) -> None:
        self._look = look
        self._topics = topics

    def __call__(self, name: str) -> Undeclared | None:
        return self._look(self._topics[name]) if name in self._topics else None
