"""Metadata: who leads what, and where. Creates a missing topic when both sides allow it.

Versions 0 to 13. 1 tells racks, the controller and which topics are internal; 2 the cluster's id; 4 may forbid to
create topics; 5 tells offline replicas (KIP-112); 7 leader epochs (KIP-320); 8 what one may do (KIP-430); 9 is
flexible; 10 tells topic ids and 12 takes them (KIP-516); 11 leaves the cluster's operations to DescribeCluster
(KIP-700); 13 has an error for the whole (KIP-1102).
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final, TypeAlias

from ottla.broker.front.client import Client
from ottla.broker.front.session import Session
from ottla.broker.replicas.lost_leaders import Moment
from ottla.broker.services import Services
from ottla.broker.settings.internal_topics import INTERNAL_TOPICS, internal_topic
from ottla.metadata.image import MetadataImage, TopicImage, offline_replicas
from ottla.model.errors import Errors
from ottla.model.ids import ZERO_UUID, Millis, Uuid
from ottla.model.permissions import CLUSTER_NAME, CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC, Resource
from ottla.model.topic_names import why_invalid
from ottla.protocol.messages import CreateTopicsRequest, MetadataRequest, MetadataResponse

TopicResponse: TypeAlias = MetadataResponse.MetadataResponseTopic
PartitionResponse: TypeAlias = MetadataResponse.MetadataResponsePartition

NAMES_BY_ID = 12
WITHOUT_QUOTA_ERROR: Final = 5
"""The last such version of CreateTopics."""
LOOK_SECONDS: Final = 0.002
"""A broken connection to another broker may lie in the same turn of the loop as the question, behind it."""
NOBODY: Final = -1
NOT_ASKED = -(2**31)
"""What an authorized-operations field says when nobody asked for it."""


def handle(
    services: Services, session: Session, request: MetadataRequest, version: int
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if version < NAMES_BY_ID and any(_names_by_id(asked) for asked in request.topics or ()):
        return _refuse_ids(request)
    missing = _to_create(services, session, request, version)
    if missing:
        return _create_then_answer(services, session, request, version, missing)
    names_leaders = request.topics or _asks_for_all(request, version)
    if names_leaders and len(services.control_plane.image.brokers) > 1 and services.leader_news.lost_leaders.are_told:
        return _answer_with_news(services, session, request, version)
    return _answer(services, session, request, version, {})


def _awaited_until(services: Services, request: MetadataRequest, version: int) -> Millis | None:
    """None: the request names no leader that was lost and of whom there may soon be news."""
    lost_leaders, now = services.leader_news.lost_leaders, services.clock.monotonic()
    if not lost_leaders.any(now):  # many clients ask at such a moment, and each may ask for every topic
        return None
    leaders = {
        partition.leader: None
        for topic in _asked_for(services.control_plane.image, request, version)
        for partition in topic.partitions.values()
    }
    return lost_leaders.awaited_until(leaders, now)


def _asked_for(image: MetadataImage, request: MetadataRequest, version: int) -> Iterable[TopicImage]:
    if _asks_for_all(request, version):
        return image.topics.values()
    found = [image.topics.get(t.name or "") or image.topics_by_id.get(Uuid(t.topic_id)) for t in _each_once(request)]
    return [topic for topic in found if topic is not None]


async def _answer_with_news(
    services: Services, session: Session, request: MetadataRequest, version: int
) -> MetadataResponse:
    """Who asks is likely to have lost a leader just now. This broker hears of it at the same time or a little later."""
    await asyncio.sleep(LOOK_SECONDS)
    news = services.leader_news
    moment = news.lost_leaders.moment(services.clock.monotonic()) if _is_librdkafka(session) else None
    if moment is not None:
        return _without(_answer(services, session, request, version, {}), moment)
    while (until := _awaited_until(services, request, version)) is not None:
        await news.next(until)
    return _answer(services, session, request, version, {})


def _without(answer: MetadataResponse, moment: Moment) -> MetadataResponse:
    """What these brokers led has no leader, even if it has one by now."""
    answer.brokers = [broker for broker in answer.brokers if broker.node_id not in moment.gone]
    for topic in answer.topics:
        for partition in topic.partitions:
            before = moment.before.partition(topic.name or "", partition.partition_index)
            if partition.leader_id in moment.gone or (before is not None and before.leader in moment.gone):
                partition.error_code, partition.leader_id = Errors.LEADER_NOT_AVAILABLE, NOBODY
    return answer


def _each_once(request: MetadataRequest) -> Iterable[MetadataRequest.MetadataRequestTopic]:
    """As Kafka: a topic that is named twice is told of once, and where there is an id, names alone do not count."""
    topics = request.topics or ()
    by_id = {asked.topic_id: asked for asked in topics if asked.topic_id != ZERO_UUID}
    return by_id.values() if by_id else {asked.name: asked for asked in topics}.values()


def _names_by_id(asked: MetadataRequest.MetadataRequestTopic) -> bool:
    return asked.name is None or asked.topic_id != ZERO_UUID


def _refuse_ids(request: MetadataRequest) -> MetadataResponse:
    """Versions 10 and 11 have the field but no answer without a name; Kafka refuses the whole request."""
    return MetadataResponse(
        topics=[
            TopicResponse(error_code=Errors.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id)
            for asked in request.topics or ()
        ]
    )


def _to_create(services: Services, session: Session, request: MetadataRequest, version: int) -> list[str]:
    if not request.topics or (version >= 4 and not request.allow_auto_topic_creation):
        return []
    if not services.configs.settings.get_bool("auto.create.topics.enable"):
        return []
    known = services.control_plane.image.topics
    names = (topic.name for topic in _each_once(request) if topic.name and topic.topic_id == ZERO_UUID)
    return [
        name
        for name in names
        if name not in known and why_invalid(name) is None and session.client.may(*DESCRIBE_TOPIC, name)
    ]


def _may_create(client: Client, name: str) -> bool:
    return client.sees(*CREATE_CLUSTER, CLUSTER_NAME) or client.may(*CREATE_TOPIC, name)


async def _create_then_answer(
    services: Services, session: Session, request: MetadataRequest, version: int, missing: list[str]
) -> MetadataResponse:
    errors: dict[str, int] = {
        name: Errors.TOPIC_AUTHORIZATION_FAILED for name in missing if not _may_create(session.client, name)
    }
    topics = [_creatable(services, name) for name in missing if name not in errors]
    held_ms = 0
    if topics:
        # As if asked by a client that does not know THROTTLING_QUOTA_EXCEEDED, which Metadata cannot say: KIP-599.
        created = await services.decide(
            CreateTopicsRequest(topics=topics),
            session.client,
            client_id=session.client_id,
            version=WITHOUT_QUOTA_ERROR,
        )
        held_ms = created.throttle_time_ms
        errors |= {
            topic.name: topic.error_code
            for topic in created.topics
            if topic.error_code not in (Errors.NONE, Errors.TOPIC_ALREADY_EXISTS)
        }
    answer = _answer(services, session, request, version, errors)
    answer.throttle_time_ms = held_ms
    return answer


def _creatable(services: Services, name: str) -> CreateTopicsRequest.CreatableTopic:
    """A client may look at an internal topic before any group or transaction needed it. It becomes what the coordinator
    would have made of it: with a topic's defaults, retention would take offsets away."""
    internal = internal_topic(name, services.configs.settings)
    if internal is not None:
        return internal.creatable(is_whole_cluster=services.control_plane.is_whole_cluster)
    return CreateTopicsRequest.CreatableTopic(name, num_partitions=-1, replication_factor=-1)


