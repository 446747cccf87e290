"""What an administrator asks about groups: which there are, who is in them, what they have read, and to forget them.

Groups live at their coordinators, so every call first finds the broker that keeps a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla.client.cluster import ANY, Cluster
from ottla.client.errors import KafkaError, TimedOut, UnsupportedApi, check, known
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError, Message

R = TypeVar("R", bound=Message)

GROUP: Final = 0
_ADMIN_GENERATION: Final = -1
_BATCHED_FIND: Final = 4
_BATCHED_FETCH: Final = 8
_BY_NAME: Final = 9
"""The last version of OffsetCommit and OffsetFetch that names topics; later ones know only their ids."""
_MOVED: Final = (
    Errors.NOT_COORDINATOR,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
)


class ListedGroup(NamedTuple):
    name: str
    kind: str
    """Classic, Consumer; empty if the broker does not say."""
    protocol: str
    state: str
    coordinator: int


class Member(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class Group(NamedTuple):
    name: str
    kind: str
    state: str
    protocol: str
    """The protocol that members agreed on, or the server's assignor."""
    epoch: int | None
    """None for a classic group, whose generation is not told."""
    coordinator: int
    members: tuple[Member, ...]


class Offset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str


def list_groups(cluster: Cluster, states: Sequence[str] = (), kinds: Sequence[str] = ()) -> list[ListedGroup]:
    """Of every broker, by name."""
    found: list[ListedGroup] = []
    for broker in _brokers(cluster):
        request = messages.ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))
        response = _ask(cluster, broker, request, messages.ListGroupsResponse, "the list of groups")
        found += [
            ListedGroup(group.group_id, group.group_type, group.protocol_type, group.group_state, broker)
            for group in response.groups
        ]
    return sorted(found)


def _brokers(cluster: Cluster) -> list[int]:
    if not cluster.brokers:
        cluster.metadata([])
    return sorted(cluster.brokers)


def _ask(cluster: Cluster, broker: int, request: Message, response: type[R], what: str) -> R:
    """One request to one coordinator, asked again while it loads."""
    deadline = cluster.deadline()
    while True:
        answer = cluster.call(request, response, broker=broker)
        code: int = getattr(answer, "error_code", 0)
        if code not in _MOVED:
            check(code, what)
            return answer
        deadline.pause(what, KafkaError(known(code), what))


def coordinator(cluster: Cluster, group: str) -> int:
    deadline = cluster.deadline()
    _brokers(cluster)
    while True:
        request = messages.FindCoordinatorRequest(key_type=GROUP)
        if cluster.connection(ANY, deadline).version_for(messages.FindCoordinatorRequest) < _BATCHED_FIND:
            request.key = group
        else:
            request.coordinator_keys = [group]
        response = cluster.call(request, messages.FindCoordinatorResponse)
        found = response.coordinators[0] if response.coordinators else None
        error = known(response.error_code if found is None else found.error_code)
        node = response.node_id if found is None else found.node_id
        if not error:
            if node not in cluster.brokers:
                cluster.metadata([])
            return node
        if error not in _MOVED:
            raise KafkaError(error, f"group {group}")
        deadline.pause(f"finding the coordinator of {group}", KafkaError(error, f"group {group}"))


def describe(cluster: Cluster, name: str) -> Group:
    """Raises KafkaError with GROUP_ID_NOT_FOUND for a group that nobody keeps."""
    deadline = cluster.deadline()
    while True:
        broker = coordinator(cluster, name)
        try:
            return _describe_consumer(cluster, name, broker) or _describe_classic(cluster, name, broker)
        except KafkaError as error:
            if error.error not in _MOVED:
                raise
            deadline.pause(f"describing {name}", error)


def _describe_consumer(cluster: Cluster, name: str, broker: int) -> Group | None:
    request = messages.ConsumerGroupDescribeRequest(group_ids=[name])
    try:
        response = cluster.call(request, messages.ConsumerGroupDescribeResponse, broker=broker)
    except UnsupportedApi:
        return None
    (group,) = response.groups
    if group.error_code in (Errors.GROUP_ID_NOT_FOUND, Errors.UNSUPPORTED_VERSION):
        return None
    check(group.error_code, f"group {name}", group.error_message)
    members = tuple(
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(topic.topic_name, index)
                for topic in member.assignment.topic_partitions
                for index in sorted(topic.partitions)
            ),
        )
        for member in group.members
    )
    return Group(name, "Consumer", group.group_state, group.assignor_name, group.group_epoch, broker, members)


def _describe_classic(cluster: Cluster, name: str, broker: int) -> Group:
    response = cluster.call(
        messages.DescribeGroupsRequest(groups=[name]), messages.DescribeGroupsResponse, broker=broker
    )
    (group,) = response.groups
    check(group.error_code, f"group {name}", group.error_message)
    if group.group_state == "Dead":
        raise KafkaError(Errors.GROUP_ID_NOT_FOUND, f"group {name}")
    members = tuple(
        Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _assignment(member.member_assignment) if group.protocol_type == "consumer" else (),
        )
        for member in group.members
    )
    return Group(name, "Classic", group.group_state, group.protocol_data, None, broker, members)


