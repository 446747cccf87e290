"""Several members of a quorum, each with its own log and disk: elections, replication, snapshots, voters."""

import asyncio
from collections.abc import Callable

import pytest

from ottla.model.errors import Errors
from ottla.protocol import messages
from ottla.raft.roles import Follower, Leader, Resigned
from ottla.runtime.disk import Done, Job
from ottla.runtime.runner import NotLeader
from tests.rules.runtime.raft_scene import (
    Member,
    Wire,
    a_quorum,
    dynamic,
    passed,
    run,
    static,
    the_leader,
    until,
)

SEGMENT = "/data/__cluster_metadata-0/00000000000000000000.log"


def describe() -> "messages.DescribeQuorumRequest":
    kind = messages.DescribeQuorumRequest
    return kind(topics=[kind.TopicData(topic_name="__cluster_metadata", partitions=[kind.PartitionData()])])


def test_three_nodes_elect_one_and_have_the_same_log_to_the_byte() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        leader = await the_leader(members)
        assert asyncio.get_running_loop().time() < 0.5
        await leader.write("orders", "payments")
        await until(lambda: all(m.topics == ["orders", "payments"] for m in members.values()), 0.1)
        assert len({m.storage.read(SEGMENT) for m in members.values()}) == 1
        assert {m.driver.leader_id for m in members.values()} == {leader.id}
        assert {m.driver.leader_address() for m in members.values()} == {leader.address}

    run(main)


def test_when_the_leader_dies_another_leads_within_half_a_second_and_nothing_is_lost() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        old = await the_leader(members)
        await old.write("orders")
        before = asyncio.get_running_loop().time()
        await old.stop()
        new = await the_leader(members)
        assert asyncio.get_running_loop().time() - before < 0.5
        await new.write("payments")
        again = await old.start()
        await until(lambda: again.topics == ["orders", "payments"], 2.0)
        assert isinstance(again.driver.quorum.role, Follower)

    run(main)


def test_records_that_were_never_committed_are_truncated() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        old = await the_leader(members)
        others = [m for m in members.values() if m is not old]
        for other in others:
            await other.stop()
        record = messages.TopicRecord(name="lost", topic_id=bytes(15) + b"l")
        old.driver.append([record])
        old.driver.commit()
        end = old.log.end_offset
        await old.stop()
        for other in others:
            await other.start()
        new = await the_leader({m.id: m for m in others})
        await new.write("kept")
        await old.start()
        await until(lambda: old.topics == ["kept"])
        assert old.log.end_offset >= end
        assert old.storage.read(SEGMENT) == new.storage.read(SEGMENT)

    run(main)


def test_a_leader_is_announced_when_all_before_its_epoch_is_committed_and_told() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        first = await the_leader(members)
        await first.write("orders")
        await first.stop()
        seen: list[list[str]] = []

        def watch(member: Member) -> Callable[[int, int], None]:
            plain = member.leader_changed

            def told(leader_id: int, epoch: int) -> None:
                if leader_id == member.id:
                    seen.append(member.topics)
                    member.driver.append([messages.TopicRecord(name="new", topic_id=bytes(15) + b"n")])
                    member.driver.commit()
                plain(leader_id, epoch)

            return told

        for member in members.values():
            member.leader_changed = watch(member)  # type: ignore[assignment,method-assign]
        second = await the_leader(members)
        assert seen == [["orders"]]
        await until(lambda: second.topics == ["new", "orders"])
        assert second.leaders[-2:] == [(-1, second.driver.epoch), (second.id, second.driver.epoch)]

    run(main)


def test_only_the_leader_appends() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        leader = await the_leader(members)
        other = next(m for m in members.values() if m is not leader)
        with pytest.raises(NotLeader):
            other.driver.append([messages.NoOpRecord()])
        await leader.driver.resign()
        with pytest.raises(NotLeader):
            leader.driver.append([messages.NoOpRecord()])

    run(main)


def test_resigning_hands_leadership_on_at_once() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        old = await the_leader(members)
        await old.write("orders")
        before = asyncio.get_running_loop().time()
        await old.driver.resign()
        assert old.leaders[-1] == (-1, old.driver.epoch) or old.leaders[-1][0] not in (-1, old.id)
        others = {i: m for i, m in members.items() if m is not old}
        new = await the_leader(others)
        assert asyncio.get_running_loop().time() - before < 0.1
        await new.write("payments")
        await until(lambda: old.topics == ["orders", "payments"])

    run(main)


def test_a_leader_without_the_others_gives_up() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        leader = await the_leader(members)
        for other in members.values():
            if other is not leader:
                await other.stop()
        await until(lambda: isinstance(leader.driver.quorum.role, Resigned), 3.1)
        assert leader.leaders[-1] == (-1, leader.driver.epoch)

    run(main)