def _answer(
    services: Services, session: Session, request: MetadataRequest, version: int, errors: dict[str, int]
) -> MetadataResponse:
    image = services.control_plane.image
    with_operations = request.include_topic_authorized_operations
    if _asks_for_all(request, version):
        topics = [
            _topic(services, session, image, topic, with_operations)
            for topic in image.topics.values()
            if session.client.sees(*DESCRIBE_TOPIC, topic.name)
        ]
    else:
        topics = [
            _asked_topic(services, session, image, asked, errors, with_operations) for asked in _each_once(request)
        ]
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = session.client.operations(Resource.CLUSTER, CLUSTER_NAME)
    brokers = _brokers(services, session, image)
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=_any_of(brokers, services.broker_id),
        topics=topics,
        cluster_authorized_operations=operations,
    )


def _asks_for_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _any_of(brokers: list[MetadataResponse.MetadataResponseBroker], own_id: int) -> int:
    """Any broker passes an administrator's request on to the controller (KIP-500), but one that clients do not find in
    the list, because it is fenced, would leave them waiting."""
    ids = [broker.node_id for broker in brokers]
    return own_id if own_id in ids or not ids else ids[0]


def _is_librdkafka(session: Session) -> bool:
    """It alone loses track of partitions. Others are better off without the dead: Java's tools ask each in the list."""
    return session.client.software_name.startswith(("librdkafka", "confluent-kafka"))


