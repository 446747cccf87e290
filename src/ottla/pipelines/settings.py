"""What Spark is told when a session begins: what exactly-once and speed depend on. Known before pyspark is imported."""

from collections.abc import Mapping
from typing import Final

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
    # A batch that runs again (brokers away, a process that died) has files of its own, in place of writing into those
    # that an earlier attempt left, whose snapshots may still be under way. Checkpoints of format 1 stay what they are.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.minBatchesToRetain": "10",
}

LOCAL_CHECKPOINT: Final = {
    # Spark's first choice goes by Hadoop's FileContext, which asks other programs about links and modes of local files:
    # `readlink` 8 times and `chmod` twice for each file that is made, and a small batch makes three. This one needs the
    # `chmod` only. Files, checksums and the rename beneath are the same.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Hadoop's files have checksums, and are checked when they are read: two files less for each partition and batch.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""Of a query whose checkpoint is a folder. Elsewhere it is for Spark to know how files come into being whole."""

COMPILED: Final = "spark.sql.codegen.wholeStage"
"""Whether operators of a query are written as one Java function. That is done again for each batch, though it comes out
the same, and found compiled: a tenth of what the driver does for a small one. It pays where there are many rows."""

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Jobs of one host share the executors; each query has a pool (`spark.scheduler.pool`).
    "spark.scheduler.mode": "FAIR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # A product keeps the digits behind the point that its type says, or is null.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # A document may have fields whose names differ in their letters' case alone.
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "2",
    # A micro-batch is small: coalescing and re-planning it cost more than they gain, and streams do without anyway.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # How long either side waits for the other's first words: 15 s are too few on a machine with much else to do.
    "spark.python.authenticate.socketTimeout": "5m",
    # For each batch its plans are told as texts, which nobody reads: in the shortest form there is.
    "spark.sql.ui.explainMode": "simple",
    # Looks through the whole plan after each of a hundred rules, for defects of the rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
    **STATE,
}

LOCAL: Final = {
    # Workers are forked from a process that has imported what they need. Machines of a cluster may be without ottla.
    "spark.python.daemon.module": "ottla.pipelines.daemon",
}


def session_settings(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Those of a session that is told `given`."""
    return {**_for_master(master), **given, **EXACTLY_ONCE}


def is_local(master: str) -> bool:
    """Whether driver and workers are one JVM (local-cluster has several, for tests)."""
    return master == "local" or master.startswith("local[")


def _for_master(master: str) -> dict[str, str]:
    if is_local(master):
        return {**DEFAULTS, **LOCAL}
    if master.startswith("local"):
        return DEFAULTS
    # On a cluster the driver is reached from other machines.
    return {name: value for name, value in DEFAULTS.items() if not name.startswith("spark.driver.")}
