"""OffsetFetch: the committed offsets of one group, or from v8 on of many at once.

Versions 1 to 10. 2 may ask for all topics and has an error for the group (KIP-88); 5 tells leader epochs (KIP-320); 6
is flexible; 7 waits for what transactions have open (KIP-447); 8 asks for many groups (KIP-709); 9 tells member and
epoch and 10 names topics by id (KIP-848).
"""

import asyncio
from asyncio import Future
from collections.abc import Coroutine
from typing import Any, TypeAlias

from ottla.broker.coordination.groups import ask
from ottla.broker.front.session import Session
from ottla.broker.services import Services
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID
from ottla.model.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from ottla.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

AskedGroup: TypeAlias = OffsetFetchRequest.OffsetFetchRequestGroup
AskedTopic: TypeAlias = OffsetFetchRequest.OffsetFetchRequestTopics
FoundGroup: TypeAlias = OffsetFetchResponse.OffsetFetchResponseGroup
FoundTopic: TypeAlias = OffsetFetchResponse.OffsetFetchResponseTopics
FoundPartition: TypeAlias = OffsetFetchResponse.OffsetFetchResponsePartitions

BATCHED = 8
BY_TOPIC_ID = 10
GROUP_ERROR_FROM = 2


def handle(
    services: Services, session: Session, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    groups = request.groups if version >= BATCHED else [_only(request)]
    found = [_fetch(services, session, group, request.require_stable, version) for group in groups]
    if any(isinstance(group, Future) for group in found):
        return _later(services, session, groups, found, version)
    return _response(services, session, groups, found, version)


def _only(request: OffsetFetchRequest) -> AskedGroup:
    topics = request.topics
    return AskedGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [AskedTopic(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )


def _fetch(
    services: Services, session: Session, group: AskedGroup, require_stable: bool, version: int
) -> "FoundGroup | Future[FoundGroup]":
    if not session.client.may(*DESCRIBE_GROUP, group.group_id):
        return FoundGroup(group_id=group.group_id, error_code=Errors.GROUP_AUTHORIZATION_FAILED)
    refused = _take_out_unknown(services, session, group, version)
    outcome = ask(
        services.coordination.groups,
        group.group_id,
        lambda shard, _: shard.fetch_offsets(group, require_stable),
        lambda error: FoundGroup(group_id=group.group_id, error_code=error),
    )
    if refused:
        if isinstance(outcome, Future):
            outcome.add_done_callback(lambda done: None if done.cancelled() else _add(done.result(), refused))
        else:
            _add(outcome, refused)
    return outcome


def _take_out_unknown(services: Services, session: Session, group: AskedGroup, version: int) -> list[FoundTopic]:
    if group.topics is None:
        return []
    refused: list[FoundTopic] = []
    good: list[AskedTopic] = []
    for topic in group.topics:
        if version >= BY_TOPIC_ID:
            known = services.control_plane.image.topics_by_id.get(topic.topic_id)  # type: ignore[call-overload]
            if known is None:
                refused.append(_refused(topic, Errors.UNKNOWN_TOPIC_ID))
                continue
            topic.name = known.name
        if _visible(session, topic.name):
            good.append(topic)
        else:
            refused.append(_refused(topic, Errors.TOPIC_AUTHORIZATION_FAILED))
    group.topics = good
    return refused


def _visible(session: Session, topic: str) -> bool:
    return session.client.may(*DESCRIBE_TOPIC, topic)


def _refused(topic: AskedTopic, error: Errors) -> FoundTopic:
    return FoundTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[FoundPartition(index, -1, -1, "", error) for index in topic.partition_indexes],
    )


def _add(group: FoundGroup, refused: list[FoundTopic]) -> None:
    if not group.error_code:
        group.topics += refused


async def _later(
    services: Services, session: Session, groups: list[AskedGroup], found: list[Any], version: int
) -> OffsetFetchResponse:
    waiting = [group for group in found if isinstance(group, Future)]
    await asyncio.gather(*waiting)
    done = [group.result() if isinstance(group, Future) else group for group in found]
    return _response(services, session, groups, done, version)


def _response(
    services: Services, session: Session, groups: list[AskedGroup], found: list[Any], version: int
) -> OffsetFetchResponse:
    for asked, group in zip(groups, found, strict=True):
        if asked.topics is None:
            group.topics = [topic for topic in group.topics if _named(services, session, topic, version)]
    if version >= BATCHED:
        return OffsetFetchResponse(groups=found)
    return _single(groups[0], found[0], version)


def _named(services: Services, session: Session, topic: FoundTopic, version: int) -> bool:
    """Whether an offset that nobody asked for by name may be told, and can be at this version."""
    if version >= BY_TOPIC_ID and topic.topic_id == ZERO_UUID:
        known = services.control_plane.image.topics.get(topic.name)
        if known is None:
            return False
        topic.topic_id = known.id
    return _visible(session, topic.name)


def _single(asked: AskedGroup, group: FoundGroup, version: int) -> OffsetFetchResponse:
    topics = group.topics
    if group.error_code and version < GROUP_ERROR_FROM:
        # v1 has no place for a group's error but the partitions.
        topics = [_refused(topic, Errors(group.error_code)) for topic in asked.topics or []]
    return OffsetFetchResponse(
        error_code=group.error_code if version >= GROUP_ERROR_FROM else 0,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.metadata,
                        partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
