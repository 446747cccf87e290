"""Jobs for the tests of the Spark host. Each fails while a file asks for it, at the worst of moments."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.pipelines import exactly_once, read_stream
from ottla.pipelines.job import CannotStart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def fails_while_told(flag: str) -> None:
    """As long as the file is there."""
    if Path(flag).exists():
        raise RuntimeError(f"{flag} asked for it")


def copy(spark: "SparkSession", arguments: Mapping[str, Any]) -> "StreamingQuery":
    """Copies a topic. Fails when a batch is out, and before Spark knows: it will be replayed."""
    servers, checkpoint = arguments["servers"], arguments["checkpoint"]
    rows = read_stream(
        spark,
        {"kafka.bootstrap.servers": servers, "subscribe": arguments["from"], "startingOffsets": "earliest"},
    )
    write = exactly_once(bootstrap_servers=servers, topic=arguments["to"], group_id="copy", checkpoint=checkpoint)
    return (
        rows.select("key", "value", "timestamp")
        .writeStream.queryName("copy")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(_failing(write, arguments["flag"]))
        .trigger(processingTime="100 milliseconds")
        .start()
    )


def _failing(write: "Callable[[DataFrame, int], None]", flag: str) -> "Callable[[DataFrame, int], None]":
    def failing(rows: "DataFrame", batch_id: int) -> None:
        write(rows, batch_id)
        fails_while_told(flag)

    return failing


def refused(spark: "SparkSession", arguments: Mapping[str, Any]) -> "StreamingQuery":
    raise CannotStart("the topic `nowhere` is not there: create it first")
