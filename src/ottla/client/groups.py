"""What an administrator asks about groups: which there are, who is in them, what they have read, and to forget them.

Groups live at their coordinators, so every call first finds the broker that keeps a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.errors import KafkaError, TimedOut, UnsupportedApi, check, known
from ottla.client.routing import GROUP, MOVED, Routing, asking, at_coordinator, call, metadata
from ottla.client.routing import coordinator as coordinator_of
from ottla.client.steps import ANY, Ask, Steps, begin, operation
from ottla.model.errors import Errors
from ottla.model.ids import TopicPartition
from ottla.protocol import messages
from ottla.protocol.codec import DecodeError

_ADMIN_GENERATION: Final = -1
_BATCHED_FETCH: Final = 8
_BY_NAME: Final = 9
"""The last version of OffsetCommit and OffsetFetch that names topics; later ones know only their ids."""


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


@operation
def list_groups(routing: Routing, states: Sequence[str] = (), kinds: Sequence[str] = ()) -> Steps[list[ListedGroup]]:
    """Of every broker, by name."""
    if not routing.brokers:
        yield from metadata.steps(routing, [])
    found: list[ListedGroup] = []
    for broker in sorted(routing.brokers):
        answer = yield from _listed(routing, broker, states, kinds)
        found += [
            ListedGroup(group.group_id, group.group_type, group.protocol_type, group.group_state, broker)
            for group in answer.groups
        ]
    return sorted(found)


def _listed(
    routing: Routing, broker: int, states: Sequence[str], kinds: Sequence[str]
) -> Steps[messages.ListGroupsResponse]:
    """One coordinator's, asked again while it loads."""
    request = messages.ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))
    attempts = yield from begin("the list of groups", routing.timeout_s)
    while True:
        answer = yield from call(routing, request, messages.ListGroupsResponse, broker=broker)
        error = known(answer.error_code)
        if not error.retriable:
            check(answer.error_code, "the list of groups")
            return answer
        yield from attempts.again(KafkaError(error, "the list of groups"))


@operation
def coordinator(routing: Routing, group: str) -> Steps[int]:
    return coordinator_of.steps(routing, GROUP, group)


@operation
def describe(routing: Routing, name: str) -> Steps[Group]:
    """Raises KafkaError with GROUP_ID_NOT_FOUND for a group that nobody keeps."""
    return (yield from _describe_consumer(routing, name)) or (yield from _describe_classic(routing, name))


def _describe_consumer(routing: Routing, name: str) -> Steps[Group | None]:
    kind = messages.ConsumerGroupDescribeResponse
    ask = asking(messages.ConsumerGroupDescribeRequest(group_ids=[name]), kind)
    try:
        broker, answer = yield from at_coordinator(routing, (GROUP, name), ask, kind, _described)
    except UnsupportedApi:
        return None
    except KafkaError as error:
        if error.error in (Errors.GROUP_ID_NOT_FOUND, Errors.UNSUPPORTED_VERSION):
            return None
        raise
    (group,) = answer.groups
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


def _described(
    answer: messages.ConsumerGroupDescribeResponse | messages.DescribeGroupsResponse,
) -> tuple[int, str | None]:
    (group,) = answer.groups
    return group.error_code, group.error_message


def _asked_classic(routing: Routing, name: str) -> Steps[tuple[messages.DescribeGroupsResponse.DescribedGroup, int]]:
    kind = messages.DescribeGroupsResponse
    ask = asking(messages.DescribeGroupsRequest(groups=[name]), kind)
    broker, answer = yield from at_coordinator(routing, (GROUP, name), ask, kind, _described)
    (group,) = answer.groups
    if group.group_state == "Dead":
        raise KafkaError(Errors.GROUP_ID_NOT_FOUND, f"group {name}")
    return group, broker


class RawMember(NamedTuple):
    """Of a group whose members tell each other something of their own."""

    member_id: str
    metadata: bytes
    assignment: bytes


@operation
def members_of(routing: Routing, name: str) -> Steps[list[RawMember]]:
    """Of a classic group, whatever its type. Raises KafkaError with GROUP_ID_NOT_FOUND."""
    group, _ = yield from _asked_classic(routing, name)
    return [
        RawMember(member.member_id, bytes(member.member_metadata), bytes(member.member_assignment))
        for member in group.members
    ]


def _describe_classic(routing: Routing, name: str) -> Steps[Group]:
    group, broker = yield from _asked_classic(routing, name)
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


@operation
def committed(routing: Routing, name: str) -> Steps[dict[TopicPartition, Offset]]:
    """Every offset that the group has committed."""
    return _known_ones((yield from _committed(routing, name, None)))


@operation
def decided(routing: Routing, name: str, places: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, Offset]]:
    """What the group has committed of these, once no transaction is open that commits some of them (KIP-447). They have
    to be named: a broker that is asked for all tells nothing of what has never been committed before.
    Raises TimedOut."""
    attempts = yield from begin(f"reading the offsets of {name}", routing.timeout_s)
    while True:
        found = yield from _committed(routing, name, places)
        undecided = next((place for place, offset in found.items() if offset is None), None)
        if undecided is None:
            return _known_ones(found)
        yield from attempts.again(KafkaError(Errors.UNSTABLE_OFFSET_COMMIT, str(undecided)))


