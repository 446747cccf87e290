"""The Spark session that streams run in: one place for the settings that exactly-once and speed depend on."""

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.pipelines.job import CannotStart

LOG_LEVEL: Final = "spark.log.level"
POOL: Final = "spark.scheduler.pool"
"""Of a thread: queries that it starts share executors with those of other pools as equals."""

EXACTLY_ONCE: Final = {
    # A second attempt of a writer would meet the sequence numbers of the first: the batch is replayed instead.
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
}
"""What the sink's transaction relies on. Not for the user to change."""

STATE: Final = {
    # The default keeps all state on the heap.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Costs a look-up for each row that is written, for a number that is only shown.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
}

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Jobs of one host share the executors; each query has a pool (`spark.scheduler.pool`).
    "spark.scheduler.mode": "FAIR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # A micro-batch is small: coalescing and re-planning it cost more than they gain, and streams do without anyway.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # How long either side waits for the other's first words: 15 s are too few on a machine with much else to do.
    "spark.python.authenticate.socketTimeout": "5m",
    "spark.log.level": "ERROR",
    **STATE,
}


def new_session(app_name: str, master: str = "local[*]", **settings: str) -> SparkSession:
    """A session, or the one that runs in this process already, with `settings` (dots as underscores would be
    ambiguous: pass them as `**{"spark.sql.shuffle.partitions": "4"}`) over the defaults."""
    # Workers have to be the same Python with the same packages as the driver.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in {**_for_master(master), **settings, **EXACTLY_ONCE}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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


def is_local(master: str) -> bool:
    """Whether driver and workers are one JVM (local-cluster has several, for tests)."""
    return master == "local" or master.startswith("local[")


def _for_master(master: str) -> dict[str, str]:
    if master.startswith("local"):
        return DEFAULTS
    # On a cluster the driver is reached from other machines.
    return {name: value for name, value in DEFAULTS.items() if not name.startswith("spark.driver.")}
