"""DescribeProducers: the producers a partition remembers (KIP-664).

Version 0 only.
"""

from typing import TypeAlias

from ottla.broker.front.session import Session
from ottla.broker.handlers.hints import absent_error
from ottla.broker.security.missing import missing
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import READ_TOPIC
from ottla.model.topic_names import why_invalid
from ottla.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

PartitionResponse: TypeAlias = DescribeProducersResponse.PartitionResponse


def handle(
    services: Services, session: Session, request: DescribeProducersRequest, version: int
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[_describe(services, session, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(services: Services, session: Session, topic: str, index: int) -> PartitionResponse:
    why = why_invalid(topic)
    if why:
        return PartitionResponse(partition_index=index, error_code=Errors.INVALID_TOPIC_EXCEPTION, error_message=why)
    if not session.client.may(*READ_TOPIC, topic):
        return PartitionResponse(
            partition_index=index,
            error_code=Errors.TOPIC_AUTHORIZATION_FAILED,
            error_message=missing(session.client.principal, (READ_TOPIC,), topic),
        )
    partition = services.replicas.find(topic, index)
    if partition is None:
        error = absent_error(services, topic, index)
        is_known = topic in services.control_plane.image.topics
        return PartitionResponse(
            partition_index=index, error_code=error, error_message=None if is_known else error.text
        )
    if partition.log is None:
        return PartitionResponse(partition_index=index, error_code=partition.unavailable_error())
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            DescribeProducersResponse.ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_start_offset,
            )
            for producer in partition.log.active_producers()
        ],
    )
