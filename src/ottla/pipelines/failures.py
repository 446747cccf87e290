"""What went wrong in a query, in words: out of a trace of Java and Python, the line that a person needs."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from ottla.client.transacting import Fenced
from ottla.pipelines.full_disks import is_of_full_disk

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
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Failed|Fenced|TimedOut|Lost|Answer|Unreachable|NotKafka)): "
    r"(.*(?:\n  +\S.*)*)$",
    re.MULTILINE,
)
"""With the lines of a user's file that a message of ours brings along, which are indented."""
_CALLING: Final = "An error occurred while calling"
"""Py4j's word for whatever Java throws: it says no more than that, the causes below it do."""
_CAUSE: Final = re.compile(r"^(?:Caused by)?: (?:[\w.$]+\.)?([\w$]+: .*\S)", re.MULTILINE)
_BROKERS: Final = re.compile(
    r"\b(?:Unreachable|ConnectionLost|TimedOut|TransactionTimedOut): "
    r"|\((?:NETWORK_EXCEPTION|REQUEST_TIMED_OUT|LEADER_NOT_AVAILABLE|NOT_LEADER_OR_FOLLOWER|COORDINATOR_NOT_AVAILABLE"
    r"|COORDINATOR_LOAD_IN_PROGRESS|NOT_COORDINATOR|CONCURRENT_TRANSACTIONS)\)"
)
"""Brokers that are away, and come back."""
SLOW_WORKER: Final = "Python worker failed to connect back"
"""Spark gives a new process ten seconds, too short on a busy machine: a slow one is waited for as brokers are."""
WORKER_ENDED: Final = "Python worker exited unexpectedly"
"""It crashed, or somebody killed it."""
_MACHINES: Final = (
    WORKER_ENDED,
    "ExecutorLostFailure",
    "FetchFailed",
    "Missing an output location for shuffle",
    "Could not find CoarseGrainedScheduler",
    "Lost executor",
)
"""A process or a machine of Spark's that died: others do its work."""
RESTARTS: Final = 3
"""In a row: what kills a process again and again is in the query itself."""


class Restarts:
    """Whether a query that failed is started again: nothing of its batch is out, or its marker tells."""

    __slots__ = ("_left", "_patience_s", "_since")

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._left = RESTARTS
        self._since: float | None = None

    def succeeded(self) -> None:
        """A batch is out."""
        self._left = RESTARTS
        self._since = None

    def may(self, error: BaseException, now: float) -> bool:
        text = before_query(error)
        if was_fenced(error) or told_by_us(error) is not None or is_of_full_disk(text):
            return False
        if any(said in text for said in _MACHINES) and self._left:
            self._left -= 1
            return True
        if SLOW_WORKER not in text and _BROKERS.search(text) is None:
            return False
        self._since = now if self._since is None else self._since
        return now - self._since < self._patience_s


def quieten(spark: SparkSession) -> None:
    """Spark logs a failure four times over, with hundreds of lines each; whoever runs the query tells it once."""
    jvm: Any = spark.sparkContext._jvm
    logging4j = jvm.org.apache.logging.log4j
    for name in LOUD:
        logging4j.core.config.Configurator.setLevel(name, logging4j.Level.OFF)
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)


def was_fenced(error: BaseException) -> bool:
    """Whether a successor writes in the query's place: to come back would fence that one."""
    return isinstance(error, Fenced) or Fenced.__name__ in before_query(error)


def told_by_us(error: BaseException) -> str | None:
    """What a task of ours said between its marks."""
    found = _OURS.findall(before_query(error))
    return found[-1] if found else None


def told(error: BaseException) -> str:
    """Our own words if there are any, else the last exception of Python's or what Java told it, else the first line."""
    ours = told_by_us(error)
    if ours is not None:
        return ours
    text = before_query(error)
    found = _PYTHON.findall(text)
    if found:
        kind, message = found[-1]
        return (_cause(text) if message.startswith(_CALLING) else None) or str(message or kind)
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)


def _cause(text: str) -> str | None:
    """The innermost of Java's, or one around it that quotes it: that one knows what it was about."""
    causes = _CAUSE.findall(text)
    told: str | None = causes.pop() if causes else None
    while causes and told is not None and told.partition(": ")[2] in causes[-1]:
        told = causes.pop()
    return told


def before_query(error: BaseException) -> str:
    return str(error).partition("=== Streaming Query ===")[0]
