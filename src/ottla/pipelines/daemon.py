"""The process that Spark's Python workers are forked from: `python -m ottla.pipelines.daemon pyspark.worker`.

PySpark's own forks first, and each worker then imports Arrow and all else by itself: half a second and 80 MB each. Here
that is done once, before the first fork, and the workers share the memory. A fork is safe as long as there is no second
thread: `NO_THREADS` keeps the libraries of numpy and Arrow from starting one when they are imported.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Final

NO_THREADS: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Of the environment."""
NEEDED: Final = ("pyspark.worker", "ottla.pipelines.source.data_source", "ottla.pipelines.sink.writer", "pandas")
"""Pandas too: Arrow imports it when it makes its first array of a list."""


def preload(worker: str) -> None:
    """What a worker will need. Those that only plan a query (`pyspark.sql.worker...`) come and go: they get theirs."""
    for module in NEEDED if worker == "pyspark.worker" else (worker,):
        import_module(module)
    gc.collect()
    gc.freeze()


def main() -> None:
    for name, value in NO_THREADS.items():
        os.environ.setdefault(name, value)
    preload(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    from pyspark.daemon import manager  # noqa: PLC0415  it takes over what standard input and output are

    manager()


if __name__ == "__main__":
    main()
