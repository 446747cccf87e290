"""A small query over the sink that dies where it is told to: in the test's own session, or as a process to be killed.

As a program: python -m tests.spark.sink_app BOOTSTRAP DIRECTORY TOPIC POINT BATCH
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.client.reach import Reach
from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.delivery import Delivery
from ottla.pipelines.sink.encoding import Encoded
from ottla.pipelines.sink.sink import TransactionalSink, Unpacked, Written, kafka_rows, packed
from ottla.pipelines.sink.writer import Errand, Pack, Receipt, Write
from ottla.pipelines.source.origins import Origins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AFTER_WAL: Final = "after the offsets are logged"
IN_PRODUCE: Final = "in the middle of the records"
BEFORE_END: Final = "before the transaction ends"
AFTER_END: Final = "after the transaction has ended"
NOWHERE: Final = "nowhere"
POINTS: Final = (AFTER_WAL, IN_PRODUCE, BEFORE_END, AFTER_END)

LINES: Final = 40
"""In each file, which is a batch."""
FIRST_UNPACKED: Final = 3
"""Batches before this one come in chunks."""
PARTITIONS: Final = 3
GROUP: Final = "sink-app"


class Died(Exception):
    """Stands for a process that is gone: nothing is cleaned up on the way."""


class MortalSink(TransactionalSink):
    def __init__(self, *, point: str, batch: int, die: Callable[[], None], **settings: Any) -> None:
        super().__init__(**settings)
        self._point, self._batch, self._die = point, batch, die

    def _reached(self, point: str, batch: int) -> None:
        if (point, batch) == (self._point, self._batch):
            self._die()

    def write(
        self,
        batch: "DataFrame | Unpacked",
        batch_id: int,
        offsets: Mapping[TopicPartition, int],
        origins: Origins | None = None,
    ) -> Written:
        self._reached(AFTER_WAL, batch_id)
        written = super().write(batch, batch_id, offsets, origins)
        self._reached(AFTER_END, batch_id)
        return written

    def _produce(self, batch: "DataFrame | Unpacked", batch_id: int) -> list[Receipt]:
        self._expected.small = batch_id % 2 == 0  # by the driver and by tasks in turns
        return super()._produce(batch, batch_id)

    def _task(self, errand: Errand) -> Write:
        mortal = (self._point, self._batch) == (IN_PRODUCE, errand.batch_id)
        return MortalWrite(errand, self._die) if mortal else super()._task(errand)

    def _commit(self) -> None:
        self._reached(BEFORE_END, self._batch if self._batch == self.last_batch + 1 else -1)
        super()._commit()

    def _abort(self) -> None:
        """The dead do not abort."""


class MortalWrite(Write):
    __slots__ = ("_die",)

    def __init__(self, errand: Errand, die: Callable[[], None]) -> None:
        super().__init__(errand)
        self._die = die

    def send(self, delivery: Delivery, place: TopicPartition, encoded: Encoded) -> None:
        """One batch is written for certain, others are not."""
        super().send(delivery, place, encoded)
        delivery.flush()
        self._die()


class Kill:
    """SIGKILL for the driver, wherever this is called."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __call__(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        raise Died


def die() -> None:
    raise Died


def input_of(topic: str) -> TopicPartition:
    """What the query pretends to read."""
    return TopicPartition(f"{topic}-input", 0)


def write_input(directory: Path, files: int) -> list[str]:
    """Files that Spark reads one by one, in this order. Gives all their lines."""
    directory.mkdir()
    lines = [f"line-{number:05}" for number in range(files * LINES)]
    for number in range(files):
        path = directory / f"{number}.txt"
        path.write_text("\n".join(lines[number * LINES : (number + 1) * LINES]))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return lines


def run(spark: "SparkSession", directory: Path, sink: TransactionalSink, topic: str) -> None:
    """Until all files are read, or the sink dies."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(directory / "in"))
    number = F.substring("value", 6, 5).cast("int")
    rows = lines.select(
        (number % 7).cast("string").alias("key"), "value", F.lit(topic).alias("topic"), number.alias("timestamp")
    )
    opened = False

    def write(batch: "DataFrame", batch_id: int) -> None:
        nonlocal opened
        if not opened:
            sink.open(topic, "sink app")
            opened = True
        given = packed(batch) if batch_id < FIRST_UNPACKED else Unpacked(kafka_rows(batch), LINES, Pack())
        sink.write(given, batch_id, {input_of(topic): (batch_id + 1) * LINES})

    query = (
        rows.writeStream.option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(write)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
        sink.close()


def mortal_sink(bootstrap: str, topic: str, point: str, batch: int, death: Callable[[], None]) -> MortalSink:
    return MortalSink(
        reach=Reach(bootstrap),
        transactional_id=topic,
        group_id=f"{GROUP}-{topic}",
        max_batch_bytes=400,  # several batches for each partition
        point=point,
        batch=batch,
        die=death,
    )


def main(bootstrap: str, directory: str, topic: str, point: str, batch: str) -> None:
    from ottla.pipelines.session import new_session  # noqa: PLC0415

    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark = new_session("mortal", "local[2]", **{"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": quick})
    run(spark, Path(directory), mortal_sink(bootstrap, topic, point, int(batch), Kill(os.getpid())), topic)


if __name__ == "__main__":
    main(*sys.argv[1:])
