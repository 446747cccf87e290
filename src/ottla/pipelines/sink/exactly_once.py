"""The sink for any query of Spark's: a function for `foreachBatch`. docs/PIPELINES.md tells how to use it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from ottla.client.reach import Reach
from ottla.pipelines.checkpoint import checkpoint_of_query, offsets_of_batch, query_id_of
from ottla.pipelines.sink.sink import TransactionalSink, packed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def exactly_once(
    *,
    bootstrap_servers: str,
    topic: str | None = None,
    group_id: str | None = None,
    transactional_id: str | None = None,
    checkpoint: str | None = None,
    client: Mapping[str, str] | None = None,
    **options: Any,
) -> Callable[[DataFrame, int], None]:
    """For `df.writeStream.foreachBatch(exactly_once(...))`: each micro-batch goes into Kafka as one transaction,
    whatever the source is. Raises ValueError where that cannot be promised.

    Rows have the columns `value`, and if wanted `key`, `topic`, `partition`, `headers`, `timestamp`; `topic` here is
    for rows without one. With `group_id` the offsets of a Kafka source are committed too, so that tools show its lag.
    `checkpoint` is the query's checkpointLocation, if it is not to be asked for. `client` has Kafka's client settings:
    `security.protocol`, `sasl.*`, `ssl.*`. `options` are those of TransactionalSink.
    """
    if is_remote():
        raise ValueError("exactly_once needs the driver of a classic Spark session: over Spark Connect it cannot write")
    reach = Reach.of(bootstrap_servers, client or {})
    found: _Sink | None = None

    def write(rows: DataFrame, batch_id: int) -> None:
        nonlocal found
        if found is None:
            place = checkpoint or checkpoint_of_query(rows.sparkSession)
            found = _Sink(place, reach, group_id, transactional_id, options)
        found.write(_with_topic(rows, topic), batch_id)

    return write


class _Sink:
    """Of one query, from its first batch on."""

    __slots__ = ("__weakref__", "_checkpoint", "_group_id", "_sink")

    def __init__(
        self, checkpoint: str, reach: Reach, group_id: str | None, name: str | None, options: dict[str, Any]
    ) -> None:
        query_id = query_id_of(checkpoint)
        self._checkpoint = checkpoint
        self._group_id = group_id
        self._sink = TransactionalSink(
            reach=reach, transactional_id=name or f"spark-{query_id}", group_id=group_id, **options
        )
        # A query ends without a word to its function: connections are closed when nobody has it any more.
        weakref.finalize(self, self._sink.close)
        self._sink.open(query_id, name or query_id)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        offsets = offsets_of_batch(self._checkpoint, batch_id) if self._group_id is not None else {}
        self._sink.write(packed(rows), batch_id, offsets)


def _with_topic(rows: DataFrame, topic: str | None) -> DataFrame:
    if topic is None:
        return rows
    given = F.coalesce(F.col("topic"), F.lit(topic)) if "topic" in rows.columns else F.lit(topic)
    return rows.withColumn("topic", given)
