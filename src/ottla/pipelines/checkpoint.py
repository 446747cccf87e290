"""What a query's checkpoint tells: its id, and up to which offsets of its sources a batch reaches.

Spark's own files: `metadata` holds the id, `offsets/N` what batch N reads, one line for each source behind a line of
settings. Read as Spark reads them, from a directory or from any file system that Spark knows (`files`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.model.ids import TopicPartition
from ottla.pipelines.files import keep_text, names_in, read_text
from ottla.pipelines.source.offsets import MORE, from_json, to_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTHING: Final = "-"
"""Spark's mark for a source that had nothing yet."""


def checkpoint_of_query(session: SparkSession) -> str:
    """Where the query keeps it whose batch is written by this thread. Raises ValueError outside of a batch."""
    query_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
    shared: Any = session._jsparkSession.sharedState()
    for query in shared.activeStreamingQueries().values():
        if str(query.id()) == query_id:
            return str(query.resolvedCheckpointRoot())
    raise ValueError(
        "no streaming query is writing a batch here: pass this function to writeStream.foreachBatch, "
        "or name its checkpointLocation by checkpoint=..."
    )


def query_id_of(checkpoint: str) -> str:
    """Raises ValueError where no query has begun."""
    try:
        found = json.loads(read_text(f"{checkpoint}/metadata"))["id"]
    except FileNotFoundError as error:
        raise ValueError(
            f"{checkpoint} is not the checkpoint of this query: it has to be what the option checkpointLocation says"
        ) from error
    return str(found)


def offsets_of_batch(checkpoint: str, batch_id: int) -> dict[TopicPartition, int]:
    """For each partition that the batch reads from Kafka, the offset it reads up to (the next one to read). Sources
    that are not Kafka's are left out; a partition that two sources read counts with the lower one."""
    lines = read_text(f"{checkpoint}/offsets/{batch_id}").splitlines()
    ends: dict[TopicPartition, int] = {}
    for line in lines[2:]:
        for place, offset in _kafka_offsets(line).items():
            ends[place] = min(offset, ends.get(place, offset))
    return ends


class Batches(NamedTuple):
    """The last batch that was begun, and the last one that is done. None: none was."""

    begun: int | None
    done: int | None


def batches_of(checkpoint: str) -> Batches:
    return Batches(*(max(_numbers(f"{checkpoint}/{folder}"), default=None) for folder in ("offsets", "commits")))


def _numbers(folder: str) -> list[int]:
    return [int(name) for name in names_in(folder) if name.isdigit()]


def kept_offsets(path: str) -> dict[TopicPartition, int]:
    """Raises FileNotFoundError."""
    return from_json(read_text(path))


def keep_offsets(path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Beside a checkpoint."""
    keep_text(path, json.dumps(to_json(offsets)))


def _kafka_offsets(line: str) -> dict[TopicPartition, int]:
    """Both our source and the JVM connector write {"topic": {"0": 17}}."""
    if line.strip() in ("", _NOTHING):
        return {}
    try:
        topics = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(topics, dict):
        return {}
    ends: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if topic.startswith(MORE):
            continue
        if not isinstance(partitions, dict):
            return {}
        for partition, offset in partitions.items():
            if not (partition.isdigit() and isinstance(offset, int)):
                return {}
            ends[TopicPartition(topic, int(partition))] = offset
    return ends
