"""What went wrong in a query, in words: out of a trace of Java and Python, the line that a person needs."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from ottla.client.transacting import Fenced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOUD: Final = (
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.sql.execution.datasources.v2",
    "org.apache.spark.sql.execution.python.streaming",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.util.Utils",
)

_OURS: Final = re.compile(r"\[ottla\] (.*?) \[end\]", re.DOTALL)
_PYTHON: Final = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Failed|Fenced|TimedOut|Lost|Answer)): (.*)$", re.MULTILINE
)


def quieten(spark: SparkSession) -> None:
    """Spark logs a failure four times over, with hundreds of lines each; whoever runs the query tells it once."""
    jvm: Any = spark.sparkContext._jvm
    logging4j = jvm.org.apache.logging.log4j
    for name in LOUD:
        logging4j.core.config.Configurator.setLevel(name, logging4j.Level.OFF)
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)


def was_fenced(error: BaseException) -> bool:
    """Whether a successor writes in the query's place: to come back would fence that one."""
    return isinstance(error, Fenced) or Fenced.__name__ in _before_query(error)


def told_by_us(error: BaseException) -> str | None:
    """What a task of ours said between its marks."""
    found = _OURS.findall(_before_query(error))
    return found[-1] if found else None


def told(error: BaseException) -> str:
    """Our own words if there are any, else the last exception of Python's, else the first line."""
    ours = told_by_us(error)
    if ours is not None:
        return ours
    text = _before_query(error)
    found = _PYTHON.findall(text)
    if found:
        kind, message = found[-1]
        return str(message or kind)
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)


def _before_query(error: BaseException) -> str:
    return str(error).partition("=== Streaming Query ===")[0]
