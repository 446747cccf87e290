"""The part of Produce that only topics have whose records are validated: a judgement before anything is appended."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from ottla.broker.partition import Partition
from ottla.broker.services import Services
from ottla.broker.validation import Passed
from ottla.model.errors import Errors
from ottla.protocol.messages import ProduceRequest
from ottla.storage.answers import Rejected

BY_TOPIC_ID = 13


@dataclass(slots=True)
class Judged:
    refused: dict[Partition, Rejected] = field(default_factory=dict)
    sieved: dict[Partition, None] = field(default_factory=dict)
    """Their batches were replaced by what is left of them."""


def validated(
    services: Services, request: ProduceRequest, version: int, topic_error: Callable[[str], Errors | None]
) -> Coroutine[Any, Any, Judged]:
    """Who may not write, or asks somebody who does not lead, is told so later, and costs the registry nothing."""
    for topic in request.topic_data:
        for data in topic.partition_data:  # a view of the socket's buffer does not outlive this call
            data.records = memoryview(bytearray(data.records)) if data.records is not None else None
    return _judged(services, request, version, topic_error)


async def _judged(
    services: Services, request: ProduceRequest, version: int, topic_error: Callable[[str], Errors | None]
) -> Judged:
    validation, replicas, judged = services.validation, services.replicas, Judged()
    assert validation is not None
    for topic in request.topic_data:
        known = replicas.by_id.get(topic.topic_id) if version >= BY_TOPIC_ID else replicas.by_name.get(topic.name)
        if known is None or topic_error(known.name) is not None:
            continue
        for data in {data.index: data for data in topic.partition_data}.values():  # of two for one, the last: as Kafka
            partition = known.partitions.get(data.index)
            if partition is None or partition.leader is None or partition.log is None or data.records is None:
                continue
            if partition.log.config.validation is None:
                continue
            verdict = await validation.judge(known.name, partition.log.config, data.records)
            if isinstance(verdict, Rejected):
                judged.refused[partition] = verdict
            elif isinstance(verdict, Passed):
                data.records = memoryview(verdict.batch)
                judged.sieved[partition] = None
    return judged
