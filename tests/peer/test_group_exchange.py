"""Groups move with their directory: members, epochs and offsets that one server wrote live on in the other."""

from pathlib import Path
from typing import Any

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages as m
from tests.support.nodes import ApacheKafka, Node, Ottla
from tests.support.requests import create_topic, wait_for_topic
from tests.support.wire import Deadline, Wire

pytestmark = pytest.mark.jvm

TOPIC = "orders"
Heartbeat = m.ConsumerGroupHeartbeatRequest


def ready(wire: Wire, group: str) -> None:
    deadline = Deadline(f"a coordinator of {group}")
    passing = (Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR)
    while True:
        (found,) = wire.ask(m.FindCoordinatorRequest(coordinator_keys=[group])).coordinators
        described = wire.ask(m.DescribeGroupsRequest(groups=[group])).groups[0]
        if found.error_code not in passing and described.error_code not in passing:
            return
        deadline.check(found)


def classic(wire: Wire, group: str) -> tuple[str, int]:
    """A static member of a stable classic group."""
    blob = b"\0\1" + m.ConsumerProtocolSubscription(topics=[TOPIC]).encode(1)
    joined = wire.ask(
        m.JoinGroupRequest(
            group_id=group,
            group_instance_id="instance",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=blob)],
        )
    )
    assert joined.error_code == 0, joined
    synced = wire.ask(
        m.SyncGroupRequest(
            group_id=group,
            member_id=joined.member_id,
            group_instance_id="instance",
            generation_id=joined.generation_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"\0\0mine")
            ],
        )
    )
    assert synced.error_code == 0, synced
    return joined.member_id, joined.generation_id


def heartbeat(wire: Wire, group: str, member: str, epoch: int, **fields: Any) -> Any:
    return wire.ask(Heartbeat(group_id=group, member_id=member, member_epoch=epoch, **fields))


def commit(wire: Wire, group: str, offset: int, member: str = "", epoch: int = -1) -> None:
    kind = m.OffsetCommitRequest
    asked = [kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="note")]
    request = kind(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[kind.OffsetCommitRequestTopic(name=TOPIC, partitions=asked)],
    )
    (topic,) = wire.ask(request, 9).topics
    assert topic.partitions[0].error_code == 0, topic


def offsets(wire: Wire, group: str) -> list[tuple[int, int, str | None]]:
    kind = m.OffsetFetchRequest
    (found,) = wire.ask(kind(groups=[kind.OffsetFetchRequestGroup(group_id=group, topics=None)]), 9).groups
    assert found.error_code == 0, found
    return [
        (part.partition_index, part.committed_offset, part.metadata)
        for topic in found.topics
        for part in topic.partitions
    ]


def described(wire: Wire, group: str) -> Any:
    (found,) = wire.ask(m.ConsumerGroupDescribeRequest(group_ids=[group])).groups
    return found


@pytest.mark.parametrize(("first", "second"), [(Ottla, ApacheKafka), (ApacheKafka, Ottla)], ids=["out", "in"])
def test_groups_live_on_in_the_other_server(first: type[Node], second: type[Node], tmp_path: Path) -> None:
    with first(tmp_path / "first") as node, Wire(node.bootstrap) as wire:
        create_topic(wire, TOPIC, 4)
        for group in ("simple", "classic", "consumer"):
            ready(wire, group)
        commit(wire, "simple", 7)
        member, generation = classic(wire, "classic")
        commit_as = m.OffsetCommitRequest
        asked = [commit_as.OffsetCommitRequestPartition(partition_index=0, committed_offset=8)]
        wire.ask(
            commit_as(
                group_id="classic",
                member_id=member,
                group_instance_id="instance",
                generation_id_or_member_epoch=generation,
                topics=[commit_as.OffsetCommitRequestTopic(name=TOPIC, partitions=asked)],
            ),
            9,
        )
        joined = heartbeat(
            wire,
            "consumer",
            "modern",
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        assert joined.error_code == 0, joined
        commit(wire, "consumer", 9, "modern", joined.member_epoch)
        before = described(wire, "consumer")
        data = node.data
    with second(tmp_path / "second", data) as node, Wire(node.bootstrap) as wire:
        wait_for_topic(wire, TOPIC, 4)
        for group in ("simple", "classic", "consumer"):
            ready(wire, group)
        assert offsets(wire, "simple") == [(0, 7, "note")]
        assert [offset for _, offset, _ in offsets(wire, "classic")] == [8]
        assert offsets(wire, "consumer") == [(0, 9, "note")]
        beat = m.HeartbeatRequest(
            group_id="classic", member_id=member, group_instance_id="instance", generation_id=generation
        )
        assert wire.ask(beat).error_code == Errors.NONE
        (found,) = wire.ask(m.DescribeGroupsRequest(groups=["classic"])).groups
        assert (found.group_state, [each.member_assignment for each in found.members]) == ("Stable", [b"\0\0mine"])
        after = described(wire, "consumer")
        assert (after.members, after.group_epoch) == (before.members, before.group_epoch)
        again = heartbeat(wire, "consumer", "modern", joined.member_epoch)
        # Both compute the same hash of the same topics: there is nothing to assign afresh.
        assert (again.error_code, again.member_epoch) == (Errors.NONE, joined.member_epoch), again
        assert described(wire, "consumer").group_epoch == before.group_epoch
        commit(wire, "consumer", 10, "modern", again.member_epoch)
        assert offsets(wire, "consumer") == [(0, 10, "note")]
