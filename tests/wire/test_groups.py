"""Groups by the byte: every version of every request, and Kafka's error codes for what is wrong.

Like all tests here they can be pointed at Apache Kafka, which has to pass them too.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages as m
from tests.support.requests import create_topic, delete_topic
from tests.support.wire import Deadline, Wire, versions

COORDINATOR_KEYS = {8, 9, 11, 12, 13, 14, 15, 42, 47, 68, 69}

NewTopicName = Callable[[], str]
Protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
SUBSCRIPTION = b"\0\0\0\0\0\0\0\0\0\0"


@pytest.fixture
def group(wire: Wire, new_topic_name: NewTopicName) -> str:
    """The name of a group whose coordinator is ready."""
    name = new_topic_name()
    find(wire, name)
    return name


@pytest.fixture
def read_topic(wire: Wire, topic: str) -> Iterator[str]:
    create_topic(wire, topic, 2)
    yield topic


def find(wire: Wire, group: str, version: int = 6) -> Any:
    """Asks until there is a coordinator: Kafka makes its internal topic while we ask."""
    deadline = Deadline(f"a coordinator for {group}")
    while True:
        request = (
            m.FindCoordinatorRequest(coordinator_keys=[group]) if version >= 4 else m.FindCoordinatorRequest(group)
        )
        answer = wire.ask(request, version)
        found = answer.coordinators[0] if version >= 4 else answer
        unready = (Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS)
        if found.error_code not in unready and settled(wire, group):
            return found
        deadline.check(found)


def settled(wire: Wire, group: str) -> bool:
    answer = wire.ask(m.DescribeGroupsRequest(groups=[group]), 5)
    return answer.groups[0].error_code not in (
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.NOT_COORDINATOR,
        Errors.COORDINATOR_NOT_AVAILABLE,
    )


def join_request(group: str, member: str = "", **fields: Any) -> m.JoinGroupRequest:
    return m.JoinGroupRequest(
        **{
            "group_id": group,
            "member_id": member,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [Protocol(name="range", metadata=SUBSCRIPTION)],
            **fields,
        }
    )


def join(wire: Wire, group: str, version: int = 9, **fields: Any) -> Any:
    """Through both steps where there are two."""
    answer = wire.ask(join_request(group, **fields), version)
    if answer.error_code == Errors.MEMBER_ID_REQUIRED:
        answer = wire.ask(join_request(group, answer.member_id, **fields), version)
    return answer


def sync(wire: Wire, group: str, joined: Any, version: int = 5, assignment: bytes = b"mine", **fields: Any) -> Any:
    request = m.SyncGroupRequest(
        **{
            "group_id": group,
            "member_id": joined.member_id,
            "generation_id": joined.generation_id,
            "protocol_type": "consumer" if version >= 5 else None,
            "protocol_name": "range" if version >= 5 else None,
            "assignments": [
                m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
            ],
            **fields,
        }
    )
    return wire.ask(request, version)


def beat(wire: Wire, group: str, member: str, generation: int, version: int = 4) -> Errors:
    request = m.HeartbeatRequest(group_id=group, member_id=member, generation_id=generation)
    return Errors(wire.ask(request, version).error_code)


def commit(wire: Wire, group: str, topic: str, offset: int, version: int = 9, **fields: Any) -> Errors:
    partition = fields.pop("partition", 0)
    kind = m.OffsetCommitRequest
    asked = kind.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=fields.pop("metadata", "note")
    )
    request = kind(
        group_id=group,
        topics=[
            kind.OffsetCommitRequestTopic(name=topic, topic_id=fields.pop("topic_id", bytes(16)), partitions=[asked])
        ],
        **fields,
    )
    ((answer,),) = [found.partitions for found in wire.ask(request, version).topics]
    return Errors(answer.error_code)


def fetch(wire: Wire, group: str, topic: str | None, version: int = 9, partition: int = 0, **who: Any) -> Any:
    """The group's error, or the partition's (offset, metadata, error)."""
    kind = m.OffsetFetchRequest
    topic_id = who.pop("topic_id", bytes(16))
    if version >= 8:
        asked = kind.OffsetFetchRequestGroup(
            group_id=group,
            topics=None
            if topic is None
            else [
                kind.OffsetFetchRequestTopics(
                    name=topic if version < 10 else "", topic_id=topic_id, partition_indexes=[partition]
                )
            ],
            **who,
        )
        (found,) = wire.ask(kind(groups=[asked]), version).groups
    else:
        found = wire.ask(
            kind(
                group_id=group,
                topics=None
                if topic is None
                else [kind.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])],
            ),
            version,
        )
    if found.error_code:
        return Errors(found.error_code)
    return {
        part.partition_index: (part.committed_offset, part.metadata, Errors(part.error_code))
        for each in found.topics
        for part in each.partitions
    }


# ---- every version


@pytest.mark.parametrize("version", versions(10))
def test_find_coordinator_answers_at_every_version(wire: Wire, group: str, version: int) -> None:
    found = find(wire, group, version)
    assert (found.error_code, found.node_id >= 0, bool(found.host)) == (0, True, True)


@pytest.mark.parametrize("version", versions(11))
def test_join_group_at_every_version(wire: Wire, group: str, version: int) -> None:
    joined = join(wire, group, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, SUBSCRIPTION)]


@pytest.mark.parametrize("version", versions(14))
def test_sync_group_gives_the_assignment_back_unchanged_at_every_version(wire: Wire, group: str, version: int) -> None:
    blob = bytes(range(256))
    joined = join(wire, group)
    answer = sync(wire, group, joined, version, blob)
    assert (answer.error_code, answer.assignment) == (0, blob)


@pytest.mark.parametrize("version", versions(12))
def test_heartbeat_at_every_version(wire: Wire, group: str, version: int) -> None:
    joined = join(wire, group)
    sync(wire, group, joined)
    assert beat(wire, group, joined.member_id, joined.generation_id, version) == Errors.NONE
    assert beat(wire, group, joined.member_id, 7, version) == Errors.ILLEGAL_GENERATION
    assert beat(wire, group, "nobody", 1, version) == Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(13))
def test_leave_group_at_every_version(wire: Wire, group: str, version: int) -> None:
    joined = join(wire, group)
    sync(wire, group, joined)
    codes = []
    for member in ("nobody", joined.member_id):
        request = m.LeaveGroupRequest(group_id=group)
        if version < 3:
            request.member_id = member
        else:
            request.members = [m.LeaveGroupRequest.MemberIdentity(member_id=member)]
        answer = wire.ask(request, version)
        codes.append(answer.error_code if version < 3 else answer.members[0].error_code)
    assert codes == [Errors.UNKNOWN_MEMBER_ID, Errors.NONE]
    assert beat(wire, group, joined.member_id, 1) == Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(8))
def test_offset_commit_at_every_version(wire: Wire, group: str, read_topic: str, version: int) -> None:
    topic_id = describe_id(wire, read_topic)
    assert commit(wire, group, read_topic if version < 10 else "", 5, version, topic_id=topic_id) == Errors.NONE
    assert fetch(wire, group, read_topic) == {0: (5, "note", Errors.NONE)}


@pytest.mark.parametrize("version", versions(9))
def test_offset_fetch_at_every_version(wire: Wire, group: str, read_topic: str, version: int) -> None:
    topic_id = describe_id(wire, read_topic)
    commit(wire, group, read_topic, 5)
    assert fetch(wire, group, read_topic, version, topic_id=topic_id) == {0: (5, "note", Errors.NONE)}
    assert fetch(wire, group, read_topic, version, partition=1, topic_id=topic_id) == {1: (-1, "", Errors.NONE)}
    if version >= 2:
        assert fetch(wire, group, None, version) == {0: (5, "note", Errors.NONE)}


def describe_id(wire: Wire, topic: str) -> bytes:
    (found,) = wire.ask(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)])).topics
    topic_id: bytes = found.topic_id
    return topic_id


@pytest.mark.parametrize("version", versions(15))
def test_describe_groups_at_every_version(wire: Wire, group: str, version: int) -> None:
    joined = join(wire, group)
    sync(wire, group, joined)
    (found,) = wire.ask(m.DescribeGroupsRequest(groups=[group]), version).groups
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id) == (joined.member_id, "wire-test")
    assert (member.client_host, member.member_metadata, member.member_assignment) == (
        "/127.0.0.1",
        SUBSCRIPTION,
        b"mine",
    )


@pytest.mark.parametrize("version", versions(16))
def test_list_groups_at_every_version(wire: Wire, group: str, read_topic: str, version: int) -> None:
    commit(wire, group, read_topic, 1)
    found = [each for each in wire.ask(m.ListGroupsRequest(), version).groups if each.group_id == group]
    assert [(each.protocol_type, each.group_state) for each in found] == [("", "Empty" if version >= 4 else "")]


@pytest.mark.parametrize("version", versions(42))
def test_delete_groups_at_every_version(wire: Wire, group: str, read_topic: str, version: int) -> None:
    commit(wire, group, read_topic, 1)
    codes = [wire.ask(m.DeleteGroupsRequest(groups_names=[group]), version).results[0].error_code for _ in range(2)]
    assert codes == [Errors.NONE, Errors.GROUP_ID_NOT_FOUND]
    assert fetch(wire, group, read_topic) == {0: (-1, "", Errors.NONE)}


# ---- what is wrong gets Kafka's own code


def test_joins_that_are_wrong(wire: Wire, group: str) -> None:
    def code(member: str = "", version: int = 9, **fields: Any) -> Errors:
        return Errors(wire.ask(join_request(fields.pop("group", group), member, **fields), version).error_code)

    assert code(group="") == Errors.INVALID_GROUP_ID
    assert code(session_timeout_ms=1) == Errors.INVALID_SESSION_TIMEOUT
    assert code(session_timeout_ms=2**31 - 1) == Errors.INVALID_SESSION_TIMEOUT
    assert code("nobody") == Errors.UNKNOWN_MEMBER_ID
    assert code(protocols=[]) == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert code(protocol_type="") == Errors.INCONSISTENT_GROUP_PROTOCOL
    joined = join(wire, group)
    sync(wire, group, joined)
    assert code(protocol_type="connect") == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert code(protocols=[Protocol(name="other", metadata=b"")]) == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert code(joined.member_id, group_instance_id="i") == Errors.UNKNOWN_MEMBER_ID


def test_syncs_that_are_wrong(wire: Wire, group: str) -> None:
    joined = join(wire, group)

    def code(**fields: Any) -> Errors:
        return Errors(sync(wire, group, joined, **fields).error_code)

    assert code(group_id="") == Errors.INVALID_GROUP_ID
    assert code(group_id=group + "-unknown") == Errors.UNKNOWN_MEMBER_ID
    assert code(member_id="nobody") == Errors.UNKNOWN_MEMBER_ID
    assert code(generation_id=9) == Errors.ILLEGAL_GENERATION
    assert code(protocol_name="other") == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert code(protocol_type="connect") == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert code(protocol_type=None) == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert code() == Errors.NONE


def test_commits_that_are_wrong(wire: Wire, group: str, read_topic: str) -> None:
    def code(**fields: Any) -> Errors:
        return commit(wire, fields.pop("group", group), fields.pop("topic", read_topic), 1, **fields)

    assert code(group="") == Errors.NONE  # the oldest consumers had no group, and Kafka has kept that
    assert code(topic=read_topic + "-unknown") == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert code(partition=99) == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert code(topic="", version=10, topic_id=b"x" * 16) == Errors.UNKNOWN_TOPIC_ID
    assert code(member_id="m", generation_id_or_member_epoch=1) == Errors.GROUP_ID_NOT_FOUND
    assert code(member_id="m", generation_id_or_member_epoch=1, version=8) == Errors.ILLEGAL_GENERATION
    assert code(metadata="x" * 5000) == Errors.OFFSET_METADATA_TOO_LARGE
    joined = join(wire, group)
    mine = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    assert code(**mine) == Errors.REBALANCE_IN_PROGRESS
    sync(wire, group, joined)
    assert code(**mine) == Errors.NONE
    assert code(**{**mine, "generation_id_or_member_epoch": 9}) == Errors.ILLEGAL_GENERATION
    assert code(**{**mine, "member_id": "nobody"}) == Errors.UNKNOWN_MEMBER_ID
    assert code(**mine, group_instance_id="i") == Errors.UNKNOWN_MEMBER_ID
    assert code() == Errors.UNKNOWN_MEMBER_ID


def test_groups_that_are_in_use_cannot_be_deleted(wire: Wire, group: str) -> None:
    joined = join(wire, group)
    sync(wire, group, joined)
    (result,) = wire.ask(m.DeleteGroupsRequest(groups_names=[group])).results
    assert result.error_code == Errors.NON_EMPTY_GROUP


def test_offset_delete(wire: Wire, group: str, read_topic: str) -> None:
    kind = m.OffsetDeleteRequest

    def code(topic: str, partition: int, group: str = group) -> Errors:
        asked = kind.OffsetDeleteRequestTopic(
            name=topic, partitions=[kind.OffsetDeleteRequestPartition(partition_index=partition)]
        )
        answer = wire.ask(kind(group_id=group, topics=[asked]))
        return Errors(answer.error_code or answer.topics[0].partitions[0].error_code)

    assert code(read_topic, 0) == Errors.GROUP_ID_NOT_FOUND
    commit(wire, group, read_topic, 1)
    assert code(read_topic, 99) == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert code(read_topic + "-unknown", 0) == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert code(read_topic, 0) == Errors.NONE
    assert code(read_topic, 0, "") == Errors.INVALID_GROUP_ID
    assert fetch(wire, group, read_topic) == {0: (-1, "", Errors.NONE)}


def test_many_groups_are_fetched_at_once(wire: Wire, new_topic_name: NewTopicName, read_topic: str) -> None:
    groups = [new_topic_name() for _ in range(5)]
    for index, group in enumerate(groups):
        find(wire, group)
        commit(wire, group, read_topic, index)
    kind = m.OffsetFetchRequest
    asked = [kind.OffsetFetchRequestGroup(group_id=group, topics=None) for group in [*groups, "unknown-group"]]
    answer = wire.ask(kind(groups=asked, require_stable=True), 9)
    assert {
        found.group_id: [part.committed_offset for topic in found.topics for part in topic.partitions]
        for found in answer.groups
    } == {**{group: [index] for index, group in enumerate(groups)}, "unknown-group": []}


def test_offsets_go_with_their_topic(wire: Wire, group: str, topic: str) -> None:
    create_topic(wire, topic)
    commit(wire, group, topic, 7)
    delete_topic(wire, topic)
    deadline = Deadline("the offsets to go")
    while fetch(wire, group, topic) != {0: (-1, "", Errors.NONE)}:
        deadline.check()


# ---- the consumer protocol


def heartbeat(wire: Wire, group: str, epoch: int = 0, version: int = 1, **fields: Any) -> Any:
    first: dict[str, Any] = {}
    if epoch == 0:
        first = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": [], "topic_partitions": []}
    request = m.ConsumerGroupHeartbeatRequest(
        **{"group_id": group, "member_id": "member-1", "member_epoch": epoch, **first, **fields}
    )
    return wire.ask(request, version)


@pytest.mark.parametrize("version", versions(68))
def test_a_member_of_the_consumer_protocol_lives_and_leaves(
    wire: Wire, group: str, read_topic: str, version: int
) -> None:
    joined = heartbeat(wire, group, version=version, subscribed_topic_names=[read_topic])
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "member-1", 2)
    ((topic_id, partitions),) = [
        (topic.topic_id, sorted(topic.partitions)) for topic in joined.assignment.topic_partitions
    ]
    assert (topic_id, partitions) == (describe_id(wire, read_topic), [0, 1])
    again = heartbeat(wire, group, 2, version)
    assert (again.error_code, again.member_epoch, again.assignment) == (0, 2, None)
    mine: dict[str, Any] = {"member_id": "member-1", "generation_id_or_member_epoch": 2}
    assert commit(wire, group, read_topic, 3, **mine) == Errors.NONE
    assert fetch(wire, group, read_topic, member_id="member-1", member_epoch=2) == {0: (3, "note", Errors.NONE)}
    left = heartbeat(wire, group, -1, version)
    assert (left.error_code, left.member_epoch) == (0, -1)


@pytest.mark.parametrize("version", versions(69))
def test_consumer_groups_are_described(wire: Wire, group: str, read_topic: str, version: int) -> None:
    heartbeat(wire, group, subscribed_topic_names=[read_topic])
    request = m.ConsumerGroupDescribeRequest(group_ids=[group, group + "-unknown"])
    described = {each.group_id: each for each in wire.ask(request, version).groups}
    found = described[group]
    assert described[group + "-unknown"].error_code == Errors.GROUP_ID_NOT_FOUND
    assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name) == (
        "Stable",
        2,
        2,
        "uniform",
    )
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.client_id) == ("member-1", 2, "wire-test")
    assert member.subscribed_topic_names == [read_topic]
    ((name, partitions),) = [
        (topic.topic_name, sorted(topic.partitions)) for topic in member.assignment.topic_partitions
    ]
    assert (name, partitions) == (read_topic, [0, 1])
    heartbeat(wire, group, -1)


def test_heartbeats_that_are_wrong(wire: Wire, group: str) -> None:
    def code(epoch: int = 0, **fields: Any) -> Errors:
        return Errors(heartbeat(wire, fields.pop("group", group), epoch, **fields).error_code)

    topic = m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=b"x" * 16, partitions=[0])
    assert code(group="") == Errors.INVALID_REQUEST
    assert code(member_id="") == Errors.INVALID_REQUEST
    assert code(instance_id="") == Errors.INVALID_REQUEST
    assert code(rebalance_timeout_ms=-1) == Errors.INVALID_REQUEST
    assert code(topic_partitions=None) == Errors.INVALID_REQUEST
    assert code(topic_partitions=[topic]) == Errors.INVALID_REQUEST
    assert code(subscribed_topic_names=None) == Errors.INVALID_REQUEST
    assert code(-2) == Errors.INVALID_REQUEST
    assert code(-3) == Errors.INVALID_REQUEST
    assert code(server_assignor="sticky") == Errors.UNSUPPORTED_ASSIGNOR
    assert code(subscribed_topic_regex="(") == Errors.INVALID_REGULAR_EXPRESSION
    assert code(5) == Errors.GROUP_ID_NOT_FOUND
    assert code(-1) == Errors.GROUP_ID_NOT_FOUND
    assert code() == Errors.NONE
    assert code(9) == Errors.FENCED_MEMBER_EPOCH
    assert code(1) == Errors.NONE
    assert code(1, member_id="nobody") == Errors.UNKNOWN_MEMBER_ID
    assert code(0, member_id="static", instance_id="i") == Errors.NONE
    assert code(0, member_id="static-2", instance_id="i") == Errors.UNRELEASED_INSTANCE_ID
    assert code(2, member_id="static-2", instance_id="i") == Errors.FENCED_INSTANCE_ID
    assert code(-1, member_id="static", instance_id="i") == Errors.NONE
    assert code(-1) == Errors.NONE


def test_a_classic_request_meets_a_consumer_group(wire: Wire, group: str, read_topic: str) -> None:
    heartbeat(wire, group, subscribed_topic_names=[read_topic])
    assert beat(wire, group, "member-1", 2) == Errors.UNKNOWN_MEMBER_ID
    assert beat(wire, group, "nobody", 2) == Errors.UNKNOWN_MEMBER_ID
    (found,) = wire.ask(m.DescribeGroupsRequest(groups=[group])).groups
    assert (found.error_code, found.group_state) == (Errors.GROUP_ID_NOT_FOUND, "Dead")
    wrong = wire.ask(join_request(group, protocol_type="connect"), 9)
    assert wrong.error_code == Errors.INCONSISTENT_GROUP_PROTOCOL
    mine: dict[str, Any] = {"member_id": "member-1", "generation_id_or_member_epoch": 2}
    assert commit(wire, group, read_topic, 1, version=8, **mine) == Errors.UNSUPPORTED_VERSION
    assert (
        commit(wire, group, read_topic, 1, **{**mine, "generation_id_or_member_epoch": 7}) == Errors.STALE_MEMBER_EPOCH
    )
    heartbeat(wire, group, -1)
