"""Between the driver and Spark: portions of work go in, one for each task, and a report of each comes out.

A query of Spark's needs a source that knows whether there is something to do. One written in Python would be a process
of its own for each query (80 MB, asked twice a second); here the driver finds out by itself, and what Spark asks is a
list in its own memory (its MemoryStream). Asking that costs 0.4 ms. It is no public class: where it lies was looked up
in Spark 4.2 and 4.3, and a Spark that has it elsewhere is refused by name.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ottla.pipelines.job import CannotStart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMN: Final = "report"
MEMORY_STREAM: Final = "org.apache.spark.sql.execution.streaming.runtime.MemoryStream"
_ARROW: Final = pa.schema([(COLUMN, pa.binary())])

Work = Callable[[Any], object]
"""What a task does with its portion; what it returns is the report. It is sent to Spark's workers as bytes, with all
that it knows: options of Spark's would be shown in plans and logs, and there are secrets among it."""


class Feed:
    """Of one query. What is put there stays until its batch is done."""

    __slots__ = ("_jvm", "_spark", "_stream")

    def __init__(self, spark: SparkSession) -> None:
        """Raises CannotStart where this Spark has no such list."""
        session: Any = spark
        self._spark = spark
        self._jvm: Any = session.sparkContext._jvm
        self._stream = _new_stream(self._jvm, session)

    def reports(self, work: Work) -> DataFrame:
        """A row for each portion that was put, as a stream."""
        from pyspark.sql import DataFrame  # noqa: PLC0415

        rows = DataFrame(self._stream.toDF(), self._spark)
        return rows.mapInArrow(_worker(work), f"{COLUMN} binary")

    def put(self, portions: Iterable[bytes]) -> None:
        """Each becomes one task. Spark may find the first ones before the last is there."""
        for portion in portions:
            one = self._jvm.java.util.ArrayList()
            one.add(portion)
            self._stream.addData(self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(one))


def _new_stream(jvm: Any, session: Any) -> Any:
    from py4j.java_gateway import JavaClass  # noqa: PLC0415  the driver's alone
    from py4j.protocol import Py4JError  # noqa: PLC0415

    found = jvm
    for name in MEMORY_STREAM.split("."):
        found = getattr(found, name)
    if isinstance(found, JavaClass):  # what is not there is taken for a package
        try:
            return found.apply(jvm.org.apache.spark.sql.Encoders.BINARY(), session._jsparkSession)
        except Py4JError:
            pass  # it is made in another way there
    raise CannotStart(
        f"connectors run on Spark 4.2 and 4.3; this is Spark {session.version}, whose {MEMORY_STREAM} is not the same: "
        "install pyspark 4.3 beside ottla"
    )


def reports_of(rows: DataFrame) -> list[Any]:
    """Runs the batch: its one action."""
    return [pickle.loads(row[0]) for row in rows.collect()]


def packed(portions: Sequence[object]) -> list[bytes]:
    return [pickle.dumps(portion, pickle.HIGHEST_PROTOCOL) for portion in portions]


def _worker(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for portion in batch.column(0):
                report = pickle.dumps(work(pickle.loads(portion.as_py())))
                yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], schema=_ARROW)

    return run
