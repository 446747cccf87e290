"""The sink for any query of Spark's: a function for `foreachBatch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ottla.pipelines.checkpoint import offsets_of_batch, query_id_of
from ottla.pipelines.sink.sink import TransactionalSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def exactly_once(
    *,
    bootstrap_servers: str,
    checkpoint: str,
    topic: str | None = None,
    group_id: str | None = None,
    transactional_id: str | None = None,
    **options: Any,
) -> Callable[[DataFrame, int], None]:
    """For `df.writeStream.option("checkpointLocation", checkpoint).foreachBatch(exactly_once(...))`: each micro-batch
    goes into Kafka as one transaction, whatever the source is.

    `topic` is for rows without one. With `group_id` the offsets of a Kafka source are committed too, so that tools show
    its lag. `options` are those of TransactionalSink.
    """
    sink: TransactionalSink | None = None

    def write(rows: DataFrame, batch_id: int) -> None:
        nonlocal sink
        if sink is None:
            query_id = query_id_of(checkpoint)
            opened = TransactionalSink(
                bootstrap_servers=bootstrap_servers,
                transactional_id=transactional_id or f"spark-{query_id}",
                group_id=group_id,
                **options,
            )
            opened.open(query_id, transactional_id or query_id)
            sink = opened
        offsets = offsets_of_batch(checkpoint, batch_id) if group_id is not None else {}
        sink.write(_with_topic(rows, topic), batch_id, offsets)

    return write


def _with_topic(rows: DataFrame, topic: str | None) -> DataFrame:
    if topic is None:
        return rows
    given = F.coalesce(F.col("topic"), F.lit(topic)) if "topic" in rows.columns else F.lit(topic)
    return rows.withColumn("topic", given)
