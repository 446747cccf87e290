"""OffsetCommit: where a group has read to. Topics must exist; by id from v10 on (KIP-848)."""

from asyncio import Future
from typing import TypeAlias

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.security.authorizer import Operation, Resource
from ottla.broker.services import Services
from ottla.coordinator.group.offsets import commit_error
from ottla.model.errors import Errors
from ottla.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

NEEDS = (Operation.READ, Resource.GROUP)

TopicResponse: TypeAlias = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse: TypeAlias = OffsetCommitResponse.OffsetCommitResponsePartition
Topic: TypeAlias = OffsetCommitRequest.OffsetCommitRequestTopic

BY_TOPIC_ID = 10


def handle(
    services: Services, session: Session, request: OffsetCommitRequest, version: int
) -> "OffsetCommitResponse | Future[OffsetCommitResponse]":
    if not services.authorizer.allows(session.principal, session.host, *NEEDS, request.group_id):
        return commit_error(request, Errors.GROUP_AUTHORIZATION_FAILED)
    refused = _take_out_unknown(services, session, request, version)
    if not request.topics and refused:
        return OffsetCommitResponse(topics=refused)
    outcome = ask(
        services.groups,
        request.group_id,
        lambda shard, now: shard.commit_offsets(request, version, now),
        lambda error: commit_error(request, error),
    )
    if not refused:
        return outcome
    if isinstance(outcome, Future):
        outcome.add_done_callback(lambda done: None if done.cancelled() else _merge(done.result(), refused))
        return outcome
    return _merge(outcome, refused)


def _take_out_unknown(
    services: Services, session: Session, request: OffsetCommitRequest, version: int
) -> list[TopicResponse]:
    """Leaves in the request what can be committed; the rest comes back with its error."""
    image = services.control_plane.image
    refused: list[TopicResponse] = []
    good: list[Topic] = []
    for topic in request.topics:
        known = image.topics_by_id.get(topic.topic_id) if version >= BY_TOPIC_ID else image.topics.get(topic.name)  # type: ignore[call-overload]
        if known is None:
            unknown = Errors.UNKNOWN_TOPIC_ID if version >= BY_TOPIC_ID else Errors.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refused(topic, unknown))
            continue
        topic.name, topic.topic_id = known.name, known.id
        if not services.authorizer.allows(session.principal, session.host, Operation.READ, Resource.TOPIC, topic.name):
            refused.append(_refused(topic, Errors.TOPIC_AUTHORIZATION_FAILED))
            continue
        partitions = known.partitions
        missing = [asked for asked in topic.partitions if asked.partition_index not in partitions]
        if missing:
            topic.partitions = [asked for asked in topic.partitions if asked.partition_index in partitions]
            gone = Topic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
            refused.append(_refused(gone, Errors.UNKNOWN_TOPIC_OR_PARTITION))
        if topic.partitions:
            good.append(topic)
    if refused:
        request.topics = good
    return refused


def _refused(topic: Topic, error: Errors) -> TopicResponse:
    return TopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[PartitionResponse(asked.partition_index, error) for asked in topic.partitions],
    )


def _merge(response: OffsetCommitResponse, refused: list[TopicResponse]) -> OffsetCommitResponse:
    """A topic is named once in a response, with all of its partitions."""
    by_id = {(topic.name, topic.topic_id): topic for topic in response.topics}
    for topic in refused:
        known = by_id.get((topic.name, topic.topic_id))
        if known is None:
            response.topics.append(topic)
        else:
            known.partitions += topic.partitions
    return response
