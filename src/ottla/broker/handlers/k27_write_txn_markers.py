"""WriteTxnMarkers: other coordinators end transactions on partitions led here, and administrators hanging ones.

Versions 1 and 2. 1 is flexible; 2 says by which rules the transaction was written (KIP-1228).
"""

from asyncio import Future
from functools import partial
from typing import TypeAlias

from ottla.broker.coordination.markers import Marker, Results
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.ids import TopicPartition
from ottla.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

MarkerResult: TypeAlias = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult: TypeAlias = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
PartitionResult: TypeAlias = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
Asked: TypeAlias = WriteTxnMarkersRequest.WritableTxnMarker


def handle(
    services: Services, session: Session, request: WriteTxnMarkersRequest, version: int
) -> "WriteTxnMarkersResponse | Future[WriteTxnMarkersResponse]":
    results: dict[int, Results] = {}
    left = len(request.markers)
    future: Future[WriteTxnMarkersResponse] = services.waiting.loop.create_future()

    def written(producer_id: int, found: Results) -> None:
        nonlocal left
        results.setdefault(producer_id, {}).update(found)
        left -= 1
        if not left and not future.done():
            future.set_result(_response(results))

    for asked in request.markers:
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        services.coordination.markers.write(marker, _partitions(asked), partial(written, asked.producer_id))
    if not left:
        return _response(results)
    return future


def _partitions(asked: Asked) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]


def _response(results: dict[int, Results]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[MarkerResult(producer_id, _topics(found)) for producer_id, found in results.items()]
    )


def _topics(found: Results) -> list[TopicResult]:
    topics: dict[str, list[PartitionResult]] = {}
    for partition, error in found.items():
        topics.setdefault(partition.topic, []).append(PartitionResult(partition.partition, error))
    return [TopicResult(name, partitions) for name, partitions in topics.items()]
