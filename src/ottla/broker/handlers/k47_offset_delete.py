"""OffsetDelete: forgets committed offsets of topics that the group does not read.

Version 0 only. Not flexible.
"""

from asyncio import Future
from typing import TypeAlias

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.permissions import DELETE_GROUP, READ_TOPIC
from ottla.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

AskedTopic: TypeAlias = OffsetDeleteRequest.OffsetDeleteRequestTopic
TopicResponse: TypeAlias = OffsetDeleteResponse.OffsetDeleteResponseTopic
PartitionResponse: TypeAlias = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(
    services: Services, session: Session, request: OffsetDeleteRequest, version: int
) -> "OffsetDeleteResponse | Future[OffsetDeleteResponse]":
    if not session.client.may(*DELETE_GROUP, request.group_id):
        return _error(Errors.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _error(Errors.INVALID_GROUP_ID)
    refused = _take_out_unknown(services, session, request)
    groups = services.coordination.groups
    outcome = ask(groups, request.group_id, lambda shard, _: shard.delete_offsets(request), _error)
    if isinstance(outcome, Future):
        outcome.add_done_callback(lambda done: None if done.cancelled() else _merge(done.result(), refused))
        return outcome
    return _merge(outcome, refused)


def _take_out_unknown(services: Services, session: Session, request: OffsetDeleteRequest) -> list[TopicResponse]:
    refused: list[TopicResponse] = []
    good: list[AskedTopic] = []
    for topic in request.topics:
        known = services.control_plane.image.topics.get(topic.name)
        partitions = {} if known is None else known.partitions
        error = Errors.UNKNOWN_TOPIC_OR_PARTITION
        if not session.client.may(*READ_TOPIC, topic.name):
            error, partitions = Errors.TOPIC_AUTHORIZATION_FAILED, {}
        missing = [asked.partition_index for asked in topic.partitions if asked.partition_index not in partitions]
        if missing:
            results = [PartitionResponse(partition_index=index, error_code=error) for index in missing]
            refused.append(TopicResponse(name=topic.name, partitions=results))
        topic.partitions = [asked for asked in topic.partitions if asked.partition_index in partitions]
        if topic.partitions:
            good.append(topic)
    request.topics = good
    return refused


def _merge(response: OffsetDeleteResponse, refused: list[TopicResponse]) -> OffsetDeleteResponse:
    if not response.error_code:
        by_name = {topic.name: topic for topic in response.topics}
        for topic in refused:
            if topic.name in by_name:
                by_name[topic.name].partitions += topic.partitions
            else:
                response.topics.append(topic)
    return response


def _error(error: Errors) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)