def _known_ones(found: Mapping[TopicPartition, Offset | None]) -> dict[TopicPartition, Offset]:
    return {place: offset for place, offset in found.items() if offset is not None and offset.offset >= 0}


def _committed(
    routing: Routing, name: str, places: Sequence[TopicPartition] | None
) -> Steps[dict[TopicPartition, Offset | None]]:
    """Of all partitions, or of those that are named; then None stands for what is not decided."""
    named: dict[str, list[int]] = {}
    for place in places or ():
        named.setdefault(place.topic, []).append(place.partition)
    kind, stable = messages.OffsetFetchRequest, places is not None

    def make(version: int) -> messages.OffsetFetchRequest:
        if version < _BATCHED_FETCH:
            topics = [kind.OffsetFetchRequestTopic(topic, indexes) for topic, indexes in named.items()]
            return kind(group_id=name, topics=topics if stable else None, require_stable=stable)
        many = [kind.OffsetFetchRequestTopics(topic, partition_indexes=indexes) for topic, indexes in named.items()]
        asked = kind.OffsetFetchRequestGroup(group_id=name, topics=many if stable else None)
        return kind(groups=[asked], require_stable=stable)

    ask = Ask(ANY, kind, make, messages.OffsetFetchResponse, _BY_NAME)
    _, answer = yield from at_coordinator(routing, (GROUP, name), ask, messages.OffsetFetchResponse, _fetch_error)
    found: dict[TopicPartition, Offset | None] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            found[TopicPartition(topic.name, partition.partition_index)] = _offset(partition)
    for group in answer.groups:
        for asked_topic in group.topics:
            for each in asked_topic.partitions:
                found[TopicPartition(asked_topic.name, each.partition_index)] = _offset(each)
    return found


def _fetch_error(answer: messages.OffsetFetchResponse) -> int:
    return answer.error_code or next((group.error_code for group in answer.groups if group.error_code), 0)


def _offset(
    partition: messages.OffsetFetchResponse.OffsetFetchResponsePartition
    | messages.OffsetFetchResponse.OffsetFetchResponsePartitions,
) -> Offset | None:
    if partition.error_code == Errors.UNSTABLE_OFFSET_COMMIT:
        return None
    if partition.error_code:
        return Offset(-1, -1, "")
    return Offset(partition.committed_offset, partition.committed_leader_epoch, partition.metadata or "")


@operation
def commit(
    routing: Routing, name: str, offsets: Mapping[TopicPartition, int]
) -> Steps[dict[TopicPartition, KafkaError | None]]:
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
    ask = asking(request, messages.OffsetCommitResponse, at_most=_BY_NAME)
    _, answer = yield from at_coordinator(routing, (GROUP, name), ask, messages.OffsetCommitResponse, _moved)
    return {
        TopicPartition(topic.name, partition.partition_index): KafkaError(
            known(partition.error_code), f"{topic.name}-{partition.partition_index} of group {name}"
        )
        if partition.error_code
        else None
        for topic in answer.topics
        for partition in topic.partitions
    }


def _moved(answer: messages.OffsetCommitResponse) -> int:
    """An OffsetCommit has no error of its own: a coordinator that is none says so of each partition."""
    codes = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    return next((code for code in codes if code in MOVED), 0)


@operation
def delete(routing: Routing, names: Sequence[str]) -> Steps[dict[str, KafkaError | None]]:
    """Empty groups, with their offsets."""
    outcomes: dict[str, KafkaError | None] = {}
    for name in names:
        ask = asking(messages.DeleteGroupsRequest(groups_names=[name]), messages.DeleteGroupsResponse)
        try:
            yield from at_coordinator(
                routing, (GROUP, name), ask, messages.DeleteGroupsResponse, lambda a: a.results[0].error_code
            )
        except (KafkaError, TimedOut) as error:
            outcomes[name] = error if isinstance(error, KafkaError) else KafkaError(Errors.REQUEST_TIMED_OUT, name)
        else:
            outcomes[name] = None
    return outcomes


@operation
def delete_offsets(
    routing: Routing, name: str, places: Sequence[TopicPartition]
) -> Steps[dict[TopicPartition, KafkaError | None]]:
    """Forgets what a group has committed of these partitions (KIP-496). Raises KafkaError."""
    kind = messages.OffsetDeleteRequest
    topics: dict[str, messages.OffsetDeleteRequest.OffsetDeleteRequestTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, kind.OffsetDeleteRequestTopic(name=place.topic))
        topic.partitions.append(kind.OffsetDeleteRequestPartition(partition_index=place.partition))
    ask = asking(kind(group_id=name, topics=list(topics.values())), messages.OffsetDeleteResponse)
    _, answer = yield from at_coordinator(
        routing, (GROUP, name), ask, messages.OffsetDeleteResponse, lambda found: found.error_code
    )
    return {
        TopicPartition(topic.name, partition.partition_index): KafkaError(known(partition.error_code), topic.name)
        if partition.error_code
        else None
        for topic in answer.topics
        for partition in topic.partitions
    }