def test_a_node_that_was_away_for_long_gets_a_snapshot() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        leader = await the_leader(members)
        away = next(m for m in members.values() if m is not leader)
        await leader.write("first")
        await away.stop()
        await leader.write("second")
        leader.take_snapshot()
        await leader.write("third")
        leader.take_snapshot()
        assert leader.log.start_offset > away.log.end_offset
        await leader.write("fourth")
        await away.start()
        await until(lambda: away.topics == ["first", "fourth", "second", "third"])
        assert away.snapshots == [leader.log.latest_snapshot]
        assert away.log.snapshots == leader.log.snapshots
        await away.stop()
        await away.start()
        await until(lambda: away.topics == ["first", "fourth", "second", "third"])

    run(main)


def test_a_large_snapshot_comes_in_pieces() -> None:
    async def main() -> None:
        wire = Wire()
        members = {i: Member(wire, i, static(i, controller_quorum_fetch_snapshot_max_bytes="100")) for i in (1, 2, 3)}
        for i in (1, 2):
            await members[i].start()
        leader = await the_leader(members)
        await leader.write(*[f"topic-{n}" for n in range(40)])
        leader.take_snapshot()
        await members[3].start()
        await until(lambda: members[3].topics == leader.topics)
        assert members[3].snapshots == [leader.log.latest_snapshot]

    run(main)


def test_a_broker_without_the_controller_role_follows_and_never_votes() -> None:
    async def main() -> None:
        wire, members = await a_quorum(1, 2, 3)
        broker = await Member(wire, 9, static(9, roles="broker")).start()
        leader = await the_leader(members)
        await leader.write("orders")
        await until(lambda: broker.topics == ["orders"])
        assert broker.driver.leader_address() == leader.address
        reply = await leader.ask(describe())
        partition = reply.topics[0].partitions[0]
        assert [v.replica_id for v in partition.current_voters] == [1, 2, 3]
        assert [o.replica_id for o in partition.observers] == [9]
        await leader.stop()
        new = await the_leader(members)
        await until(lambda: broker.driver.leader_id == new.id, 2.0)
        await new.write("payments")
        await until(lambda: broker.topics == ["orders", "payments"])

    run(main)


def test_kip_853_controllers_join_by_themselves_and_one_with_a_new_disk_takes_its_old_place() -> None:
    async def main() -> None:
        wire = Wire()
        members = {i: Member(wire, i, dynamic(i, auto_join=True)) for i in (1, 2, 3)}
        for member in members.values():
            await member.start()
        leader = await the_leader(members)
        assert leader.id == 1
        await leader.write("orders")
        await until(lambda: leader.driver.quorum.voters.ids == (1, 2, 3))
        await until(lambda: all(m.driver.quorum.is_voter for m in members.values()))
        await members[3].stop()
        old = members[3].key
        replaced = await Member(wire, 3, dynamic(3, auto_join=True), seed=33).start()
        assert replaced.key != old
        await until(lambda: leader.driver.quorum.voters.has(replaced.key))
        await until(lambda: replaced.topics == ["orders"] and replaced.driver.quorum.is_voter)
        await leader.stop()
        new = await the_leader({2: members[2], 3: replaced})
        await new.write("payments")

    run(main)


def test_kip_853_a_voter_can_be_removed_and_added_by_hand() -> None:
    async def main() -> None:
        wire = Wire()
        members = {i: Member(wire, i, dynamic(i)) for i in (1, 2)}
        for member in members.values():
            await member.start()
        leader = await the_leader(members)
        await leader.write("orders")
        await until(lambda: members[2].topics == ["orders"])
        kind = messages.AddRaftVoterRequest
        two = members[2].key
        listener = kind.Listener(name="CONTROLLER", host="127.0.0.1", port=9002)
        request = kind(voter_id=2, voter_directory_id=two.directory_id, listeners=[listener], timeout_ms=1000)
        assert (await leader.ask(request)).error_code == Errors.NONE
        assert (await leader.ask(request)).error_code == Errors.DUPLICATE_VOTER
        assert members[2].driver.quorum.is_voter
        removal = messages.RemoveRaftVoterRequest(voter_id=1, voter_directory_id=leader.key.directory_id)
        assert (await leader.ask(removal)).error_code == Errors.NONE
        assert await the_leader({2: members[2]}) is members[2]
        await members[2].write("payments")
        await until(lambda: leader.topics == ["orders", "payments"])

    run(main)


def test_a_batch_that_was_damaged_on_the_way_is_fetched_again() -> None:
    async def main() -> None:
        wire, members = await a_quorum(1, 2, 3)
        leader = await the_leader(members)
        wire.to_damage = 2
        await leader.write("orders")
        await until(lambda: all(m.topics == ["orders"] for m in members.values()))
        assert wire.to_damage == 0
        assert [m.error for m in members.values()] == [None] * 3

    run(main)


def test_requests_of_another_cluster_or_about_another_log_are_refused() -> None:
    async def main() -> None:
        _, members = await a_quorum(1, 2, 3)
        member = members[1]
        assert (await member.ask(messages.VoteRequest(cluster_id="other"))).error_code == (
            Errors.INCONSISTENT_CLUSTER_ID
        )
        assert (await member.ask(messages.VoteRequest())).error_code == Errors.INVALID_REQUEST
        kind = messages.FetchRequest
        topic = kind.FetchTopic(topic_id=b"y" * 16, partitions=[kind.FetchPartition()])
        assert (await member.ask(kind(topics=[topic]))).error_code == Errors.INVALID_REQUEST

    run(main)