def _assignment(blob: bytes) -> tuple[TopicPartition, ...]:
    """What a classic consumer was given; nothing if these are not a consumer's bytes."""
    try:
        assignment = messages.ConsumerProtocolAssignment.decode(blob, 0, 2) if len(blob) > 2 else None
    except DecodeError:
        return ()
    return tuple(
        TopicPartition(topic.topic, index)
        for topic in (assignment.assigned_partitions if assignment is not None else ())
        for index in sorted(topic.partitions)
    )


def committed(cluster: Cluster, name: str) -> dict[TopicPartition, Offset]:
    """Every offset that the group has committed."""
    return _known_ones(_committed(cluster, name, None))


def decided(cluster: Cluster, name: str, places: Sequence[TopicPartition]) -> dict[TopicPartition, Offset]:
    """What the group has committed of these, once no transaction is open that commits some of them (KIP-447). They have
    to be named: a broker that is asked for all tells nothing of what has never been committed before.
    Raises TimedOut."""
    deadline = cluster.deadline()
    while True:
        found = _committed(cluster, name, places)
        undecided = next((place for place, offset in found.items() if offset is None), None)
        if undecided is None:
            return _known_ones(found)
        deadline.pause(f"reading the offsets of {name}", KafkaError(Errors.UNSTABLE_OFFSET_COMMIT, str(undecided)))


def _known_ones(found: Mapping[TopicPartition, Offset | None]) -> dict[TopicPartition, Offset]:
    return {place: offset for place, offset in found.items() if offset is not None and offset.offset >= 0}


def _committed(
    cluster: Cluster, name: str, places: Sequence[TopicPartition] | None
) -> dict[TopicPartition, Offset | None]:
    """Of all partitions, or of those that are named; then None stands for what is not decided."""
    broker = coordinator(cluster, name)
    named: dict[str, list[int]] = {}
    for place in places or ():
        named.setdefault(place.topic, []).append(place.partition)
    kind, stable = messages.OffsetFetchRequest, places is not None
    if cluster.connection(broker, cluster.deadline()).version_for(kind) < _BATCHED_FETCH:
        topics = [kind.OffsetFetchRequestTopic(topic, indexes) for topic, indexes in named.items()]
        request = kind(group_id=name, topics=topics if stable else None, require_stable=stable)
    else:
        many = [kind.OffsetFetchRequestTopics(topic, partition_indexes=indexes) for topic, indexes in named.items()]
        asked = kind.OffsetFetchRequestGroup(group_id=name, topics=many if stable else None)
        request = kind(groups=[asked], require_stable=stable)
    response = cluster.call(request, messages.OffsetFetchResponse, broker=broker, at_most=_BY_NAME)
    check(response.error_code, f"group {name}")
    for group in response.groups:
        check(group.error_code, f"group {name}")
    found: dict[TopicPartition, Offset | None] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            found[TopicPartition(topic.name, partition.partition_index)] = _offset(partition)
    for group in response.groups:
        for asked_topic in group.topics:
            for each in asked_topic.partitions:
                found[TopicPartition(asked_topic.name, each.partition_index)] = _offset(each)
    return found


def _offset(
    partition: messages.OffsetFetchResponse.OffsetFetchResponsePartition
    | messages.OffsetFetchResponse.OffsetFetchResponsePartitions,
) -> Offset | None:
    if partition.error_code == Errors.UNSTABLE_OFFSET_COMMIT:
        return None
    if partition.error_code:
        return Offset(-1, -1, "")
    return Offset(partition.committed_offset, partition.committed_leader_epoch, partition.metadata or "")


def commit(
    cluster: Cluster, name: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, KafkaError | None]:
    """Sets offsets of a group that has no members."""
    kind = messages.OffsetCommitRequest
    topics: dict[str, messages.OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for place, offset in offsets.items():
        topic = topics.setdefault(place.topic, kind.OffsetCommitRequestTopic(name=place.topic))
        topic.partitions.append(
            kind.OffsetCommitRequestPartition(
                partition_index=place.partition, committed_offset=offset, committed_metadata=""
            )
        )
    request = kind(group_id=name, generation_id_or_member_epoch=_ADMIN_GENERATION, topics=list(topics.values()))
    response = cluster.call(request, messages.OffsetCommitResponse, broker=coordinator(cluster, name), at_most=_BY_NAME)
    return {
        TopicPartition(topic.name, partition.partition_index): KafkaError(
            known(partition.error_code), f"{topic.name}-{partition.partition_index} of group {name}"
        )
        if partition.error_code
        else None
        for topic in response.topics
        for partition in topic.partitions
    }


def delete(cluster: Cluster, names: Sequence[str]) -> dict[str, KafkaError | None]:
    """Empty groups, with their offsets."""
    outcomes: dict[str, KafkaError | None] = {}
    for name in names:
        try:
            broker = coordinator(cluster, name)
        except (KafkaError, TimedOut) as error:
            outcomes[name] = error if isinstance(error, KafkaError) else KafkaError(Errors.REQUEST_TIMED_OUT, name)
            continue
        request = messages.DeleteGroupsRequest(groups_names=[name])
        (result,) = cluster.call(request, messages.DeleteGroupsResponse, broker=broker).results
        error_code = known(result.error_code)
        outcomes[name] = KafkaError(error_code, f"group {name}") if error_code else None
    return outcomes
