"""What a Spark cluster has to have before an application runs on it: told at the start, in words, not by a batch."""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from ottla.pipelines.installed import INSTALL, CannotRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_TASKS: Final = 16
"""That look: with a few more than there are machines most of them are asked."""


def check_workers(spark: SparkSession, folder: str | None) -> None:
    """Raises CannotRun when workers cannot import ottla, or do not see `folder`, where state lies: on a disk of its own
    each of them would have a part of it."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    token = None if folder is None else Path(folder, f".seen-by-workers-{token_hex(4)}")
    if token is not None:
        token.parent.mkdir(parents=True, exist_ok=True)
        token.touch()
    context = spark.sparkContext
    tasks = min(max(context.defaultParallelism, 2), MOST_TASKS)
    try:
        answers = context.parallelize(range(tasks), tasks).map(_Look(None if token is None else str(token))).collect()
    except (Py4JJavaError, PySparkException) as error:
        python = os.environ.get("PYSPARK_PYTHON", "python3")
        if "No module named" in str(error) or "Cannot run program" in str(error):
            raise CannotRun(
                f"Spark's workers cannot run ottla by {python}: {INSTALL} on each of them, and name "
                "that Python by -X spark.pyspark.python=PATH if it is another one"
            ) from error
        raise
    finally:
        if token is not None:
            token.unlink(missing_ok=True)
    blind = sorted({host for host, seen in answers if not seen})
    if blind:
        raise CannotRun(
            f"state.dir: {folder} is not the same folder on {', '.join(blind)} as here. On a cluster it has to be one "
            "that all machines share: a mounted file system, or a URL that Spark knows (s3a://, hdfs://)"
        )


class _Look:
    """In a task: the machine's name, and whether it sees the file."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def __call__(self, _: int) -> tuple[str, bool]:
        import ottla.streams.run.stages  # noqa: F401, PLC0415  with all that it needs

        return os.uname().nodename, self._path is None or os.path.exists(self._path)
