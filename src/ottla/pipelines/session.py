"""The Spark session that streams run in."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.pipelines import jvm
from ottla.pipelines.job import CannotStart
from ottla.pipelines.settings import EXACTLY_ONCE, LOG_LEVEL, is_local, session_settings


def new_session(app_name: str, master: str = "local[*]", **settings: str) -> SparkSession:
    """A session, or the one that runs in this process already, with `settings` (dots as underscores would be
    ambiguous: pass them as `**{"spark.sql.shuffle.partitions": "4"}`) over the defaults."""
    # Workers have to be the same Python with the same packages as the driver.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    chosen = session_settings(master, settings)
    jvm.begin(master, chosen)
    jvm.connect()
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if LOG_LEVEL not in settings:  # as a setting of Spark's it would be announced
        session.sparkContext.setLogLevel("ERROR")
    if is_local(master):
        Thread(target=_warm, args=(session,), name="warm", daemon=True).start()
    return session


def _warm(session: SparkSession) -> None:
    """The process that Python workers are forked from takes half a second to come up, and much of Spark is loaded by
    the first job: both while the first query is still being made."""
    with suppress(Exception):  # of a session that has ended again, say; who uses it is told what is wrong with it
        session.range(0, 1, 1, 1).mapInArrow(_as_it_is, "id long").toArrow()


def _as_it_is(batches: Iterator[Any]) -> Iterator[Any]:
    return batches


def with_settings(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """The session with further settings. Raises CannotStart for one that a running SparkContext cannot take."""
    for name, value in settings.items():
        if session.conf.get(name, None) == value:
            continue
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise CannotStart(
                f"{name}={value} cannot be set in a Spark host that runs already: it belongs to the whole process. "
                "Leave it out, or run this job in a host of its own"
            ) from error
    return session


def check_session(session: SparkSession) -> None:
    """Raises ValueError for a session of somebody else's making in which the sink could not keep its promise."""
    conf = session.sparkContext.getConf()
    if is_local(conf.get("spark.master", "")):
        return
    for name, wanted in EXACTLY_ONCE.items():
        if conf.get(name, _SPARKS_OWN[name]) != wanted:
            raise ValueError(f"exactly once needs {name}={wanted}: a task that is run twice would write twice")


_SPARKS_OWN: Final = {
    "spark.task.maxFailures": "4",
    "spark.stage.maxConsecutiveAttempts": "4",
    "spark.speculation": "false",
}
