"""For a worker that stands by: one batch of nothing, so that the first connector does not wait for what Spark's first
query takes (classes, compiled code, Python processes with all that tasks import)."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.connect.jobs.feed import Feed, packed, reports_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST_S: Final = 120.0
GLANCE_S: Final = 2.0


def start(spark: SparkSession, arguments: Mapping[str, Any]) -> WarmUp:
    return WarmUp(spark, Path(arguments["directory"]))


class WarmUp:
    """A job that ends by itself."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._feed = Feed(spark)
        self._directory = directory
        self._ended = threading.Event()

    def run(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._feed.put(packed([None]))
        rows = self._feed.reports(_import_what_tasks_use)
        query = rows.writeStream.option("checkpointLocation", str(self._directory)).foreachBatch(self._collect).start()
        for _ in range(int(LONGEST_S / GLANCE_S)):
            if self._ended.wait(GLANCE_S) or not query.isActive:
                break
        query.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _collect(self, rows: DataFrame, batch_id: int) -> None:
        try:
            reports_of(rows)
        finally:
            self._ended.set()

    def stop(self) -> None:
        self._ended.set()

    def progress(self) -> Mapping[str, Any]:
        return {}


def _import_what_tasks_use(_: object) -> None:
    from ottla.connect.jobs import sink_task, source_task  # noqa: F401, PLC0415  in Spark's worker