def test_a_node_with_the_data_of_another_cluster_says_so_once_for_each_node(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        wire, members = await a_quorum(1, 2, 3)
        await the_leader(members)
        await Member(wire, 9, static(9, roles="broker"), cluster_id="another").start()
        await passed(30)

    run(main)
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert sorted(told) == [
        f"the node at 127.0.0.1:900{node_id} belongs to another cluster than another, whose data this node has: "
        "the quorum's addresses or the data directory are wrong"
        for node_id in (1, 2, 3)
    ]


class HeldDisk:
    """Does its work when it is let."""

    def __init__(self) -> None:
        self.held: list[tuple[Job, Done]] = []
        self.holds = False

    def run(self, job: Job, done: Done) -> None:
        if self.holds:
            self.held.append((job, done))
        else:
            job()
            done(None)

    def let(self) -> None:
        self.holds = False
        held, self.held = self.held, []
        for job, done in held:
            job()
            done(None)

    def close(self) -> None: ...


def test_a_vote_leaves_the_node_when_it_is_on_the_disk() -> None:
    async def main() -> None:
        disk = HeldDisk()
        wire = Wire()
        member = await Member(wire, 1, static(1), disk=disk).start()
        disk.holds = True
        kind = messages.VoteRequest
        partition = kind.PartitionData(replica_epoch=5, replica_id=2, last_offset=0, last_offset_epoch=0)
        topic = kind.TopicData(topic_name="__cluster_metadata", partitions=[partition])
        vote = member.ask(kind(topics=[topic]))
        later = member.ask(kind(topics=[topic]))
        await passed(0.05)
        assert not vote.done() and not later.done()
        disk.let()
        answer = await vote
        assert answer.topics[0].partitions[0].vote_granted
        assert b'"votedId":2' in member.storage.read("/data/__cluster_metadata-0/quorum-state")
        assert (await later).topics[0].partitions[0].vote_granted

    run(main)


def test_a_commit_waits_for_the_disks_of_a_majority() -> None:
    async def main() -> None:
        wire = Wire()
        disks = {i: HeldDisk() for i in (1, 2, 3)}
        members = {i: Member(wire, i, static(i), disk=disks[i]) for i in (1, 2, 3)}
        for member in members.values():
            await member.start()
        leader = await the_leader(members)
        await leader.write("orders")
        for disk in disks.values():
            disk.holds = True
        placed = leader.driver.append([messages.TopicRecord(name="new", topic_id=bytes(15) + b"n")])
        leader.driver.commit()
        await passed(0.1)
        assert all(m.log.end_offset == placed.last_offset + 1 for m in members.values())
        disks[leader.id].let()
        await passed(0.1)
        assert leader.driver.high_watermark == placed.last_offset
        next(d for i, d in disks.items() if i != leader.id).let()
        await until(lambda: leader.driver.high_watermark == placed.last_offset + 1, 0.1)

    run(main)


def test_a_vote_that_reaches_the_disk_after_the_member_has_failed_brings_nothing_back() -> None:
    async def main() -> None:
        wire, disk = Wire(), HeldDisk()
        failing = await Member(wire, 1, static(1), disk=disk).start()
        disk.holds = True
        await Member(wire, 2, static(2)).start()
        await until(lambda: bool(disk.held))  # 2 has asked for a vote
        told = list(failing.leaders)
        failing.driver._fail(OSError(5, "the disk is gone"))
        disk.let()
        assert (failing.driver._timer, failing.leaders) == (None, told)

    run(main)


class BrokenDisk(HeldDisk):
    def run(self, job: Job, done: Done) -> None:
        if self.holds:
            done(OSError(5, "the disk is gone"))
        else:
            super().run(job, done)


def test_a_disk_that_fails_ends_this_member_and_the_others_go_on() -> None:
    async def main() -> None:
        wire = Wire()
        disks = {i: BrokenDisk() for i in (1, 2, 3)}
        members = {i: Member(wire, i, static(i), disk=disks[i]) for i in (1, 2, 3)}
        for member in members.values():
            await member.start()
        old = await the_leader(members)
        disks[old.id].holds = True
        old.driver.append([messages.NoOpRecord()])
        old.driver.commit()
        assert isinstance(old.error, OSError)
        with pytest.raises(NotLeader):
            old.driver.append([messages.NoOpRecord()])
        assert (await old.ask(messages.RemoveRaftVoterRequest())).error_code == Errors.BROKER_NOT_AVAILABLE
        old.is_up = False
        wire.lost(old.address)
        new = await the_leader({i: m for i, m in members.items() if m is not old})
        assert isinstance(new.driver.quorum.role, Leader)

    run(main)
