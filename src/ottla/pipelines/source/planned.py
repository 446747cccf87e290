"""A stream of a Python data source, planned by this very process.

For `spark.readStream.format(name)` Spark asks other Python processes: one which sources are installed, one for our
source and its schema, one for the function that reads. Each kind leaves a daemon behind, and the three of them with
their workers took 2 s of CPU and 190 MB of an application's start. All that they answer is known here, so Spark is
handed the plan that it would have made. It is made of Spark's own classes, and so belongs to the very Spark it was
written for; any other goes its own way.
"""
# ruff: noqa: PLC0415  workers come by here as well, and need none of what only a driver does

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import pyspark
from pyspark.serializers import CPickleSerializer
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import DataType

from ottla.pipelines.source.data_source import Planner, register
from ottla.pipelines.source.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

KNOWN: Final = "4.3."
"""Of Spark: the version whose insides these are."""
_SPARKS: Final = "org.apache.spark.sql"
_PYTHONS: Final = f"{_SPARKS}.execution.datasources.v2.python"
OWN_TABLE: Final = "ottla.PlannedTable"


def stream_of(spark: SparkSession, source: type[DataSource], options: Mapping[str, str]) -> DataFrame:
    """Options named in `source.own`, if it has that, are for its tasks alone. Raises what the source does about its
    options."""
    if not pyspark.__version__.startswith(KNOWN):
        register(spark, source)
        return spark.readStream.format(source.name()).options(**options).load()
    made = source(options=cast("dict[str, str]", CaseInsensitiveDict(options)))
    told = made.schema()
    schema = cast("StructType", DataType.fromDDL(told) if isinstance(told, str) else told)
    return _Insides(spark).relation(source, made, schema, options)


class _Insides:
    """Spark's classes, by the names that they have there."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._jvm: Any = self._spark._jvm

    def relation(
        self, source: type[DataSource], made: DataSource, schema: StructType, options: Mapping[str, str]
    ) -> DataFrame:
        """What `DataStreamReader.load` gives."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        told: Any = self._named(f"{_SPARKS}.types.DataType").fromJson(schema.json())
        given = self._jvm.java.util.HashMap()
        for name, value in options.items():
            given.put(name, value)
        none = self._jvm.scala.Option.empty()
        own = {name: value for name, value in options.items() if name.lower() not in getattr(source, "own", ())}
        read = bytearray(self._reading(made, schema))
        tables = self._planned_here if self._has_own_classes() else self._planned_there
        relation = self._named(f"{_SPARKS}.catalyst.streaming.StreamingRelationV2")
        plan = relation(
            none,
            source.name(),
            tables(source, told, own, read),
            self._named(f"{_SPARKS}.util.CaseInsensitiveStringMap")(given),
            self._named(f"{_SPARKS}.catalyst.types.DataTypeUtils").toAttributes(told),
            none,
            none,
            none,
            getattr(relation, "apply$default$9")(),
        )
        rows = self._named(f"{_SPARKS}.classic.Dataset").ofRows(self._spark._jsparkSession, plan)
        return ClassicDataFrame(rows, self._spark)

    def _has_own_classes(self) -> bool:
        """They are in the JVM of a local session, see `own_classes`."""
        from py4j.java_gateway import JavaClass

        return isinstance(self._named(OWN_TABLE), JavaClass)

    def _planned_here(self, source: type[DataSource], told: Any, own: Mapping[str, str], read: bytearray) -> Any:
        """The driver answers what Spark asks about a stream: the 55 MB of a process are spared, its start, and a way
        between processes for each batch."""
        from pyspark.java_gateway import ensure_callback_server_started

        from ottla.pipelines.source.planning import Planning

        ensure_callback_server_started(self._spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        planning = Planning(parse_options(CaseInsensitiveDict(own)))
        return self._named(OWN_TABLE)(source.name(), told, self._wrapped(source), read, planning)

    def _planned_there(self, source: type[DataSource], told: Any, own: Mapping[str, str], read: bytearray) -> Any:
        """The source as Spark knows it once all of its processes have answered; one of them plans each stream."""
        provider = self._named(f"{_PYTHONS}.PythonDataSourceV2")()
        provider.setShortName(source.name())
        pickler: Any = CPickleSerializer()
        pickled = pickler.dumps(Planner(cast("dict[str, str]", CaseInsensitiveDict(own))))
        created = self._named(f"{_PYTHONS}.PythonDataSourceCreationResult")(bytearray(pickled), told)
        self._set(provider, "source", self._wrapped(source))
        self._set(provider, "bitmap$0", True)  # the one before is there, and not to be looked for
        self._set(provider, "dataSourceInPython", created)
        no_partitions = self._jvm.PythonUtils.toSeq(self._jvm.java.util.ArrayList())
        provider.setReadInfo(self._named(f"{_PYTHONS}.PythonDataSourceReadInfo")(read, no_partitions))
        gateway = self._spark.sparkContext._gateway
        no_transforms = gateway.new_array(self._named(f"{_SPARKS}.connector.expressions.Transform"), 0)
        return provider.getTable(told, no_transforms, self._jvm.java.util.HashMap())

    def _wrapped(self, source: type[DataSource]) -> Any:
        from pyspark.sql.udf import _wrap_function

        return self._named(f"{_PYTHONS}.UserDefinedPythonDataSource")(_wrap_function(self._spark.sparkContext, source))

    def _reading(self, made: DataSource, schema: StructType) -> bytes:
        """The function that tasks read by, as PySpark's own planner makes it."""
        from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions

        conf = self._spark.conf
        out = io.BytesIO()
        write_read_func_and_partitions(
            out,
            reader=made.streamReader(schema),
            data_source=made,
            schema=schema,
            max_arrow_batch_size=int(conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")),
            binary_as_bytes=conf.get("spark.sql.execution.pyspark.binaryAsBytes") == "true",
        )
        out.seek(0)
        return out.read(int.from_bytes(out.read(4), "big"))

    def _named(self, name: str) -> Any:
        return getattr(self._jvm, name)

    def _set(self, holder: Any, name: str, value: Any) -> None:
        """A field that is nobody else's."""
        field = holder.getClass().getDeclaredField(name)
        field.setAccessible(True)
        field.set(holder, value)
