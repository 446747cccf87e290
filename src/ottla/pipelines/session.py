"""The Spark session that streams run in."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Final

from py4j.java_gateway import JavaClass
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import LongType, StructField, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from ottla.pipelines import jvm
from ottla.pipelines.job import CannotStart
from ottla.pipelines.settings import EXACTLY_ONCE, LOG_LEVEL, is_local, session_settings

WITHOUT_SERVICE: Final = "ottla.WithoutService"
EXTENSIONS: Final = "org.apache.spark.sql.SparkSessionExtensionsProvider"
MACHINE_LEARNING: Final = "pyspark.ml"
_ONE_NUMBER: Final = StructType([StructField("id", LongType())])


def new_session(app_name: str, master: str = "local[*]", **settings: str) -> SparkSession:
    """A session, or the one that runs in this process already, with `settings` (dots as underscores would be
    ambiguous: pass them as `**{"spark.sql.shuffle.partitions": "4"}`) over the defaults."""
    # Workers have to be the same Python with the same packages as the driver.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    chosen = session_settings(master, settings)
    jvm.begin(master, chosen)
    jvm.connect()
    session = _begun({"spark.app.name": app_name, "spark.master": master, **chosen})
    if LOG_LEVEL not in settings:  # as a setting of Spark's it would be announced
        session.sparkContext.setLogLevel("ERROR")
    if is_local(master):
        Thread(target=_warm, args=(session,), name="warm", daemon=True).start()
    return session


def _begun(chosen: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    context = SparkContext.getOrCreate(SparkConf().setAll(list(chosen.items())))
    with _without_extensions(context):
        return builder.getOrCreate()


@contextmanager
def _without_extensions(context: SparkContext) -> Iterator[None]:
    """Extensions that the class path offers: Spark's own is of machine learning alone (it makes a column of a vector),
    and looks through Scala's types for it. Those that `spark.sql.extensions` names are not concerned."""
    jvm: Any = context._jvm
    hiding: Any = getattr(jvm, WITHOUT_SERVICE)
    if MACHINE_LEARNING in sys.modules or not isinstance(hiding, JavaClass):
        yield
        return
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(hiding(before, EXTENSIONS))
    try:
        yield
    finally:
        thread.setContextClassLoader(before)


def _warm(session: SparkSession) -> None:
    """The process that Python workers are forked from takes half a second to come up, and much of Spark is loaded by
    the first job: both while the first query is still being made."""
    with suppress(Exception):  # of a session that has ended again, say; who uses it is told what is wrong with it
        rows = session.range(0, 1, 1, 1)
        # What `mapInArrow` does, but that it imports pandas first.
        function = UserDefinedFunction(_as_it_is, _ONE_NUMBER, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        insides: Any = rows
        made = insides._jdf.mapInArrow(function(rows["id"])._jc, False, None)
        ClassicDataFrame(made, session).toArrow()


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
