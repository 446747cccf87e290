"""A stream, a table or a topic as a data frame of its columns: key, value, headers, and what each record is known by.

Records that cannot be read are left out, as everywhere in SQL. A table is the newest row of each key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.pipelines.source.data_source import FORMAT, OttlaDataSource
from ottla.serdes.base import Serde
from ottla.serdes.primitives import BytesSerde, StringSerde
from ottla.sql.history.text import Bounds
from ottla.sql.model import BOUNDS, DataSource
from ottla.sql.records import Formats
from ottla.sql.undeclared import RAW
from ottla.streams.run.serde_columns import decoded

if TYPE_CHECKING:
    from ottla.registry.lookup import Registry

_PLACE: Final = ("partition", "offset")


@dataclass(frozen=True, slots=True)
class Reach:
    """How topics are reached."""

    bootstrap: str
    options: Mapping[str, str]
    """More of the source's, of those that name users and certificates."""


def source_frame(
    spark: SparkSession, source: DataSource, reach: Reach, registry: "Registry | None", bounds: Bounds | None = None
) -> DataFrame:
    records = _records(spark, source, reach, bounds)
    formats = Formats(registry)
    keys: Serde[Any] | None = formats.key(source) if source.keys else None
    values: Serde[Any] = BytesSerde() if source.value_format.name == RAW else formats.value(source)
    read = records.select(
        *([decoded(keys, F.col("key")).alias("k")] if keys is not None else []),
        decoded(values, F.col("value")).alias("v"),
        F.unix_millis("timestamp").alias("ROWTIME"),
        F.col("partition").alias("ROWPARTITION"),
        F.col("offset").alias("ROWOFFSET"),
        *([F.col("headers")] if source.headers else []),
    )
    for name, serde in (("k", keys), ("v", values)):
        if serde is not None and not isinstance(serde, BytesSerde | StringSerde):
            read = read.where(F.col(name)["error"].isNull())
    rows = _newest(read) if source.is_table else read.where(F.col("v")["value"].isNotNull())
    return rows.select(*_columns(source), "ROWTIME", "ROWPARTITION", "ROWOFFSET")


def _records(spark: SparkSession, source: DataSource, reach: Reach, bounds: Bounds | None) -> DataFrame:
    OttlaDataSource.register(spark)
    options = {"kafka.bootstrap.servers": reach.bootstrap, "subscribe": source.topic, **reach.options}
    options["includeHeaders"] = "true" if source.headers else "false"
    options["isolationLevel"] = "read_committed"
    if bounds is not None and bounds.of_time:
        # By the index of times, as far as that goes: a record before the first as new may be as new itself.
        options["startingTimestamp"] = str(bounds.start)
    read = spark.read.format(FORMAT).options(**options).load()
    if bounds is None:
        return read
    place: Column = F.unix_millis("timestamp") if bounds.of_time else F.col("offset")
    return read.where(place.between(bounds.start, bounds.end))


def _newest(read: DataFrame) -> DataFrame:
    """Of each key; a tombstone ends it."""
    place = F.struct("ROWOFFSET")
    rest = [name for name in read.columns if name != "k"]
    kept = F.max_by(F.struct(*rest), place).alias("row")
    newest = read.where(F.col("k")["value"].isNotNull()).groupBy(F.col("k")["value"].alias("key")).agg(kept)
    rows = newest.select(
        F.struct(F.col("key").alias("value")).alias("k"), *[F.col("row")[each].alias(each) for each in rest]
    )
    return rows.where(F.col("v")["value"].isNotNull())


def _columns(source: DataSource) -> list[Column]:
    key, value = F.col("k")["value"], F.col("v")["value"]
    whole = key["key"] if source.window is not None else key
    columns = [(whole if len(source.keys) == 1 else whole[name]).alias(name) for name, kind in source.keys]
    if source.value_format.name in (RAW, "KAFKA") and len(source.values) == 1:
        ((name, _),) = source.values
        columns.append((value if source.value_format.name == RAW else value[name]).alias(name))
    else:
        columns += [value[name].alias(name) for name, kind in source.values]
    for header in source.headers:
        columns.append(_header(header.key).alias(header.name))
    if source.window is not None:
        columns += [key[part].alias(name) for name, part in zip(BOUNDS, ("start", "end"), strict=True)]
    return columns


def _header(key: str | None) -> Column:
    if key is None:
        return F.coalesce(F.col("headers"), F.array())
    alike = F.filter(F.col("headers"), lambda each: each["key"] == key)
    return F.try_element_at(alike, F.lit(-1))["value"]
