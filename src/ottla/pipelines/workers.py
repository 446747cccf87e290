"""Python workers of Spark: processes that are kept from task to task, and what is done in each of them once."""

import gc
from typing import Final

ALLOCATIONS: Final = 1_000_000
"""Between two looks for garbage, where Python has 700."""

_settled: list[bool] = []


def settle_worker() -> None:
    """Call it in a task, when what the task needs is imported. PySpark collects garbage after every task, and going
    through the hundred thousand objects of imported modules each time takes longer than a small task itself: so they
    are put aside, once per process. For the same reason Python looks for garbage more rarely while a task runs: lists
    of some hundred thousand records are none, and to look through them took a third of the time."""
    from pyspark import TaskContext  # noqa: PLC0415  who writes without Spark comes by as well

    if not _settled and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
        _settled.append(True)
