"""The process that Spark's Python workers are forked from."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

TOLD = """
import os, sys
from ottla.pipelines.daemon import NO_THREADS, preload
os.environ.update(NO_THREADS)
preload("pyspark.worker")
print(len(os.listdir("/proc/self/task")), "pandas" in sys.modules, "pyarrow" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_what_is_imported_before_workers_are_forked_starts_no_thread() -> None:
    done = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["1", "True", "True"]
