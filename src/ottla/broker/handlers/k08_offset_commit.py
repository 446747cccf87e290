"""OffsetCommit: where a group has read to. Topics must exist; by id from v10 on (KIP-848).

Versions 2 to 10. 2 may say how long offsets are kept, 5 leaves that to the broker (KIP-211); 6 keeps leader epochs
(KIP-320); 7 knows static members (KIP-345); 8 is flexible; 9 may say STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND and 10
names topics by id (KIP-848).
"""

from asyncio import Future
from typing import Any, TypeAlias

from ottla.broker.coordination.coordinators import turned
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.coordinator.group.commits import CommitTopic
from ottla.coordinator.group.offsets import AskedCommit, CommitReply
from ottla.metadata.image import TopicImage
from ottla.model.errors import Errors
from ottla.model.permissions import READ_GROUP, READ_TOPIC
from ottla.protocol import ordinary_commit
from ottla.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.ordinary_commit import CommitAck, OrdinaryCommit
from ottla.runtime.coordinator import CoordinatorError

DECODERS = ordinary_commit.DECODERS

TopicResponse: TypeAlias = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse: TypeAlias = OffsetCommitResponse.OffsetCommitResponsePartition
Topic: TypeAlias = OffsetCommitRequest.OffsetCommitRequestTopic
Answer: TypeAlias = OffsetCommitResponse | CommitAck

BY_TOPIC_ID = 10


def handle(
    services: Services, session: Session, request: OrdinaryCommit | OffsetCommitRequest, version: int
) -> "Answer | Future[Answer]":
    if not isinstance(request, OrdinaryCommit):
        return _in_detail(services, session, request, version)
    asked = _asked(services, session, request, version)
    if asked is None:
        return _in_detail(services, session, request.in_full(version), version)
    try:
        reply = services.coordination.groups.runner_for(asked.group_id).submit(
            lambda shard, now: shard.commit_offsets(asked, version, now)
        )
    except CoordinatorError as refused:
        return _told(asked, CommitReply(refused.error))
    if type(reply) is CommitReply:
        return _told(asked, reply) if reply.error else CommitAck(request.topics)
    assert isinstance(reply, Future)
    topics = request.topics  # the rest is a view of the socket's buffer, which does not outlive this call
    return turned(
        reply,
        lambda known: _told(asked, known) if known.error else CommitAck(topics),
        lambda error: _told(asked, CommitReply(error)),
    )


def _asked(services: Services, session: Session, request: OrdinaryCommit, version: int) -> AskedCommit | None:
    """None, and nothing has happened: it takes a closer look."""
    may = session.client.may
    group_id, generation, member_id, instance_id, asked, _, _ = request
    if not may(*READ_GROUP, group_id):
        return None
    image = services.control_plane.image
    topics: list[CommitTopic] = []
    known: Any = image.topics_by_id if version >= BY_TOPIC_ID else image.topics
    for name_or_id, rows in asked:
        topic: TopicImage | None = known.get(name_or_id)
        if topic is None or not may(*READ_TOPIC, topic.name):
            return None
        partitions = topic.partitions
        for row in rows:
            if row[0] not in partitions:
                return None
        topics.append((topic.name, topic.id, rows))
    return AskedCommit(group_id, generation, member_id, instance_id, topics)


# ---- whatever is not ordinary


def _in_detail(
    services: Services, session: Session, request: OffsetCommitRequest, version: int
) -> "Answer | Future[Answer]":
    if not session.client.may(*READ_GROUP, request.group_id):
        return OffsetCommitResponse(
            topics=[_refused(topic, Errors.GROUP_AUTHORIZATION_FAILED) for topic in request.topics]
        )
    refused = _take_out_unknown(services, session, request, version)
    if not request.topics and refused:
        return OffsetCommitResponse(topics=refused)
    asked = asked_in_full(request)

    def response(reply: CommitReply) -> Answer:
        return _merge(_told(asked, reply), refused)

    try:
        outcome = services.coordination.groups.runner_for(asked.group_id).submit(
            lambda shard, now: shard.commit_offsets(asked, version, now)
        )
    except CoordinatorError as error:
        return response(CommitReply(error.error))
    if isinstance(outcome, Future):
        return turned(outcome, response, lambda error: response(CommitReply(error)))
    return response(outcome)


def asked_in_full(request: OffsetCommitRequest) -> AskedCommit:
    return AskedCommit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        [
            (
                topic.name,
                topic.topic_id,
                [
                    (each.partition_index, each.committed_offset, each.committed_leader_epoch)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        {
            (topic.name, each.partition_index): each.committed_metadata
            for topic in request.topics
            for each in topic.partitions
            if each.committed_metadata
        },
        request.retention_time_ms,
    )


def _told(asked: AskedCommit, reply: CommitReply) -> OffsetCommitResponse:
    too_large = dict.fromkeys(reply.too_large, Errors.OFFSET_METADATA_TOO_LARGE)
    return OffsetCommitResponse(
        topics=[
            TopicResponse(
                name, topic_id, [PartitionResponse(row[0], too_large.get((name, row[0]), reply.error)) for row in rows]
            )
            for name, topic_id, rows in asked.topics
        ]
    )


def _take_out_unknown(
    services: Services, session: Session, request: OffsetCommitRequest, version: int
) -> list[TopicResponse]:
    """Leaves in the request what can be committed; the rest comes back with its error."""
    image = services.control_plane.image
    refused: list[TopicResponse] = []
    good: list[Topic] = []
    for topic in request.topics:
        known = image.topics_by_id.get(topic.topic_id) if version >= BY_TOPIC_ID else image.topics.get(topic.name)  # type: ignore[call-overload]
        if known is None and version >= BY_TOPIC_ID:
            refused.append(_refused(topic, Errors.UNKNOWN_TOPIC_ID))
            continue
        # Before anything is said of a name: who may not read a topic does not learn whether there is one.
        if not session.client.may(*READ_TOPIC, topic.name if known is None else known.name):
            refused.append(_refused(topic, Errors.TOPIC_AUTHORIZATION_FAILED))
            continue
        if known is None:
            refused.append(_refused(topic, Errors.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic.name, topic.topic_id = known.name, known.id
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