def _brokers(
    services: Services, session: Session, image: MetadataImage
) -> list[MetadataResponse.MetadataResponseBroker]:
    now = services.clock.monotonic()
    lingering = _is_librdkafka(session)
    return [
        MetadataResponse.MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for broker in image.brokers.values()
        if (not broker.fenced or (lingering and services.leader_news.lost_leaders.lingers(broker.id, now)))
        and (endpoint := broker.listener(session.client.listener)) is not None
    ]


def _asked_topic(
    services: Services,
    session: Session,
    image: MetadataImage,
    asked: MetadataRequest.MetadataRequestTopic,
    errors: dict[str, int],
    with_operations: bool,
) -> TopicResponse:
    if asked.topic_id != ZERO_UUID:
        topic = image.topics_by_id.get(Uuid(asked.topic_id))
        if topic is None:
            return TopicResponse(error_code=Errors.UNKNOWN_TOPIC_ID, topic_id=asked.topic_id, name=None)
        if not session.client.may(*DESCRIBE_TOPIC, topic.name):
            # The name of a topic one may not see stays unknown.
            return TopicResponse(
                error_code=Errors.TOPIC_AUTHORIZATION_FAILED, topic_id=asked.topic_id, name=None, is_internal=False
            )
        return _topic(services, session, image, topic, with_operations)
    name = asked.name or ""
    if not session.client.may(*DESCRIBE_TOPIC, name):
        return TopicResponse(error_code=Errors.TOPIC_AUTHORIZATION_FAILED, name=name)
    found = image.topics.get(name)
    if found is not None:
        return _topic(services, session, image, found, with_operations)
    error = errors.get(name)
    if error is None:
        error = Errors.INVALID_TOPIC_EXCEPTION if why_invalid(name) else Errors.UNKNOWN_TOPIC_OR_PARTITION
    return TopicResponse(
        error_code=error,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=_operations(services, session, name) if with_operations else NOT_ASKED,
    )


def _topic(
    services: Services, session: Session, image: MetadataImage, topic: TopicImage, with_operations: bool
) -> TopicResponse:
    return TopicResponse(
        error_code=Errors.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, topic) for index in topic.partitions],
        topic_authorized_operations=_operations(services, session, topic.name) if with_operations else NOT_ASKED,
    )


def _operations(services: Services, session: Session, topic: str) -> int:
    return session.client.operations(Resource.TOPIC, topic)


def _partition(image: MetadataImage, index: int, topic: TopicImage) -> PartitionResponse:
    partition = topic.partitions[index]
    return PartitionResponse(
        error_code=Errors.LEADER_NOT_AVAILABLE if partition.leader < 0 else Errors.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(image, partition),
    )
