"""Python workers of Spark: processes that are kept from task to task, and what is done in each of them once."""

import gc

from pyspark import TaskContext

_settled: list[bool] = []


def settle_worker() -> None:
    """Call it in a task, when what the task needs is imported. PySpark collects garbage after every task, and going
    through the hundred thousand objects of imported modules each time takes longer than a small task itself: so they
    are put aside, once per process."""
    if not _settled and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        _settled.append(True)
